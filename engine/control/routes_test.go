package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/apitoken"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// TestRoutes goes through every route as curl would: status and body.
func TestRoutes(t *testing.T) {
	agent := func(id, name, more string) string {
		return `{"id":"` + id + `","handle":"0/","name":"` + name + `","type":"","state":"` + more +
			`","queued":0,"lastAt":null,"cost":0,"model":"","running":false}`
	}
	receipt := `{"agent":"` + alpha + `","item":"item1","seq":7,"duplicate":false}`
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/healthz", "", 200, "ok"},
		{"GET", "/v1/agents", "", 200, `{"agents":[` + agent(alpha, "", "idle") + `]}`},
		{"POST", "/v1/agents", `{"type":"permanent","name":"Ops","systemPrompt":"x"}`, 201,
			`{"id":"new","handle":"","name":"Ops","type":"permanent","state":"","queued":0,"lastAt":null,"cost":0,"model":"",` +
				`"running":false}`},
		{"POST", "/v1/agents", `{}`, 201,
			`{"id":"new","handle":"","name":"","type":"user","state":"","queued":0,"lastAt":null,"cost":0,"model":"","running":false}`},
		{"POST", "/v1/agents", `{"type":"subagent","parent":"0/","prompt":"do"}`, 201,
			`{"id":"new","handle":"","name":"","type":"subagent","parentAgentId":"` + alpha +
				`","state":"","queued":0,"lastAt":null,"cost":0,"model":"","running":false}`},
		{"GET", "/v1/agents/0%2F1", "", 200, agent(alpha, "Alpha", "")},
		{"GET", "/v1/agents/0%2F", "", 200, agent(alpha, "Alpha", "")},
		{"DELETE", "/v1/agents/alpha", "", 200, `{"trash":"trash/` + alpha + `"}`},
		{"POST", "/v1/agents/alpha/stop", "", 200, `{"stopped":true}`},
		{"POST", "/v1/agents/alpha/reset", "", 202, receipt},
		{"POST", "/v1/agents/alpha/compact", "", 202, receipt},
		{"POST", "/v1/agents/alpha/kill", "", 200, `{}`},
		{"GET", "/v1/agents/alpha/history", "", 200, `{"records":[],"before":null}`},
		{"GET", "/v1/agents/alpha/draft", "", 200, `{"turn":"turn1","text":"half"}`},
		{"GET", "/v1/agents/alpha/inbox", "", 200,
			`{"items":[{"id":"item1","seq":7,"at":"0001-01-01T00:00:00Z","type":"message","text":"hi","bytes":0,"state":""}]}`},
		{"DELETE", "/v1/agents/alpha/inbox/item1", "", 200, `{}`},
		{"POST", "/v1/agents/alpha/inbox/item1/front", "", 200, `{}`},
		{"GET", "/v1/agents/alpha/items/item1", "", 200, `{"agent":"` + alpha + `","item":"item1","type":"message","state":"taken",` +
			`"at":"0001-01-01T00:00:00Z","text":"hi"}`},
		{"POST", "/v1/agents/alpha/messages", `{"text":"hi"}`, 202, receipt},
		{"POST", "/v1/messages", `{"connector":"web","channelId":"c","userId":"u","text":"hi"}`, 202, receipt},
		{"GET", "/v1/permissions", "", 200,
			`{"permissions":[{"token":"tok","agentId":"` + alpha +
				`","permission":"@web","reason":"","request":"","askedAt":"0001-01-01T00:00:00Z","expiresAt":"0001-01-01T00:00:00Z"}]}`},
		{"POST", "/v1/permissions/tok", `{"decision":"once"}`, 200, `{}`},
		{"GET", "/v1/config", "", 200, `{"log":{"level":"info"}}`},
		{"GET", "/v1/tools", "", 200, `{"tools":[{"name":"read","description":"","replay":"readonly","tokens":0,"prompt":""}]}`},
		{"POST", "/v1/reload", "", 200, `{"findings":[]}`},
		{"POST", "/v1/shutdown", "", 202, `{}`},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			status, header, body := raw(t, Handler((&fake{}).backend(), Options{}), c.method, c.path, c.body)
			if status != c.status || strings.TrimSpace(body) != c.want {
				t.Errorf("got %d %s\nwant %d %s", status, body, c.status, c.want)
			}
			if typ := header.Get("Content-Type"); c.path != "/healthz" && typ != "application/json" {
				t.Errorf("Content-Type is %q", typ)
			}
		})
	}
}

