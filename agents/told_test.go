package agents

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"daycare/agents/providers"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/redact"
	"daycare/tools"
)

// seen is what somebody who watches an agent has seen.
type seen struct {
	mu  sync.Mutex
	all []event.Event
}

// watched begins to watch.
func (b *bench) watched() *seen {
	s, events := &seen{}, b.opts.Events.Subscribe(b.t.Context())
	go func() {
		for e := range events {
			s.mu.Lock()
			s.all = append(s.all, e)
			s.mu.Unlock()
		}
	}()

	return s
}

// of is all of some types, in their order.
func (s *seen) of(types ...event.Type) []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.all), func(e event.Event) bool { return !slices.Contains(types, e.Type) })
}

// chatty is a tool that says how far it is, and has secrets in what it returns.
type chatty struct{}

func (chatty) Spec() tools.Spec {
	return tools.Spec{Name: "chatty", Description: "d", Schema: json.RawMessage(`{"type":"object"}`), Replay: tools.ReadOnly}
}

func (chatty) Run(_ context.Context, c tools.Call) (tools.Result, error) {
	c.Progress("half of it")
	return tools.Result{Text: "hunter2hunter2", Blocks: []tools.Block{{Type: "text", Text: "hunter2hunter2"}}}, nil
}

// Whoever watches is told what happens to an agent, each thing once.
func TestWhatHappensIsTold(t *testing.T) {
	b := newBench(t, `
rules:
  - { contains: "work", round: 1, reply: [ { calls: [ { name: chatty, arguments: {} } ] } ] }
  - { reply: [ { text: "ok" } ] }
`, chatty{})
	told := b.watched()
	b.run()
	item := b.say("work")
	turn := b.outcome(item).Turn
	right := func(d permission.Decision) {
		t.Helper()
		r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Permission, Token: "token", Decision: string(d),
			Tag: "@read:/srv", By: "ada"})
		if err != nil {
			t.Fatal(err)
		}
		b.wait(r.Item)
	}
	right(permission.Always)
	right(permission.Revoked)
	b.order(message.Reset, "")
	b.halt()
	within(t, "the reset is told", func() bool { return len(told.of(event.AgentReset)) > 0 })

	asked := event.Asked{Token: "token", Tag: "@read:/srv", By: "ada"}
	for typ, want := range map[event.Type]event.Body{
		event.AgentReset: event.Reason{Reason: "user"}, event.PermissionGranted: asked, event.PermissionRevoked: asked,
	} {
		if got := told.of(typ); len(got) != 1 || got[0].Body != want || got[0].Agent != b.opts.Meta.ID {
			t.Errorf("%s: %+v, want once %+v", typ, got, want)
		}
	}

	if taken := told.of(event.ItemTaken); len(taken) == 0 || taken[0].Turn != turn ||
		taken[0].Body != (event.Item{Item: item, Kind: string(message.Text)}) {
		t.Errorf("taken are %+v, want %s first", taken, item)
	}
	progress, started, ended := told.of(event.ToolProgress), told.of(event.ToolStarted), told.of(event.ToolFinished)
	if len(progress) != 1 || len(started) != 1 || len(ended) != 1 {
		t.Fatalf("of the tool: %+v, %+v, %+v", progress, started, ended)
	}
	call := started[0].Body.(event.Tool).Call
	if p := progress[0].Body; p != (event.Progress{Call: call, Text: "half of it"}) {
		t.Errorf("its progress is %+v", p)
	}
	if f := ended[0].Body.(event.Tool); f.Call != call || f.Status != "ok" || f.Name != "chatty" {
		t.Errorf("its end is %+v", f)
	}
}

// What a model says before it fails is taken back before its next try is shown, from the
// screen, the draft and the answer.
func TestARetryTakesBackWhatWasSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t, `
rules:
  - once: true
    reply: [ { thinking: "wrong thought" }, { text: "wrong words" }, { fault: { reset: true } } ]
  - reply: [ { thinking: "right thought", chunk: 5, every: 150ms }, { text: "right words", chunk: 4, every: 1s } ]
`)
	told := b.watched()
	b.run()
	item := b.say("hello")
	var drafts []record.Draft
	within(t, "a draft of both", func() bool {
		if d, ok, err := record.ReadDraft(b.dir); err == nil && ok {
			drafts = append(drafts, d)
		}
		return len(drafts) > 0 && drafts[len(drafts)-1].Text != "" && drafts[len(drafts)-1].Thinking != ""
	})

	if o := b.outcome(item); o.Text != "right words" {
		t.Errorf("the answer is %q", o.Text)
	}
	b.halt()
	within(t, "the end is told", func() bool { return len(told.of(event.TurnFinished)) > 0 })

	for _, d := range drafts {
		if !strings.HasPrefix("right words", d.Text) || !strings.HasPrefix("right thought", d.Thinking) ||
			d.Provider == "" || d.Input <= 0 {
			t.Fatalf("a draft is %+v", d)
		}
	}

	if _, ok, err := record.ReadDraft(b.dir); ok || err != nil {
		t.Errorf("the draft outlives its answer: %v", err)
	}
	retries := told.of(event.Retry)
	if len(retries) != 1 || !retries[0].Body.(event.Attempt).Discard || retries[0].Body.(event.Attempt).N != 1 {
		t.Fatalf("told of %+v, want one try that takes back what was shown", retries)
	}

	shown := map[event.Type]string{}
	for _, e := range told.of(event.MessageDelta, event.MessageThinking, event.Retry) {
		d, ok := e.Body.(event.Delta)
		if !ok { // the retry takes back what was shown
			if shown[event.MessageDelta] != "wrong words" || shown[event.MessageThinking] != "wrong thought" {
				t.Errorf("before the retry was shown %q", shown)
			}
			clear(shown)
			continue
		}
		if d.Offset != len(shown[e.Type]) {
			t.Errorf("%s: a piece at %d, behind %q", e.Type, d.Offset, shown[e.Type])
		}
		shown[e.Type] += d.Text
	}

	if shown[event.MessageDelta] != "right words" || shown[event.MessageThinking] != "right thought" {
		t.Errorf("shown was %q", shown)
	}
}

