package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
)

// There is as much room as the model's window and the owner's limit leave, and no more than a
// service that refused has shown to take, as long as it is the same model.
func TestHowMuchRoomThereIs(t *testing.T) {
	for name, tt := range map[string]struct {
		setting, window, learned int
		of                       string // the model that it was learned of
		want                     int
	}{
		"nothing is known":             {0, 0, 0, "", 200_000},
		"the owner's limit":            {50_000, 0, 0, "", 50_000},
		"a smaller window":             {50_000, 30_000, 0, "", 30_000},
		"a larger window":              {50_000, 90_000, 0, "", 50_000},
		"the window alone":             {0, 30_000, 0, "", 30_000},
		"a refusal":                    {50_000, 30_000, 10_000, "p/m", 10_000},
		"a refusal of much":            {50_000, 30_000, 40_000, "p/m", 30_000},
		"a refusal of another model":   {50_000, 30_000, 10_000, "p/other", 30_000},
		"a refusal of another service": {50_000, 30_000, 10_000, "q/m", 30_000},
	} {
		w := &world{Window: func(record.Model) int { return tt.window }}
		sh := &shortener{models: models{w}, room: room{learned: tt.learned, model: tt.of, rotate: true, failedAt: 7}}
		s := &self{settings: Settings{ContextLimit: tt.setting}, state: record.State{Provider: record.Model{ID: "p", Model: "m"}}}
		for range 2 {
			if got := sh.limit(s); got != tt.want {
				t.Errorf("%s: room for %d, want %d", name, got, tt.want)
			}
		}
		if kept := sh.room.failedAt == 7; kept != (tt.of == "p/m") || !sh.room.rotate {
			t.Errorf("%s: what was tried is remembered: %v, the rotation that is due: %v", name, kept, sh.room.rotate)
		}
	}
}

// A thinker is a model that says how it answers a request.
type thinker func(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error)

func (m thinker) Call(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
	return m(ctx, req, watch)
}

// summarizing reports whether a request is for a summary.
func summarizing(req *providers.Request) bool {
	return strings.HasPrefix(req.System, "You write the memory")
}

// busy answers what users say, and fails for each summary; tries counts those.
func busy(tries *int) thinker {
	var mu sync.Mutex
	return func(_ context.Context, req *providers.Request, _ func(providers.Event)) (*providers.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if summarizing(req) {
			*tries++
			return nil, &providers.Failure{Kind: providers.Busy, Provider: "w", Err: errors.New("busy")}
		}
		return &providers.Response{Text: "ok", Finish: providers.EndTurn}, nil
	}
}

// A summary that failed is not tried again at each message: only once the conversation has
// grown by a good deal. When there is no room left it is done without a model.
func TestAFailedSummaryIsNotTriedAtEachMessage(t *testing.T) {
	b := newBench(t, callHold)
	tries := 0
	m := busy(&tries)
	b.opts.Model = func(record.Model) Model { return m }
	b.opts.Window = func(record.Model) int { return 32_000 }
	b.run()
	b.wait(b.say(strings.Repeat("long ago ", 9_000)), b.say(strings.Repeat("later ", 2_000)))
	turns := 0
	for ; turns < 60 && b.count("summary") == 0; turns++ {
		b.wait(b.say(strings.Repeat("x ", 500)))
	}

	b.halt()
	if b.count("summary") != 1 || strings.Contains(b.history(), `"type":"reset"`) {
		t.Errorf("after %d messages there are %d summaries\n%.2000s", turns, b.count("summary"), b.history())
	}
	if tries < 2 || tries > 6 || turns < 3*tries {
		t.Errorf("a summary was tried %d times in %d messages", tries, turns)
	}
}

// A system prompt that is long by itself is no reason to shorten a short conversation.
func TestALongPromptIsNoLongConversation(t *testing.T) {
	b := newBench(t, callHold)
	tries := 0
	m := busy(&tries)
	b.opts.Model = func(record.Model) Model { return m }
	b.opts.Window = func(record.Model) int { return 32_000 }
	b.opts.Definition = func(address.Meta, record.State) prompt.Definition {
		return prompt.Definition{Name: "n", Prompt: strings.Repeat("rule ", 21_000)}
	}
	b.run()
	for range 8 {
		b.wait(b.say(strings.Repeat("x ", 500)))
	}

	if tries != 0 || b.count("summary") != 0 {
		t.Errorf("a summary was tried %d times, and %d were made", tries, b.count("summary"))
	}
}

