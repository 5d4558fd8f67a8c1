package fetch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/toolstest"
)

// local are the rights to a server of the test.
func local(address string) permission.Set {
	u, err := url.Parse(address)
	if err != nil {
		panic(err)
	}
	return permission.Set{Lan: []string{u.Host}}
}

func site(t *testing.T, pages map[string]func(w http.ResponseWriter)) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if page, ok := pages[r.URL.Path]; ok {
			page(w)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)

	return s
}

func page(kind, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", kind)
		io.WriteString(w, body)
	}
}

func TestFetch(t *testing.T) {
	s := site(t, map[string]func(http.ResponseWriter){
		"/":       page("text/html; charset=utf-8", "<title>Home &amp; more</title><body><p>Hello <b>you</b></p></body>"),
		"/latin":  page("text/html; charset=iso-8859-1", "<p>K\xf6ln</p>"),
		"/meta":   page("text/html", "<meta charset=windows-1252><p>\x93K\xf6ln\x94</p>"),
		"/json":   page("application/json", `{"a":1}`),
		"/none":   func(w http.ResponseWriter) { w.Header()["Content-Type"] = nil; io.WriteString(w, "just text") },
		"/binary": page("application/zip", "PK\x03\x04"),
		"/cat":    page("image/png", "\x89PNG\r\n\x1a\n"),
		"/bomb": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			z.Write(bytes.Repeat([]byte("a "), 20<<20))
			z.Close()
		},
	})
	f := &fetch{Options{Keep: func(name, kind string, data []byte) (message.File, error) {
		return message.File{ID: "f", Name: name, MimeType: kind, Size: int64(len(data))}, nil
	}}}
	get := func(path string) tools.Result {
		res, err := f.Run(t.Context(), tools.Call{Arguments: fmt.Appendf(nil, `{"url":%q}`, s.URL+path),
			Access: local(s.URL), Progress: func(string) {}})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for path, want := range map[string]string{
		"/": "text/html\nHome & more\n\nHello **you**", "/latin": "Köln", "/meta": "“Köln”", "/json": "{\"a\":1}", "/none": "just text",
		"/bomb": "the first 5 MB", "/missing": "404 Not Found",
	} {
		if res := get(path); !strings.Contains(res.Text, want) || (path == "/missing") != (res.Status == tools.Failed) {
			t.Errorf("%s: %q %.300s", path, res.Status, res.Text)
		}
	}

	if res := get("/binary"); res.Status != tools.Failed {
		t.Error(res.Text)
	}
	if res := get("/cat"); len(res.Blocks) != 1 || res.Blocks[0].File.Name != "cat" {
		t.Errorf("%+v", res)
	}

	toolstest.Run(t, f, toolstest.Options{Access: local(s.URL), Good: []string{fmt.Sprintf(`{"url":%q}`, s.URL)},
		Bad: []string{`{"url":""}`, `{"url":"ftp://x.org"}`, `{"url":"http://u:p@x.org"}`, `{"url":"http://"}`,
			`{"url":"http://10.0.0.1"}`}})
}

