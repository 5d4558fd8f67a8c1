package peers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/tools"
)

var errDown = errors.New("the house is down")

// A stepper is a house of which one call fails, by its number.
type stepper struct {
	*house
	calls, fails int
	limit        int // of the history that was asked for
}

func (s *stepper) step() error {
	s.calls++
	if s.err = nil; s.calls == s.fails {
		s.err = errDown
	}
	return s.err
}

func (s *stepper) Post(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	s.step()
	return s.house.Post(ctx, in)
}
func (s *stepper) Create(ctx context.Context, d address.Descriptor, first message.Incoming) (event.Agent, error) {
	s.step()
	return s.house.Create(ctx, d, first)
}
func (s *stepper) List(ctx context.Context, asker string) ([]event.Agent, error) {
	s.step()
	return s.house.List(ctx, asker)
}
func (s *stepper) Target(asker, ref string) (string, error) {
	if err := s.step(); err != nil {
		return "", err
	}
	return s.house.Target(asker, ref)
}
func (s *stepper) History(ctx context.Context, asker, agent string, limit int) (event.Page, error) {
	s.step()
	s.limit = limit
	return s.house.History(ctx, asker, agent, limit)
}
func (s *stepper) Update(ctx context.Context, asker, id, description, systemPrompt string) (event.Agent, error) {
	s.step()
	return s.house.Update(ctx, asker, id, description, systemPrompt)
}
func (s *stepper) Session(ctx context.Context, asker, id string) (event.Session, error) {
	s.step()
	return s.house.Session(ctx, asker, id)
}
func (s *stepper) Stop(ctx context.Context, asker, ref string) (event.Agent, error) {
	s.step()
	return s.house.Stop(ctx, asker, ref)
}
func (s *stepper) Work(ctx context.Context, asker, id string) (string, error) {
	s.step()
	return s.house.Work(ctx, asker, id)
}
func (s *stepper) Await(ctx context.Context, agent, item string) (event.Outcome, error) {
	s.step()
	return s.house.Await(ctx, agent, item)
}
func (s *stepper) Say(ctx context.Context, asker, agent string, to message.Address, key, text string, files ...message.File) error {
	s.step()
	return s.house.Say(ctx, asker, agent, to, key, text, files...)
}
func (s *stepper) React(ctx context.Context, to message.Address, messageID, emoji string) error {
	s.step()
	return s.house.React(ctx, to, messageID, emoji)
}

