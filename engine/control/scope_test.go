package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/engine/apitoken"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/permission"
)

const beta = "betabetabetabetabetabeta"

// pair is a fake with two agents, which notes what reaches the second.
type pair struct {
	*fake
	reached []string
}

func (p *pair) note(what, id string) {
	if id == beta {
		p.reached = append(p.reached, what)
	}
}

func (p *pair) Agents(context.Context) ([]event.Agent, error) {
	return []event.Agent{{ID: alpha, Name: "Alpha"}, {ID: beta, Name: "Beta"}}, nil
}
func (p *pair) Resolve(ref string) (string, error) {
	switch ref {
	case beta, "beta", "1/":
		return beta, nil
	case "amb":
		return "", &Ambiguous{Ref: ref, Candidates: []string{"1/ " + beta, "0/ " + alpha}}
	}
	return p.fake.Resolve(ref)
}
func (p *pair) Agent(ctx context.Context, id string) (event.Agent, error) {
	p.note("Agent", id)
	return p.fake.Agent(ctx, id)
}
func (p *pair) Deliver(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	p.note("Deliver", in.Agent)
	return p.fake.Deliver(ctx, in)
}
func (p *pair) Decide(ctx context.Context, token, decision, by string) error {
	if token == "tokbeta" {
		p.note("Decide", beta)
	}
	return p.fake.Decide(ctx, token, decision, by)
}
func (p *pair) Asks(context.Context) ([]event.Ask, error) {
	return []event.Ask{{Token: "tok", AgentID: alpha, Lineage: []string{"7/above"}}, {Token: "tokbeta", AgentID: beta}}, nil
}
func (p *pair) Remove(ctx context.Context, id string, force bool) (string, error) {
	p.note("Remove", id)
	return p.fake.Remove(ctx, id, force)
}

// rules is Grants and SubAgents of nothing.
type rules struct{ p *pair }

func (r rules) Grants(_ context.Context, id string) (permission.Set, error) {
	r.p.note("Grants", id)
	return permission.Set{}, nil
}
func (r rules) Revoke(_ context.Context, id, _, _ string) error {
	r.p.note("Revoke", id)
	return nil
}
func (r rules) Grant(_ context.Context, id string, _ Granting, _ string) error {
	r.p.note("Grant", id)
	return nil
}
func (r rules) Why(_ context.Context, id, _ string) (Verdict, error) {
	r.p.note("Why", id)
	return Verdict{}, nil
}
func (r rules) SubAgents(context.Context) ([]SubAgentInfo, error) { return nil, nil }

// doorbell is a Pairings at which nobody rings.
type doorbell struct{ p *pair }

func (d doorbell) Pairings(context.Context) ([]Pairing, error) { return nil, nil }
func (d doorbell) Pair(_ context.Context, code string, _ bool, _ string) (Paired, error) {
	d.p.note("Pair", code)
	return Paired{}, nil
}

// lobby is a Browsers with one browser.
type lobby struct{}

func (lobby) Invite(context.Context) (Invitation, error) { return Invitation{}, nil }
func (lobby) Login(context.Context, string, string) (Session, string, error) {
	return Session{ExpiresAt: &time.Time{}}, "cookie", nil
}
func (lobby) Sessions(context.Context) ([]Session, error) {
	return []Session{{Name: "web-firefox-1"}}, nil
}
func (lobby) End(context.Context, string) error { return nil }

// looker is an Inspector of nothing, with a log of one line.
type looker struct{ p *pair }

func (looker) Trace(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}
func (looker) Examine(context.Context) (Checkup, error)         { return Checkup{}, nil }
func (looker) Treat(context.Context, []string) (Checkup, error) { return Checkup{}, nil }
func (looker) Validate(context.Context, string, []byte) ([]finding.Finding, error) {
	return nil, nil
}
func (looker) TestConnector(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}
func (looker) TestProvider(context.Context, string) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}
func (looker) SharedFiles(context.Context) ([]SharedFile, error) { return nil, nil }
func (looker) ReadShared(context.Context, string) ([]byte, string, error) {
	return []byte("x"), "h-", nil
}
func (looker) WriteShared(context.Context, string, []byte, string) (string, error) {
	return "h-", nil
}
func (looker) Schema(string) (json.RawMessage, error) { return json.RawMessage(`{}`), nil }
func (l looker) Size(_ context.Context, id string) (json.RawMessage, error) {
	l.p.note("Size", id)
	return json.RawMessage(`null`), nil
}
func (looker) Log(_ context.Context, _ LogQuery, line func([]byte) error) error {
	return line([]byte(`{"msg":"started"}`))
}

