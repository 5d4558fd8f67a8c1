package control

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"daycare/engine/apitoken"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
)

// answer is the answer to a request of the owner; a stream is ended after its head.
func answer(t *testing.T, h http.Handler, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithCancel(WithCaller(t.Context(), Caller{Name: "me", Local: true, Rights: apitoken.Everything}))
	defer cancel()
	if strings.Contains(path, "/v1/events") {
		cancel()
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body)))

	return w
}

// What an answer is stands in its head, and nobody keeps what may be another answer tomorrow.
func TestWhatAnAnswerIsStandsInItsHead(t *testing.T) {
	h := Handler(whole(&pair{fake: &fake{}}), Options{Version: "1.2.3"})
	for path, want := range map[string]struct{ kind, cache string }{
		"GET /healthz": {"text/plain; charset=utf-8", ""}, "GET /metrics": {"text/plain; version=0.0.4; charset=utf-8", ""},
		"GET /v1/status":                        {"application/json", "no-store"},
		"GET /v1/agents/alpha/files/state.json": {"text/plain; charset=utf-8", "no-store"},
		"GET /v1/events":                        {"text/event-stream", "no-store"}, "GET /v1/backup": {"application/gzip", "no-store"},
		"POST /v1/agents/alpha/messages": {"text/event-stream", "no-store"}, "GET /v1/agents/nobody": {"application/json", ""},
		"GET /none": {"application/json", ""},
	} {
		method, path, _ := strings.Cut(path, " ")
		w := answer(t, h, method, path, `{"text":"hi","wait":true}`[:len(method)/4*len(`{"text":"hi","wait":true}`)])
		if got := w.Header(); got.Get("Content-Type") != want.kind || got.Get("Cache-Control") != want.cache ||
			got.Get(versionHeader) != "1.2.3" {
			t.Errorf("%s %s: %d, %v; want %+v", method, path, w.Code, got, want)
		}
		if stream := want.kind == eventStream; stream && (w.Header().Get("X-Accel-Buffering") != "no" || w.Code != http.StatusOK) {
			t.Errorf("%s: a proxy may hold the events back: %v", path, w.Header())
		}
	}
}

// metered is a daemon that counts.
type metered struct{ *fake }

func (metered) WriteMetrics(w io.Writer) { fmt.Fprintln(w, "daycare_counted_total 7") }
func (metered) Status(context.Context) (event.Status, error) {
	return event.Status{Version: "1.2", UptimeMS: 1500, Agents: 2, Awake: 3, Queued: 4, Asks: 5, DiskFull: true,
		Connectors: []event.Service{{ID: "a", Type: "telegram", State: "running"}, {ID: "b", Type: "irc", State: "failed"}}}, nil
}

// Each figure of a status is a metric with its type, and what the daemon counts follows.
func TestEachFigureIsAMetric(t *testing.T) {
	b := (&fake{}).backend()
	b.Daemon = metered{&fake{}}
	text := answer(t, Handler(b, Options{}), "GET", "/metrics", "").Body.String()
	want := []string{`daycare_info{version="1.2"} 1`, "daycare_uptime_seconds 1.5", "daycare_agents 2", "daycare_agents_awake 3",
		"daycare_inbox_items 4",
		"daycare_permission_requests 5", "daycare_disk_full 1", `daycare_connector_up{id="a",type="telegram"} 1`,
		`daycare_connector_up{id="b",type="irc"} 0`,
		"daycare_counted_total 7"}
	var got []string
	typed := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			typed[strings.Fields(name)[0]] = true
		} else if !strings.HasPrefix(line, "#") {
			got = append(got, line)
		}
	}

	if !slices.Equal(got, want) {
		t.Errorf("metrics are\n%s", text)
	}
	for _, line := range want[:9] {
		if name := strings.FieldsFunc(line, func(r rune) bool { return r == '{' || r == ' ' })[0]; !typed[name] ||
			strings.Contains(text, "daycare_provider_up") {
			t.Errorf("%s has no type, or there are providers in\n%s", name, text)
		}
	}
}