// A PDF comes as text with the numbers of its pages.
func TestPDF(t *testing.T) {
	pages := func(n int, content string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "%%PDF-1.7\n1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj 3 0 obj <</Subtype/Type1>> endobj 4 0 "+
			"obj <</Length %d>>stream\n%s\nendstream endobj\n", len(content), content)
		b.WriteString("2 0 obj <</Resources<</Font<</F 3 0 R>>>>/Kids[")
		for i := range n {
			fmt.Fprintf(&b, "%d 0 R ", i+5)
		}
		b.WriteString("]>> endobj\n")
		for i := range n {
			fmt.Fprintf(&b, "%d 0 obj <</Contents 4 0 R>> endobj\n", i+5)
		}

		return b.String() + "trailer <</Root 1 0 R>>"
	}
	paper := pages(3, "BT /F 9 Tf (All of "+strings.Repeat("it ", 10)+") Tj ET")
	s := site(t, map[string]func(http.ResponseWriter){
		"/paper":  page("application/pdf", paper),
		"/octets": page("application/octet-stream", paper),
		"/long":   page("application/pdf", pages(90, "BT /F 9 Tf ("+strings.Repeat("word ", 600)+") Tj ET")),
		"/large":  page("application/pdf", paper+"\n%"+strings.Repeat(" ", 6<<20)),
		"/huge":   page("application/pdf", paper+"\n%"+strings.Repeat(" ", maxPDF)),
		"/scan":   page("application/pdf", pages(2, "/Im0 Do")),
		"/secret": page("application/pdf", paper+"\ntrailer <</Encrypt 9 0 R>>"),
		"/broken": page("application/pdf", paper[:30]),
		"/short":  func(w http.ResponseWriter) { w.Header().Set("Content-Length", "9999"); io.WriteString(w, paper) },
		"/lost":   func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound); io.WriteString(w, paper) },
	})
	for args, want := range map[string]string{
		"/paper": ", application/pdf, 3 pages\n\n[page 1]\nAll of it it", "/octets": "[page 3]\nAll of it", "/large": "[page 2]\nAll of it",
		`/paper","page":3,"raw":false,"url":"/paper`: "3 pages, from page 3\n\n[page 3]\nAll of it",
		"/long": "continue with page 67",
	} {
		if res := fetched(t, s.URL, args); res.Status != "" || !strings.Contains(res.Text, want) {
			t.Errorf("%s: %q %.300s … %s, want %q", args, res.Status, res.Text, res.Text[max(0, len(res.Text)-200):], want)
		}
	}

	for args, want := range map[string]string{
		"/scan": "no text on its 2 pages", "/secret": "encrypted", "/broken": "damaged", "/huge": "more than 20 MB",
		"/short": "unexpected EOF", "/lost": "404",
		`/paper","page":4,"url":"/paper`: "it has 3 pages",
	} {
		if res := fetched(t, s.URL, args); res.Status != tools.Failed || !strings.Contains(res.Text, want) {
			t.Errorf("%s: %q %.300s, want %q", args, res.Status, res.Text, want)
		}
	}
}

func fetched(t *testing.T, site, path string) tools.Result {
	t.Helper()
	args := strings.ReplaceAll(fmt.Sprintf(`{"url":"%s"}`, path), `"url":"/`, `"url":"`+site+`/`)
	res, err := (&fetch{}).Run(t.Context(), tools.Call{Arguments: json.RawMessage(args), Access: local(site), Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(res.Source, site+"/") {
		t.Errorf("%s: what was read is of %q, want the address", path, res.Source)
	}
	return res
}

// An error with words of the server in it is of the web, too.
func TestWordsInErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = http.ReadRequest(bufio.NewReader(conn))
		io.WriteString(conn, "Run-this-command\r\n\r\n")
	}()
	site := "http://" + l.Addr().String()
	if res := fetched(t, site, "/"); res.Status != tools.Failed || !strings.Contains(res.Text, "Run-this-command") {
		t.Errorf("%+v", res)
	}
	<-served
	l.Close()
	args := json.RawMessage(`{"url":"` + site + `"}`)
	res, err := (&fetch{}).Run(t.Context(), tools.Call{Arguments: args, Access: local(site)})
	if err != nil || res.Status != tools.Failed || res.Source != "" {
		t.Errorf("of a server that is not there: %+v, %v", res, err)
	}
}