// programs are the hooks of a test: one, which denies whatever it is tried with.
type programs struct{}

func (programs) Hooks(context.Context) ([]HookInfo, error) {
	return []HookInfo{{Event: "before_tool", Command: "./policy", TimeoutMS: 5000, OnError: "deny", Sandbox: true}}, nil
}

func (programs) TestHooks(_ context.Context, s HookSample) (HookTest, error) {
	return HookTest{Decision: "deny", Reason: s.Event + " " + s.Tool, Input: s.Input}, nil
}

// whole is a backend that has something for every route.
func whole(p *pair) Backend {
	b := p.backend()
	b.Agents, b.Permissions = p, p
	b.Folders, b.Schedules, b.Catalog, b.Costs = &shelf{}, &diary{}, menu{}, till{&Bill{}}
	b.Pairings, b.Hooks = doorbell{p}, programs{}
	b.Grants, b.SubAgents, b.Backups = rules{p}, rules{p}, fakeBackups{first: "x"}
	b.Translator, b.Browsers = func() Translator { return echo{} }, lobby{}
	b.Inspector = looker{p}
	return b
}

// as makes every request that of a caller with these rights.
func as(h http.Handler, rights apitoken.Rights) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(WithCaller(r.Context(), Caller{Name: "token:test", Rights: rights})))
	})
}

// call makes one request; a stream is ended after its head.
func call(t *testing.T, h http.Handler, method, path, body string) (status int, e APIError, text string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	if strings.Contains(path, "/v1/events") {
		cancel()
	}
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	r.Header.Set("If-Match", `"h-"`)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var answer ErrorBody
	if json.Unmarshal(w.Body.Bytes(), &answer) == nil && answer.Error != nil {
		e = *answer.Error
	}
	return w.Code, e, w.Body.String()
}

// filled is a route's path about an agent.
func filled(pattern, agent string) (method, path string) {
	method, path, _ = strings.Cut(pattern, " ")
	return method, strings.NewReplacer("{id}", agent, "{item}", "item1", "{token}", "tok", "{name}", "state.json",
		"{slug}", "t", "{model}", agent).Replace(path)
}

// bodies are what routes need to continue to their backend.
var bodies = map[string]string{
	"POST /v1/agents/{id}/messages": `{"text":"hi"}`, "POST /v1/messages": `{"text":"hi","connector":"c","channelId":"d"}`,
	"POST /v1/permissions/{token}": `{"decision":"deny"}`, "POST /v1/agents/{id}/mark": `{"name":"here"}`,
	"POST /v1/pairings/{code}":    `{"decision":"reject"}`,
	"POST /v1/agents/{id}/grants": `{"permission":"@web"}`, "POST /v1/cron": `{"prompt":"look"}`,
}

func tableOf(b Backend) []row { return table(&api{}, b) }

// aboveIts has an answered request of another agent above each of its own.
type aboveIts struct{ *fake }

func (aboveIts) Answered(_ context.Context, limit int) ([]event.Ask, error) {
	all := []event.Ask{{Token: "b1", AgentID: beta}, {Token: "a1", AgentID: alpha}, {Token: "b2", AgentID: beta},
		{Token: "a2", AgentID: alpha}, {Token: "a3", AgentID: alpha}}
	return all[:min(len(all), limit)], nil
}

// A token for some agents gets as many answered requests as it asks for, however many others there are.
func TestAnsweredOfSomeAgents(t *testing.T) {
	few := apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Read}, Agents: []string{alpha}}
	h := approvals{aboveIts{&fake{}}}
	for rights, want := range map[*apitoken.Rights][]string{&apitoken.Everything: {"b1", "a1"}, &few: {"a1", "a2"}} {
		ctx := WithCaller(t.Context(), Caller{Rights: *rights})
		body, err := h.list(ctx, asksIn{State: "decided", Limit: 2})
		var got []string
		for _, a := range body.Permissions {
			got = append(got, a.Token)
		}
		if !slices.Equal(got, want) || err != nil {
			t.Errorf("of %v: %q, %v, want %q", rights.Agents, got, err, want)
		}
	}
}

