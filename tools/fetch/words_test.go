package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
)

// Addresses are taken as models write them, those of the web alone.
func TestAddresses(t *testing.T) {
	long := "https://example.com/" + strings.Repeat("x", maxURL-len("https://example.com/"))
	for in, want := range map[string]string{
		"https://example.com/a?b=c#d": "https://example.com/a?b=c", " example.com/x ": "https://example.com/x",
		"http://localhost:8080": "http://localhost:8080", long: long, long + "x": "!the address is too long",
		"localhost": "!\"\" is not a web address", "ftp://example.com": "!\"ftp\" is not a web address",
		"file:///etc/passwd": "!\"file\" is not a web address", "http://": "!the address names no host",
		"http://:80/": "!the address names no host", "http://ada:pw@example.com": "!an address with a user name",
		"http://[::1": "!that is not an address", "": "!\"\" is not a web address",
	} {
		u, err := address(in)
		if wrong, fails := strings.CutPrefix(want, "!"); fails {
			if err == nil || !strings.HasPrefix(err.Error(), wrong) {
				t.Errorf("%.60q: %v, %v, want %q", in, u, err, wrong)
			}
		} else if err != nil || u.String() != want {
			t.Errorf("%.60q: %v, %v, want %.60q", in, u, err, want)
		}
	}
}

