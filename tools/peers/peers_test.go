package peers

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/tools"
	"daycare/tools/toolstest"
)

// house is a fake of Agents that remembers what was asked of it.
type house struct {
	agents  []event.Agent
	posted  []message.Incoming
	made    []address.Descriptor
	said    []string
	outcome event.Outcome
	err     error
	listed  func() // called when agents are listed; nil: nothing
}

func (h *house) Post(_ context.Context, in message.Incoming) (message.Receipt, error) {
	h.posted = append(h.posted, in)
	return message.Receipt{Agent: "a1", Item: "i1"}, h.err
}

func (h *house) Create(_ context.Context, d address.Descriptor, first message.Incoming) (event.Agent, error) {
	h.made, h.posted = append(h.made, d), append(h.posted, first)
	return event.Agent{ID: d.ID, Name: d.Name, Handle: "0/1"}, h.err
}

func (h *house) Target(_, ref string) (string, error) {
	for _, a := range h.agents {
		if ref == a.ID || ref == a.Handle || ref == a.Name {
			return a.ID, nil
		}
	}
	return ref, nil
}

func (h *house) List(context.Context, string) ([]event.Agent, error) {
	if h.listed != nil {
		h.listed()
	}
	return h.agents, h.err
}

func (h *house) History(_ context.Context, _, agent string, _ int) (event.Page, error) {
	if agent == "bbbb2222" {
		return event.Page{Records: []json.RawMessage{json.RawMessage(`{"type":"turn_end"}`)}}, h.err
	}
	return event.Page{Records: []json.RawMessage{
		json.RawMessage(`{"type":"user_message","text":"hello","at":"t1"}`),
		json.RawMessage(`{"type":"user_message","text":"note","origin":"a9","at":"t2"}`),
		json.RawMessage(`{"type":"assistant_message","text":"hi","toolCalls":[{"name":"read"}],"at":"t3"}`),
		json.RawMessage(`{"type":"turn_end"}`), json.RawMessage(`damaged`),
	}}, h.err
}

func (h *house) Update(_ context.Context, asker, id, description, systemPrompt string) (event.Agent, error) {
	h.said = append(h.said, strings.Join([]string{asker, id, description, systemPrompt}, "|"))
	return event.Agent{ID: id, Name: "Ops", Handle: "1/"}, h.err
}

func (h *house) Session(_ context.Context, _, id string) (event.Session, error) {
	return event.Session{Agent: id, State: event.Thinking, Messages: 12, PromptTokens: 3400, CompletionTokens: 560, Cost: 0.07}, h.err
}

func (h *house) Stop(_ context.Context, _, ref string) (event.Agent, error) {
	return event.Agent{ID: ref, Name: "x"}, h.err
}

func (h *house) Work(_ context.Context, _, id string) (string, error) {
	if id == "cccc3333" {
		return "", h.err
	}
	return "i1", h.err
}

func (h *house) Await(ctx context.Context, _, _ string) (event.Outcome, error) {
	if h.outcome.Reason == "" {
		<-ctx.Done()
		return event.Outcome{}, ctx.Err()
	}
	return h.outcome, h.err
}

func (h *house) Say(_ context.Context, _, _ string, _ message.Address, key, text string, _ ...message.File) error {
	h.said = append(h.said, key+" "+text)
	return h.err
}

func (h *house) React(_ context.Context, to message.Address, messageID, emoji string) error {
	h.said = append(h.said, to.ChannelID+" "+messageID+" "+emoji)
	return h.err
}

func newHouse() *house {
	return &house{outcome: event.Outcome{Reason: "done", Text: "forty-two"}, agents: []event.Agent{
		{ID: "aaaa1111", Handle: "0/", Name: "me", Type: "user", State: event.Thinking},
		{ID: "bbbb2222", Handle: "0/0", Name: "log-reader", Type: "subagent", State: event.Thinking, ParentAgentID: "agent"},
		{ID: "cccc3333", Handle: "1/", Name: "Ops", Type: "permanent", State: event.Idle}}}
}