// TestBadRequests is the table of what callers do wrong.
func TestBadRequests(t *testing.T) {
	msgs := "/v1/agents/alpha/messages"
	for _, c := range []struct {
		method, path, body  string
		status              int
		code, field, within string // within: part of message and hint
	}{
		{"POST", msgs, ``, 422, "invalid", "text", "text: is empty"},
		{"POST", msgs, `{"text":"  \n"}`, 422, "invalid", "text", "a message needs a text or a file"},
		{"POST", msgs, `{"text":"x","kind":"shout"}`, 422, "invalid", "kind",
			`found "shout", allowed: message, system_message, reset, compact`},
		{"POST", msgs, `{"text":"x","id":"Mine"}`, 422, "invalid", "id", "16 to 64 characters"},
		{"GET", "/v1/agents/alpha/items/none", "", 404, "unknown_item", "", "none"},
		{"GET", "/v1/agents/alpha/items/none/events", "", 404, "unknown_item", "", "none"},
		{"POST", msgs, `{"text":"x","origin":"me"}`, 422, "invalid", "origin", "system_message"},
		{"POST", msgs, `{"text":"x","silent":true}`, 422, "invalid", "silent", "system_message"},
		{"POST", msgs, `{"text":"x","queue":"later"}`, 422, "invalid", "queue", `found "later", allowed: steer, followup`},
		{"POST", msgs, `{"text":"x","kind":"system_message","queue":"steer"}`, 422, "invalid", "queue", "needs kind message"},
		{"POST", msgs, `{"text":"x","txet":1}`, 400, "malformed", "txet", "txet: unknown field"},
		{"POST", msgs, `{"text":5}`, 400, "malformed", "text", "text: found a JSON number, allowed: a string"},
		{"POST", msgs, `{"text":"x","files":{}}`, 400, "malformed", "files", "files: found a JSON object, allowed: an array"},
		{"POST", msgs, `{"text":"x","silent":"yes"}`, 400, "malformed", "silent", "silent: found a JSON string, allowed: true or false"},
		{"POST", msgs, `["x"]`, 400, "malformed", "", "found a JSON array, allowed: an object"},
		{"POST", msgs, `{"text":"x"`, 400, "malformed", "", "it ends before the object does"},
		{"POST", msgs, `{"text":"x"} {}`, 400, "malformed", "", "unexpected data after the object"},
		{"POST", msgs, `text=x`, 400, "malformed", "", "not JSON"},
		{"POST", msgs, `{"text":"x","dedupe":"` + strings.Repeat("d", 513) + `"}`, 422, "invalid", "dedupe", "allowed: 512"},
		{"POST", msgs, `{"text":"x","route":{"connector":"web"}}`, 422, "invalid", "route", "channelId"},
		{"POST", msgs, `{"text":"x","files":[{}]}`, 422, "invalid", "files[0]", "{path}, {name,data} or {id}"},
		{"POST", msgs, `{"text":"x","files":[{"id":"a","name":"b"}]}`, 422, "invalid", "files[0]", "is not one of"},
		{"POST", msgs, `{"text":"x","files":[{"name":"a"},{"path":"/missing"}]}`, 422, "invalid", "files[1].path", "no such file"},
		{"POST", msgs, `{"text":"x","files":[{"id":"id-nope"}]}`, 404, "unknown_file", "", "no such file"},
		{"POST", msgs, `{"text":"x","files":[{"name":"a","data":"%%"}]}`, 400, "malformed", "", "not a request"},
		{"POST", msgs, `{"text":"` + strings.Repeat("x", inbox.MaxItemBytes+1) + `"}`, 413, "too_large", "", "allowed: 1048576"},
		{"POST", msgs, `{"text":"` + strings.Repeat("x", maxMessageBody) + `"}`, 413, "too_large", "", "the request is over"},
		{"POST", "/v1/agents/alpha/messages",
			`{"text":"x","files":[{"name":"a","data":"` + strings.Repeat("AAAA", MaxFileBytes/3+1) + `"}]}`, 413,
			"file_too_large", "", "allowed: 20971520"},
		{"POST", "/v1/messages", `{"text":"x"}`, 422, "invalid", "connector", "/v1/agents/{id}/messages"},
		{"POST", "/v1/messages", `{"text":"x","connector":"web"}`, 422, "invalid", "channelId", "is empty"},
		{"POST", "/v1/agents/nobody/messages", `{"text":"x"}`, 404, "unknown_agent", "", "no such agent"},
		{"GET", "/v1/agents/nobody", ``, 404, "unknown_agent", "", "GET /v1/agents lists them"},
		{"GET", "/v1/agents/al", ``, 409, "ambiguous", "", "matches several agents: 0/ " + alpha + ", 1/ other"},
		{"POST", "/v1/agents", `{"type":"cron"}`, 422, "invalid", "type", `found "cron", allowed: user, permanent, subagent`},
		{"POST", "/v1/agents", `{"connector":"c"}`, 422, "invalid", "channelId", "needs connector"},
		{"POST", "/v1/agents", `{"type":"permanent","name":"Ops","connector":"c","channelId":"d"}`, 422, "invalid", "channelId",
			"of an agent of type user"},
		{"POST", "/v1/agents", `{"type":"permanent"}`, 422, "invalid", "name", "required for a permanent agent"},
		{"POST", "/v1/agents", `{"type":"subagent"}`, 422, "invalid", "parent", "required for a subagent"},
		{"POST", "/v1/agents", `{"type":"subagent","parent":"nobody"}`, 404, "unknown_agent", "", "nobody"},
		{"GET", "/v1/agents/alpha/history?limit=0", ``, 400, "malformed", "limit", `found "0", allowed: a number from 1 to 1000`},
		{"GET", "/v1/agents/alpha/history?before=x", ``, 400, "malformed", "before", `found "x"`},
		{"DELETE", "/v1/agents/alpha?force=please", ``, 400, "malformed", "force", "allowed: 1 or 0"},
		{"POST", "/v1/permissions/tok", `{"decision":"yes"}`, 422, "invalid", "decision", `found "yes", allowed: once, always, deny`},
		{"GET", "/v1/events?agent=nobody", ``, 404, "unknown_agent", "", "nobody"},
		{"GET", "/v1/events?types=turn.finishd", ``, 400, "malformed", "types", `"turn.finishd"`},
		{"GET", "/", ``, 404, "no_route", "", "routes start with /v1/"},
		{"GET", "/v1/cron", ``, 404, "no_route", "", "no route GET /v1/cron"},
		{"PUT", "/v1/agents/alpha/messages", ``, 404, "no_route", "", "this path accepts POST"},
		{"POST", "/v1/agents/alpha", ``, 404, "no_route", "", "this path accepts GET, DELETE"},
		{"GET", "/v1/agents/0/1", ``, 404, "no_route", "", "/v1/agents/0%2F1"},
	} {
		t.Run(c.method+" "+c.path+" "+c.body[:min(len(c.body), 30)], func(t *testing.T) {
			status, _, body := raw(t, Handler((&fake{}).backend(), Options{}), c.method, c.path, c.body)
			var got struct{ Error APIError }
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Fatalf("%d %s: %v", status, body, err)
			}
			e := got.Error
			if status != c.status || e.Code != c.code || e.Field != c.field || !strings.Contains(e.Message+" "+e.Hint, c.within) {
				t.Errorf("got %d %s\nwant %d %s, field %q, %q", status, body, c.status, c.code, c.field, c.within)
			}
		})
	}
}