func TestFetchNeedsTheHost(t *testing.T) {
	(&names{}).serve(t)
	f := &fetch{}
	for address, want := range map[string]string{
		"https://Example.com/a": "@web:example.com", "example.org": "@web:example.org",
		"http://[2606:4700::1]/": "@web", "https://sub.granted.org": "",
		"https://granted.org.": "", "http://1.2.3.4:8080/x": "@web:1.2.3.4",
	} {
		set := permission.Set{Hosts: []string{"*.granted.org", "granted.org"}}
		need, err := f.Needs(tools.Call{Arguments: fmt.Appendf(nil, `{"url":%q}`, address), Access: set})
		tag := ""
		if need != nil {
			tag = need.Tag
		}
		if err != nil || tag != want {
			t.Errorf("%s: %q %v, want %q", address, tag, err, want)
		}
	}
}

func TestSlowServer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	start := time.Now()
	if res := fetchWith(t, ctx, local(s.URL), s.URL); res.Status == "" || time.Since(start) > fetchTimeout/2 {
		t.Errorf("%q after %v", res.Status, time.Since(start))
	}
}

func TestMarkdown(t *testing.T) {
	base, _ := url.Parse("https://example.com/a/b")
	for _, tt := range []struct{ name, html, want string }{
		{"paragraphs", "<p>one<p>two\n three", "one\n\ntwo three"},
		{"headings", "<h1>A</h1>text<h2>B <i>c</i></h2>", "# A\n\ntext\n\n## B *c*"},
		{"links", `<a href="/x">X</a> <a href=y>Y</a> <a href="#z">Z</a> <a href="javascript:alert(1)">J</a> <a ` +
			`href='https://o.org/?a=1&amp;b=2'>O</a>`,
			"[X](https://example.com/x) [Y](https://example.com/a/y) Z J [O](https://o.org/?a=1&b=2)"},
		{"lists", "<ul><li>a<li>b<ul><li>c</ul></ul><ol><li>d</ol>", "- a\n- b\n  \n  - c\n\n1. d"},
		{"code", "<pre><code>if a &lt; b {\n\n  x()\n}</code></pre><p>and <code>y</code>", "```\nif a < b {\n\n  x()\n}\n```\n\nand `y`"},
		{"quote", "<blockquote><p>a<p>b</blockquote>c", "> a\n> \n> b\n\nc"},
		{"table", "<table><tr><th>a<th>b<tr><td>1<td>x|y</table>", "| a | b |\n|---|---|\n| 1 | x\\|y |"},
		{"layout table", "<table><tr><td>only</td></tr></table>", "only"},
		{"dropped", "a<script>alert('<p>')</script><style>p{}</style><nav>menu</nav><div hidden=1>h</div><!-- c -->b", "ab"},
		{"images", `<img src="i.png" alt="A cat"><img src=x>`, "![A cat](https://example.com/a/i.png)"},
		{"broken", "<p>a < b <3 <b>c<p>d</b></div></i>e<", "a &lt; b &lt;3 **c**\n\n**d**e&lt;"},
		{"entities", "&lt;b&gt; &copy; &#x41; &nbsp;x", "&lt;b&gt; © A \u00a0x"},
		{"main", "<body><div>" + strings.Repeat("side ", 30) + "</div><main>" + strings.Repeat("about it ", 60) +
			"</main>", strings.TrimSpace(strings.Repeat("about it ", 60))},
		{"line breaks", "a<br>b<br/>c", "a  \nb  \nc"},
		{"text that looks like Markdown", "<p># no heading<p>1. no list<p>[no](link) and *no* stress<p>`x",
			"\\# no heading\n\n1\\. no list\n\n\\[no](link) and \\*no* stress\n\n\\`x"},
		{"a link's query stays as it is", `<a href="/q?a=b/c&amp;x,y;z">go</a>`, "[go](https://example.com/q?a=b/c&x,y;z)"},
		{"a base", `<base href="https://o.org/x/"><a href=y>Y</a>`, "[Y](https://o.org/x/y)"},
		{"hidden", `<p hidden>a<p aria-hidden=true>b<p>c`, "c"},
		{"the converter's own marks", "<p>a\a# b\uF002# c", "a# b# c"},
		{"upper case", "<P>A<BR>B</P><SCRIPT>x</SCRIPT>", "A  \nB"},
	} {
		_, got := markdown(tt.html, base)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("<p>a<b>c</p><table><tr><td>x")
	f.Add("<ul><li><pre>```</pre><a href='http://['>x</a>")
	f.Add("<a =x><svg/><title>")
	base, _ := url.Parse("https://example.com/")
	f.Fuzz(func(t *testing.T, page string) { markdown(page, base) })
}

func TestSearch(t *testing.T) {
	answers := map[string]string{
		"brave":      `{"web":{"results":[{"title":"T","url":"https://x.org","description":"a <strong>b</strong>"}]}}`,
		"exa":        `{"results":[{"title":"T","url":"https://x.org","highlights":["a b"]}]}`,
		"tavily":     `{"results":[{"title":"T","url":"https://x.org","content":"a b"}]}`,
		"perplexity": `{"results":[{"title":"T","url":"https://x.org","snippet":"a b"}]}`,
		"searxng":    `{"results":[{"title":"T","url":"https://x.org","content":"a b"}]}`,
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			var asked *http.Request
			var sent []byte
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r
				sent, _ = io.ReadAll(r.Body)
				io.WriteString(w, answer)
			}))
			defer s.Close()
			tool := &search{Service{Name: name, URL: s.URL, Key: func() string { return "the-key" }}}
			toolstest.Run(t, tool, toolstest.Options{Good: []string{`{"query":"cats"}`}, Bad: []string{`{"query":" "}`}})
			res, err := tool.Run(t.Context(),
				tools.Call{Arguments: json.RawMessage(`{"query":"cats & dogs","count":3}`), Progress: func(string) {}})
			if err != nil || res.Text != "1. T\n   https://x.org\n   a b\n" {
				t.Errorf("%v %q", err, res.Text)
			}
			if told := asked.URL.Query().Get("q") + string(sent); !strings.Contains(told, "cats & dogs") &&
				!strings.Contains(told, `cats \u0026 dogs`) {
				t.Errorf("the query is not in %q", told)
			}

			header := fmt.Sprint(asked.Header)
			if hasKey := strings.Contains(header, "the-key"); hasKey != (name != "searxng") {
				t.Errorf("key sent: %v", hasKey)
			}
			if need, err := tool.Needs(tools.Call{}); err != nil || need != nil { // the owner named the server
				t.Errorf("needs %+v %v", need, err)
			}
		})
	}
}

