package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/cmd/daycare/commandtest"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/record"
)

// A visit is a client of a door over a house of one agent, 0/.
type visit struct {
	t      *testing.T
	house  *commandtest.Server
	offer  Offer
	home   string
	door   *Door
	client *sdk.ClientSession
	told   chan string // progress
}

func visiting(t *testing.T, turn func(h *commandtest.Server, in message.Incoming) event.Outcome) *visit {
	t.Helper()
	v := &visit{t: t, house: commandtest.NewHouse(t, turn), offer: Offer{Agents: []string{"0/"}}, home: t.TempDir(),
		told: make(chan string, 100)}
	d := New(Options{Version: "1", Home: v.home, Offer: func() Offer { return v.offer }})
	d.local = Peer{Name: "stdio", API: v.house.Client()}
	v.door = d
	ours, theirs := sdk.NewInMemoryTransports()
	if _, err := d.server.Connect(t.Context(), ours, nil); err != nil {
		t.Fatal(err)
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "editor\x1b[2J", Version: "1"}, &sdk.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { v.told <- r.Params.Message }})
	session, err := client.Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	v.client = session

	return v
}

// call calls a tool and decodes what it returns; the text is that of an error.
func (v *visit) call(ctx context.Context, tool string, args map[string]any, out any) (text string, failed bool) {
	v.t.Helper()
	p := &sdk.CallToolParams{Name: tool, Arguments: args}
	p.SetProgressToken("t")
	r, err := v.client.CallTool(ctx, p)
	if err != nil {
		return err.Error(), true
	}
	if len(r.Content) > 0 {
		text = r.Content[0].(*sdk.TextContent).Text
	}
	if data, err := json.Marshal(r.StructuredContent); out != nil && !r.IsError && (err != nil || json.Unmarshal(data, out) != nil) {
		v.t.Fatalf("%s returned %v", tool, r.StructuredContent)
	}

	return text, r.IsError
}

func says(text string) func(*commandtest.Server, message.Incoming) event.Outcome {
	return func(h *commandtest.Server, in message.Incoming) event.Outcome {
		h.Begin("t1", in)
		h.Emit(event.ToolStarted, "t1", event.Tool{Name: "web_fetch"})
		return event.Outcome{Turn: "t1", Reason: "done", Text: text + in.Text}
	}
}

// A message is an item of a connector of its own: from a stranger, answered to nobody's chat,
// with a turn of its own, known by the client's id.
func TestAMessageIsAStrangers(t *testing.T) {
	v := visiting(t, says("heard "))
	var out sendOut
	if text, failed := v.call(t.Context(), "send_message", map[string]any{"agent": "0/", "text": "hi", "id": "m1"}, &out); failed ||
		text != "heard hi" || out.State != answered || out.ID != "m1" || out.Agent != "0/" {
		t.Fatalf("%q, %+v", text, out)
	}
	if first, second := <-v.told, <-v.told; first != "accepted" || second != "the agent reads it" {
		t.Errorf("progress: %q, %q", first, second)
	}

	in := v.house.Received()[0]
	where := message.Address{Connector: "mcp", ChannelID: "stdio"}
	if !in.Untrusted || in.Queue != message.Followup || in.Dedupe != "api:mcp:stdio:m1" || in.From.Connector != "mcp" ||
		in.From.UserID != "stdio" || in.Route == nil || *in.Route != where || in.Context.MessageID != "m1" ||
		in.Context.Sender != `editor\x1b[2J (MCP client)` {
		t.Errorf("delivered %+v, route %v", in, in.Route)
	}
}

// Whoever does not wait gets a receipt, and an id with which to wait later.
func TestSendingWithoutWaiting(t *testing.T) {
	v := visiting(t, says(""))
	var out sendOut
	text, failed := v.call(t.Context(), "send_message", map[string]any{"agent": "0", "text": "hi", "wait": false}, &out)
	if failed || out.State != working || out.Item == "" || len(out.ID) < 20 || !strings.Contains(text, out.ID) {
		t.Errorf("%q, %+v", text, out)
	}
	if in := v.house.Received()[0]; in.Dedupe != "api:mcp:stdio:"+out.ID {
		t.Errorf("dedupe is %q, want the id that was returned", in.Dedupe)
	}
}