// What a server says in a header is one short line when a model reads it.
func TestHeadersAreCleaned(t *testing.T) {
	for in, want := range map[string]string{"30": "30", "a\r\nb\x00\x1b[c": "ab[c", "a\xffb": "ab", "ä b": "ä b",
		strings.Repeat("x", 61): strings.Repeat("x", 60)} {
		if got := clean(in); got != want {
			t.Errorf("%q is cleaned to %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"30": " seconds", "Fri, 20 Nov 2026 18:00:00 GMT": "", "": ""} {
		if got := secondsOf(in); got != want {
			t.Errorf("%q has the unit %q", in, got)
		}
	}
}

// A text that was cut in the middle of a character is still read as what it is.
func TestATextCutInACharacter(t *testing.T) {
	for in, want := range map[string]int{"Köln": 5, "K\xc3": 1, "€\xe2\x82": 3, "😀\xf0\x9f\x98": 4, "😀": 4, "a\xff": 2, "": 0, "\xc3": 0,
		"\x82\x82\x82\x82": 4} {
		if got := len(whole([]byte(in))); got != want {
			t.Errorf("%q is whole up to %d, want %d", in, got, want)
		}
	}
}

// A page says its charset in its beginning.
func TestWhatAPageSaysOfItsCharset(t *testing.T) {
	for in, want := range map[string]string{
		`<meta charset="UTF-8">`: "utf-8", `<meta charset=latin1>`: "latin1", `<meta content="text/html; charset=koi8-r">`: "koi8-r",
		`<meta charset = 'x'>`: "", `<?xml encoding="utf-8"?>`: "", `charset=endless`: "", `<meta charset='big5'/>`: "big5",
		strings.Repeat(" ", 2048) + `<meta charset="utf-8">`: "", strings.Repeat(" ", 2000) + `<meta charset="utf-8">`: "utf-8",
	} {
		if got := declared([]byte(in)); got != want {
			t.Errorf("%q says %q, want %q", strings.TrimSpace(in), got, want)
		}
	}
}

// Bytes become text by their mark, else by what is said of them, else by what they look like.
func TestBytesBecomeText(t *testing.T) {
	for _, tt := range []struct{ body, charset, want string }{
		{"\xff\xfeK\x00", "utf-8", "K"}, {"\xfe\xff\x00K", "utf-8", "K"}, {"K\xf6", "", "Kö"}, {"K\xf6", "ISO-8859-1", "Kö"},
		{"Kö", "iso-8859-1", "Kö"}, {"K\xf6", "utf-8", "K\uFFFD"}, {"K\xf6", "nonsense", "K\uFFFD"}, {"K\x00", "UTF-16LE", "K"},
		{"\x1b$BF|\x1b(B", "iso-2022-jp", "日"}, {"K\xc3", "", "K\uFFFD"}, {"\uFEFFK", "", "K"},
		{"<meta charset=koi8-r>\xd0\xd1", "", "<meta charset=koi8-r>пя"},
	} {
		if got := decode([]byte(tt.body), tt.charset); got != tt.want {
			t.Errorf("%q as %q is %q, want %q", tt.body, tt.charset, got, tt.want)
		}
	}
}

// What went wrong is said in words that help, without what only programs know.
func TestWhatWentWrongIsSaid(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
	defer stop()
	there, _ := url.Parse("https://other.example/x")
	for _, tt := range []struct {
		ctx    context.Context
		err    error
		status tools.Status
		want   string
	}{
		{t.Context(), &url.Error{Op: "Get", URL: "u", Err: errHost{there}}, tools.Denied,
			"call web_fetch with that address (it needs @web:other.example)"},
		{t.Context(), &Inside{permission.Lan{Host: "nas", Port: 80}}, tools.Denied,
			"nas is this machine or in its network. Ask with request_permission for @lan:nas:80."},
		{t.Context(), fmt.Errorf("x: %w", ErrPrivate), tools.Denied, "The host is at an address that no agent may reach"},
		{late, late.Err(), tools.TimedOut, "did not answer within 30s"},
		{gone, gone.Err(), tools.Canceled, "Cancelled"},
		{t.Context(), &url.Error{Op: "Get", URL: "u", Err: &net.DNSError{Name: "nowhere.example"}}, tools.Failed,
			"There is no host nowhere.example."},
		{t.Context(), &url.Error{Op: "Get", URL: "https://secret", Err: errors.New("connection refused")}, tools.Failed,
			"web_fetch: connection refused"},
	} {
		res := failed(tt.ctx, permission.Set{}, tt.err)
		if res.Status != tt.status || !strings.Contains(res.Text, tt.want) || strings.Contains(res.Text, "secret") {
			t.Errorf("%v: %q %q, want %q %q", tt.err, res.Status, res.Text, tt.status, tt.want)
		}
	}
}

// A text has so many characters, whatever it is in bytes; a page of scripts may be asked for
// as it is.
func TestHowMuchOfAnAnswerIsShown(t *testing.T) {
	s := site(t, map[string]func(http.ResponseWriter){
		"/whole":  page("text/plain; charset=utf-8", strings.Repeat("ö", maxText)),
		"/more":   page("text/plain; charset=utf-8", strings.Repeat("ö", maxText+1)),
		"/most":   page("text/plain; charset=utf-8", strings.Repeat("x", maxBody)),
		"/beyond": page("text/plain; charset=utf-8", strings.Repeat("x", maxBody+1)),
		"/app":    page("application/xhtml+xml", "<title>T</title><script>go()</script>"),
		"/js":     page("application/javascript", "go()"), "/yaml": page("application/yaml", "a: 1"),
		"/svg": page("image/svg+xml", "<svg/>"), "/ld": page("application/ld+json", "{}"),
		"/zip": page("application/zip", "PK"), "/gone": func(w http.ResponseWriter) { w.WriteHeader(400); io.WriteString(w, "no") },
		"/retry": func(w http.ResponseWriter) { w.Header().Set("Retry-After", "30"); io.WriteString(w, "fine") },
		"/same":  func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "identity"); io.WriteString(w, "fine") },
	})
	for path, want := range map[string]string{
		"/whole": strings.Repeat("ö", 10), "/more": "[the first 200000 of 200001 characters]", "/most": "text/plain\n\nxxx",
		"/beyond": "text/plain, the first 5 MB\n\nxxx", `/app","raw":true,"url":"/app`: "\n\n<title>T</title><script>go()</script>",
		"/js": "\n\ngo()", "/yaml": "\n\na: 1", "/svg": "\n\n<svg/>", "/ld": "\n\n{}",
		"/zip":  "[2 bytes that are not text; they cannot be shown]",
		"/gone": "400 Bad Request, text/plain\n\nno", "/retry": "200 OK, text/plain\n\nfine", "/same": "\n\nfine",
	} {
		res := fetched(t, s.URL, path)
		if !strings.Contains(res.Text, want) || strings.Contains(res.Text, "characters]") != (path == "/more" || path == "/most" ||
			path == "/beyond") ||
			(res.Status == tools.Failed) != (path == "/zip" || path == "/gone") {
			t.Errorf("%s: %q %.200s, want %q", path, res.Status, res.Text, want)
		}
	}
}

