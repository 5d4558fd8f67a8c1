package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"daycare/agents/providers"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/tools"
)

func TestAnswerIsPromisedAndDelivered(t *testing.T) {
	b := newBench(t, callHold)
	b.run()
	item := b.say("hello")
	if o := b.outcome(item); o.Reason != record.ReasonDone || o.Text != "heard: hello" {
		t.Errorf("outcome %+v", o)
	}
	b.halt()
	if len(b.sent) != 1 || b.sent[0].Text != "heard: hello" || b.sent[0].To.ChannelID != "c1" {
		t.Errorf("sent %+v, want one answer to c1", b.sent)
	}
	if n := b.count("delivery"); n != 1 {
		t.Errorf("%d deliveries in history, want 1\n%s", n, b.history())
	}
}

func TestSteerJoinsBeforeTheNextModelCall(t *testing.T) {
	h := newHold("hold", tools.Once)
	b := newBench(t, callHold, h)
	b.run()
	first := b.say("go")
	<-h.running
	second := b.say("and this")
	h.release <- "r"
	b.wait(first, second)
	if n := b.model.calls(); n != 2 {
		t.Fatalf("%d model calls, want 2\n%s", n, b.history())
	}
	if r := b.model.request(1); !strings.Contains(r, "and this") {
		t.Errorf("the second request does not have the message that came during the tool:\n%s", r)
	}
	if n := b.count("turn_end"); n != 1 {
		t.Errorf("%d turns, want 1: the message joins the turn under way", n)
	}
}

func TestFollowupMakesATurnEach(t *testing.T) {
	h := newHold("hold", tools.Once)
	b := newBench(t, callHold, h)
	b.opts.Settings.Queue = Followup
	b.run()
	first := b.say("go")
	<-h.running
	// Messages of one sender within 2 s are read as one, so these come from two.
	a, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.Text, Text: "one", Context: message.Context{Sender: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.Text, Text: "two", Context: message.Context{Sender: "y"}})
	if err != nil {
		t.Fatal(err)
	}
	h.release <- "r"
	b.wait(first, a.Item, c.Item)
	if n := b.count("turn_end"); n != 3 {
		t.Errorf("%d turns, want 3\n%s", n, b.history())
	}
}

// A message can say how it is taken, whatever the agent's way is: one waits behind
// the turn, one that came after it joins the turn.
func TestMessageSaysHowItIsTaken(t *testing.T) {
	for _, way := range []Queue{Steer, Followup} {
		t.Run(string(way), func(t *testing.T) {
			h := newHold("hold", tools.Once)
			b := newBench(t, callHold, h)
			b.opts.Settings.Queue = way
			b.run()
			first := b.say("go")
			<-h.running
			post := func(text string, q message.Queue) string {
				r, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.Text, Text: text, Queue: q})
				if err != nil {
					t.Fatal(err)
				}
				return r.Item
			}
			later, now := post("later", message.Followup), post("now", message.Steer)
			h.release <- "r"
			b.wait(first, later, now)
			if n := b.count("turn_end"); n != 2 {
				t.Errorf("%d turns, want 2\n%s", n, b.history())
			}
			if got, want := b.outcome(now).Turn, b.outcome(first).Turn; got != want {
				t.Errorf("what steers was taken in turn %s, want that under way, %s\n%s", got, want, b.history())
			}
			if b.outcome(later).Turn == b.outcome(first).Turn {
				t.Errorf("what waits behind the turn was taken in it\n%s", b.history())
			}
		})
	}
}

func TestCollectMakesOneNextTurn(t *testing.T) {
	h := newHold("hold", tools.Once)
	b := newBench(t, callHold, h)
	b.opts.Settings.Queue = Collect
	b.run()
	first := b.say("go")
	<-h.running
	second, third := b.say("one"), b.say("two")
	h.release <- "r"
	b.wait(first, second, third)
	if n := b.count("turn_end"); n != 2 {
		t.Errorf("%d turns, want 2\n%s", n, b.history())
	}
	if o := b.outcome(third); !strings.Contains(o.Text, "one") || !strings.Contains(o.Text, "two") {
		t.Errorf("the collected turn answered %q, want both messages in it", o.Text)
	}
}

func TestInterruptCancelsTheTurn(t *testing.T) {
	b := newBench(t, `
rules:
  - match: stream
    reply: [ { text: "a b c d e f g h i j k l m n o p", chunk: 2, every: 50ms } ]
  - reply: [ { text: "heard: {{.Text}}" } ]
`)
	b.opts.Settings.Queues = map[string]Queue{"chat": Interrupt}
	events := b.opts.Events.Subscribe(t.Context())
	b.run()
	first := b.say("stream")
	for e := range events {
		if e.Type == event.MessageDelta {
			break
		}
	}
	second := b.say("new")
	if o := b.outcome(first); o.Reason != record.ReasonCanceled {
		t.Errorf("the first turn ended %q, want canceled\n%s", o.Reason, b.history())
	}
	if o := b.outcome(second); o.Reason != record.ReasonDone || !strings.Contains(o.Text, "new") {
		t.Errorf("the second turn: %+v", o)
	}
	b.halt()
	if got := b.texts(); len(got) != 1 || got[0] != "heard: new" {
		t.Errorf("the chat got %q, want the answer of the second turn alone: the first one was canceled", got)
	}
}

