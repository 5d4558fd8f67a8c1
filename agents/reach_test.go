package agents

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// The answer to a report goes where the user wrote from last, and to the agent's own
// chat where nobody wrote from elsewhere.
func TestAnAnswerToAReportGoesWhereThePersonIs(t *testing.T) {
	elsewhere := message.Address{Connector: "chat", ChannelID: "phone", UserID: "u1"}
	for name, tt := range map[string]struct {
		routes []*message.Address // of what the user writes, one after the other
		want   string
	}{
		"nobody wrote":         {nil, "c1"},
		"from the own chat":    {[]*message.Address{nil}, "c1"},
		"from elsewhere":       {[]*message.Address{nil, &elsewhere}, "phone"},
		"from elsewhere first": {[]*message.Address{&elsewhere, nil}, "c1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, callHold)
			b.run()
			for _, route := range tt.routes {
				r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "hello", Route: route})
				if err != nil {
					t.Fatal(err)
				}
				b.wait(r.Item)
			}
			r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.System, Origin: "system", Text: "it is done"})
			if err != nil {
				t.Fatal(err)
			}
			b.wait(r.Item)
			b.halt()
			if len(b.sent) != len(tt.routes)+1 || b.sent[len(b.sent)-1].To.ChannelID != tt.want {
				t.Errorf("sent %+v, want the last one to %s", b.sent, tt.want)
			}
			for i, route := range tt.routes {
				if got := b.sent[i].To.ChannelID; route != nil && got != route.ChannelID || route == nil && got != "c1" {
					t.Errorf("the answer %d went to %s", i, got)
				}
			}
		})
	}
}

// A promised answer that a user took out of history is given up once, and owed no more.
func TestAPromiseWithoutItsAnswerIsGivenUp(t *testing.T) {
	b := newBench(t, callHold)
	out := strings.Repeat("o", 24)
	b.cutAfter(&record.TurnBegin{Turn: "turn", Items: []string{"gone"}, Attempt: 1}, &record.User{Item: "gone", Text: "hello"},
		&record.Assistant{Turn: "turn", Text: "take this away", Finish: record.FinishEndTurn,
			Out: &record.Out{ID: out, To: message.Address{Connector: "chat", ChannelID: "c1"}}},
		&record.TurnEnd{Turn: "turn", Items: []string{"gone"}, Reason: record.ReasonDone})
	b.cutAfter(&record.Mark{Name: "m"}) // what is owed is noted by the session that follows
	path := filepath.Join(b.dir, "history.jsonl")
	lines := slices.DeleteFunc(strings.SplitAfter(b.history(), "\n"), func(l string) bool { return strings.Contains(l, "take this away") })
	if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		b.openBox()
		b.run()
		b.outcome(b.say("hello again"))
		b.halt()
	}
	for _, p := range b.sent {
		if p.ID == out || p.Text == "take this away" {
			t.Errorf("sent %+v", p)
		}
	}
	if n := strings.Count(b.history(), "the answer was removed from history"); n != 1 {
		t.Errorf("given up %d times, want once\n%s", n, b.history())
	}
}

// showing is a stage that notes what the agent shows.
type showing struct {
	*bench
	mu     sync.Mutex
	states []event.State
}

func (s *showing) Show(state event.State, _ string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.states) == 0 || s.states[len(s.states)-1] != state {
		s.states = append(s.states, state)
	}
}

// What an agent does is shown as it changes: also that a model which was tried again
// answers now.
func TestWhatAnAgentDoesIsShown(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
rules:
  - { once: true, reply: [ { fault: { reset: true } } ] }
  - { round: 1, reply: [ { calls: [ { name: quick, arguments: {} } ] } ] }
  - { reply: [ { text: "done" } ] }
`, quickTool{func() string { return "ran" }})
	stage := &showing{bench: b}
	b.opts.Stage = stage
	b.run()
	b.outcome(b.say("hello"))
	want := []event.State{event.Idle, event.Thinking, event.Retrying, event.Thinking, event.UsingTool, event.Thinking, event.Idle}
	seen := func() []event.State {
		stage.mu.Lock()
		defer stage.mu.Unlock()
		list := slices.Clone(stage.states)
		if len(list) > 0 && list[0] != event.Idle { // the message was faster than the start
			list = append([]event.State{event.Idle}, list...)
		}
		return list
	}
	within(t, "it is idle again", func() bool { s := seen(); return len(s) > 1 && s[len(s)-1] == event.Idle })
	b.halt()
	if got := seen(); !slices.Equal(got, want) {
		t.Errorf("shown was %v, want %v", got, want)
	}
}

// lasting is a mailbox that looks at the agent when an item is done.
type lasting struct {
	inbox.Mailbox
	done func()
}

func (l lasting) Done(ids ...string) error {
	l.done()
	return l.Mailbox.Done(ids...)
}

// Between a decision and the turn that it asks for the agent does not look idle.
func TestADecisionShowsTheWorkThatFollows(t *testing.T) {
	b := newBench(t, callHold)
	stage := &showing{bench: b}
	b.opts.Stage = stage
	r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Permission, Token: "t",
		Decision: string(permission.Always), Tag: "@read:/srv", By: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	var at event.State
	b.opts.Inbox = lasting{b.box, func() {
		stage.mu.Lock()
		defer stage.mu.Unlock()
		at = stage.states[len(stage.states)-1]
	}}
	b.run()
	b.wait(r.Item)
	waitFor(t, func() bool { return b.model.calls() > 0 })
	b.halt()
	if at != event.Thinking || b.model.calls() != 1 {
		t.Errorf("shown was %v when the decision was done, with %d model calls", at, b.model.calls())
	}
}

// A decision that asks for no turn does not show the agent at work.
func TestASilentDecisionShowsNoWork(t *testing.T) {
	b := newBench(t, callHold)
	stage := &showing{bench: b}
	b.opts.Stage = stage
	r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Permission, Token: "t", Silent: true,
		Decision: string(permission.Always), Tag: "@read:/srv", By: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	b.wait(r.Item)
	b.halt()
	if slices.Contains(stage.states, event.Thinking) || b.model.calls() != 0 {
		t.Errorf("shown was %v with %d model calls, want no work", stage.states, b.model.calls())
	}
}
