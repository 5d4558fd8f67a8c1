package agents

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/agents/providers"
	"daycare/engine/address"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/tools"
)

// A speaker is a model that says what a test says.
type speaker func(ctx context.Context, watch func(providers.Event)) (*providers.Response, error)

func (s speaker) Call(ctx context.Context, _ *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
	return s(ctx, watch)
}

// speaks has a model answer for the agent.
func (b *bench) speaks(s speaker) { b.opts.Model = func(record.Model) Model { return s } }

// However a model ends, the user reads an answer.
func TestHowAnAnswerEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		answer providers.Response
		says   string
		finish string
	}{
		"well":                      {providers.Response{Text: "yes", Finish: providers.EndTurn}, "yes", "end_turn"},
		"cut by its longest answer": {providers.Response{Text: "half", Finish: providers.MaxTokens}, "half", "max_tokens"},
		"declined": {providers.Response{Text: " ", Finish: providers.Refusal},
			"The model declined to answer this.", "end_turn"},
		"declined in its own words": {providers.Response{Text: "no", Finish: providers.Refusal}, "no", "end_turn"},
		"thought of and not said": {providers.Response{Thinking: []providers.Reasoning{{Text: "hm"}}, Finish: providers.EndTurn},
			"", "end_turn"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, callHold)
			b.speaks(func(context.Context, func(providers.Event)) (*providers.Response, error) {
				r := tt.answer
				return &r, nil
			})
			b.run()
			o := b.outcome(b.say("hello"))
			b.halt()
			if o.Reason != record.ReasonDone || o.Text != tt.says || !strings.Contains(b.history(), `"finish":"`+tt.finish+`"`) {
				t.Errorf("outcome %+v, want %q\n%s", o, tt.says, b.history())
			}
			if got := strings.Join(b.texts(), "|"); got != tt.says {
				t.Errorf("sent %q, want %q", got, tt.says)
			}
		})
	}
}

// A model that says nothing for too long ends the turn, with words for the user.
func TestAModelThatHangsEndsTheTurn(t *testing.T) {
	b := newBench(t, callHold)
	b.opts.Settings.Stuck = 30 * time.Millisecond
	b.speaks(func(ctx context.Context, _ func(providers.Event)) (*providers.Response, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	b.run()
	if o := b.outcome(b.say("hello")); o.Reason != record.ReasonError || !strings.Contains(o.Text, "no progress for 30ms") {
		t.Errorf("outcome %+v", o)
	}
}

// A wait before the next try, which a provider announces, is no silence of the model.
func TestAWaitForTheNextTryIsNoSilence(t *testing.T) {
	t.Parallel()
	b := newBench(t, callHold)
	b.opts.Settings.Stuck = time.Second
	const wait = 1500 * time.Millisecond
	b.speaks(func(ctx context.Context, tell func(providers.Event)) (*providers.Response, error) {
		tell(providers.Retry{N: 1, Of: 2, In: wait, Reason: "busy"})
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return &providers.Response{Text: "well", Finish: providers.EndTurn}, nil
	})
	b.run()
	if o := b.outcome(b.say("hello")); o.Reason != record.ReasonDone || o.Text != "well" {
		t.Errorf("outcome %+v", o)
	}
}

// Who stops a turn while the model is asked is told that it was stopped, and not that it hung.
func TestAStopWhileTheModelIsAsked(t *testing.T) {
	b := newBench(t, callHold)
	asked := make(chan bool, 1)
	b.speaks(func(ctx context.Context, _ func(providers.Event)) (*providers.Response, error) {
		asked <- true
		<-ctx.Done()
		return nil, ctx.Err()
	})
	b.run()
	item := b.say("hello")
	<-asked
	b.mu.Lock()
	b.stop(errors.New("stopped"))
	b.mu.Unlock()
	if o := b.outcome(item); o.Reason != record.ReasonCanceled || strings.Contains(o.Text, "no progress") {
		t.Errorf("outcome %+v", o)
	}
}

// A model is offered the tools of its agent, as they describe themselves.
func TestToolsAreOffered(t *testing.T) {
	b := newBench(t, `rules: [ { reply: [ { text: "hi" } ] } ]`, newEcho(tools.Once))
	b.run()
	b.outcome(b.say("hello"))
	b.halt()
	if got := b.model.asked[0].Tools; len(got) != 1 || got[0].Name != "echo" || got[0].Description != "says it" ||
		!strings.Contains(string(got[0].Schema), `"text"`) {
		t.Errorf("offered are %+v", got)
	}
}

// An agent asks the model of its own choice, else that of the settings; for summaries the one
// that the settings name for them.
func TestWhichModelIsAsked(t *testing.T) {
	own, general, small := record.Model{ID: "own"}, record.Model{ID: "general"}, record.Model{ID: "small", Model: "m"}
	for name, tt := range map[string]struct {
		state, settings, summary record.Model
		asked, summarist         record.Model
	}{
		"its own":             {own, general, record.Model{}, own, own},
		"its own model alone": {record.Model{Model: "x"}, general, small, record.Model{Model: "x"}, small},
		"of the settings":     {record.Model{}, general, small, general, small},
		"nobody's choice":     {},
	} {
		s := &self{}
		s.state.Provider, s.settings.Routes.Own, s.settings.Routes.Summary = tt.state, tt.settings, tt.summary
		if s.model() != tt.asked || s.summarist() != tt.summarist {
			t.Errorf("%s: asked is %+v, for summaries %+v; want %+v and %+v", name, s.model(), s.summarist(), tt.asked, tt.summarist)
		}
	}
	chat := address.Descriptor{Type: address.User, Connector: "chat", ChannelID: "c", UserID: "u"}
	s := &self{meta: address.Meta{Descriptor: chat}}
	if to := s.address(); to != (message.Address{Connector: "chat", ChannelID: "c", UserID: "u"}) {
		t.Errorf("its chat is %+v", to)
	}
	if s.meta.Descriptor.Type = address.Permanent; s.address() != (message.Address{}) {
		t.Errorf("an agent without a chat has %+v", s.address())
	}
}

// An answer that was paid for in vain is recorded with its cost, once: a draft on disk does
// not name it any more.
func TestAnAnswerInVainIsPaidForOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, callHold)
	b.opts.Price = func(u providers.Usage) float64 { return float64(u.Input) }
	var mu sync.Mutex
	var left []record.Draft // drafts: as the answer came, and after it was in vain
	draft := func() (record.Draft, bool) {
		d, ok, err := record.ReadDraft(b.dir)
		if err != nil {
			t.Error(err)
		}
		return d, ok
	}
	b.speaks(func(_ context.Context, watch func(providers.Event)) (*providers.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		watch(providers.Asking{Provider: "p", Model: "m"})
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			watch(providers.ContentDelta{Text: "x"})
			if d, ok := draft(); ok {
				left = append(left, d)
				break
			}
		}

		watch(providers.Wasted{Provider: "p", Model: "m", Usage: providers.Usage{Input: 40}})
		d, _ := draft()
		left = append(left, d)
		return &providers.Response{Text: "right", Finish: providers.EndTurn, Provider: "p", Model: "m"}, nil
	})

	b.run()
	b.outcome(b.say("hello"))
	b.halt()
	mu.Lock()
	defer mu.Unlock()
	if len(left) != 2 || left[0].Provider != "p" || left[0].Input == 0 || left[1].Provider != "" || left[1].Input != 0 {
		t.Errorf("the drafts were %+v, want that the second names no cost", left)
	}
	if n := strings.Count(b.history(), `"cost":40`); n != 1 {
		t.Errorf("the cost is recorded %d times, want once\n%s", n, b.history())
	}
	if _, ok := draft(); ok {
		t.Error("the draft outlives its answer")
	}
}