// A picture is kept under the name in its address; without a place to keep it that is said.
func TestPictures(t *testing.T) {
	const png = "\x89PNG\r\n\x1a\n"
	s := site(t, map[string]func(http.ResponseWriter){"/": page("image/png", png), "/a/cat.png": page("image/png", png),
		"/lost.png": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "image/png")
			w.WriteHeader(404)
			io.WriteString(w, png)
		},
		"/large.png": page("image/png", png+strings.Repeat("x", maxBody))})
	full := false
	f := &fetch{Options{Keep: func(name, mimeType string, data []byte) (message.File, error) {
		if full {
			return message.File{}, errors.New("the disk is full")
		}
		return message.File{Name: name, MimeType: mimeType, Size: int64(len(data))}, nil
	}}}
	get := func(f *fetch, path string) tools.Result {
		res, err := f.Run(t.Context(), tools.Call{Arguments: fmt.Appendf(nil, `{"url":%q}`, s.URL+path), Access: local(s.URL)})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for path, name := range map[string]string{"/": "picture", "": "picture", "/a/cat.png": "cat.png"} {
		if res := get(f, path); len(res.Blocks) != 1 || res.Blocks[0].File.Name != name || res.Blocks[0].File.Size != 8 {
			t.Errorf("%q: %+v", path, res)
		}
	}
	full = true
	for path, want := range map[string]string{"/a/cat.png": "the picture cannot be kept: the disk is full", "/lost.png": "not text",
		"/large.png": "not text"} {
		if res := get(f, path); res.Status != tools.Failed || !strings.Contains(res.Text, want) {
			t.Errorf("%s: %+v", path, res)
		}
	}
	if res := get(&fetch{}, "/a/cat.png"); res.Status != tools.Failed || !strings.Contains(res.Text, "it cannot be shown here") {
		t.Errorf("%+v", res)
	}
}

// What a page is about is its largest article, or its main part, where that has enough of
// its text.
func TestWhatAPageIsAbout(t *testing.T) {
	base, _ := url.Parse("https://example.com/")
	x := func(c string, n int) string { return strings.Repeat(c, n) }
	for name, tt := range map[string]struct{ html, has, not string }{
		"a main part":               {"<div>" + x("s", 400) + "</div><main>" + x("m", 201) + "</main>", "m", "s"},
		"one that is too short":     {"<div>s</div><main>" + x("m", 200) + "</main>", "sm", ""},
		"one of less than a third":  {"<div>" + x("s", 500) + "</div><main>" + x("m", 250) + "</main>", "sm", ""},
		"an article in it":          {"<main>" + x("m", 300) + "<article>" + x("a", 301) + "</article></main>", "a", "m"},
		"a small article in it":     {"<main>" + x("m", 600) + "<article>" + x("a", 500) + "</article></main>", "ma", ""},
		"two articles, the larger":  {"<article>" + x("a", 400) + "</article><article>" + x("b", 500) + "</article>", "b", ""},
		"an article without a main": {"<div>s</div><article>" + x("a", 201) + "</article>", "a", "s"},
		"nothing of the kind":       {"<div>s</div><p>t", "st", ""},
	} {
		_, text := markdown("<body>"+tt.html, base)
		for _, c := range tt.has {
			if !strings.ContainsRune(text, c) {
				t.Errorf("%s: %.90q lacks %c", name, text, c)
			}
		}
		if strings.ContainsAny(text, tt.not) {
			t.Errorf("%s: %.90q has %s", name, text, tt.not)
		}
	}
}