func find(t *testing.T, h *house, name string) tools.Tool {
	t.Helper()
	for _, tool := range New(h) {
		if tool.Spec().Name == name {
			return tool
		}
	}
	t.Fatalf("there is no tool %s", name)

	return nil
}

func call(t *testing.T, h *house, name, args string) tools.Result {
	t.Helper()
	return callFrom(t, h, name, args, "")
}

// callFrom calls a tool in answer to a message of a chat.
func callFrom(t *testing.T, h *house, name, args, answered string) tools.Result {
	t.Helper()
	tool := find(t, h, name)
	if err := tools.Validate(tool.Spec(), json.RawMessage(args)); err != nil {
		t.Fatal(err)
	}
	r, err := tool.Run(t.Context(), tools.Call{ID: "c1", Name: name, Agent: "agent", Arguments: json.RawMessage(args), Hops: 3,
		Answer: tools.Answer{Route: message.Address{Connector: "chat", ChannelID: "77"}, Message: answered}})
	if err != nil {
		t.Fatal(err)
	}

	return r
}

func TestTools(t *testing.T) {
	good := map[string]string{
		"start_background_agent": `{"prompt":"do it"}`, "spawn": `{"task":"do it"}`, "send_agent_message": `{"text":"done"}`,
		"agents_list": `{}`, "agent_status": `{"agentId":"0/0"}`, "agent_stop": `{"agentId":"bbbb"}`, "sessions_list": `{}`,
		"sessions_history": `{"agentId":"1/"}`, "sessions_send": `{"agentId":"Ops","text":"?","timeoutSeconds":5}`,
		"subagents": `{}`, "create_permanent_agent": `{"name":"Dev","systemPrompt":"You build."}`,
		"sessions_status": `{"agentId":"Ops"}`, "message": `{"text":"one moment"}`, "set_reaction": `{"emoji":"👍","messageId":"12"}`,
	}
	for _, tool := range New(newHouse()) {
		name := tool.Spec().Name
		args, ok := good[name]
		if !ok {
			t.Errorf("the test has no arguments for %s", name)
			continue
		}
		if tool.Spec().Replay != tools.Idempotent {
			t.Errorf("%s is %s; all of these are idempotent", name, tool.Spec().Replay)
		}
		t.Run(name, func(t *testing.T) { toolstest.Run(t, tool, toolstest.Options{Good: []string{args}}) })
	}
}

func TestReaction(t *testing.T) {
	h := newHouse()
	callFrom(t, h, "set_reaction", `{"emoji":"👍"}`, "31")
	callFrom(t, h, "set_reaction", `{"emoji":"🎉","messageId":"12"}`, "31")
	if diff := cmp.Diff([]string{"77 31 👍", "77 12 🎉"}, h.said); diff != "" {
		t.Errorf("reactions (-want +got):\n%s", diff)
	}

	for args, want := range map[string]string{`{"emoji":"👍"}`: "is not from a chat",
		`{"emoji":"` + strings.Repeat("👍", 30) + `","messageId":"1"}`: "one emoji"} {
		if r := callFrom(t, h, "set_reaction", args, ""); r.Status != tools.Failed || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %q %s", args, r.Status, r.Text)
		}
	}

	h.err = errors.New("telegram has no reaction 🦄")
	if r := callFrom(t, h, "set_reaction", `{"emoji":"🦄"}`, "31"); r.Status != tools.Failed || !strings.Contains(r.Text, "no reaction 🦄") {
		t.Errorf("%q %s", r.Status, r.Text)
	}
}