// What is asked of lists, of new agents and of rights is checked before the backend sees it.
func TestWhatIsCheckedOfARequest(t *testing.T) {
	p := &pair{fake: &fake{}}
	h := Handler(whole(p), Options{})
	for _, c := range []struct {
		method, path, body string
		status             int
		within             string
	}{
		{"GET", "/v1/agents", "", 200, beta}, {"GET", "/v1/agents?family=alpha", "", 200, alpha},
		{"GET", "/v1/agents?family=none", "", 404, "none"},
		{"POST", "/v1/agents", `{"spawned":true}`, 201, ""}, {"POST", "/v1/agents", `{"type":"permanent","name":"x","spawned":true}`,
			422, "spawned"},
		{"POST", "/v1/agents", `{"type":"permanent","name":" "}`, 422, "name"},
		{"POST", "/v1/agents/alpha/grants", `{}`, 422, "permission"}, {"POST", "/v1/agents/alpha/grants",
			`{"permission":"@web","profile":"ask"}`, 422, "permission"},
		{"POST", "/v1/agents/alpha/grants", `{"profile":"ask"}`, 200, ""}, {"POST", "/v1/agents/alpha/mark", `{"name":"12"}`, 422, "name"},
		{"POST", "/v1/agents/alpha/mark", `{"name":" "}`, 422, "name"}, {"POST", "/v1/agents/alpha/mark", `{"name":"1a"}`, 202, ""},
		{"POST", "/v1/agents/alpha/messages", `{"kind":"rewind","text":"nowhere"}`, 404, ""},
		{"POST", "/v1/agents/alpha/messages", `{"kind":"rewind","text":"7"}`, 202, ""},
		{"POST", "/v1/agents/alpha/messages", `{"kind":"mark","text":"nowhere"}`, 202, ""},
		{"POST", "/v1/agents/alpha/messages", `{"kind":"mark","text":" 12 "}`, 422, "text"},
		{"POST", "/v1/agents/alpha/messages", `{"kind":"mark"}`, 422, "text"},
		{"POST", "/v1/messages", `{"kind":"rewind","text":"nowhere","connector":"c","channelId":"d"}`, 202, ""},
		{"GET", "/v1/agents/alpha/none", "", 404, "/v1/agents/0%2F1"}, {"GET", "/v1/none/a/b/c", "", 404, ""},
		{"GET", "/v1/cost?since=yesterday", "", 400, "since"},
		{"GET", "/v1/cost?by=week", "", 400, "by"}, {"DELETE", "/v1/agents/alpha/grants", "", 400, "permission"},
	} {
		w := answer(t, h, c.method, c.path, c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.within) {
			t.Errorf("%s %s %s: %d %s, want %d with %q", c.method, c.path, c.body, w.Code, w.Body, c.status, c.within)
		}
	}

	if text := answer(t, h, "GET", "/v1/agents?family=alpha", "").Body.String(); strings.Contains(text, beta) {
		t.Errorf("a family has others in it: %s", text)
	}
	if text := answer(t, h, "GET", "/v1/none/a/b/c", "").Body.String(); strings.Contains(text, "%2F") {
		t.Errorf("a path that is not of an agent is told of handles: %s", text)
	}
	if words := beginnings(); !slices.IsSorted(words) || len(slices.Compact(slices.Clone(words))) != len(words) ||
		!slices.Contains(words, "agents") {
		t.Errorf("paths begin with %v", words)
	}
}

// Only what went wrong here is logged: what the caller did wrong, or knows, is not.
func TestWhichFailuresAreLogged(t *testing.T) {
	for err, want := range map[error]bool{errors.New("broken"): true, ErrNotRunning: false, context.Canceled: false, ErrBusy: false,
		fault.DiskFull: true} {
		var log bytes.Buffer
		f := &fake{deliver: func(context.Context, message.Incoming) (message.Receipt, error) { return message.Receipt{}, err }}
		h := Handler(f.backend(), Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if answer(t, h, "POST", "/v1/agents/alpha/messages", `{"text":"x"}`); (log.Len() > 0) != want {
			t.Errorf("%v: logged %q", err, log.String())
		}
	}
}

// Only so many large bodies are read at once; a small one never waits for them.
func TestLargeBodiesWaitForEachOther(t *testing.T) {
	p := posts{api: &api{log: slog.New(slog.DiscardHandler)}, large: make(chan struct{}, 1)}
	p.large <- struct{}{}
	for size, waits := range map[int64]bool{-1: true, 0: false, 1 << 20: false, 1<<20 + 1: true} {
		ctx, cancel := context.WithCancel(WithCaller(t.Context(), Caller{Rights: apitoken.Everything}))
		cancel() // whoever would wait gives up at once
		r := httptest.NewRequestWithContext(ctx, "POST", "/", strings.NewReader(`{"text":"hi","wait":true}`))
		r.ContentLength = size
		in, wait, err := p.read(httptest.NewRecorder(), r, alpha)
		if waits != errors.Is(err, context.Canceled) || !waits && (err != nil || in.Text != "hi" || !wait) || waits && wait {
			t.Errorf("a body of %d bytes waits: %v, read %+v", size, err, in)
		}
	}

	if len(p.large) != 1 {
		t.Error("a place was given back that nobody had")
	}
	<-p.large
	r := httptest.NewRequestWithContext(WithCaller(t.Context(), Caller{Rights: apitoken.Everything}), "POST", "/",
		strings.NewReader(`{"text":"hi"}`))
	r.ContentLength = -1
	if _, _, err := p.read(httptest.NewRecorder(), r, alpha); err != nil || len(p.large) != 0 {
		t.Errorf("with a place: %v, %d are taken after it", err, len(p.large))
	}
}

// A route that does not say who may use it is never served.
func TestARouteWithoutRightsIsNotServed(t *testing.T) {
	for _, r := range []Route{{Scope: apitoken.Read}, {Reach: all}, {}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v is served", r)
				}
			}()
			(&api{}).permit(row{Route: r})
		}()
	}

	if e := lacksScope(apitoken.Admin, "x", apitoken.Rights{}); !strings.Contains(e.Message, "none") || e.Scope != apitoken.Admin {
		t.Errorf("a token without scopes: %+v", e)
	}
	if e := lacksScope(apitoken.Admin, "x", apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Read}}); strings.Contains(e.Message, "none") {
		t.Errorf("a token with a scope: %+v", e)
	}
}

