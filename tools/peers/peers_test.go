package peers

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

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
}

func (h *house) Post(_ context.Context, in message.Incoming) (message.Receipt, error) {
	h.posted = append(h.posted, in)
	return message.Receipt{Agent: "a1", Item: "i1"}, h.err
}

func (h *house) Create(_ context.Context, d address.Descriptor, first message.Incoming) (event.Agent, error) {
	h.made, h.posted = append(h.made, d), append(h.posted, first)
	return event.Agent{ID: d.ID, Name: d.Name, Handle: "0/1"}, h.err
}

func (h *house) List(context.Context, string) ([]event.Agent, error) { return h.agents, h.err }

func (h *house) History(context.Context, string, string, int) (event.Page, error) {
	return event.Page{Records: []json.RawMessage{
		json.RawMessage(`{"type":"user_message","text":"hello","at":"t1"}`),
		json.RawMessage(`{"type":"user_message","text":"note","origin":"a9","at":"t2"}`),
		json.RawMessage(`{"type":"assistant_message","text":"hi","toolCalls":[{"name":"read"}],"at":"t3"}`),
		json.RawMessage(`{"type":"turn_end"}`), json.RawMessage(`damaged`),
	}}, h.err
}

func (h *house) Stop(_ context.Context, _, ref string) (event.Agent, error) {
	return event.Agent{ID: ref, Name: "x"}, h.err
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
		Route: message.Address{Connector: "chat", ChannelID: "77"}, Message: answered})
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
		"message": `{"text":"one moment"}`, "set_reaction": `{"emoji":"👍","messageId":"12"}`,
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
	for args, want := range map[string]string{`{"emoji":"👍"}`: "no message of a chat", `{"emoji":"` + strings.Repeat("👍", 30) + `","messageId":"1"}`: "one emoji"} {
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

func TestSessionsSendWaits(t *testing.T) {
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

func TestTarget(t *testing.T) {
	for _, tt := range []struct {
		name, args, ref string
		ok              bool
	}{
		{"send_agent_message", `{"text":"x"}`, "", true},
		{"send_agent_message", `{"text":"x","agentId":"0/"}`, "0/", true},
		{"send_agent_message", `{"text":"x","silent":true}`, "", false},
		{"sessions_send", `{"text":"x","agentId":"Ops"}`, "Ops", true},
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
	if r := call(t, h, "send_agent_message", `{"text":"x","agentId":"zzz"}`); r.Status != tools.Failed || !strings.Contains(r.Text, "agents_list") {
		t.Errorf("an unknown agent: %+v", r)
	}
	h.err = errors.New("not started: there are 8 running children of this agent already, the limit of agents.maxChildren")
	if r := call(t, h, "spawn", `{"task":"x"}`); r.Status != tools.Failed || !strings.Contains(r.Text, "maxChildren") {
		t.Errorf("over a limit: %+v", r)
	}
	h.err = nil
	if r := call(t, h, "create_permanent_agent", `{"name":"Ops","systemPrompt":"x"}`); r.Status != tools.Failed {
		t.Errorf("a name that is taken: %+v", r)
	}
	if r := call(t, h, "agent_status", `{"agentId":"zzz"}`); r.Status != tools.Failed {
		t.Errorf("status of nobody: %+v", r)
	}
}

func TestHistoryIsShownAsAConversation(t *testing.T) {
	want := "[t1] person: hello\n[t2] from a9: note\n[t3] agent: hi\n[t3] agent calls read\n"
	if r := call(t, newHouse(), "sessions_history", `{"agentId":"Ops"}`); r.Text != want {
		t.Errorf("history (-want +got):\n%s", cmp.Diff(want, r.Text))
	}
}