// A connector may have a mode of its own: what comes by it is taken that way, beside
// messages that came by others.
func TestQueueOfAConnector(t *testing.T) {
	h := newHold("hold", tools.Once)
	b := newBench(t, callHold, h)
	b.opts.Settings.Queues = map[string]Queue{"ticker": Followup, "chat": Steer, "bell": Interrupt}
	b.opts.Settings.Queue = Collect
	b.run()
	first := b.say("go")
	<-h.running
	by := func(key, text string) string {
		r, err := b.box.Accept(context.Background(),
			inbox.Item{Kind: message.Text, Text: text, Dedupe: key, Context: message.Context{Sender: key}})
		if err != nil {
			t.Fatal(err)
		}
		return r.Item
	}
	one, joins, two := by("ticker:1", "one"), by("", "joins"), by("ticker:2", "two")
	h.release <- "r"
	b.wait(first, one, joins, two)
	if n := b.count("turn_end"); n != 3 {
		t.Errorf("%d turns, want 3: what came by the agent's own chat steers, the ticker's make a turn each\n%s", n, b.history())
	}
	if r := b.model.request(1); !strings.Contains(r, "joins") || strings.Contains(r, "one") {
		t.Errorf("the second request should have the steering message alone:\n%s", r)
	}
}

func TestStopKeepsWhatWaits(t *testing.T) {
	h := newHold("hold", tools.Once)
	b := newBench(t, callHold, h)
	b.opts.Settings.Queue = Followup
	b.run()
	first := b.say("go")
	<-h.running
	next, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.Text, Text: "next", Context: message.Context{Sender: "x"}})
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.stop(fmt.Errorf("stopped"))
	b.mu.Unlock()
	if o := b.outcome(first); o.Reason != record.ReasonCanceled {
		t.Errorf("stopped turn ended %q, want canceled\n%s", o.Reason, b.history())
	}
	if o := b.outcome(next.Item); o.Text != "heard: next" {
		t.Errorf("what waited: %+v", o)
	}
	if !strings.Contains(b.history(), `"status":"canceled"`) {
		t.Errorf("the running call has no canceled result\n%s", b.history())
	}
}

func TestOrderlyStopSuspendsAndResumes(t *testing.T) {
	h := newHold("hold", tools.ReadOnly)
	b := newBench(t, callHold, h)
	b.run()
	item := b.say("go")
	<-h.running
	b.halt()
	b.openBox()
	if b.box.Len() != 1 {
		t.Fatalf("%d items open after the stop, want 1", b.box.Len())
	}
	b.run()
	go func() { h.release <- "again" }()
	if o := b.outcome(item); o.Reason != record.ReasonDone {
		t.Errorf("outcome %+v\n%s", o, b.history())
	}
	if n := b.count("user_message"); n != 1 {
		t.Errorf("%d user messages, want 1\n%s", n, b.history())
	}
	if strings.Contains(b.history(), `"attempt":2`) {
		t.Errorf("an orderly stop counted as a death\n%s", b.history())
	}
}

func TestLoopGuardAndRoundLimit(t *testing.T) {
	same := `
rules:
  - reply: [ { calls: [ { name: quick, arguments: {} } ] } ]
`
	quick := func(text func() string) tools.Tool { return quickTool{text} }
	b := newBench(t, same, quick(func() string { return "same" }))
	b.run()
	if o := b.outcome(b.say("x")); o.Reason != record.ReasonLoop {
		t.Errorf("ended %q, want loop", o.Reason)
	}
	n := 0
	b = newBench(t, same, quick(func() string { n++; return fmt.Sprint(n) }))
	b.opts.Settings.Rounds = 7
	b.run()
	o := b.outcome(b.say("x"))
	if o.Reason != record.ReasonLimit || !strings.Contains(o.Text, "continue") {
		t.Errorf("ended %q with %q, want limit and how to go on", o.Reason, o.Text)
	}
	if b.model.calls() != 7 {
		t.Errorf("%d model calls, want 7", b.model.calls())
	}
}

type quickTool struct{ text func() string }

func (quickTool) Spec() tools.Spec {
	return tools.Spec{Name: "quick", Description: "is quick", Schema: json.RawMessage(`{"type":"object"}`), Replay: tools.ReadOnly}
}
func (q quickTool) Run(context.Context, tools.Call) (tools.Result, error) {
	return tools.Result{Text: q.text()}, nil
}