func TestAStartIsTheSameAgentEachTime(t *testing.T) {
	h := newHouse()
	for range 2 { // as after a crash
		call(t, h, "start_background_agent", `{"prompt":"count the lines","name":"log-reader"}`)
	}
	id := address.ChildID("agent", "c1")
	want := address.Descriptor{Type: address.Subagent, ID: id, ParentAgentID: "agent", Name: "log-reader", CallID: "c1",
		Route: message.Address{Connector: "chat", ChannelID: "77"}}
	if diff := cmp.Diff([]address.Descriptor{want, want}, h.made); diff != "" {
		t.Errorf("descriptors (-want +got):\n%s", diff)
	}
	if in := h.posted[1]; in.Dedupe != "call:agent/c1" || in.Hops != 3 || in.Origin != "agent" || in.Text != "count the lines" {
		t.Errorf("first message is %+v", in)
	}
}

func TestSpawnIsMarkedForItsReport(t *testing.T) {
	h := newHouse()
	r := call(t, h, "spawn", `{"task":"look at  all the logs","label":"logs"}`)
	if d := h.made[0]; d.Label != "logs" || d.Task != "look at  all the logs" {
		t.Errorf("descriptor is %+v", d)
	}
	if want := "Subagent [logs] started (id: " + h.made[0].ID + ")"; !strings.HasPrefix(r.Text, want) {
		t.Errorf("the result is %q, want it to begin with %q", r.Text, want)
	}
}

// An agent that writes to itself would wait for its own answer until the timeout.
func TestSessionsSendToOneselfIsRefusedAtOnce(t *testing.T) {
	h := newHouse()
	h.outcome = event.Outcome{} // an answer never comes
	h.agents[0].ID = "agent"
	for _, me := range []string{"agent", "0/", "me"} {
		r := call(t, h, "sessions_send", `{"agentId":"`+me+`","text":"?","timeoutSeconds":600}`)
		if r.Status != tools.Failed || !strings.Contains(r.Text, me+" is yourself") || len(h.posted) > 0 {
			t.Errorf("to %s: %q %s, posted %v", me, r.Status, r.Text, h.posted)
		}
	}
}

func TestSessionsSendWaits(t *testing.T) { synctest.Test(t, sessionsSendWaits) }

func sessionsSendWaits(t *testing.T) {
	h := newHouse()
	if r := call(t, h, "sessions_send", `{"agentId":"Ops","text":"?","timeoutSeconds":5}`); r.Text != "forty-two" {
		t.Errorf("the answer is %+v", r)
	}
	h.outcome.Reason = ""
	if r := call(t, h, "sessions_send", `{"agentId":"Ops","text":"?","timeoutSeconds":1}`); r.Status != tools.TimedOut {
		t.Errorf("without an answer in time: %+v", r)
	}
	if r := call(t, h, "sessions_send", `{"agentId":"Ops","text":"?"}`); !strings.HasPrefix(r.Text, "Sent to agent") {
		t.Errorf("without waiting: %+v", r)
	}
}

// create_permanent_agent changes the colleague that has the name already, if the caller
// made it and nothing but words changes.
func TestPermanentAgentsAreUpdated(t *testing.T) {
	for _, tt := range []struct{ args, want, updated string }{
		{`{"name":"Ops","systemPrompt":"You watch."}`, "Changed Ops (id: cccc3333, handle 1/)", "agent|cccc3333||You watch."},
		{`{"name":"Ops","description":"operations \n now"}`, "Changed Ops", "agent|cccc3333|operations now|"},
		{`{"name":"Ops","systemPrompt":"x","workspaceDir":"sub"}`, "only a user can change its folder", ""},
		{`{"name":"log-reader","systemPrompt":"x"}`, "another agent named log-reader", ""},
		{`{"name":"Nobody","description":"x"}`, "give it a systemPrompt", ""},
		{`{"name":"Ops"}`, `1/ cccc3333 "Ops" permanent`, ""},
	} {
		h := newHouse()
		r := call(t, h, "create_permanent_agent", tt.args)
		if got := strings.Join(h.said, " "); !strings.Contains(r.Text, tt.want) || got != tt.updated || len(h.made) > 0 {
			t.Errorf("%s: %q, updated %q, made %v", tt.args, r.Text, got, h.made)
		}
	}

	h := newHouse()
	h.err = errors.New("another agent or a user made that agent")
	if r := call(t, h, "create_permanent_agent", `{"name":"Ops","systemPrompt":"x"}`); r.Status != tools.Failed {
		t.Errorf("somebody else's agent was changed: %+v", r)
	}
}

