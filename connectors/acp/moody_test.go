package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"daycare/cmd/daycare/commandtest"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/record"
)

// A mood is what of a daemon does not work.
type mood struct {
	mu   sync.Mutex
	left map[string]int // how often each call fails
}

func (m *mood) fail(call string, times int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = map[string]int{call: times}
}

func (m *mood) err(call string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left[call] == 0 {
		return nil
	}
	m.left[call]--
	return errors.New("not today")
}

// agents and requests are those of the house.
type (
	agents   = control.Agents
	requests = control.Permissions
)

// moody are agents that cannot be had at times, grumpy requests that cannot be answered.
type (
	moody struct {
		agents
		mood *mood
	}
	grumpy struct {
		requests
		mood *mood
	}
)

func (m moody) Agents(ctx context.Context) ([]event.Agent, error) {
	if err := m.mood.err("agents"); err != nil {
		return nil, err
	}
	return m.agents.Agents(ctx)
}

func (m moody) Agent(ctx context.Context, id string) (event.Agent, error) {
	if err := m.mood.err("agent"); err != nil {
		return event.Agent{}, err
	}
	return m.agents.Agent(ctx, id)
}

func (m moody) Create(ctx context.Context, n control.NewAgent) (event.Agent, error) {
	if err := m.mood.err("create"); err != nil {
		return event.Agent{}, err
	}
	return m.agents.Create(ctx, n)
}

func (m moody) Deliver(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	if err := m.mood.err("deliver"); err != nil {
		return message.Receipt{}, err
	}
	return m.agents.Deliver(ctx, in)
}

func (m moody) History(ctx context.Context, id string, before int64, limit int) (event.Page, error) {
	if err := m.mood.err("history"); err != nil {
		return event.Page{}, err
	}
	return m.agents.History(ctx, id, before, limit)
}

func (m grumpy) Decide(ctx context.Context, token, decision, by string) error {
	if err := m.mood.err("decide"); err != nil {
		return err
	}
	return m.requests.Decide(ctx, token, decision, by)
}

// What the daemon cannot do is an error of the request that needed it, and the next one finds the session as it was.
func TestWhatTheDaemonCannotDo(t *testing.T) {
	g := visit(t, answers("here", record.ReasonDone))
	g.house.Known[0].Connector, g.house.Known[0].ChannelID = "acp", "mine"
	g.house.Record(&record.User{Item: "i0", Text: "hello"})
	cwd := fmt.Sprintf(`"cwd":%q,"mcpServers":[]`, g.workspace)
	prompt := func(text string) string {
		return fmt.Sprintf(`{"sessionId":"SESSION","prompt":[{"type":"text","text":%q}]}`, text)
	}
	mode := `{"sessionId":"SESSION","modeId":"plan"}`
	for _, tt := range []struct{ call, method, params, want string }{
		{"agents", "session/list", `{}`, "list the sessions"}, {"history", "session/list", `{}`, "list the sessions"},
		{"agents", "session/load", `{"sessionId":"none",` + cwd + `}`, "load the session"},
		{"history", "session/load", `{"sessionId":"mine",` + cwd + `}`, "load the session"},
		{"create", "session/set_mode", mode, "create the session's agent"},
		{"create", "session/prompt", prompt("x"), "create the session's agent"},
		{"create", "session/prompt", prompt("/reset"), "create the session's agent"},
		{"deliver", "session/prompt", prompt("x"), "send the prompt"}, {"deliver", "session/prompt", prompt("/reset"), "/reset"},
		{"agent", "session/prompt", prompt("/context"), "/context"},
	} {
		tt.params = strings.Replace(tt.params, "SESSION", g.session(), 1)
		g.mood.fail(tt.call, -1)
		r := g.ask(tt.method, tt.params)
		if !strings.Contains(r.Error.Message, tt.want) || !strings.Contains(r.Error.Message, "not today") && tt.call != "agent" {
			t.Errorf("%s without %s: %s %+v", tt.method, tt.call, r.Result, r.Error)
		}
		g.mood.fail("", 0)
		if r := g.ask(tt.method, tt.params); r.Error.Message != "" && !strings.Contains(tt.params, "none") {
			t.Errorf("%s with it: %+v", tt.method, r.Error)
		}
	}
}

// A daemon that stops while a prompt waits, and does not come back, ends the prompt with a word; when it runs again
// the session continues.
func TestADaemonThatStops(t *testing.T) {
	var g *guest
	stopped := make(chan struct{})
	g = visit(t, func(h *commandtest.Server, in message.Incoming) event.Outcome {
		if in.Text == "again" {
			return answers("it is back", record.ReasonDone)(h, in)
		}
		g.mood.mu.Lock()
		g.mood.left = map[string]int{"history": -1, "dial": -1}
		g.mood.mu.Unlock()
		h.Begin("t", in)
		<-stopped
		return event.Outcome{Turn: "t", Reason: record.ReasonDone}
	})
	defer close(stopped)
	s := g.session()
	if stop := g.prompt(s, "x"); !strings.Contains(stop, "the daemon stopped: not today; the prompt is safe") {
		t.Errorf("it stopped with %q", stop)
	}
	g.mood.fail("", 0)
	if stop := g.prompt(s, "again"); stop != "end_turn" || !g.told("agent_message_chunk it is back") {
		t.Errorf("it stopped with %q, told was %q", stop, g.updates)
	}
}

// An answer to a request that was not accepted is said, and the request stays open.
func TestAnAnswerThatIsNotAccepted(t *testing.T) {
	g := visit(t, asking)
	asked := make(chan struct{}, 10)
	g.answer = func(json.RawMessage) any {
		asked <- struct{}{}
		return map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": "once"}}
	}
	g.mood.fail("decide", 1)
	s := g.session()
	done := g.begin("session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":"x"}]}`, s))
	<-asked
	within(t, "it is said", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return strings.Contains(strings.Join(g.updates, "\n"), "agent_thought_chunk The answer was not accepted: ")
	})
	fmt.Fprintf(g.to, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`+"\n", s)
	if stop := stopOf(<-done); stop != "cancelled" || g.house.Decided() != "" {
		t.Errorf("it stopped with %q, decided was %q", stop, g.house.Decided())
	}
	if stop := g.prompt(s, "y"); stop != "end_turn" || !strings.HasPrefix(g.house.Decided(), "tok once") {
		t.Errorf("it stopped with %q, decided was %q", stop, g.house.Decided())
	}
}