func TestErrorsReachThePersonAsOneShortMessage(t *testing.T) {
	b := newBench(t, `rules: [ { reply: [ { fault: { status: 401, message: "bad key" } } ] } ]`)
	b.run()
	o := b.outcome(b.say("x"))
	if o.Reason != record.ReasonError || !strings.Contains(o.Text, "key") || strings.Contains(o.Text, "\n") {
		t.Errorf("outcome %+v", o)
	}
	b.halt()
	if len(b.sent) != 1 {
		t.Errorf("%d messages sent, want the one that says what went wrong", len(b.sent))
	}
}

func TestUnknownToolAndBadArguments(t *testing.T) {
	b := newBench(t, `
rules:
  - match: unknown
    round: 1
    reply: [ { calls: [ { name: nothing, arguments: {} } ] } ]
  - match: bad
    round: 1
    reply: [ { calls: [ { name: quick, rawArguments: "{oops" } ] } ]
  - tool_result: "*"
    reply: [ { text: "{{.Result}}" } ]
`, quickTool{func() string { return "ran" }})
	b.run()
	if o := b.outcome(b.say("unknown")); o.Text != "Tool not found: nothing" {
		t.Errorf("answer %q", o.Text)
	}
	if o := b.outcome(b.say("bad")); strings.Contains(o.Text, "ran") || !strings.Contains(o.Text, "JSON") {
		t.Errorf("answer %q, want a refusal that speaks of JSON", o.Text)
	}
}

func TestNoMessageIsRecordedAndNotDelivered(t *testing.T) {
	for text, silent := range map[string]bool{"NO_MESSAGE": true, "`NO_MESSAGE`.": true, `\"NO_MESSAGE\"`: true,
		"NO_MESSAGE today": false} {
		b := newBench(t, `rules: [ { reply: [ { text: "`+text+`" } ] } ]`)
		b.run()
		b.outcome(b.say("x"))
		b.halt()
		if got := len(b.sent) == 0; got != silent {
			t.Errorf("%s: delivered %v", text, !got)
		}
		if n := b.count("assistant_message"); n != 1 {
			t.Errorf("%s: it is in history %d times\n%s", text, n, b.history())
		}
	}
}

func TestSilentMessageNeedsNoTurn(t *testing.T) {
	b := newBench(t, callHold)
	b.run()
	r, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.System, Origin: "system", Silent: true, Text: "for later"})
	if err != nil {
		t.Fatal(err)
	}
	b.wait(r.Item)
	if b.model.calls() != 0 {
		t.Error("a silent message made a model call")
	}
	b.wait(b.say("hello"))
	if req := b.model.request(0); !strings.Contains(req, "for later") {
		t.Errorf("the next request does not have it:\n%s", req)
	}
}

// A message behind silent ones is worked on when they are heard, not when the agent would
// have gone to sleep.
func TestAMessageBehindASilentOneIsNotKeptWaiting(t *testing.T) {
	b := newBench(t, callHold)
	for _, it := range []inbox.Item{{Kind: message.System, Origin: "system", Silent: true, Text: "for later"},
		{Kind: message.Text, Text: "hello"}} {
		if _, err := b.box.Accept(t.Context(), it); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-b.box.Arrived(): // as for an agent that has just looked
	default:
	}
	b.opts.Settings.Idle = time.Hour
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { ended <- b.opts.Run(ctx) }()
	within(t, "the message is worked on", func() bool { return b.box.Len() == 0 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestResetForgets(t *testing.T) {
	b := newBench(t, callHold)
	b.run()
	b.wait(b.say("remember me"))
	r, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.Reset})
	if err != nil {
		t.Fatal(err)
	}
	b.wait(r.Item)
	b.wait(b.say("hello"))
	if req := b.model.request(1); strings.Contains(req, "remember me") {
		t.Errorf("the context was not cleared:\n%s", req)
	}
}

func TestPoisonousTurnIsSetAside(t *testing.T) {
	b := newBench(t, callHold)
	b.opts.Model = func(record.Model) Model { return panicking{} }
	item := b.say("x")
	for range maxAttempts {
		func() {
			defer func() { recover() }()
			b.opts.Run(context.Background())
		}()
		b.box.Close()
		b.openBox()
	}
	b.run()
	if o := b.outcome(item); o.Reason != record.ReasonPoison {
		t.Errorf("outcome %+v, want poison\n%s", o, b.history())
	}
}

// A failure of the agent alone leaves the mailbox open, as in the engine: the next
// run must find what the failed one had taken.
func TestAgentFailsAndIsRunAgain(t *testing.T) {
	b := newBench(t, callHold)
	good := b.opts.Model
	b.opts.Model = func(record.Model) Model { return panicking{} }
	item := b.say("x")
	func() {
		defer func() { recover() }()
		b.opts.Run(context.Background())
	}()
	b.opts.Model = good
	b.run()
	if o := b.outcome(item); o.Reason != record.ReasonDone {
		t.Errorf("outcome %+v\n%s", o, b.history())
	}
	if n := b.count("user_message"); n != 1 {
		t.Errorf("%d user messages, want 1\n%s", n, b.history())
	}
}

type panicking struct{}

func (panicking) Call(context.Context, *providers.Request, func(providers.Event)) (*providers.Response, error) {
	panic("seeded")
}