// A page that cannot be converted comes as plain text, without its scripts.
func TestAPageAsPlainText(t *testing.T) {
	for in, want := range map[string]string{
		"<p>a<b>b</b><script>x<y</script><p>c": "ab\nc", "a<br>b": "ab", "<div>a</div>b": "a\nb", "<style>x</style>a": "a",
		"<nav>x</nav>a": "a", "a &amp; b": "a & b", "": "",
	} {
		if got := strings.Join(strings.FieldsFunc(plain(in), func(r rune) bool { return r == '\n' }), "\n"); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	base, _ := url.Parse("https://example.com/")
	if _, text := markdown(strings.Repeat("<div>", 2000)+"deep", base); !strings.Contains(text, "deep") {
		t.Errorf("a deep page gives %.100q", text)
	}
	if got := bounded(strings.Repeat("<b", maxTags) + "x<i"); !strings.HasSuffix(got, "x") {
		t.Errorf("a page of many tags ends with %q", got[len(got)-9:])
	}
	for html, want := range map[string]int{"<table><tr><td>1<td>2<tr><th>3<td>4<th>5</table>": 3, "<table></table>": 0} {
		if _, text := markdown(html, base); strings.Count(strings.Split(text, "\n")[0], "|")-1 != want && want > 0 {
			t.Errorf("%s: %q, want %d columns", html, text, want)
		}
	}
	for html, want := range map[string]string{`<a href="mailto:a@b.c">m</a>`: "[m](mailto:a@b.c)",
		`<a href=" /x (y) ">p</a>`: "[p](https://example.com/x%20%28y%29)",
		`<a href="http://[">b</a>`: "b", `<a href="">e</a>`: "e", `<a href="/x"></a>z`: "z", `<img src="" alt="a">z`: "z",
		`<a href="ftp://x.org">f</a>`: "f"} {
		if _, text := markdown(html, base); text != want {
			t.Errorf("%s: %q, want %q", html, text, want)
		}
	}
}

// A search shows as many results as are asked for, eight by default, with a part of each.
func TestHowManyResultsAreShown(t *testing.T) {
	var list strings.Builder
	for n := range 25 {
		fmt.Fprintf(&list, `,{"title":"T%d","url":"u","content":%q}`, n, strings.Repeat("ä", 499+n))
	}
	asked := ""
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = string(body)
		fmt.Fprintf(w, `{"results":[%s]}`, list.String()[1:])
	}))
	defer s.Close()
	tool := &search{Service{Name: "tavily", URL: s.URL, Key: func() string { return "k" }}}
	for count, want := range map[string]int{"": 8, `,"count":3`: 3, `,"count":20`: 20, `,"count":99`: 20, `,"count":0.5`: 8,
		`,"count":1`: 1} {
		res, err := tool.Run(t.Context(), tools.Call{Arguments: []byte(`{"query":" cats "` + count + `}`)})
		if err != nil || strings.Count(res.Text, "   u\n") != want || !strings.Contains(asked, fmt.Sprintf(`"max_results":%d`, want)) ||
			res.Source != `what web_search found for "cats"` {
			t.Errorf("%q: %d results, asked %s, source %s, %v, want %d", count, strings.Count(res.Text, "   u\n"), asked,
				res.Source, err, want)
		}
		if strings.Count(res.Text, "…") != max(0, want-2) || strings.Contains(res.Text, strings.Repeat("ä", 501)) {
			t.Errorf("%q: %d results are cut", count, strings.Count(res.Text, "…"))
		}
	}
	if got := shown(nil, 5); got != "[nothing was found]" {
		t.Errorf("nothing is %q", got)
	}
	for query, ok := range map[string]bool{strings.Repeat("x", 1000): true, strings.Repeat("x", 1001): false, " ": false} {
		res, err := tool.Run(t.Context(), tools.Call{Arguments: fmt.Appendf(nil, `{"query":%q}`, query)})
		if err != nil || (res.Status != tools.Failed) != ok {
			t.Errorf("a query of %d: %q %s, %v", len(query), res.Status, res.Text, err)
		}
	}
}