// run calls a tool of a house.
func run(t *testing.T, h Agents, name, args string) tools.Result {
	t.Helper()
	for _, tool := range New(h) {
		if tool.Spec().Name != name {
			continue
		}
		r, err := tool.Run(t.Context(), tools.Call{ID: "c1", Name: name, Agent: "aaaa1111", Arguments: json.RawMessage(args),
			Answer: tools.Answer{Route: message.Address{Connector: "chat", ChannelID: "77"}, Message: "m1"}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}

	t.Fatalf("there is no tool %s", name)
	return tools.Result{}
}

// Whatever the house cannot do in the middle of a call is what the call says, never that it is done.
func TestEachFailedStepOfACallIsReported(t *testing.T) {
	tried := map[string]bool{}
	for call, steps := range map[string]int{
		`start_background_agent {"prompt":"do it"}`: 1, `spawn {"task":"do it"}`: 1, `send_agent_message {"text":"done"}`: 1,
		`agents_list {}`:                 1,
		`agent_status {"agentId":"0/0"}`: 1, `agent_stop {"agentId":"bbbb"}`: 1, `sessions_list {}`: 1,
		`sessions_history {"agentId":"1/"}`:                             1,
		`sessions_send {"agentId":"Ops","text":"?","timeoutSeconds":5}`: 3, `sessions_send {"agentId":"Ops","text":"?"}`: 2,
		`sessions_send {"agentId":"log-reader","timeoutSeconds":5}`: 3, `subagents {}`: 1, `sessions_status {}`: 1,
		`sessions_status {"agentId":"Ops"}`:                                 2,
		`create_permanent_agent {"name":"Dev","systemPrompt":"You build."}`: 2,
		`create_permanent_agent {"name":"Ops","systemPrompt":"You run."}`:   2,
		`create_permanent_agent {}`:                                         1, `message {"text":"hi"}`: 1,
		`set_reaction {"emoji":"+1"}`: 1,
	} {
		name, args, _ := strings.Cut(call, " ")
		tried[name] = true
		for fails := 0; fails <= steps; fails++ {
			s := &stepper{house: newHouse(), fails: fails}
			r := run(t, s, name, args)
			if fails == 0 && (s.calls != steps || r.Status != "" && r.Status != tools.OK) {
				t.Errorf("%s: %d steps, %s %q; want %d", call, s.calls, r.Status, r.Text, steps)
			}
			if fails > 0 && (r.Status != tools.Failed || !strings.Contains(r.Text, errDown.Error()) || r.Source != "") {
				t.Errorf("%s, of which step %d failed: %s %q", call, fails, r.Status, r.Text)
			}
		}
	}

	for _, tool := range New(newHouse()) {
		if !tried[tool.Spec().Name] {
			t.Errorf("%s was not tried", tool.Spec().Name)
		}
	}
}

// What is listed is what was asked for: the agents that are there, those that work for the caller,
// the newest conversations.
func TestWhatIsListed(t *testing.T) {
	h := &stepper{house: newHouse()}
	h.agents = append(h.agents, event.Agent{ID: "dddd4444", Handle: "0/1", Name: "done", Type: "subagent", State: event.Ended,
		ParentAgentID: "aaaa1111"},
		event.Agent{ID: "eeee5555", Handle: "0/2", Name: "waits", Type: "subagent", State: event.Idle, ParentAgentID: "aaaa1111"},
		event.Agent{ID: "ffff6666", Handle: "0/3", Name: "works", Type: "subagent", State: event.UsingTool, ParentAgentID: "aaaa1111"},
		event.Agent{ID: "gggg7777", Handle: "2/", Name: "gone", Type: "permanent", State: event.Ended})
	named := func(text string) (names []string) {
		for _, a := range h.agents {
			if strings.Contains(text, a.ID) {
				names = append(names, a.Name)
			}
		}
		return names
	}
	for call, want := range map[string]string{
		`agents_list {}`: "[me log-reader Ops waits works]", `subagents {}`: "[works]", `create_permanent_agent {}`: "[Ops]",
		`sessions_list {}`: "[me log-reader Ops done waits works gone]", `sessions_list {"limit":2}`: "[works gone]",
		`sessions_list {"limit":7}`:   "[me log-reader Ops done waits works gone]",
		`sessions_list {"limit":500}`: "[me log-reader Ops done waits works gone]",
	} {
		name, args, _ := strings.Cut(call, " ")
		if got := fmt.Sprint(named(run(t, h, name, args).Text)); got != want {
			t.Errorf("%s lists %s, want %s", call, got, want)
		}
	}

	list := run(t, h, "agents_list", `{}`).Text
	for line := range strings.Lines(list) {
		if mine := strings.Contains(line, "aaaa1111"); mine != strings.Contains(line, "(you)") {
			t.Errorf("who asks is marked in %q: %v", line, !mine)
		}
	}

	h.agents = nil
	for _, call := range []string{"agents_list", "subagents", "create_permanent_agent"} {
		if r := run(t, h, call, `{}`); r.Text == "" || r.Status != "" && r.Status != tools.OK {
			t.Errorf("%s of nobody: %s %q", call, r.Status, r.Text)
		}
	}

	for args, want := range map[string]int{`{"agentId":"Ops"}`: historyLimit, `{"agentId":"Ops","limit":0}`: historyLimit,
		`{"agentId":"Ops","limit":3}`: 3} {
		if run(t, h, "sessions_history", args); h.limit != want {
			t.Errorf("%s asks for %d records, want %d", args, h.limit, want)
		}
	}
}