// TestErrors: what the backend returns comes out of the client the same, with
// the status of the contract in between.
func TestErrors(t *testing.T) {
	at := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{message.ErrUnknownAgent, 404, "unknown_agent"},
		{&Ambiguous{Ref: "a", Candidates: []string{"0/ x", "1/ y"}}, 409, "ambiguous"},
		{inbox.ErrFull, 429, "inbox_full"},
		{inbox.ErrTooLarge, 413, "too_large"},
		{inbox.ErrUnknown, 404, "unknown_item"},
		{inbox.ErrTaken, 409, "item_taken"},
		{inbox.ErrClosed, 503, "shutting_down"},
		{disk.ErrFull, 503, "disk_full"},
		{disk.ErrFailed, 503, "disk_failed"},
		{disk.ErrAway, 503, "replica_away"},
		{ErrNotRunning, 503, "not_running"},
		{ErrNoAsk, 404, "unknown_permission"},
		{ErrBusy, 409, "busy"},
		{ErrProtected, 409, "protected"},
		{&Decided{Decision: "deny", By: "ann", At: at}, 409, "decided"},
		{&Invalid{Field: "name", Reason: "is taken", Hint: "choose another"}, 422, "invalid"},
		{ErrAgentLimit, 409, "agent_limit"},
		{errors.New("something broke"), 500, "internal"},
	} {
		t.Run(c.code, func(t *testing.T) {
			wrapped := c.err
			if wrapped.Error() != "something broke" {
				wrapped = fmt.Errorf("deliver: %w", c.err)
			}
			client, _ := serve(t, &fake{deliver: func(_ context.Context, _ message.Incoming) (message.Receipt, error) {
				return message.Receipt{}, wrapped
			}})
			_, err := client.Send(t.Context(), "alpha", Message{Text: "x"})
			var api *APIError
			if !errors.As(err, &api) || api.Status != c.status || api.Code != c.code || api.Message != wrapped.Error() {
				t.Fatalf("got %+v, want status %d, code %s, message %q", err, c.status, c.code, wrapped)
			}

			checkUnwrapped(t, err, c.err)
		})
	}
}