// For whom an agent works is shown only to those who may know all agents.
func TestWhoAsksForWhom(t *testing.T) {
	h := Handler(whole(&pair{fake: &fake{}}), Options{})
	few := apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Admin}, Agents: []string{alpha}}
	for _, rights := range []apitoken.Rights{apitoken.Everything, few} {
		status, _, text := call(t, as(h, rights), "GET", "/v1/permissions", "")
		if status != 200 || !strings.Contains(text, `"tok"`) || strings.Contains(text, "7/above") == rights.Restricted() {
			t.Errorf("of %v: %d %s", rights.Agents, status, text)
		}
	}
}

// mute are permissions whose requests cannot be listed.
type mute struct{ Permissions }

func (mute) Asks(context.Context) ([]event.Ask, error) { return nil, errors.New("they cannot be read") }

// Whether a request is of an agent that the caller may know cannot always be told: then it is not decided, and not said
// to be none.
func TestARequestOfWhichNothingIsKnown(t *testing.T) {
	b := whole(&pair{fake: &fake{}})
	b.Permissions = mute{b.Permissions}
	few := apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Admin}, Agents: []string{alpha}}
	if status, _, text := call(t, as(Handler(b, Options{}), few), "POST", "/v1/permissions/tok", `{"decision":"deny"}`); status != 500 {
		t.Errorf("%d %s, want 500", status, text)
	}
}

// TestEveryRouteAsksForItsScope walks the table: each route with each scope, for all agents and
// for one.
func TestEveryRouteAsksForItsScope(t *testing.T) {
	b := whole(&pair{fake: &fake{}})
	h := Handler(b, Options{})
	rows := tableOf(b)
	tries, refused := 0, 0
	for _, row := range rows {
		if row.Traits&anyone != 0 {
			continue // its handler decides
		}
		method, path := filled(row.Pattern(), alpha)
		for _, scope := range append(slices.Clone(apitoken.Scopes), "") {
			for _, agents := range [][]string{nil, {alpha}} {
				rights := apitoken.Rights{Agents: agents}
				if scope != "" {
					rights.Scopes = []apitoken.Scope{scope}
				}
				status, e, text := call(t, as(h, rights), method, path, bodies[row.Pattern()])
				tries++
				want := rights.Allow(row.Scope) && (agents == nil || row.Reach != all)
				if !want {
					refused++
					if status != http.StatusForbidden || e.Code != "scope" || e.Scope != row.Scope ||
						!strings.Contains(e.Message, string(row.Scope)) || e.Hint == "" {
						t.Errorf("%s with %q for %v: %d %s; want 403 scope that names %s", row.Pattern(), scope, agents,
							status, text, row.Scope)
					}
				} else if status == http.StatusForbidden || status == http.StatusUnauthorized {
					t.Errorf("%s with %q for %v: %d %s; the scope is there", row.Pattern(), scope, agents, status, text)
				}
			}
		}
	}
	if len(rows) < 50 {
		t.Errorf("only %d routes are in the table", len(rows))
	}
	t.Logf("%d routes, %d requests, %d refused", len(rows), tries, refused)
}

// A caller without a mark, as of a listener that forgot to say who it is, may do nothing.
func TestACallerWithoutRightsIsRefusedEverywhere(t *testing.T) {
	b := whole(&pair{fake: &fake{}})
	h := Handler(b, Options{})
	for _, row := range tableOf(b) {
		method, path := filled(row.Pattern(), alpha)
		if status, _, text := call(t, h, method, path, bodies[row.Pattern()]); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", row.Pattern(), status, text)
		}
	}
}

// TestARestrictedTokenKnowsNoOtherAgent tries every route with another agent in its path, however
// it is written.
func TestARestrictedTokenKnowsNoOtherAgent(t *testing.T) {
	p := &pair{fake: &fake{}}
	b := whole(p)
	h := as(Handler(b, Options{}), apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Admin}, Agents: []string{alpha}})
	tries := 0
	for _, row := range tableOf(b) {
		if row.Reach != one {
			continue
		}
		for _, ref := range []string{beta, "beta", "1%2F", "b%65ta", "amb", "none"} {
			method, path := filled(row.Pattern(), ref)
			if strings.HasSuffix(path, "/why") {
				path += "?what=@web"
			}
			if strings.HasSuffix(path, "/grants") {
				path += "?permission=@web"
			}
			tries++
			status, e, text := call(t, h, method, path, bodies[row.Pattern()])
			if status != http.StatusNotFound || e.Code != "unknown_agent" {
				t.Errorf("%s %s: %d %s; want 404 unknown_agent", method, path, status, text)
			}
			if ref != beta && strings.Contains(text, beta) {
				t.Errorf("%s %s tells the id of the other agent: %s", method, path, text)
			}
		}
	}
	if len(p.reached) > 0 {
		t.Errorf("the other agent was reached: %v", p.reached)
	}
	t.Logf("%d requests", tries)
}