func TestSessionsStatus(t *testing.T) {
	for args, id := range map[string]string{`{}`: "agent", `{"agentId":"Ops"}`: "cccc3333"} {
		r := call(t, newHouse(), "sessions_status", args)
		for _, want := range []string{`"agent": "` + id + `"`, `"state": "thinking"`, `"messages": 12`,
			`"promptTokens": 3400`, `"completionTokens": 560`} {
			if !strings.Contains(r.Text, want) {
				t.Errorf("%s: %s is missing in %s", args, want, r.Text)
			}
		}
	}
	if r := call(t, newHouse(), "sessions_status", `{"agentId":"nobody"}`); r.Status != tools.Failed {
		t.Errorf("a conversation of nobody: %+v", r)
	}
}

// Without a text sessions_send returns the answer to what an agent is working on, within
// its time, and does not wait for one that has nothing to do.
func TestSessionsSendReceives(t *testing.T) { synctest.Test(t, sessionsSendReceives) }

func sessionsSendReceives(t *testing.T) {
	h := newHouse()
	if r := call(t, h, "sessions_send", `{"agentId":"log-reader"}`); r.Text != "forty-two" || r.Status != "" {
		t.Errorf("an agent at work: %+v", r)
	}
	if r := call(t, h, "sessions_send", `{"agentId":"Ops","text":" "}`); !strings.Contains(r.Text, "Ops has nothing to do") {
		t.Errorf("an idle agent: %+v", r)
	}
	if r := call(t, h, "sessions_send", `{"agentId":"nobody"}`); r.Status != tools.Failed {
		t.Errorf("an agent that does not exist: %+v", r)
	}

	h.agents = append(h.agents, event.Agent{ID: "agent", Handle: "2/", Name: "self"})
	if r := call(t, h, "sessions_send", `{"agentId":"self"}`); r.Status != tools.Failed {
		t.Errorf("the caller waits for itself: %+v", r)
	}
	h.outcome.Reason = ""
	if r := call(t, h, "sessions_send", `{"agentId":"log-reader","timeoutSeconds":1}`); r.Status != tools.TimedOut {
		t.Errorf("without an answer in time: %+v", r)
	}
	if len(h.posted) > 0 {
		t.Errorf("waiting posted %v", h.posted)
	}
}

func TestTarget(t *testing.T) {
	for _, tt := range []struct {
		name, args, ref string
		ok              bool
	}{
		{"send_agent_message", `{"text":"x"}`, "", true},
		{"send_agent_message", `{"text":"x","agentId":"0/"}`, "0/", true},
		{"send_agent_message", `{"text":"x","silent":true}`, "", false},
		{"sessions_send", `{"text":"x","agentId":"Ops"}`, "Ops", true},
		{"sessions_send", `{"agentId":"Ops"}`, "Ops", false},
		{"read", `{"path":"x"}`, "", false},
	} {
		if ref, ok := Target(tt.name, json.RawMessage(tt.args)); ref != tt.ref || ok != tt.ok {
			t.Errorf("Target(%s %s) = %q, %v, want %q, %v", tt.name, tt.args, ref, ok, tt.ref, tt.ok)
		}
	}
}