// No secret that daycare knows gets into history, whatever record it comes with.
func TestNoRecordHasASecret(t *testing.T) {
	const secret = "hunter2hunter2"
	b := newBench(t, `
rules:
  - { contains: "work", round: 1, reply: [ { calls: [ { name: chatty, arguments: { note: "`+secret+`" } } ] } ] }
  - { contains: "think", reply: [ { thinking: "of `+secret+`" }, { text: "it is `+secret+`" } ] }
  - { contains: "fail", reply: [ { fault: { status: 400, message: "bad `+secret+`" } } ] }
  - { reply: [ { text: "ok" } ] }
`, chatty{})
	b.opts.Redact = redact.New(secret)
	b.run()
	for _, text := range []string{"work", "think", "fail", "say " + secret} {
		b.outcome(b.say(text))
	}

	for _, it := range []inbox.Item{
		{Kind: message.Permission, Token: "t", Decision: string(permission.Always), Tag: "@read:/srv", By: "ada", Text: "read " + secret},
		{Kind: message.System, Origin: "system", Silent: true, Text: "note " + secret},
		{Kind: message.Compact, Text: "with " + secret},
		{Kind: message.Reset, Text: "because of " + secret},
	} {
		r, err := b.box.Accept(t.Context(), it)
		if err != nil {
			t.Fatal(err)
		}
		b.wait(r.Item)
	}

	b.halt()
	texts := b.history()
	if at := strings.Index(texts, secret); at >= 0 {
		t.Errorf("history has\n%s", texts[max(0, at-300):at+50])
	}
	if n := strings.Count(texts, redact.Mark); n < 8 {
		t.Errorf("%d places were redacted, want them all:\n%s", n, texts)
	}
}

// An event has the beginning of what a tool returned, and no half of a character.
func TestAnEventHasTheBeginningOfAnOutput(t *testing.T) {
	for text, want := range map[string]string{strings.Repeat("x", shownBytes): strings.Repeat("x", shownBytes),
		strings.Repeat("x", shownBytes-1) + "äöü": strings.Repeat("x", shownBytes-1) + "…"} {
		h := newHold("hold", tools.Once)
		b := newBench(t, callHold, h)
		told := b.watched()
		b.run()
		item := b.say("go")
		h.release <- text
		b.outcome(item)
		within(t, "the end of the call is told", func() bool { return len(told.of(event.ToolFinished)) == 1 })
		if got := told.of(event.ToolFinished)[0].Body.(event.Tool).Output; got != want {
			t.Errorf("it has %q of %q", got, text)
		}
		b.halt()
	}
}

// A waitingStage notes what reaches those who wait for an item.
type waitingStage struct {
	*bench
	ended map[string]record.Outcome
}

func (s waitingStage) Ended(items []string, o record.Outcome) {
	for _, item := range items {
		s.ended[item] = o
	}
}

// Who waits for an item learns how its turn ended.
func TestWhoWaitsIsToldHowATurnEnded(t *testing.T) {
	b := newBench(t, callHold)
	stage := waitingStage{b, map[string]record.Outcome{}}
	b.opts.Stage = stage
	b.run()
	item := b.say("hello")
	want := b.outcome(item)
	b.halt()
	if got := stage.ended[item]; got.Reason != record.ReasonDone || got.Text != "heard: hello" || got.Seq != want.Seq {
		t.Errorf("told is %+v, want %+v", got, want)
	}
}

// When an answer began to come is recorded, also where the model thought first, and where it began anew.
func TestWhenAnAnswerBeganIsRecorded(t *testing.T) {
	words := providers.ContentDelta{Text: "a"}
	for name, tt := range map[string]struct {
		pieces []providers.Event // one each second
		want   string
	}{
		"words":          {[]providers.Event{words, words}, `"ms":2000,"firstMs":1000`},
		"thoughts":       {[]providers.Event{providers.ThinkingDelta{Text: "a"}, words}, `"ms":2000,"firstMs":1000`},
		"nothing":        {[]providers.Event{providers.Asking{}}, `"ms":1000,`},
		"another try":    {[]providers.Event{words, providers.Retry{Discard: true}, words}, `"ms":3000,"firstMs":3000`},
		"the same again": {[]providers.Event{words, providers.Retry{}, words}, `"ms":3000,"firstMs":1000`},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, callHold)
			b.opts.Model = func(record.Model) Model {
				return thinker(func(_ context.Context, _ *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
					for _, p := range tt.pieces {
						time.Sleep(time.Second)
						watch(p)
					}
					return &providers.Response{Text: "b", Finish: providers.EndTurn}, nil
				})
			}
			b.run()
			b.outcome(b.say("hello"))
			b.halt()
			if !strings.Contains(b.history(), tt.want) || strings.Contains(b.history(), "firstMs") != strings.Contains(tt.want, "firstMs") {
				t.Errorf("%s: want %s in\n%s", name, tt.want, b.history())
			}
		})
	}
}
