package agents

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"daycare/agents/providers"
	"daycare/engine/record"
	"daycare/tools/hooks"
)

// A turn whose messages a user takes out of history while the conversation before them is summarised ends without an answer.
func TestATurnThatIsTakenOutWhileItIsShortened(t *testing.T) {
	for _, known := range []bool{true, false} {
		w := &windowed{window: 32_000}
		b := newWindowed(t, w)
		if !known { // until the service refuses a request
			b.opts.Window = nil
		}
		b.opts.Model = func(record.Model) Model {
			return thinker(func(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error) {
				if summarizing(req) { // which is not refused
					lines := strings.SplitAfter(b.history(), "\n")
					b.edit("history.jsonl", strings.Join(slices.DeleteFunc(lines, func(line string) bool {
						return strings.Contains(line, `"type":"user_message"`) && strings.Contains(line, "the last of them")
					}), ""))
					return w.Call(ctx, req, watch)
				}
				if !known && strings.Contains(textOf(req), "the last of them") {
					return nil, &providers.Failure{Kind: providers.Overflow, Provider: "p", Err: errors.New("too long")}
				}
				return w.Call(ctx, req, watch)
			})
		}
		b.hooking(moments{hooks.BeforePrompt: always(hooks.Verdict{})}) // its note stands behind the message
		b.run()
		for range 4 {
			b.outcome(b.say(strings.Repeat("lorem ipsum ", 1500)))
		}
		if b.count("summary") != 0 {
			t.Fatal("it was summarised too early")
		}
		item := b.say("the last of them " + strings.Repeat("lorem ipsum ", 1000))
		ended := make(chan error, 1)
		go func() { ended <- b.box.Wait(t.Context(), item) }()
		select {
		case err := <-b.done:
			b.end = nil
			t.Errorf("the window is known: %v: the agent ended with %v", known, err)
			continue
		case <-ended:
		}
		o := b.outcome(item)
		if o.Reason != record.ReasonDone || o.Text != "" {
			t.Errorf("the window is known: %v: %+v", known, o)
		}
	}
}