// Whoever asks for a summary and gets none is told why, and nothing is lost.
func TestWhyNothingWasShortened(t *testing.T) {
	for want, way := range map[string]func(b *bench, s summarizer){
		"it was stopped": func(b *bench, s summarizer) {
			<-s.asked
			b.mu.Lock()
			defer b.mu.Unlock()
			b.stop(errors.New("stopped"))
		},
		"no model could be reached to summarise it": nil,
	} {
		t.Run(want, func(t *testing.T) {
			w := summarizer{&windowed{window: 2_000_000}, make(chan string, 10), make(chan struct{})}
			b := newWindowed(t, w.windowed, &bigTool{})
			b.opts.Model = func(record.Model) Model {
				if way == nil {
					return unreachable{w.windowed}
				}
				return w
			}
			told := b.watched()
			b.run()
			for n := 1; n <= 3; n++ {
				b.wait(b.say(fmt.Sprintf("this is turn %d", n)))
			}

			r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Compact})
			if err != nil {
				t.Fatal(err)
			}
			if way != nil {
				way(b, w)
			}
			if o := b.outcome(r.Item); o.Reason != "refused" || !strings.Contains(o.Text, want) {
				t.Errorf("outcome %+v, want that %s", o, want)
			}

			within(t, "the reason is told", func() bool { return len(told.of(event.AgentCompacted)) == 1 })
			if c := told.of(event.AgentCompacted)[0].Body.(event.Compacted); c.Failed != want || c.Before == 0 {
				t.Errorf("told is %+v", c)
			}
			if n := b.count("summary"); n != 0 {
				t.Errorf("%d summaries are recorded", n)
			}
		})
	}
}

// An orderly stop leaves a summary that somebody asked for to the next start.
func TestAStopLeavesASummaryForTheNextStart(t *testing.T) {
	w := summarizer{&windowed{window: 2_000_000}, make(chan string, 10), make(chan struct{}, 1)}
	b := newWindowed(t, w.windowed, &bigTool{})
	b.opts.Model = func(record.Model) Model { return w }
	b.run()
	for n := 1; n <= 3; n++ {
		b.wait(b.say(fmt.Sprintf("this is turn %d", n)))
	}

	r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Compact})
	if err != nil {
		t.Fatal(err)
	}
	<-w.asked
	b.halt()
	if b.count("summary")+b.count("note") != 0 {
		t.Errorf("the stop is recorded as an end\n%s", b.history())
	}

	b.openBox()
	w.write <- struct{}{}
	b.run()
	if b.wait(r.Item); b.count("summary") != 1 {
		t.Errorf("%d summaries are recorded, want one", b.count("summary"))
	}
}

// A summary in the middle of a turn that a budget refuses ends the turn as the budget does.
func TestABudgetThatRefusesASummaryEndsTheTurn(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprint("the window is known: ", known), func(t *testing.T) { refusedSummary(t, known) })
	}
}

func refusedSummary(t *testing.T, known bool) {
	w := &windowed{window: 32_000}
	b := newWindowed(t, w, &bigTool{})
	if !known { // until the service refuses a request
		b.opts.Window = nil
	}
	b.opts.Model = func(record.Model) Model {
		return thinker(func(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
			if summarizing(req) {
				return nil, &providers.Failure{Kind: providers.Budget, Provider: "p",
					Err: reached{permission.Budget{Scope: permission.BudgetTotal, Unit: permission.Tokens, Limit: 10, More: 10}}}
			}
			return w.Call(ctx, req, watch)
		})
	}
	b.run()

	for n := 1; n <= 40; n++ {
		switch o := b.outcome(b.say(fmt.Sprintf("this is turn %d", n))); o.Reason {
		case record.ReasonDone:
			continue
		case record.ReasonBudget:
		default:
			t.Errorf("turn %d: %+v", n, o)
		}
		if len(b.waiting()) != 1 || b.count("summary") != 0 {
			t.Errorf("%d requests wait, %d summaries are recorded", len(b.waiting()), b.count("summary"))
		}
		return
	}

	t.Error("no turn came to the budget")
}

