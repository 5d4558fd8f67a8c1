package control

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/apitoken"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/finding"
)

// porter is a Browsers that keeps its sessions among the tokens of a folder.
type porter struct {
	root   string
	ended  []string
	why    error // of Sessions
	hidden bool  // Sessions lists none
}

func (p *porter) Invite(context.Context) (Invitation, error) {
	return Invitation{URL: "http://x/#t"}, nil
}

func (p *porter) Login(_ context.Context, token, browser string) (Session, string, error) {
	if token != "right" {
		return Session{}, "", &Wait{fault.LoginLater, 1100 * time.Millisecond}
	}
	cookie, name, made, err := apitoken.CreateSession(p.root, browser)
	return Session{Name: name, ExpiresAt: made.Expires}, cookie, err
}

func (p *porter) Sessions(context.Context) (list []Session, err error) {
	tokens, err := apitoken.List(p.root)
	for name, t := range tokens {
		if !p.hidden {
			list = append(list, Session{Name: name, ExpiresAt: t.Expires})
		}
	}
	return list, errors.Join(err, p.why)
}

func (p *porter) End(_ context.Context, name string) error {
	p.ended = append(p.ended, name)
	return apitoken.Revoke(p.root, name)
}

// leaf is a page of one word.
type leaf struct{ on bool }

func (l leaf) On() bool                                       { return l.on }
func (leaf) Has(r *http.Request) bool                         { return r.URL.Path == "/" }
func (leaf) ServeHTTP(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the page") }

// A visit is how a browser reaches a listener.
type visit struct {
	t      *testing.T
	url    string
	cookie *http.Cookie // the last that it got; nil: none
	h      http.Handler
	porter *porter
}

// newVisit serves everything with the page, which a listener of these settings has.
func newVisit(t *testing.T, o TCP) *visit {
	t.Helper()
	root := t.TempDir()
	o.Addr, o.Token = "127.0.0.1:0", "s3cret"
	o.Tokens = apitoken.Open(root, disk.NewVolume(root), func(string, []finding.Finding) {})
	l, err := ListenTCP(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	v := &visit{t: t, url: l.URL, porter: &porter{root: root}}
	b := whole(&pair{fake: &fake{}})
	b.Browsers = v.porter
	v.h = l.guard(Handler(b, Options{}))
	return v
}

// ask makes a request. The headers are name and value in turn.
func (v *visit) ask(method, path, body string, headers ...string) *httptest.ResponseRecorder {
	v.t.Helper()
	r := httptest.NewRequestWithContext(v.t.Context(), method, v.url+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "test")
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	if v.cookie != nil {
		r.AddCookie(v.cookie)
	}
	w := httptest.NewRecorder()
	v.h.ServeHTTP(w, r)
	if got := w.Result().Cookies(); len(got) == 1 {
		v.cookie = got[0]
	}
	return w
}

// expect makes a request and looks at the status and at a part of the answer.
func (v *visit) expect(status int, part, method, path, body string, headers ...string) {
	v.t.Helper()
	if w := v.ask(method, path, body, headers...); w.Code != status || !strings.Contains(w.Body.String(), part) {
		v.t.Errorf("%s %s %q: %d %s, want %d %q", method, path, headers, w.Code, w.Body, status, part)
	}
}

const message1 = "/v1/agents/alpha/messages"

// A browser is let in by a login, to the end of its session, and only with the header of the page.
func TestABrowserIsLetIn(t *testing.T) {
	v := newVisit(t, TCP{Page: leaf{true}})
	v.expect(200, "the page", "GET", "/", "")
	v.expect(401, "daycare web", "GET", "/v1/agents", "")
	v.expect(401, "daycare web", "GET", "/v1/session", "")
	v.expect(401, "daycare web", "POST", message1, `{"text":"x"}`, pageHeader, "1")
	v.expect(403, pageHeader, "POST", "/v1/session", `{"token":"right"}`)
	v.expect(403, pageHeader, "POST", "/v1/session", `{"token":"right"}`, pageHeader, "2")
	if w := v.ask("POST", "/v1/session", `{"token":"wrong"}`, pageHeader, "1"); w.Code != 429 || w.Header().Get("Retry-After") != "2" {
		t.Errorf("a wrong token: %d, %v", w.Code, w.Header())
	}

	v.expect(200, `"name":"web-test-`, "POST", "/v1/session", `{"token":"right"}`, pageHeader, "1")
	first := v.cookie
	port := v.url[strings.LastIndex(v.url, ":")+1:]
	if first == nil || first.Name != "daycare_session_"+port || first.Value == "" || !first.HttpOnly || first.Secure || first.Path != "/" ||
		first.SameSite != http.SameSiteStrictMode || time.Until(first.Expires) < 24*time.Hour || first.MaxAge != 0 {
		t.Fatalf("the cookie is %+v", first)
	}
	v.expect(200, `"expiresAt"`, "GET", "/v1/session", "")
	v.expect(200, alpha, "GET", "/v1/agents", "")
	v.expect(200, "", "HEAD", "/v1/agents", "")
	v.expect(202, "item1", "POST", message1, `{"text":"x"}`, pageHeader, "1")
	v.expect(403, pageHeader, "POST", message1, `{"text":"x"}`)
	for site, status := range map[string]int{"same-origin": 200, "none": 200, "same-site": 403, "cross-site": 403} {
		v.expect(status, "", "GET", "/v1/agents", "", "Sec-Fetch-Site", site)
	}

	v.porter.hidden = true
	v.expect(200, `"caller":"web:web-test-`, "GET", "/v1/session", "")
	v.porter.why = errors.New("unreadable")
	v.expect(500, "", "GET", "/v1/session", "")
	v.porter.hidden, v.porter.why = false, nil
}

// A login takes the place of the one before, and a logout ends the session and takes the cookie back.
func TestABrowserLogsOut(t *testing.T) {
	v := newVisit(t, TCP{Page: leaf{true}})
	v.expect(200, "", "POST", "/v1/session", `{"token":"right"}`, pageHeader, "1")
	first := v.cookie
	v.expect(200, "", "POST", "/v1/session", `{"token":"right"}`, pageHeader, "1")
	if len(v.porter.ended) != 1 || v.cookie.Value == first.Value {
		t.Errorf("ended are %q, the cookie is %+v", v.porter.ended, v.cookie)
	}
	second := v.cookie
	v.cookie = first
	v.expect(401, "", "GET", "/v1/agents", "")
	v.cookie = second
	v.expect(200, "", "DELETE", "/v1/session", "", pageHeader, "1")
	if len(v.porter.ended) != 2 || v.cookie.Value != "" || v.cookie.MaxAge >= 0 || v.cookie.Name != second.Name {
		t.Errorf("ended are %q, the cookie is %+v", v.porter.ended, v.cookie)
	}
	v.cookie = second
	v.expect(401, "", "GET", "/v1/agents", "")
}

// Who has a token has no session, and a page that was never requested lets no browser in.
func TestOnlyABrowserHasASession(t *testing.T) {
	v := newVisit(t, TCP{Page: leaf{true}})
	bearer := []string{"Authorization", "Bearer s3cret"}
	v.expect(200, `"caller":"api"`, "GET", "/v1/session", "", bearer...)
	v.expect(403, "only a browser", "POST", "/v1/session", `{"token":"right"}`, bearer...)
	v.expect(422, "no session", "DELETE", "/v1/session", "", bearer...)
	if v.cookie != nil || len(v.porter.ended) > 0 {
		t.Errorf("the cookie is %+v, ended are %q", v.cookie, v.porter.ended)
	}

	only := newVisit(t, TCP{Page: leaf{true}, BrowsersOnly: true})
	only.expect(401, "", "GET", "/v1/agents", "", bearer...)
	only.expect(200, "", "POST", "/v1/session", `{"token":"right"}`, pageHeader, "1")
	only.expect(200, alpha, "GET", "/v1/agents", "")

	off := newVisit(t, TCP{Page: leaf{false}})
	off.expect(401, "", "GET", "/", "")
	off.expect(401, "", "POST", "/v1/session", `{"token":"right"}`, pageHeader, "1")
}

// The settings can give a server further names: with the port of a proxy, or with its own.
func TestFurtherNamesOfAServer(t *testing.T) {
	v := newVisit(t, TCP{Hosts: []string{"Box.example:8443", "LAN.example"}})
	port := v.url[strings.LastIndex(v.url, ":"):]
	for host, status := range map[string]int{"box.example:8443": 200, "BOX.example:8443": 200, "box.example" + port: 403,
		"lan.example" + port: 200, "lan.example:8443": 403, "other.example" + port: 403} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "http://"+host+"/v1/agents", nil)
		r.Header.Set("Authorization", "Bearer s3cret")
		w := httptest.NewRecorder()
		if v.h.ServeHTTP(w, r); w.Code != status {
			t.Errorf("%s: %d %s, want %d", host, w.Code, w.Body, status)
		}
	}
}