func TestErrorsAreForTheModel(t *testing.T) {
	h := newHouse()
	h.err = message.ErrUnknownAgent
	if r := call(t, h, "send_agent_message", `{"text":"x","agentId":"zzz"}`); r.Status != tools.Failed ||
		!strings.Contains(r.Text, "agents_list") {
		t.Errorf("an unknown agent: %+v", r)
	}

	h.err = errors.New("not started: there are 8 running children of this agent already, the limit of agents.maxChildren")
	if r := call(t, h, "spawn", `{"task":"x"}`); r.Status != tools.Failed || !strings.Contains(r.Text, "maxChildren") {
		t.Errorf("over a limit: %+v", r)
	}
	h.err = nil
	if r := call(t, h, "create_permanent_agent", `{"name":"me","systemPrompt":"x"}`); r.Status != tools.Failed {
		t.Errorf("a name that is taken: %+v", r)
	}
	if r := call(t, h, "agent_status", `{"agentId":"zzz"}`); r.Status != tools.Failed {
		t.Errorf("status of nobody: %+v", r)
	}
}

// Agents alone neither wait nor know strangers.
type alone struct{ Agents }

// What a call says of agents, of an answer and of the chat that it is for.
func TestWhatIsToldOfAgents(t *testing.T) {
	h := newHouse()
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	h.agents[2].LastAt, h.agents[2].Said = &at, "words of a page"
	if r := call(t, h, "agent_status", `{"agentId":"`+h.agents[2].ID+`"}`); r.Status != "" || strings.Contains(r.Text, "words of a page") {
		t.Errorf("what an agent says is read without a mark: %+v", r)
	}
	r := call(t, h, "sessions_list", `{}`)
	if lines := strings.Split(r.Text, "\n"); len(lines) != 4 || !strings.Contains(lines[0], "last nothing yet") ||
		!strings.Contains(lines[2], "last 2026-11-20T10:00:00Z") {
		t.Errorf("%s", r.Text)
	}
	for ref, want := range map[string]string{"bbbb": "log-reader", "bbb": "no such agent"} {
		if r := call(t, h, "agent_status", `{"agentId":"`+ref+`"}`); !strings.Contains(r.Text, want) {
			t.Errorf("%s: %s", ref, r.Text)
		}
	}
	if r := call(t, h, "sessions_history", `{"agentId":"bbbb2222"}`); r.Text != "Nothing was said yet." || r.Source != "" {
		t.Errorf("of no conversation: %+v", r)
	}
	tool, sources := find(t, h, "sessions_history"), []string{"https://example.com/"}
	if r, err := tool.Run(t.Context(), tools.Call{Agent: "agent", Arguments: json.RawMessage(`{"agentId":"Ops"}`),
		Sources: sources}); err != nil || r.Status == tools.Denied {
		t.Errorf("where nobody knows strangers: %+v, %v", r, err)
	}

	call(t, h, "send_agent_message", `{"text":"x"}`)
	if to := h.posted[0].Route; to == nil || to.ChannelID != "77" {
		t.Errorf("answers to what was sent go to %+v", to)
	}
	send := find(t, h, "send_agent_message")
	if _, err := send.Run(t.Context(), tools.Call{Agent: "agent", Arguments: json.RawMessage(`{"text":"x"}`)}); err != nil ||
		h.posted[1].Route != nil {
		t.Errorf("answers to nobody go to %+v, %v", h.posted[1].Route, err)
	}

	call(t, h, "spawn", `{"task":"look at all the logs of this week"}`)
	call(t, h, "start_background_agent", `{"prompt":"x"}`)
	if one, two := h.made[0], h.made[1]; !strings.HasPrefix(one.Label, "look at all the logs") ||
		two.Name != "background" {
		t.Errorf("without a label %q, without a name %q", one.Label, two.Name)
	}
}