func TestSearchErrorsHoldNoSecret(t *testing.T) {
	for _, status := range []int{401, 302, 500} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(status)
			io.WriteString(w, `{"error":"bad key the-key"}`)
		}))
		tool := &search{Service{Name: "brave", URL: s.URL, Key: func() string { return "the-key" }}}
		res, err := tool.Run(t.Context(), tools.Call{Arguments: json.RawMessage(`{"query":"private words"}`), Progress: func(string) {}})
		if err != nil || res.Status != tools.Failed || strings.Contains(res.Text, "the-key") || strings.Contains(res.Text, "private") {
			t.Errorf("%d: %v %q", status, err, res.Text)
		}
		s.Close()
	}
}

func TestFindService(t *testing.T) {
	keys := func(have ...string) func(string) string {
		return func(name string) string {
			if strings.Contains(strings.Join(have, " "), name) {
				return "k"
			}
			return ""
		}
	}
	for _, tt := range []struct {
		setting, want string
		keys          func(string) string
		fails         bool
	}{
		{"", "", keys(), false}, {"", "tavily", keys("tavily"), false}, {"exa", "exa", keys("exa"), false}, {"exa", "", keys(), true},
		{"http://127.0.0.1:8888/", "searxng", keys(), false}, {"google", "", keys(), true}, {"searxng", "", keys(), true},
	} {
		s, err := FindService(tt.setting, tt.keys)
		name := ""
		if s != nil {
			name = s.Name
		}
		if name != tt.want || (err != nil) != tt.fails {
			t.Errorf("%q: %q %v", tt.setting, name, err)
		}
	}
}