// What a request has wrong with it is known by its field, its hint and what it was made of.
func TestWhatIsWrongWithARequest(t *testing.T) {
	disk := errors.New("disk")
	for _, tt := range []struct {
		err  error
		text string
		exit int
		is   error
	}{
		{&Invalid{Field: "name", Reason: "is taken", Hint: "choose"}, "name: is taken", fault.Invalid.Exit, fault.Invalid},
		{&Invalid{Reason: "no", Hint: "choose"}, "no", fault.ExitFailure, fault.Invalid},
		{&Invalid{Field: "path", Reason: "no", Hint: "choose", Err: disk}, "path: no", fault.Invalid.Exit, disk},
		{&malformed{Invalid{Field: "limit", Reason: "no", Hint: "choose"}}, "limit: no", fault.Malformed.Exit, fault.Malformed},
	} {
		f := fault.Find(tt.err)
		if tt.err.Error() != tt.text || f.Exit != tt.exit || f.Hint != "choose" || !errors.Is(tt.err, tt.is) {
			t.Errorf("%v: %+v, want %q with exit code %d", tt.err, f, tt.text, tt.exit)
		}
	}

	if other := new(*APIError); errors.As(&Invalid{Reason: "no"}, other) {
		t.Errorf("what has no cause has one: %v", *other)
	}

	for name, hint := range map[string]string{fault.Internal: "", "busy": "from the daemon"} {
		e := &APIError{Code: name, Message: "x", Hint: hint}
		if f := e.Fault(); f.Hint == "" && hint != "" {
			t.Errorf("%s: the hint of the daemon is lost: %+v", name, f)
		}
	}
}

// A server is named by what its certificate names, where it listens on all addresses; a Host header without a port means
// the usual one.
func TestHowAServerIsNamed(t *testing.T) {
	g := &guard{scheme: "https", port: "443", hosts: []string{"me", "::1"}, cert: &x509.Certificate{DNSNames: []string{"me.lan"}}}
	for host, want := range map[string]string{"": "me.lan:443", "0.0.0.0": "me.lan:443", "::": "me.lan:443", "10.0.0.1": "10.0.0.1:443",
		"other": "other:443"} {
		if got := g.ownName(host); got != want {
			t.Errorf("%q is named %s, want %s", host, got, want)
		}
	}
	for host, want := range map[string]bool{"me": true, "ME": true, "me:443": true, "me:80": false, "[::1]": true, "[::1]:443": true,
		"other": false, "me.lan": true} {
		if got := g.isMe(host); got != want {
			t.Errorf("%s is this server: %v, want %v", host, got, want)
		}
	}

	for _, plain := range []*guard{{port: "80"}, {port: "80", cert: &x509.Certificate{}}} {
		if got := plain.ownName("0.0.0.0"); got != "0.0.0.0:80" {
			t.Errorf("without a name it is %s", got)
		}
	}
}

// bell is a Pairings that notes the answers.
type bell struct {
	doorbell
	answers *[]string
}

func (b bell) Pair(_ context.Context, code string, reject bool, _ string) (Paired, error) {
	*b.answers = append(*b.answers, fmt.Sprint(code, " ", reject))
	return Paired{}, nil
}

// Who asks to be paired is let in or rejected as the client says.
func TestThePairingIsAnsweredAsTheClientSays(t *testing.T) {
	b := whole(&pair{fake: &fake{}})
	var answers []string
	b.Pairings = bell{answers: &answers}
	c := NewClient(Local(Handler(b, Options{})))
	defer c.Close()
	for code, reject := range map[string]bool{"one": true, "two": false} {
		if _, err := c.Pair(t.Context(), code, reject); err != nil {
			t.Error(err)
		}
	}
	if slices.Sort(answers); !slices.Equal(answers, []string{"one true", "two false"}) {
		t.Errorf("the answers are %q", answers)
	}
	if status, _, text := raw(t, Handler(b, Options{}), "POST", "/v1/pairings/one", `{"decision":"later"}`); status != 422 ||
		!strings.Contains(text, `found \"later\", allowed: approve, reject`) || len(answers) != 2 {
		t.Errorf("neither: %d %s, and the answers are %q", status, text, answers)
	}
}