// A summary that is being written is progress of the turn that needs it.
func TestASummaryThatIsWrittenIsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &windowed{window: 32_000}
		b := newWindowed(t, w, &bigTool{})
		b.opts.Settings.Stuck = time.Minute
		b.opts.Model = func(record.Model) Model {
			return thinker(func(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
				for range 6 {
					if !summarizing(req) {
						break
					}
					select {
					case <-time.After(30 * time.Second):
						watch(providers.ContentDelta{Text: "x"})
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				}

				return w.Call(ctx, req, watch)
			})
		}
		b.run()

		for n := 1; b.count("summary") == 0 && n < 40; n++ {
			item := b.say(fmt.Sprintf("this is turn %d", n))
			if err := b.box.Wait(t.Context(), item); err != nil {
				t.Fatal(err)
			}
			if o := b.outcome(item); o.Reason != record.ReasonDone {
				t.Fatalf("turn %d: %+v", n, o)
			}
		}

		if n := b.count("summary"); n != 1 {
			t.Errorf("%d summaries are recorded", n)
		}
		b.halt()
	})
}

// A request that a service refuses as too long, and of which nothing can be left out, is not sent again, and no model is
// asked to shorten it.
func TestARequestThatCannotBeShortenedIsSentOnce(t *testing.T) {
	for name, tt := range map[string]struct{ tool, text int }{"a large tool": {80_000, 6000}, "a short conversation": {0, 2000}} {
		h := newHold("hold", tools.Once)
		h.spec.Description = strings.Repeat("waits and waits ", tt.tool/16)
		b := newBench(t, callHold, h)
		asked := 0
		b.opts.Model = func(record.Model) Model {
			return thinker(func(context.Context, *providers.Request, func(providers.Event)) (*providers.Response, error) {
				asked++
				return nil, &providers.Failure{Kind: providers.Overflow, Provider: "p", Err: errors.New("too long")}
			})
		}
		b.run()
		if o := b.outcome(b.say(strings.Repeat("lorem ipsum ", tt.text/12))); o.Reason != record.ReasonError {
			t.Errorf("%s: %+v", name, o)
		}
		b.halt()
		if asked != 1 {
			t.Errorf("%s: models were asked %d times", name, asked)
		}
	}
}

// A conversation that was shortened for a service, and that it still refuses later in the same turn, ends.
func TestATurnIsShortenedForAServiceOnce(t *testing.T) {
	b := newBench(t, callHold, &bigTool{})
	var asked, summaries int
	b.opts.Model = func(record.Model) Model {
		return thinker(func(_ context.Context, req *providers.Request, _ func(providers.Event)) (*providers.Response, error) {
			if summarizing(req) {
				summaries++
				return &providers.Response{Finish: providers.EndTurn, Text: (&windowed{}).summary(textOf(req))}, nil
			}
			if asked++; asked%2 == 1 {
				return nil, &providers.Failure{Kind: providers.Overflow, Provider: "p", Err: errors.New("too long")}
			}
			return &providers.Response{Finish: providers.ToolUse, Calls: []providers.ResponseCall{{RemoteID: fmt.Sprint("c", asked),
				Name: "big", Arguments: []byte(`{"n":"1"}`), Valid: true}}}, nil
		})
	}
	b.run()
	o := b.outcome(b.say(strings.Repeat("lorem ipsum ", 1000)))
	b.halt()
	if o.Reason != record.ReasonError || !strings.Contains(o.Text, "grown too long") || asked != 3 || summaries != 1 {
		t.Errorf("%+v after %d calls and %d summaries", o, asked, summaries)
	}
}

// A conversation that is still longer than the model takes, and cannot be shortened, is not sent, unless most of the
// request is what cannot be shortened anyway.
func TestWhatCannotBeShortenedIsNotSent(t *testing.T) {
	for words, reason := range map[int]string{5_000: record.ReasonDone, 9_000: record.ReasonError} {
		b := newBench(t, callHold)
		tries := 0
		m := busy(&tries)
		b.opts.Model = func(record.Model) Model { return m }
		b.opts.Window = func(record.Model) int { return 32_000 }
		b.opts.Definition = func(address.Meta, record.State) prompt.Definition {
			return prompt.Definition{Name: "n", Prompt: strings.Repeat("rule ", 30_000)}
		}
		b.run()
		o := b.outcome(b.say(strings.Repeat("word ", words)))
		b.halt()
		if o.Reason != reason || tries != 0 || reason == record.ReasonError && !strings.Contains(o.Text, "grown too long") {
			t.Errorf("%d words: %+v, summaries were tried %d times", words, o, tries)
		}
	}
}
