package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nrednav/cuid2"

	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/agents/providers/scripted"
	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
)

// A bench is one agent on real files with a scripted model, and a stage that the
// test stands in for.
type bench struct {
	t     *testing.T
	dir   string
	vol   *disk.Volume
	box   *inbox.File
	model *recording
	opts  Options

	mu   sync.Mutex
	sent []message.Promise
	stop context.CancelCauseFunc // of the turn under way

	end  context.CancelFunc
	done chan error
}

// recording is the scripted model with a memory of what it was asked.
type recording struct {
	caller *providers.Caller
	mu     sync.Mutex
	asked  []*providers.Request
}

func (r *recording) Call(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
	r.mu.Lock()
	r.asked = append(r.asked, req)
	r.mu.Unlock()
	return r.caller.Call(ctx, req, watch)
}

func (r *recording) request(i int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for _, m := range r.asked[i].Messages {
		for _, p := range m.Parts {
			fmt.Fprintf(&b, "%s: %v\n", m.Role, p)
		}
	}
	return b.String()
}

func (r *recording) calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.asked)
}

func newBench(t *testing.T, script string, list ...tools.Tool) *bench {
	t.Helper()
	root := t.TempDir()
	id := cuid2.Generate()
	b := &bench{t: t, dir: filepath.Join(root, "agents", id), vol: disk.NewVolume(root)}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p, err := scripted.New(scripted.Options{Source: []byte(script)})
	if err != nil {
		t.Fatal(err)
	}
	b.model = &recording{caller: &providers.Caller{Chain: []providers.Provider{p}}}
	set, err := tools.NewSet(list...)
	if err != nil {
		t.Fatal(err)
	}
	queue, _, err := permission.OpenQueue(b.vol, root, time.Now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { queue.Close() })
	b.opts = Options{
		Meta: address.Meta{ID: id, Handle: "0/", Name: "test", Descriptor: address.Descriptor{
			Type: address.User, Connector: "chat", ChannelID: "c1", UserID: "u1"}},
		Dir: b.dir, Outbox: b, Stage: b, Volume: b.vol, Events: event.NewStream("t"), Tools: set, Permits: queue,
		Model:      func(record.Model) Model { return b.model },
		Definition: func(m address.Meta, _ record.State) prompt.Definition { return prompt.Definition{Name: m.Name} },
		Settings:   Settings{Rounds: 20, Parallel: 4, Queue: Steer, Idle: time.Hour, Stuck: time.Minute},
		Zone:       func() string { return "UTC" }, Log: slog.New(slog.DiscardHandler),
	}
	b.openBox()
	return b
}

func (b *bench) openBox() {
	b.t.Helper()
	box, _, err := inbox.Open(b.vol, b.dir, inbox.NewQuota(1<<30), time.Now)
	if err != nil {
		b.t.Fatal(err)
	}
	b.box, b.opts.Inbox = box, box
}

func (b *bench) Send(p message.Promise) {
	b.mu.Lock()
	b.sent = append(b.sent, p)
	b.mu.Unlock()
	p.Report(message.Fate{Out: p.ID, Parts: 1})
}
func (b *bench) Answers(to message.Address) bool { return to.Connector == "chat" }
func (b *bench) Interim(message.Address) bool    { return false }
func (b *bench) Show(event.State, string)        {}
func (b *bench) Turn(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	b.mu.Lock()
	b.stop = cancel
	b.mu.Unlock()
	return ctx, func() { cancel(nil) }
}

// run starts the agent; it is ended with the test.
func (b *bench) run() {
	ctx, cancel := context.WithCancel(context.Background())
	b.end, b.done = cancel, make(chan error, 1)
	go func() { b.done <- Run(ctx, b.opts) }()
	b.t.Cleanup(func() { b.halt() })
}

// halt is an orderly stop.
func (b *bench) halt() {
	if b.end == nil {
		return
	}
	b.end()
	if err := <-b.done; err != nil {
		b.t.Errorf("agent: %v", err)
	}
	b.end = nil
	b.box.Close()
}

func (b *bench) say(text string) string {
	b.t.Helper()
	r, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.Text, Text: text})
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Item
}

func (b *bench) wait(items ...string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, id := range items {
		if err := b.box.Wait(ctx, id); err != nil {
			b.t.Fatalf("item %s: %v\n%s", id, err, b.history())
		}
	}
}

func (b *bench) outcome(item string) record.Outcome {
	b.t.Helper()
	b.wait(item)
	o, ok, err := record.Closing(b.dir, item)
	if err != nil || !ok {
		b.t.Fatalf("outcome of %s: %v, found %v\n%s", item, err, ok, b.history())
	}
	return o
}

func (b *bench) history() string {
	data, err := os.ReadFile(filepath.Join(b.dir, "history.jsonl"))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(data)
}

// count is how many lines of history have a type.
func (b *bench) count(typ string) int {
	return strings.Count(b.history(), `"type":"`+typ+`"`)
}

// hold is a tool that runs until the test lets it go.
type hold struct {
	spec    tools.Spec
	running chan tools.Call
	release chan string
}

func newHold(name string, replay tools.Replay) *hold {
	return &hold{spec: tools.Spec{Name: name, Description: "waits", Schema: json.RawMessage(`{"type":"object"}`), Replay: replay},
		running: make(chan tools.Call, 10), release: make(chan string)}
}

func (h *hold) Spec() tools.Spec { return h.spec }
func (h *hold) Run(ctx context.Context, c tools.Call) (tools.Result, error) {
	h.running <- c
	select {
	case text := <-h.release:
		return tools.Result{Text: text}, nil
	case <-ctx.Done():
		return tools.Result{}, ctx.Err()
	}
}

const callHold = `
rules:
  - match: go
    round: 1
    reply: [ { calls: [ { name: hold, arguments: {} } ] } ]
  - tool_result: hold
    reply: [ { text: "result {{.Result}}" } ]
  - reply: [ { text: "heard: {{.Text}}" } ]
`

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
		r, err := b.box.Accept(context.Background(), inbox.Item{Kind: message.Text, Text: text, Dedupe: key, Context: message.Context{Sender: key}})
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
	for text, silent := range map[string]bool{"NO_MESSAGE": true, "`NO_MESSAGE`.": true, `\"NO_MESSAGE\"`: true, "NO_MESSAGE today": false} {
		b := newBench(t, `rules: [ { reply: [ { text: "`+text+`" } ] } ]`)
		b.run()
		b.outcome(b.say("x"))
		b.halt()
		if got := len(b.sent) == 0; got != silent {
			t.Errorf("%s: delivered %v", text, !got)
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
			Run(context.Background(), b.opts)
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
		Run(context.Background(), b.opts)
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