// TestReachFitsThePath: a route with an agent in its path says so, and what a restricted token
// reads by the others tells nothing of other agents.
func TestReachFitsThePath(t *testing.T) {
	p := &pair{fake: &fake{}}
	b := whole(p)
	h := as(Handler(b, Options{}), apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Admin}, Agents: []string{alpha}})
	read := 0
	for _, row := range tableOf(b) {
		if about := strings.Contains(row.Pattern(), "{id}"); about && row.Reach != one && row.Reach != all || !about && row.Reach == one {
			t.Errorf("%s has the wrong reach", row.Pattern())
		}
		if method, path := filled(row.Pattern(), alpha); method == "GET" {
			read++
			if _, _, text := call(t, h, method, path, ""); strings.Contains(strings.ToLower(text), "beta") {
				t.Errorf("%s tells of another agent: %s", row.Pattern(), text)
			}
		}
	}
	if len(p.reached) > 0 {
		t.Errorf("the other agent was reached: %v", p.reached)
	}
	t.Logf("%d routes are read", read)
}

// TestARestrictedTokenElsewhere: another agent in a query, in a body and in lists.
func TestARestrictedTokenElsewhere(t *testing.T) {
	p := &pair{fake: &fake{}}
	h := as(Handler(whole(p), Options{}), apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Admin}, Agents: []string{alpha}})
	mine := "/v1/agents/" + alpha
	for _, c := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{"GET", "/v1/events?agent=" + beta, "", 404, "unknown_agent"},
		{"GET", "/v1/events?agent=beta", "", 404, "unknown_agent"},
		{"POST", "/v1/permissions/tokbeta", `{"decision":"always"}`, 404, "unknown_permission"},
		{"POST", "/v1/permissions/none", `{"decision":"always"}`, 404, "unknown_permission"},
		{"POST", "/v1/permissions/tok", `{"decision":"once"}`, 200, ""},
		{"POST", "/v1/agents", `{"type":"user"}`, 403, "scope"},
		{"POST", "/v1/agents", `{"type":"subagent","parent":"` + alpha + `"}`, 403, "scope"},
		{"POST", "/v1/agents", `{"type":"subagent","parent":"` + beta + `"}`, 403, "scope"},
		{"POST", mine + "/fork", `{}`, 403, "scope"},
		{"POST", "/v1/trash/x/restore", ``, 403, "scope"},
		{"POST", "/v1/import", `x`, 403, "scope"},
		{"POST", "/v1/cron", `{"prompt":"look","agentId":"` + beta + `"}`, 403, "scope"},
		{"PUT", mine + "/files/state.json", `{}`, 403, "scope"},
		{"POST", mine + "/grants", `{"permission":"@read:/"}`, 403, "scope"},
		{"POST", "/v1/messages", `{"text":"x","connector":"telegram","channelId":"1","userId":"2"}`, 403, "scope"},
		{"POST", mine + "/messages", `{"text":"x","connector":"telegram","userId":"2"}`, 403, "scope"},
		{"POST", mine + "/messages", `{"text":"x","route":{"connector":"@agent","channelId":"` + beta + `"}}`, 403, "scope"},
		{"POST", mine + "/messages", `{"text":"x","context":{"sender":"the owner"}}`, 403, "scope"},
		{"POST", mine + "/messages", `{"text":"x","kind":"system_message","origin":"` + beta + `"}`, 403, "scope"},
		{"POST", mine + "/messages", `{"text":"x","files":[{"id":"id-kept"}]}`, 422, "invalid"},
		{"POST", mine + "/messages", `{"text":"x","files":[{"name":"a.txt","data":"eA=="}]}`, 202, ""},
	} {
		status, e, text := call(t, h, c.method, c.path, c.body)
		if status != c.status || e.Code != c.code {
			t.Errorf("%s %s %s: %d %s; want %d %s", c.method, c.path, c.body, status, text, c.status, c.code)
		}
	}
	for path, want := range map[string]string{"/v1/agents": alpha, "/v1/permissions": `"tok"`, "/v1/status": "1.2.3"} {
		status, _, text := call(t, h, "GET", path, "")
		if status != http.StatusOK || !strings.Contains(text, want) || strings.Contains(text, "beta") ||
			strings.Contains(text, "anthropic") {
			t.Errorf("GET %s: %d %s", path, status, text)
		}
	}
	if len(p.reached) > 0 {
		t.Errorf("the other agent was reached: %v", p.reached)
	}
}