// Over TLS the cookie is for TLS alone.
func TestTheCookieOfTLS(t *testing.T) {
	cert, key, _ := certificate(t)
	v := newVisit(t, TCP{Page: leaf{true}, Cert: cert, Key: key})
	v.expect(200, "", "POST", "/v1/session", `{"token":"right"}`, pageHeader, "1")
	if v.cookie == nil || !v.cookie.Secure {
		t.Errorf("the cookie is %+v", v.cookie)
	}
	v.expect(200, "", "GET", "/v1/agents", "")
}

// A client that rewinds and takes back waits until the agent has carried out its order.
func TestARewindIsWaitedFor(t *testing.T) {
	var asked []string
	left := 2 // looks until the order is carried out
	failing := ""
	c := NewClient(roundTrip(func(r *http.Request) (*http.Response, error) {
		what := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
		asked = append(asked, what)
		a := answers{status: 200, body: map[string]string{"rewind": `{"item":"order"}`, "inbox": `{"items":[{"id":"other"}]}`,
			"undo": `{"results":[{"path":"a","outcome":"done"}]}`}[what]}
		if left--; what == "inbox" && left >= 0 {
			a.body = `{"items":[{"id":"other"},{"id":"order"}]}`
		}
		if what == failing {
			a = answers{status: 503, body: `{"error":{"code":"busy","message":"x"}}`}
		}
		return a.RoundTrip(r)
	}))
	results, err := c.Folders().RewindFiles(t.Context(), "alpha", "7")
	if want := []string{"rewind", "inbox", "inbox", "undo"}; err != nil || !slices.Equal(asked, want) ||
		!slices.Equal(results, []event.TakenBack{{Path: "a", Outcome: "done"}}) {
		t.Errorf("asked %q, want %q: %v, %v", asked, want, results, err)
	}
	for _, failing = range []string{"rewind", "inbox", "undo"} {
		if results, err := c.Folders().RewindFiles(t.Context(), "alpha", "7"); !errors.Is(err, ErrBusy) {
			t.Errorf("%s fails: %v, %v", failing, results, err)
		}
	}

	failing, left = "", 1<<30
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := c.Folders().RewindFiles(ctx, "alpha", "7"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an order that is never carried out: %v", err)
	}
}