func checkUnwrapped(t *testing.T, got, want error) {
	t.Helper()
	var ambiguous *Ambiguous
	var decided *Decided
	var invalid *Invalid
	switch w := want.(type) {
	case *Ambiguous:
		if !errors.As(got, &ambiguous) || !cmp.Equal(w, ambiguous) {
			t.Errorf("got %+v, want %+v", ambiguous, w)
		}
	case *Decided:
		if !errors.As(got, &decided) || !cmp.Equal(w, decided) {
			t.Errorf("got %+v, want %+v", decided, w)
		}
	case *Invalid:
		if !errors.As(got, &invalid) || invalid.Field != w.Field || invalid.Hint != w.Hint {
			t.Errorf("got %+v, want %+v", invalid, w)
		}
	default:
		if want.Error() != "something broke" && !errors.Is(got, want) {
			t.Errorf("%v is not %v", got, want)
		}
	}
}

// TestEveryFaultTravels: each failure of the list comes through HTTP with its code and status, is
// the same value to errors.Is on the other side, and ends a command with its exit code and advice.
func TestEveryFaultTravels(t *testing.T) {
	travelled := 0
	or := func(a, b string) string {
		if a != "" {
			return a
		}
		return b
	}
	for _, f := range fault.All {
		client, _ := serve(t, &fake{deliver: func(_ context.Context, _ message.Incoming) (message.Receipt, error) {
			return message.Receipt{}, fmt.Errorf("deliver: %w", f.Sentinel())
		}})
		_, err := client.Send(t.Context(), "alpha", Message{Text: "x"})
		api, ok := errors.AsType[*APIError](err)
		code, status := f.Wire()
		if !ok || api.Code != code || api.Status != status || api.Hint != or(f.Route, f.Hint) {
			t.Errorf("%s: got %+v", f.Text, api)
			continue
		}
		if code == fault.Internal {
			continue // without a code it cannot be told from others
		}
		travelled++
		there := fault.Find(err)
		if !errors.Is(err, f.Sentinel()) || there.Code != code {
			t.Errorf("%s: the client's %v is another failure", code, err)
		}
		if f == fault.Ambiguous || f == fault.Invalid {
			continue // their exit code and hint depend on details
		}
		if there.Exit != f.Exit || there.Hint != or(f.Hint, f.Route) {
			t.Errorf("%s: exit code %d, hint %q; want %d, %q", code, there.Exit, there.Hint, f.Exit, f.Hint)
		}
	}

	t.Logf("%d of %d travelled", travelled, len(fault.All))
}

func TestARefusalAsksToWait(t *testing.T) {
	for err, want := range map[error]int{inbox.ErrFull: http.StatusTooManyRequests, disk.ErrAway: http.StatusServiceUnavailable} {
		f := &fake{deliver: func(context.Context, message.Incoming) (message.Receipt, error) { return message.Receipt{}, err }}
		status, header, _ := raw(t, Handler(f.backend(), Options{}), "POST", "/v1/agents/alpha/messages", `{"text":"x"}`)
		if status != want || header.Get("Retry-After") != "5" {
			t.Errorf("%v: status %d, Retry-After %q", err, status, header.Get("Retry-After"))
		}
	}
}