// TestAChatTokenSpeaksForNobodyElse: who cannot answer requests is a guest, and says so.
func TestAChatTokenSpeaksForNobodyElse(t *testing.T) {
	f := &fake{}
	h := Handler(f.backend(), Options{})
	chat := as(h, apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Chat}})
	for _, body := range []string{`{"text":"x","connector":"telegram","userId":"owner"}`, `{"text":"x","userId":"owner"}`,
		`{"text":"x","route":{"connector":"telegram","channelId":"1"}}`, `{"text":"x","kind":"system_message"}`,
		`{"text":"x","context":{"sender":"owner"}}`} {
		if status, e, text := call(t, chat, "POST", "/v1/agents/alpha/messages", body); status != 403 || e.Scope != apitoken.Admin {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	for scope, guest := range map[apitoken.Scope]bool{apitoken.Chat: true, apitoken.Admin: false} {
		if status, _, text := call(t, as(h, apitoken.Rights{Scopes: []apitoken.Scope{scope}}), "POST",
			"/v1/agents/alpha/messages", `{"text":"hi"}`); status != 202 {
			t.Fatalf("%s: %d %s", scope, status, text)
		}
		got := f.delivered()[len(f.delivered())-1]
		if (got.Source != "") != guest || got.From.UserID != "token:test" || got.From.Connector != "api" {
			t.Errorf("%s: delivered %+v", scope, got)
		}
	}
}

// A connector of this process names the senders of its own messages, and of no others; whoever
// says that a text is a stranger's is believed.
func TestAConnectorSpeaksForItsCallers(t *testing.T) {
	f := &fake{}
	h := Handler(f.backend(), Options{})
	post := func(body string) error {
		caller := Caller{Name: "token:test", Via: "mcp", Rights: apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Chat}}}
		var m Message
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatal(err)
		}
		_, err := NewClient(LocalAs(h, caller)).Send(t.Context(), "alpha", m)
		return err
	}
	for _, body := range []string{`{"text":"x","connector":"telegram","userId":"owner"}`, `{"text":"x","userId":"owner"}`,
		`{"text":"x","connector":"mcp","route":{"connector":"telegram","channelId":"1"}}`,
		`{"text":"x","connector":"mcp","kind":"system_message"}`} {
		if e, ok := errors.AsType[*APIError](post(body)); !ok || e.Scope != apitoken.Admin {
			t.Errorf("%s: %v", body, e)
		}
	}

	if err := post(`{"text":"x","connector":"mcp","channelId":"a","userId":"b","untrusted":true,` +
		`"context":{"sender":"editor"},"route":{"connector":"mcp","channelId":"a"}}`); err != nil {
		t.Fatal(err)
	}
	got := f.delivered()[len(f.delivered())-1]
	if !got.Untrusted || got.From.Connector != "mcp" || got.Context.Sender != "editor" || got.Source == "" {
		t.Errorf("delivered %+v", got)
	}
}

// network serves a backend over TCP with tokens in a folder.
func network(t *testing.T, b Backend) (addr, root string, store *apitoken.Store) {
	t.Helper()
	root = t.TempDir()
	store = apitoken.Open(root, disk.NewVolume(root), func(string, []finding.Finding) {})
	l, err := ListenTCP(TCP{Addr: "127.0.0.1:0", Token: "s3cret", Tokens: store})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, Handler(b, Options{}), nil, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), root, store
}