// A call whose turn ends meanwhile is cancelled and not failed, one with arguments that are none fails, and who
// cannot wait gets the advice to send a text.
func TestCallsThatCannotBeMade(t *testing.T) {
	h := newHouse()
	ctx, cancel := context.WithCancel(t.Context())
	h.listed = cancel
	h.err = errors.New("cut")
	list := find(t, h, "agents_list")
	if r, err := list.Run(ctx, tools.Call{Arguments: json.RawMessage(`{}`)}); err != nil || r.Status != tools.Canceled {
		t.Errorf("ended meanwhile: %+v, %v", r, err)
	}
	h.listed = nil
	if r, err := list.Run(t.Context(), tools.Call{Arguments: json.RawMessage(`{`)}); err != nil || !strings.Contains(r.Text, "do not fit") {
		t.Errorf("no arguments: %+v, %v", r, err)
	}
	h.err = nil
	for _, tool := range New(alone{h}) {
		if tool.Spec().Name == "sessions_send" {
			r, err := tool.Run(t.Context(), tools.Call{Agent: "agent", Arguments: json.RawMessage(`{"agentId":"Ops"}`)})
			if err != nil || r.Text != "text is missing" {
				t.Errorf("nothing to wait for: %+v, %v", r, err)
			}
		}
	}
}

func TestHistoryIsShownAsAConversation(t *testing.T) {
	want := "[t1] person: hello\n[t2] from a9: note\n[t3] agent: hi\n[t3] agent calls read\n"
	if r := call(t, newHouse(), "sessions_history", `{"agentId":"Ops"}`); r.Text != want {
		t.Errorf("history (-want +got):\n%s", cmp.Diff(want, r.Text))
	}
}

// neighbours is a house that knows whose agents are whose.
type neighbours struct{ *house }

const bobs = "bbbbbbbbbbbbbbbbbbbbbbbb"

func (neighbours) Stranger(_, ref string) (string, bool) { return bobs, ref == "bob" || ref == "" }
func (neighbours) Related(_, ref string) bool            { return ref == "mine" }

// In a turn that has read text from outside, a message to someone else's agent is asked
// for, what is told carries where it came from, and the conversations of others stay
// closed.
func TestUntrustedTurnDoesNotReachOthersUnasked(t *testing.T) {
	h := &house{}
	read := []string{"https://example.com/"}
	for _, tool := range New(neighbours{h}) {
		name := tool.Spec().Name
		call := tools.Call{ID: "c", Name: name, Agent: "a1", Sources: read, Progress: func(string) {}}
		switch name {
		case sendName, "sessions_send":
			for ref, asks := range map[string]bool{"bob": true, "mine": false} {
				call.Arguments = json.RawMessage(`{"agentId":"` + ref + `","text":"send money"}`)
				need, err := tool.(tools.Asks).Needs(call)
				if err != nil || (need != nil) != asks {
					t.Errorf("%s to %s needs %+v, %v", name, ref, need, err)
				}
				if need != nil && (need.Tag != "@message:"+bobs || need.Detail.Command != "send money") {
					t.Errorf("%s asks for %+v", name, need)
				}
			}

			call.Arguments = json.RawMessage(`{"text":"x"}`)
			if need, err := tool.(tools.Asks).Needs(call); err != nil || need != nil {
				t.Errorf("%s to the own person needs %+v, %v", name, need, err)
			}
			call.Sources = nil
			call.Arguments = json.RawMessage(`{"agentId":"bob","text":"x"}`)
			if need, _ := tool.(tools.Asks).Needs(call); need != nil {
				t.Errorf("%s asks in a turn of the owner's own: %+v", name, need)
			}
		case "spawn":
			call.Arguments = json.RawMessage(`{"task":"look"}`)
			if _, err := tool.Run(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			if got := h.posted[len(h.posted)-1].Source; got != "agent a1, which read https://example.com/" {
				t.Errorf("a subagent is told without where it came from: %q", got)
			}
		case "sessions_history":
			for ref, closed := range map[string]bool{"owner": true, "mine": false} {
				call.Arguments = json.RawMessage(`{"agentId":"` + ref + `"}`)
				res, err := tool.Run(t.Context(), call)
				if err != nil || (res.Status == tools.Denied) != closed {
					t.Errorf("the conversation of %s: %+v, %v", ref, res, err)
				}
			}
		}
	}
}