// What a model sees of answers that are no plain page.
func TestOddAnswers(t *testing.T) {
	utf16 := func(s string) string {
		var b strings.Builder
		for _, r := range s {
			b.WriteString(string([]byte{byte(r), byte(r >> 8)}))
		}
		return b.String()
	}
	status := func(code int, header, value, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set(header, value)
			w.WriteHeader(code)
			io.WriteString(w, body)
		}
	}
	s := site(t, map[string]func(http.ResponseWriter){
		"/utf16bom": page("text/plain", "\xff\xfe"+utf16("Köln €")), "/utf16": page("text/plain; charset=UTF-16LE", utf16("Köln")),
		"/jp":     page("text/html; charset=ISO-2022-JP", "<p>\x1b$BF|K\\8l\x1b(B</p>"),
		"/sjis":   page("text/plain; charset=Shift_JIS", "\x93\xfa\x96{"),
		"/unsaid": page("text/plain", "K\xf6ln"), "/wrong": page("text/plain; charset=iso-8859-1", "Köln"),
		"/bom":  page("text/plain", "\uFEFFKöln"),
		"/long": page("text/plain; charset=utf-8", strings.Repeat("ö", 3<<20)),
		"/app": page("text/html", `<!doctype html><html><head><title>App</title><script src=a.js></script></head><body><div `+
			`id=root></div><script>go()</script></body></html>`),
		"/empty": page("text/html", ""), "/nobody": page("text/html", "<p>Just <i>this</i>"),
		"/slow":   status(429, "Retry-After", "30", "Slow down."),
		"/later":  status(503, "Retry-After", "Fri, 20 Nov 2026 18:00:00 GMT", ""),
		"/lost":   status(404, "Content-Type", "text/html", "<h1>Nothing here</h1>"),
		"/brotli": status(200, "Content-Encoding", "br", "\x0b\x02\x80Hello"),
		"/short": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "9999")
			io.WriteString(w, "the beginning")
		},
	})
	for path, want := range map[string]string{
		"/utf16bom": "text/plain\n\nKöln €", "/utf16": "\n\nKöln", "/jp": "\n\n日本語", "/sjis": "\n\n日本",
		"/unsaid": "\n\nKöln", "/wrong": "\n\nKöln", "/bom": "\n\nKöln",
		"/long":  "the first 5 MB\n\nöööö",
		"/app":   "text/html\nApp\n\n[the page has no text: scripts may make it in a browser",
		"/empty": "200 OK, text/html\n\n[the answer is empty]", "/nobody": "\n\nJust *this*",
		"/slow":   "429 Too Many Requests, text/plain, to be asked again after 30 seconds\n\nSlow down.",
		"/later":  "503 Service Unavailable, text/plain, to be asked again after Fri, 20 Nov 2026 18:00:00 GMT\n\n[the answer is empty]",
		"/lost":   "404 Not Found, text/html\n\n\n# Nothing here",
		"/brotli": "[the server packed it with br, which it was not asked for; it cannot be read]",
		"/short":  "text/plain, cut off: the server did not send the rest\n\nthe beginning",
	} {
		res := fetched(t, s.URL, path)
		if !strings.Contains(res.Text, want) || strings.ContainsRune(res.Text, '\uFFFD') && path != "/long" ||
			strings.Contains(res.Text, "Ã") {
			t.Errorf("%s: %q\n%.300s\nwant %q", path, res.Status, res.Text, want)
		}
		if failed := path == "/slow" || path == "/later" || path == "/lost" || path == "/brotli"; failed != (res.Status == tools.Failed) {
			t.Errorf("%s: status %q", path, res.Status)
		}
	}
}