func newToken(t *testing.T, root, name string, r apitoken.Rights) string {
	t.Helper()
	secret, _, err := apitoken.Create(root, name, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// dial makes a request with a token; the caller closes the body.
func dial(t *testing.T, method, url, token string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestTokensOnTheNetwork(t *testing.T) {
	b := whole(&pair{fake: &fake{}})
	addr, root, _ := network(t, b)
	read := newToken(t, root, "display", apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Read}})
	status := func(method, path, token string) int {
		resp := dial(t, method, "http://"+addr+path, token)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for _, c := range []struct {
		method, path, token string
		want                int
	}{
		{"GET", "/v1/agents", read, 200}, {"POST", "/v1/shutdown", read, 403}, {"POST", "/v1/agents/alpha/stop", read, 403},
		{"GET", "/v1/config", read, 403}, {"GET", "/v1/config", "s3cret", 200}, {"GET", "/v1/agents", "", 401},
		{"GET", "/v1/agents", "display", 401}, {"GET", "/v1/agents", read + "x", 401}, {"GET", "/healthz", read, 200},
	} {
		if got := status(c.method, c.path, c.token); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
		}
	}
	if err := apitoken.Revoke(root, "display"); err != nil {
		t.Fatal(err)
	}
	if got := status("GET", "/v1/agents", read); got != 401 {
		t.Errorf("a revoked token: %d", got)
	}
}

// TestRevokingEndsOpenStreams: events and the turn of a message, of this token alone.
func TestRevokingEndsOpenStreams(t *testing.T) {
	f := &fake{await: func(ctx context.Context, _, _ string) (event.Outcome, error) {
		<-ctx.Done()
		return event.Outcome{}, ctx.Err()
	}}
	b := f.backend()
	addr, root, store := network(t, b)
	phone := newToken(t, root, "phone", apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Chat}})
	other := newToken(t, root, "other", apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Read}})
	open := func(method, path, token string) *http.Response {
		resp := dial(t, method, "http://"+addr+path, token)
		t.Cleanup(func() { resp.Body.Close() })
		if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusUnprocessableEntity {
			t.Fatalf("%s %s: %s", method, path, resp.Status)
		}
		return resp
	}
	events, stays := open("GET", "/v1/events", phone), open("GET", "/v1/events", other)
	req, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+"/v1/agents/alpha/messages",
		strings.NewReader(`{"text":"x","wait":true}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+phone)
	turn, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer turn.Body.Close()
	ended := make(chan string, 3)
	for name, resp := range map[string]*http.Response{"events": events, "turn": turn, "other": stays} {
		go func() {
			_, _ = io.Copy(io.Discard, resp.Body)
			ended <- name
		}()
	}
	if err := apitoken.Revoke(root, "phone"); err != nil {
		t.Fatal(err)
	}
	store.Refresh() // as the watcher of the folder does
	var gone []string
	for range 2 {
		select {
		case name := <-ended:
			gone = append(gone, name)
		case <-time.After(time.Minute):
			t.Fatalf("only %v ended", gone)
		}
	}
	if slices.Sort(gone); !slices.Equal(gone, []string{"events", "turn"}) {
		t.Errorf("ended: %v", gone)
	}
	select {
	case name := <-ended:
		t.Errorf("%s ended too", name)
	case <-time.After(100 * time.Millisecond):
	}
}

// TestARestrictedStreamHasOnlyItsAgents also when events are told again, and of the daemon none.
func TestARestrictedStreamHasOnlyItsAgents(t *testing.T) {
	b := whole(&pair{fake: &fake{}})
	emit := func(n int) {
		for _, id := range []string{beta, "", alpha} {
			b.Events.Emit(event.Event{Type: event.AgentWoke, Agent: id, Body: event.Reason{Reason: fmt.Sprint("woke ", n, " ", id)}})
		}
	}
	emit(1)
	restricted := apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Read}, Agents: []string{alpha}}
	h := Handler(b, Options{})
	caller := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { as(h, restricted).ServeHTTP(w, r) })
	c := NewClient(Local(caller))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var seen []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.Events(ctx, Filter{}, b.Events.Boot()+".0", func(e RawEvent) error {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, e.Agent+string(e.Data))
			return nil
		})
	}()
	soon(t, "the stream watches", func() bool { return b.Events.Watched(alpha) })
	emit(2)
	soon(t, "two events", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) >= 2 })
	cancel()
	<-done
	if len(seen) != 2 || slices.ContainsFunc(seen,
		func(s string) bool { return !strings.HasPrefix(s, alpha) || strings.Contains(s, beta) }) {
		t.Errorf("told: %v", seen)
	}
	if err := NewClient(Local(caller)).Events(t.Context(), Filter{Agent: "beta"}, "", nil); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("the events of another agent: %v", err)
	}
}