// TestIncoming: what becomes of a message on its way to the engine.
func TestIncoming(t *testing.T) {
	me := message.Address{Connector: "api", ChannelID: "api", UserID: osUser()}
	route := &message.Address{Connector: "web", ChannelID: "c"}
	for name, c := range map[string]struct {
		ref  string
		m    Message
		want message.Incoming
	}{
		"text": {"alpha", Message{Text: "hi"}, message.Incoming{Agent: alpha, From: me, Kind: message.Text, Text: "hi"}},
		"system": {"alpha", Message{Text: "hi", Kind: message.System, Silent: true},
			message.Incoming{Agent: alpha, From: me, Kind: message.System, Text: "hi",
				Origin: "system", Silent: true}},
		"compact": {"0/", Message{Kind: message.Compact}, message.Incoming{Agent: alpha, From: me, Kind: message.Compact}},
		"all": {"0/1", Message{Text: "hi", Kind: message.System, Origin: "beta", Dedupe: "perm:x",
			Context: message.Context{Sender: "Ann"}, Route: route, Connector: "web",
			UserID: "u", ChannelID: "c", ThreadID: "t", Files: []File{{Name: "a", Data: []byte("1")}, {Path: "/x"}, {ID: "id-kept"}}},
			message.Incoming{Agent: alpha,
				From: message.Address{Connector: "web", ChannelID: "c", UserID: "u", ThreadID: "t"}, Kind: message.System, Text: "hi",
				Origin: "beta", Dedupe: "api:perm:x", Context: message.Context{Sender: "Ann"}, Route: route,
				Files: []message.File{{ID: "id-a", Name: "a", Size: 1}, {ID: "id-adopted", Name: "/x"}, {ID: "id-kept"}}}},
		"by descriptor": {"", Message{Text: "hi", Connector: "web", ChannelID: "c", UserID: "u"},
			message.Incoming{From: message.Address{Connector: "web", ChannelID: "c", UserID: "u"}, Kind: message.Text, Text: "hi"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &fake{}
			client, _ := serve(t, f)
			r, err := client.Send(t.Context(), c.ref, c.m)
			if err != nil || r.Item != "item1" || r.Seq != 7 {
				t.Fatalf("Send: %+v, %v", r, err)
			}
			if d := cmp.Diff([]message.Incoming{c.want}, f.delivered()); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestResetStops(t *testing.T) {
	f := &fake{}
	client, _ := serve(t, f)
	if _, err := client.Reset(t.Context(), "alpha"); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Send(t.Context(), "", Message{Kind: message.Reset, Connector: "web", ChannelID: "c"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"stop " + alpha, "deliver " + alpha + " reset", "deliver  reset", "stop " + alpha}
	if d := cmp.Diff(want, f.calls); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestCallers: only who comes by the unix socket may name paths and users.
func TestCallers(t *testing.T) {
	f := &fake{}
	h := Handler(f.backend(), Options{})
	remote := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(WithCaller(r.Context(), Caller{Name: "web", Rights: apitoken.Everything})))
	})
	client := NewClient(Local(remote))
	var invalid *Invalid
	if _, err := client.Send(t.Context(), "alpha",
		Message{Text: "x", Files: []File{{Path: "/x"}}}); !errors.As(err, &invalid) || invalid.Field != "files[0].path" {
		t.Errorf("a path from the web: %v", err)
	}
	if err := client.Decide(t.Context(), "tok", "once", "root"); !errors.As(err, &invalid) || invalid.Field != "by" {
		t.Errorf("by from the web: %v", err)
	}
	if err := client.Decide(t.Context(), "tok", "deny", ""); err != nil {
		t.Error(err)
	}

	local := NewClient(Local(h))
	for _, by := range []string{"", "ann"} {
		if err := local.Decide(t.Context(), "tok", "always", by); err != nil {
			t.Error(err)
		}
	}

	want := []string{"decide tok deny web", "decide tok always " + osUser(), "decide tok always ann"}
	if d := cmp.Diff(want, f.calls); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestClient: each method comes to its route and back.
func TestClient(t *testing.T) {
	ctx := t.Context()
	before := int64(41)
	f := &fake{history: func(_ string, b int64, limit int) (event.Page, error) {
		if b != 50 || limit != 9 {
			t.Errorf("History before %d, limit %d", b, limit)
		}
		return event.Page{Records: []json.RawMessage{json.RawMessage(`{"seq":49}`)}, Before: &before}, nil
	}, end: func(_ string, force bool) (string, error) {
		if !force {
			return "", ErrBusy
		}
		return "trash/x", nil
	}}
	c, _ := serve(t, f)
	defer c.Close()
	check := func(what string, ok bool, err error) {
		t.Helper()
		if err != nil || !ok {
			t.Errorf("%s: %v, %v", what, ok, err)
		}
	}
	s, err := c.Status(ctx)
	check("Status", s.Running && s.Version == "1.2.3", err)
	list, err := c.Agents(ctx)
	check("Agents", len(list) == 1, err)
	a, err := c.Agent(ctx, "0/1")
	check("Agent", a.ID == alpha, err)
	a, err = c.Create(ctx, NewAgent{Type: "permanent", Name: "Ops"})
	check("Create", a.Name == "Ops", err)
	page, err := c.History(ctx, "alpha", 50, 9)
	check("History", len(page.Records) == 1 && *page.Before == 41, err)
	d, err := c.Draft(ctx, "alpha")
	check("Draft", d.Text == "half", err)
	items, err := c.Inbox(ctx, "alpha")
	check("Inbox", len(items) == 1, err)
	check("Drop", true, c.Drop(ctx, "alpha", "item1"))
	check("Front", true, c.Front(ctx, "alpha", "it/em"))
	stopped, err := c.Stop(ctx, "alpha", "it")
	check("Stop", stopped, err)
	r, err := c.Compact(ctx, "alpha")
	check("Compact", r.Item == "item1", err)
	asks, err := c.Permissions(ctx)
	check("Permissions", len(asks) == 1, err)
	config, err := c.Config(ctx)
	check("Config", strings.Contains(string(config), "info"), err)
	tools, err := c.Tools(ctx)
	check("Tools", len(tools) == 1, err)
	text, err := c.Metrics(ctx)
	check("Metrics", strings.Contains(text, `daycare_provider_up{id="main",type="anthropic"} 1`) &&
		strings.Contains(text, "daycare_uptime_seconds 1.5\n"), err)
	check("Shutdown", true, c.Shutdown(ctx))
	if err := c.Kill(ctx, "alpha"); !errors.Is(err, ErrBusy) {
		t.Errorf("Kill: %v", err)
	}
	if _, err := c.Remove(ctx, "alpha", false); !errors.Is(err, ErrBusy) {
		t.Errorf("Remove: %v", err)
	}
	trash, err := c.Remove(ctx, "alpha", true)
	check("Remove with force", trash == "trash/x", err)
	for _, ref := range []string{"", ".", "..", "no/body", "nöbody ?#%"} {
		if _, err := c.Agent(ctx, ref); !errors.Is(err, message.ErrUnknownAgent) {
			t.Errorf("Agent(%q): %v", ref, err)
		}
	}
	want := []string{"drop " + alpha + " item1", "front " + alpha + " it/em", "stop " + alpha + " it", "deliver " + alpha + " compact"}
	if d := cmp.Diff(want, f.calls); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestReload(t *testing.T) {
	warn := finding.Finding{ID: "w", Severity: finding.Warning, File: "settings.yaml", Line: 3, Reason: "x is unknown"}
	bad := finding.Finding{ID: "e", Severity: finding.Error, File: "settings.yaml", Line: 5, Reason: "y is wrong"}
	var found []finding.Finding
	c, _ := serve(t, &fake{reload: func() ([]finding.Finding, error) { return found, nil }})
	found = []finding.Finding{warn}
	if got, err := c.Reload(t.Context()); err != nil || !cmp.Equal(got, found) {
		t.Errorf("with a warning: %v, %v", got, err)
	}

	found = []finding.Finding{warn, bad}
	got, err := c.Reload(t.Context())
	var api *APIError
	if !errors.As(err, &api) || api.Status != 422 || api.Code != "invalid_config" ||
		!strings.Contains(api.Message, "settings.yaml:5: y is wrong") {
		t.Errorf("with an error: %v", err)
	}
	if !cmp.Equal(got, found) {
		t.Errorf("findings %v", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(`{"text":"hi","files":[{"name":"a","data":"AAAA"}],"route":{"connector":"x"}}`)
	f.Add(`{"text":"hi","kind":"reset","unknown":1}`)
	f.Add(`{"context":{"sender":[]}} x`)
	f.Fuzz(func(t *testing.T, body string) {
		var m Message
		err := decodeBody(strings.NewReader(body), &m)
		if err == nil {
			err = m.check(false, Caller{})
		}
		if err == nil {
			if in := m.incoming("a", Caller{Name: "x"}, nil); in.Kind == "" {
				t.Error("no kind")
			}
			return
		}
		if e := Describe(err); e.Status < 400 || e.Status >= 500 || e.Message == "" {
			t.Errorf("%q gives %d %s", body, e.Status, e.Message)
		}
	})
}