// The agent works on when the time is up, and when the call is cancelled.
func TestWaitingEndsBeforeTheTurn(t *testing.T) {
	v := visiting(t, nil) // never answers
	var out sendOut
	if text, failed := v.call(t.Context(), "send_message", map[string]any{"agent": "0/", "text": "a", "timeoutSeconds": 1}, &out); failed ||
		out.State != working || out.Item == "" || !strings.Contains(text, "still working on it") {
		t.Errorf("%q, %+v", text, out)
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	for len(v.told) > 0 {
		<-v.told
	}
	go func() {
		text, _ := v.call(ctx, "send_message", map[string]any{"agent": "0/", "text": "b"}, nil)
		ended <- text
	}()
	<-v.told // accepted
	cancel()
	if text := <-ended; !strings.Contains(text, "cancel") {
		t.Errorf("a cancelled call: %q", text)
	}
	if got := v.house.Received(); len(got) != 2 || got[1].Text != "b" {
		t.Errorf("delivered %+v", got)
	}
	if len(v.house.Stops) != 0 {
		t.Error("the agent was stopped")
	}
}

// How the waiting ended, in all ways.
func TestEnds(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	late, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	broken := errors.New("cut")
	for name, c := range map[string]struct {
		item  string
		o     event.Outcome
		err   error
		ctx   context.Context
		state string
		note  string
	}{
		"answered":       {item: "i", o: event.Outcome{Reason: "done", Text: "x"}, state: answered},
		"approval":       {item: "i", o: event.Outcome{Reason: "waiting"}, state: approval, note: "asked its owner"},
		"budget":         {item: "i", o: event.Outcome{Reason: "budget"}, state: ended, note: "raise it"},
		"stopped":        {item: "i", o: event.Outcome{Reason: "canceled"}, state: ended, note: "stopped"},
		"limit":          {item: "i", o: event.Outcome{Reason: "limit"}, state: ended, note: "continues it"},
		"dropped":        {item: "i", o: event.Outcome{Reason: "dropped"}, state: ended, note: "removed"},
		"error":          {item: "i", o: event.Outcome{Reason: "error", Error: "no model"}, state: ended, note: "no model"},
		"reset":          {item: "i", o: event.Outcome{Reason: "reset"}, state: ended, note: "reset"},
		"time is up":     {item: "i", err: late.Err(), ctx: late, state: working, note: "still working"},
		"cancelled":      {item: "i", err: over.Err(), ctx: over, state: working, note: "cancelled"},
		"daemon dies":    {item: "i", err: broken, state: working, note: "The message is safe"},
		"nobody knows":   {err: over.Err(), ctx: over, state: unknown, note: "delivers it once"},
		"not accepted":   {err: broken, note: "cut"},
		"daemon is gone": {err: control.ErrNotRunning, state: unknown, note: "delivers it once"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.ctx == nil {
				c.ctx = t.Context()
			}
			s := sendOut{Item: c.item}
			err := s.end(c.o, c.err, c.ctx)
			note := s.Note
			if err != nil {
				note = err.Error()
			}
			if s.State != c.state || !strings.Contains(note, c.note) {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
	again := sendOut{Item: "i", Duplicate: true}
	if err := again.end(event.Outcome{Reason: "done", Text: "x"}, nil, t.Context()); err != nil ||
		!strings.Contains(again.Note, "sent first") {
		t.Errorf("%+v, %v", again, err)
	}
}

// An agent that is not offered does not exist, by whatever name.
func TestOnlyOfferedAgentsExist(t *testing.T) {
	v := visiting(t, says(""))
	other := event.Agent{ID: strings.Repeat("b", 24), Handle: "1/", Name: "private", Type: "user"}
	v.house.Known = append(v.house.Known, other)
	v.house.Open = []event.Ask{{Token: "tok-1", AgentID: commandtest.Agent0, Tag: "@web", Shown: "example.com", Card: "-"},
		{Token: "tok-2", AgentID: other.ID, Tag: "@exec:rm", Shown: "rm -r /", Card: "-"}}

	var list listOut
	if v.call(t.Context(), "list_agents", nil, &list); len(list.Agents) != 1 || list.Agents[0].ID != commandtest.Agent0 {
		t.Errorf("listed %+v", list)
	}
	var pending approvalsOut
	text, _ := v.call(t.Context(), "list_approvals", nil, &pending)
	if len(pending.Approvals) != 1 || pending.Approvals[0].Request != "example.com" || strings.Contains(text, "tok-") {
		t.Errorf("approvals %s", text)
	}

	for _, ref := range []string{"1/", "1", "private", other.ID, other.ID[:6], "nobody", ""} {
		for tool, args := range map[string]map[string]any{"send_message": {"agent": ref, "text": "x"}, "read_history": {"agent": ref}} {
			if text, failed := v.call(t.Context(), tool, args, nil); !failed || !strings.Contains(text, "is offered here") {
				t.Errorf("%s of %q: %q", tool, ref, text)
			}
		}
	}
	resources, err := v.client.ListResources(t.Context(), nil)
	if err != nil || len(resources.Resources) != 2 || strings.Contains(resources.Resources[0].URI, other.ID) {
		t.Errorf("resources %+v, %v", resources, err)
	}
	if len(v.house.Received()) != 0 {
		t.Error("a message arrived")
	}

	v.offer = Offer{} // the settings changed
	if v.call(t.Context(), "list_agents", nil, &list); len(list.Agents) != 0 {
		t.Errorf("listed %+v after none is offered", list)
	}
}

func TestWrongArguments(t *testing.T) {
	v := visiting(t, says(""))
	for want, args := range map[string]map[string]any{
		"allowed: 1 to 3600": {"agent": "0/", "text": "x", "timeoutSeconds": 4000},
		"allowed: 200":       {"agent": "0/", "text": "x", "id": strings.Repeat("i", 201)},
		"text":               {"agent": "0/", "text": " "},
		"too large":          {"agent": "0/", "text": strings.Repeat("x", 1<<20+1)},
		"unexpected":         {"agent": "0/", "text": "x", "as": "owner"},
	} {
		if text, failed := v.call(t.Context(), "send_message", args, nil); !failed || !strings.Contains(text, want) {
			t.Errorf("want %q: %.200q", want, text)
		}
	}
	if len(v.house.Received()) != 0 {
		t.Error("a message arrived")
	}
}

// A conversation is read in pages, without the calls between.
func TestReadingAConversation(t *testing.T) {
	v := visiting(t, nil)
	for i := range 30 {
		v.house.Record(&record.User{Item: "i", Text: "question", Untrusted: i == 29, Zone: "UTC",
			Context: &message.Context{Sender: "Ada"}})
		v.house.Record(&record.ToolResult{ToolCallID: "c", Name: "n", Status: "ok"})
		v.house.Record(&record.Assistant{Turn: "t", Text: strings.Repeat("é", maxText), ToolCalls: []record.ToolCall{{Name: "web_fetch"}}})
	}

	var out historyOut
	v.call(t.Context(), "read_history", map[string]any{"agent": "0/", "limit": 3}, &out)
	if len(out.Messages) != 3 || out.Messages[2].From != "agent" || !out.Messages[2].Cut || len(out.Messages[2].Text) > maxText ||
		out.Messages[2].Tools[0] != "web_fetch" || out.Messages[1].From != "user" || !out.Messages[1].Untrusted ||
		out.Messages[1].Sender != "Ada" || out.Before != out.Messages[0].Seq {
		t.Errorf("%+v", out)
	}
	if text, failed := v.call(t.Context(), "read_history", map[string]any{"agent": "0/", "limit": 101}, nil); !failed {
		t.Errorf("101 messages: %q", text)
	}
}

// Notes are read if the settings say so, and nothing but notes.
func TestNotes(t *testing.T) {
	v := visiting(t, nil)
	dir := filepath.Join(v.home, "memory", "entities")
	secret := filepath.Join(v.home, "auth.md")
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "anna b.md"), []byte("likes tea"), 0o600),
		os.WriteFile(secret, []byte("SECRET"), 0o600), os.Symlink(secret, filepath.Join(dir, "link.md")),
		os.Link(secret, filepath.Join(dir, "hard.md")), os.WriteFile(filepath.Join(dir, "x.json"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	read := func(uri string) string {
		r, err := v.client.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil {
			return err.Error()
		}
		return r.Contents[0].Text
	}
	const anna = "daycare://memory/entities/anna%20b.md"
	if got := read(anna); got == "likes tea" {
		t.Error("a note is read though the settings do not offer notes")
	}

	v.offer.Memory = true
	var listed []string
	all, err := v.client.ListResources(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all.Resources {
		listed = append(listed, r.URI)
	}
	if got := strings.Join(listed, " "); !strings.Contains(got, anna) || strings.Contains(got, "link") || strings.Contains(got, "x.json") {
		t.Errorf("listed %s", got)
	}
	if got := read(anna); got != "likes tea" {
		t.Errorf("the note is %q", got)
	}
	v.door.local.Some = true // with rights about some agents only
	if got := read(anna); got == "likes tea" {
		t.Error("who reaches some agents reads the notes of all")
	}
	v.door.local.Some = false
	for _, uri := range []string{"entities/link.md", "entities/hard.md", "../auth.md", "%2e%2e/auth.md", "entities/x.json",
		"/etc/passwd.md", ""} {
		if got := read("daycare://memory/" + uri); strings.Contains(got, "SECRET") {
			t.Errorf("%s: %q", uri, got)
		}
	}
}

// What comes over HTTP is bounded, and a session is of whoever began it.
func TestHTTP(t *testing.T) {
	house := commandtest.NewHouse(t, says("heard "))
	d := New(Options{Offer: func() Offer { return Offer{Agents: []string{"0/"}} }})
	server := httptest.NewServer(d.Handler(func(r *http.Request) Peer {
		return Peer{Name: r.Header.Get("X-Peer"), API: house.Client()}
	}))
	t.Cleanup(server.Close)
	post := func(body string, headers ...string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("X-Peer", "ada")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},` +
		`"clientInfo":{"name":"c","version":"1"}}}`
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`

	session := post(hello).Header.Get("Mcp-Session-Id")
	if session == "" {
		t.Fatal("no session")
	}
	if resp := post(list, "Mcp-Session-Id", session, "X-Peer", "eve"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("another's session: %s", resp.Status)
	}
	if resp := post(list, "Mcp-Session-Id", session); resp.StatusCode != http.StatusOK {
		t.Errorf("one's own session: %s", resp.Status)
	}
	if resp := post(`{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"x":"` + strings.Repeat("x", maxBody) +
		`"}}`); resp.StatusCode !=
		http.StatusRequestEntityTooLarge && resp.StatusCode != http.StatusBadRequest {
		t.Errorf("too large: %s", resp.Status)
	}
	if resp := post(list, "Host", "evil.example"); resp.StatusCode != http.StatusOK { // Go sends the host of the URL
		t.Errorf("a Host among the headers: %s", resp.Status)
	}
	refused := func(who string) (after int) {
		t.Helper()
		for n := range maxSessions + 1 {
			if resp := post(hello, "X-Peer", who); resp.StatusCode == http.StatusServiceUnavailable {
				if resp.Header.Get("Retry-After") == "" {
					t.Error("a refusal without Retry-After")
				}
				return n
			}
		}
		return maxSessions + 1
	}
	if n := refused("eve"); n != maxSessions/2 {
		t.Errorf("one peer has %d sessions", n)
	}
	another := post(hello, "X-Peer", "bob").Header.Get("Mcp-Session-Id")
	if another == "" {
		t.Error("sessions of one peer keep another one away")
	}
	refused("ada")
	if n := refused("bob"); n != 0 {
		t.Errorf("%d sessions are open", maxSessions+n)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, server.URL+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Mcp-Session-Id", another)
	r.Header.Set("X-Peer", "bob")
	resp, err := http.DefaultClient.Do(r)
	if err != nil || resp.StatusCode != http.StatusNoContent {
		t.Fatalf("a session is not ended: %v, %v", resp, err)
	}
	resp.Body.Close()
	if n := refused("bob"); n != 1 {
		t.Errorf("after one has ended %d are begun", n)
	}
}

// A line that never ends ends the connection, and not the memory.
func TestAnEndlessLine(t *testing.T) {
	d := New(Options{Offer: func() Offer { return Offer{} }})
	done := make(chan error, 1)
	go func() {
		done <- d.Serve(t.Context(), endless{}, discard{&bytes.Buffer{}}, Peer{Name: "stdio", API: commandtest.NewHouse(t, nil).Client()})
	}()
	select {
	case err := <-done:
		if err == nil {
			t.Error("an endless line was no error")
		}
	case <-time.After(time.Minute):
		t.Error("an endless line is read for a minute")
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func (endless) Close() error { return nil }

type discard struct{ *bytes.Buffer }

func (discard) Close() error { return nil }
