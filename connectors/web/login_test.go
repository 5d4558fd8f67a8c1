package web

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"daycare/engine/apitoken"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/finding"
)

// quiet is a daemon without agents.
type (
	agents  struct{ control.Agents }
	quiet   struct{ agents }
	noAsks  struct{ control.Permissions }
	running struct{ control.Daemon }
)

func (quiet) Agents(context.Context) ([]event.Agent, error) { return nil, nil }

func (noAsks) Asks(context.Context) ([]event.Ask, error) { return nil, nil }

func (running) Status(context.Context) (event.Status, error) {
	return event.Status{Running: true, Version: "1.2.3"}, nil
}

// A site is a page with the API behind it, on loopback.
type site struct {
	*testing.T
	door *Door
	root string
	addr string // HOST:PORT
}

func newSite(t *testing.T, hosts ...string) *site {
	t.Helper()
	s := &site{T: t, root: t.TempDir()}
	store := apitoken.Open(s.root, disk.NewVolume(s.root), func(string, []finding.Finding) {})
	s.door = New(Options{Root: s.root, Tokens: store, Open: func(context.Context) (string, error) { return "http://" + s.addr, nil }})
	l, err := control.ListenTCP(control.TCP{Addr: "127.0.0.1:0", BrowsersOnly: true, Tokens: store, Page: s.door, Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	h := control.Handler(control.Backend{Agents: quiet{}, Permissions: noAsks{}, Daemon: running{}, Browsers: s.door,
		Events: event.NewStream("boot")}, control.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- control.Serve(ctx, h, nil, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// token is a login token.
func (s *site) token() string {
	s.Helper()
	i, err := s.door.Invite(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	address, token, ok := strings.Cut(i.URL, "#token=")
	if !ok || address != "http://"+s.addr+"/" || address != i.Address {
		s.Fatalf("invited to %+v", i)
	}
	return token
}

// do makes a request as a browser makes it, with the header of the page; headers has NAME VALUE.
// The caller of a stream closes it.
func (s *site) do(method, path, body string, headers ...string) *http.Response {
	s.Helper()
	req, err := http.NewRequestWithContext(s.Context(), method, "http://"+s.addr+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("X-Daycare", "1")
	req.Header.Set("User-Agent", "Mozilla/5.0 (X11) Gecko/20100101 Firefox/140.0")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		}
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}

	resp, err := (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(req)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { resp.Body.Close() })
	return resp
}

// login is the cookie of a browser that is logged in, as a header.
func (s *site) login() string {
	s.Helper()
	resp := s.do("POST", "/v1/session", `{"token":"`+s.token()+`"}`)
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 {
		s.Fatalf("login: %s, cookies %v", resp.Status, resp.Cookies())
	}
	c := resp.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure ||
		c.Name != "daycare_session_"+s.addr[strings.LastIndex(s.addr, ":")+1:] {
		s.Errorf("cookie %+v", c)
	}
	return c.Name + "=" + c.Value
}

// code is the status, and the code of the error.
func code(t *testing.T, resp *http.Response) (int, string) {
	t.Helper()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var body control.ErrorBody
	if json.Unmarshal(data, &body) == nil && body.Error != nil {
		return resp.StatusCode, body.Error.Code
	}
	return resp.StatusCode, ""
}

func TestABrowserLogsInOnce(t *testing.T) {
	s := newSite(t)
	if status, _ := code(t, s.do("GET", "/", "")); status != http.StatusUnauthorized {
		t.Errorf("before anybody asked for the page: %d, want 401", status)
	}
	cookie := s.login()
	var me control.Session
	if err := json.NewDecoder(s.do("GET", "/v1/session", "", "Cookie", cookie).Body).Decode(&me); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(me.Name, "web-firefox-") || me.Caller != "web:"+me.Name || me.ExpiresAt == nil {
		t.Errorf("session %+v", me)
	}
	if status, _ := code(t, s.do("GET", "/v1/status", "", "Cookie", cookie)); status != http.StatusOK {
		t.Errorf("status: %d", status)
	}

	secret := cookie[strings.Index(cookie, "=")+1:]
	data, err := os.ReadFile(filepath.Join(s.root, apitoken.Name))
	if err != nil || bytes.Contains(data, []byte(secret)) {
		t.Errorf("the file has the cookie itself: %v", err)
	}
	if status, _ := code(t, s.do("GET", "/v1/status", "", "Authorization", "Bearer "+secret)); status != http.StatusUnauthorized {
		t.Errorf("the cookie as a token: %d", status)
	}

	again := s.token()
	for i, want := range []int{http.StatusOK, http.StatusUnauthorized} {
		if status, _ := code(t, s.do("POST", "/v1/session", `{"token":"`+again+`"}`)); status != want {
			t.Errorf("use %d of a token: %d, want %d", i+1, status, want)
		}
	}
}

// What a page of someone else, or a program without a session, could send.
func TestWhatIsRefused(t *testing.T) {
	s := newSite(t, "Box.example.org", "localhost:9000")
	cookie := s.login()
	port := s.addr[strings.LastIndex(s.addr, ":"):]
	for name, c := range map[string]struct {
		method, path string
		headers      []string
		status       int
		code         string
	}{
		"in order":               {"GET", "/v1/status", []string{"Cookie", cookie}, 200, ""},
		"another name":           {"GET", "/v1/status", []string{"Cookie", cookie, "Host", "evil.example" + port}, 403, "forbidden"},
		"the shell, other name":  {"GET", "/", []string{"Host", "evil.example" + port}, 403, "forbidden"},
		"another port":           {"GET", "/v1/status", []string{"Cookie", cookie, "Host", "127.0.0.1:1"}, 403, "forbidden"},
		"a name of the settings": {"GET", "/v1/status", []string{"Cookie", cookie, "Host", "box.example.org" + port}, 200, ""},
		"a port of the settings": {"GET", "/v1/status", []string{"Cookie", cookie, "Host", "localhost:9000"}, 200, ""},
		"foreign origin":         {"POST", "/v1/shutdown", []string{"Cookie", cookie, "Origin", "http://evil.example"}, 403, "forbidden"},
		"foreign origin reads":   {"GET", "/v1/events", []string{"Cookie", cookie, "Origin", "http://evil.example"}, 403, "forbidden"},
		"no origin":              {"GET", "/v1/agents", []string{"Cookie", cookie, "Origin", "null"}, 403, "forbidden"},
		"another site's stream":  {"GET", "/v1/events", []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site"}, 403, "forbidden"},
		"a neighbour's stream":   {"GET", "/v1/events", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site"}, 403, "forbidden"},
		"a form":                 {"POST", "/v1/shutdown", []string{"Cookie", cookie, "X-Daycare", ""}, 403, "forbidden"},
		"a form logs in":         {"POST", "/v1/session", []string{"X-Daycare", ""}, 403, "forbidden"},
		"no cookie":              {"GET", "/v1/agents", nil, 401, "unauthorized"},
		"another cookie":         {"GET", "/v1/agents", []string{"Cookie", cookie + "x"}, 401, "unauthorized"},
		"no cookie, writes":      {"POST", "/v1/reload", nil, 401, "unauthorized"},
		"a token in the query":   {"GET", "/v1/agents?token=" + cookie, nil, 401, "unauthorized"},
		"a wrong login":          {"POST", "/v1/session", nil, 401, "wrong_login"},
		"other rights by login":  {"DELETE", "/v1/session", nil, 401, "unauthorized"},
	} {
		t.Run(name, func(t *testing.T) {
			if status, got := code(t, s.do(c.method, c.path, "{}", c.headers...)); status != c.status || got != c.code {
				t.Errorf("%s %s %v: %d %s, want %d %s", c.method, c.path, c.headers, status, got, c.status, c.code)
			}
		})
	}
}

// An API token is not a cookie.
func TestATokenIsNoCookie(t *testing.T) {
	s := newSite(t)
	name, _, _ := strings.Cut(s.login(), "=")
	secret, _, err := apitoken.Create(s.root, "phone", apitoken.Everything, nil)
	if err != nil {
		t.Fatal(err)
	}
	if status, _ := code(t, s.do("GET", "/v1/status", "", "Cookie", name+"="+secret)); status != http.StatusUnauthorized {
		t.Errorf("a token as a cookie: %d", status)
	}
	if err := s.door.End(t.Context(), "phone"); !errors.Is(err, fault.NoSession) {
		t.Errorf("a token ended as a session: %v", err)
	}
}

// Every operation without its cookie, and every GET changes nothing: no GET needs the daemon, but
// those that look at items that it has accepted.
func TestEveryOperationNeedsASession(t *testing.T) {
	s := newSite(t)
	s.token()
	for _, o := range control.Operations() {
		path := strings.NewReplacer("{", "", "}", "").Replace(o.Path)
		if o.Name == "login" {
			continue
		}
		if status, _ := code(t, s.do(o.Method, path, "{}")); status != http.StatusUnauthorized {
			t.Errorf("%s without a session: %d", o.Pattern(), status)
		}
		if o.Method == http.MethodGet && o.NeedsDaemon() && o.Name != "showItem" && o.Name != "followItem" {
			t.Errorf("%s only reads, and needs the daemon", o.Pattern())
		}
	}
}

// A session that is revoked, by the API or in the file, ends what it has open.
func TestARevokedSessionEndsItsStream(t *testing.T) {
	for name, end := range map[string]func(s *site, cookie, name string){
		"by another browser": func(s *site, _, name string) { s.do("DELETE", "/v1/sessions/"+name, "", "Cookie", s.login()) },
		"by itself":          func(s *site, cookie, _ string) { s.do("DELETE", "/v1/session", "", "Cookie", cookie) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			cookie := s.login()
			list, err := s.door.Sessions(t.Context())
			if err != nil || len(list) != 1 {
				t.Fatalf("sessions %v, %v", list, err)
			}
			stream := s.do("GET", "/v1/events", "", "Cookie", cookie)
			if line, err := bufio.NewReader(stream.Body).ReadString('\n'); err != nil || line != ": daycare\n" {
				t.Fatalf("the stream begins with %q, %v", line, err)
			}

			end(s, cookie, list[0].Name)
			ended := make(chan struct{})
			go func() {
				_, _ = io.Copy(io.Discard, stream.Body)
				close(ended)
			}()
			select {
			case <-ended:
			case <-time.After(30 * time.Second):
				t.Fatal("the stream goes on")
			}
			if status, _ := code(t, s.do("GET", "/v1/session", "", "Cookie", cookie)); status != http.StatusUnauthorized {
				t.Errorf("the cookie after that: %d", status)
			}
		})
	}
}

// A new login takes the place of the one that the browser had.
func TestANewLoginReplacesTheOld(t *testing.T) {
	s := newSite(t)
	old := s.login()
	if status, _ := code(t, s.do("POST", "/v1/session", `{"token":"`+s.token()+`"}`, "Cookie", old)); status != http.StatusOK {
		t.Fatalf("second login: %d", status)
	}
	if list, err := s.door.Sessions(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("sessions %v, %v", list, err)
	}
}

func TestLoginTokensExpireAndGuessesCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		d := New(Options{Root: root, Tokens: apitoken.Open(root, disk.NewVolume(root), func(string, []finding.Finding) {}),
			Open: func(context.Context) (string, error) { return "http://127.0.0.1:1", nil }})
		token := func() string {
			i, err := d.Invite(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return i.URL[strings.Index(i.URL, "=")+1:]
		}

		late := token()
		time.Sleep(tokenLife)
		if _, _, err := d.Login(t.Context(), late, ""); !errors.Is(err, fault.WrongLogin) {
			t.Errorf("after five minutes: %v", err)
		}
		for range freeTries - 1 {
			if _, _, err := d.Login(t.Context(), "guess", ""); !errors.Is(err, fault.WrongLogin) {
				t.Errorf("a guess: %v", err)
			}
		}

		good := token()
		var pauses []time.Duration
		for range 8 {
			_, _, err := d.Login(t.Context(), good, "")
			var wait *control.Wait
			if !errors.As(err, &wait) || !errors.Is(err, fault.LoginLater) {
				t.Fatalf("during the pause: %v", err)
			}
			pauses = append(pauses, wait.After)
			time.Sleep(wait.After)
			if _, _, err := d.Login(t.Context(), "guess", ""); !errors.Is(err, fault.WrongLogin) {
				t.Fatalf("a guess after the pause: %v", err)
			}
		}
		if pauses[0] != time.Second || pauses[1] != 2*time.Second || pauses[7] != time.Minute {
			t.Errorf("pauses %v", pauses)
		}

		time.Sleep(time.Minute)
		if _, cookie, err := d.Login(t.Context(), good, ""); err != nil || cookie == "" {
			t.Errorf("the right token after the pause: %v", err)
		}
	})
}

func TestFilesOfThePage(t *testing.T) {
	a, err := loadFrom(fstest.MapFS{
		"page/index.html":    {Data: []byte(`<script type="module" src="/page/app.js"></script>`)},
		"page/app.js":        {Data: []byte(`import "./views/home.js"`)},
		"page/views/home.js": {Data: []byte(`export {}`)},
		"page/README.md":     {Data: []byte(`for builders`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(a.files) != 3 {
		t.Errorf("%d files are served", len(a.files))
	}
	shell := string(a.files[""].plain)
	at := shell[strings.Index(shell, `/page/`):strings.Index(shell, `app.js`)]
	for _, name := range []string{"app.js", "views/home.js"} {
		f, ok := a.files[at+name]
		if !ok || !strings.Contains(f.immutable, "immutable") || !strings.HasPrefix(f.kind, "text/javascript") {
			t.Errorf("%s%s: %+v, %v", at, name, f, ok)
		}
	}
}

// The shell is what every address of a view gets; it is static and has no secret.
func TestTheShell(t *testing.T) {
	d := New(Options{})
	get := func(path string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		if !d.Has(r) {
			t.Fatalf("%s is not for the page", path)
		}
		w := httptest.NewRecorder()
		d.ServeHTTP(w, r)
		return w
	}

	first := get("/")
	for _, path := range []string{"/agents/0%2F1", "/approvals/tok", "/files/x/state.json", "/costs?by=model", "/health"} {
		if w := get(path); w.Code != http.StatusOK || w.Body.String() != first.Body.String() {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := get("/", "If-None-Match", first.Header().Get("ETag")); w.Code != http.StatusNotModified {
		t.Errorf("a known shell: %d", w.Code)
	}
	if w := get("/page/000000000000/app.js"); w.Code != http.StatusNotFound {
		t.Errorf("a file of another version: %d", w.Code)
	}
	w := get("/", "Accept-Encoding", "gzip, br")
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(z); err != nil || string(text) != first.Body.String() {
		t.Errorf("compressed it is another: %v", err)
	}
	for _, path := range []string{"/v1/agents", "/healthz", "/metrics", "/mcp", "/mcp/x", "/a2a/Ops/tasks",
		"/.well-known/agent-card.json"} {
		if d.Has(httptest.NewRequest("GET", path, nil)) || d.Has(httptest.NewRequest("POST", "/agents", nil)) {
			t.Errorf("%s is taken for the page", path)
		}
	}

	csp := first.Header().Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'self'") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "http") {
		t.Errorf("policy %s", csp)
	}
}

// All of the page is less than 150 KB on the wire.
func TestThePageIsSmall(t *testing.T) {
	sum := 0
	for at, f := range load().files {
		if sum += len(f.zipped); strings.HasSuffix(at, ".html") {
			t.Errorf("%s: only index.html can be a document", at)
		}
		if text := string(f.plain); strings.Contains(text, "https://") && !strings.HasSuffix(at, ".svg") {
			t.Logf("%s names an address elsewhere", at)
		}
	}
	if t.Logf("%d files, %d bytes compressed", len(load().files), sum); sum > 150_000 {
		t.Errorf("the page has %d bytes compressed, allowed: 150000", sum)
	}
}