// What was paid for in vain and cannot be recorded ends the agent.
func TestAnAnswerInVainThatCannotBeRecordedEndsTheAgent(t *testing.T) {
	b := newBench(t, callHold)
	b.speaks(func(_ context.Context, watch func(providers.Event)) (*providers.Response, error) {
		b.vol.Fail(errSeeded)
		watch(providers.Wasted{Provider: "p", Model: "m"})
		return &providers.Response{Text: "right", Finish: providers.EndTurn}, nil
	})

	item := b.say("hello")
	if err := b.until(item); err == nil || !strings.Contains(err.Error(), "seeded") {
		t.Errorf("the agent ended with %v", err)
	}
	b.sent = nil
	b.reopen()
	b.opts.Model = func(record.Model) Model { return b.model }
	if err := b.until(item); err != nil || len(b.texts()) != 1 {
		t.Errorf("the next life: %v, sent %q", err, b.texts())
	}
}

// A message that is to interrupt does so; one that is taken otherwise, an order and a silent
// one let the model continue.
func TestWhatInterruptsAnAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		kind       message.Kind
		queue      message.Queue
		silent     bool
		interrupts bool
	}{
		"a message":         {message.Text, "", false, true},
		"one that can wait": {message.Text, message.Followup, false, false},
		"a mark":            {message.Mark, "", false, false},
		"a silent one":      {message.System, "", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, callHold)
			b.opts.Settings.Queue = Interrupt
			asked, say := make(chan struct{}, 2), make(chan struct{})
			b.speaks(func(ctx context.Context, _ func(providers.Event)) (*providers.Response, error) {
				asked <- struct{}{}
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-say:
					return &providers.Response{Text: "done", Finish: providers.EndTurn}, nil
				}
			})

			b.run()
			first := b.say("hello")
			<-asked
			it := inbox.Item{Kind: tt.kind, Text: "more"}
			it.Queue, it.Silent = tt.queue, tt.silent
			r, err := b.box.Accept(t.Context(), it)
			if err != nil {
				t.Fatal(err)
			}
			if tt.interrupts {
				if o := b.outcome(first); o.Reason != record.ReasonCanceled {
					t.Errorf("the turn ended %q, want canceled", o.Reason)
				}
				<-asked
			}

			close(say)
			b.wait(r.Item)
			if o := b.outcome(first); !tt.interrupts && o.Reason != record.ReasonDone {
				t.Errorf("the turn ended %q, want done", o.Reason)
			}
		})
	}
}