// What a search service answers in place of results is said, and who can change it.
func TestWhatASearchServiceRefuses(t *testing.T) {
	for want, answer := range map[string]func(w http.ResponseWriter){
		"brave: it answered 429 Too Many Requests, to be asked again after 7 seconds": func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		},
		"brave: it answered 401 Unauthorized: its key is not accepted": func(w http.ResponseWriter) { w.WriteHeader(401) },
		"brave: it answered 403 Forbidden: its key is not accepted":    func(w http.ResponseWriter) { w.WriteHeader(403) },
		"brave: it answered 500 Internal Server Error": func(w http.ResponseWriter) {
			w.WriteHeader(500)
			io.WriteString(w, "{}")
		},
		"brave: it answered 200 OK": func(w http.ResponseWriter) { io.WriteString(w, "<html>") },
		"brave: unexpected EOF": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length",
				"99")
			io.WriteString(w, "{}")
		},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		tool := &search{Service{Name: "brave", URL: s.URL, Key: func() string { return "k" }}}
		res, err := tool.Run(t.Context(), tools.Call{Arguments: []byte(`{"query":"x"}`)})
		if err != nil || res.Status != tools.Failed || !strings.HasPrefix(res.Text, "web_search: "+want) ||
			strings.Contains(res.Text, s.URL) {
			t.Errorf("%+v, %v, want %q", res, err, want)
		}
		s.Close()
		res, err = tool.Run(t.Context(), tools.Call{Arguments: []byte(`{"query":"secretwords"}`)})
		if err != nil || res.Status != tools.Failed || strings.Contains(res.Text, "secretwords") {
			t.Errorf("of a server that is gone: %+v, %v", res, err)
		}
	}
	for _, s := range []Service{{Name: "none", URL: "http://127.0.0.1:1"}, {Name: "brave", URL: "http://[::1"},
		{Name: "exa", URL: "http://[::1"}} {
		s.Key = func() string { return "k" }
		if res, err := (&search{s}).Run(t.Context(), tools.Call{Arguments: []byte(`{"query":"x"}`)}); err != nil ||
			res.Status != tools.Failed {
			t.Errorf("%s: %+v, %v", s.Name, res, err)
		}
	}
	if _, err := (&search{Service{Name: "brave", URL: "http://[::1"}}).Needs(tools.Call{}); err == nil {
		t.Error("an address that is none needs nothing")
	}
	need, err := (&search{Service{Name: "brave"}}).Needs(tools.Call{})
	if err != nil || need == nil || need.Tag != "@web:api.search.brave.com" {
		t.Errorf("a service out there needs %+v, %v", need, err)
	}
	if need, err := (&search{Service{Name: "brave"}}).Needs(tools.Call{Access: permission.Set{Web: true}}); err != nil || need != nil {
		t.Errorf("who may reach it needs %+v, %v", need, err)
	}
	for _, o := range []Options{{}, {Search: &Service{Name: "exa"}}} {
		if n := len(New(o)); (n == 2) != (o.Search != nil) {
			t.Errorf("%d tools with the service %+v", n, o.Search)
		}
	}
}

// Who may reach a search service is asked for nothing by a redirect: a key is sent nowhere else.
func TestAKeyIsNotSentElsewhere(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer other.Close()
	s := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusFound))
	defer s.Close()
	tool := &search{Service{Name: "brave", URL: s.URL, Key: func() string { return "k" }}}
	if res, err := tool.Run(t.Context(), tools.Call{Arguments: []byte(`{"query":"x"}`)}); err != nil ||
		!strings.Contains(res.Text, "302 Found") {
		t.Errorf("%+v, %v", res, err)
	}
}

// A table of two columns stays one, whatever its cells are; one of a single column is for the
// layout.
func TestWhichTablesStay(t *testing.T) {
	base, _ := url.Parse("https://example.com/")
	for html, want := range map[string]bool{"<table><tr><td>1<td>2</table>": true, "<table><tr><th>1<th>2</table>": true,
		"<table><tr><td>1<tr><td>2</table>": false,
		"<table><tr><th>1</table>":          false} {
		if _, text := markdown(html, base); strings.Contains(text, "|") != want {
			t.Errorf("%s becomes %q", html, text)
		}
	}
}

// A redirect that carries a name, or leads out of the web, is not followed.
func TestRedirectsThatAreNotFollowed(t *testing.T) {
	for _, to := range []string{"http://u:p@127.0.0.1/", "ftp://127.0.0.1/x"} {
		s := httptest.NewServer(http.RedirectHandler(to, http.StatusFound))
		res := fetched(t, s.URL, "/")
		if res.Status != tools.Failed || !strings.Contains(res.Text, "which is not fetched") || strings.Contains(res.Text, "u:p@") {
			t.Errorf("to %s: %q %s", to, res.Status, res.Text)
		}
		s.Close()
	}
}

// A search that is stopped says so; a question is sent as JSON.
func TestASearchThatIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	kind := ""
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		kind = r.Header.Get("Content-Type") + " " + r.Header.Get("Accept") + " " + r.Header.Get("User-Agent")
		io.Copy(io.Discard, r.Body)
		cancel()
		<-r.Context().Done()
	}))
	defer s.Close()
	tool := &search{Service{Name: "exa", URL: s.URL, Key: func() string { return "k" }}}
	res, err := tool.Run(ctx, tools.Call{Arguments: []byte(`{"query":"x"}`)})
	if err != nil || res.Status != tools.Canceled || kind != "application/json application/json "+userAgent {
		t.Errorf("%+v, %v; sent with %q", res, err, kind)
	}
}
