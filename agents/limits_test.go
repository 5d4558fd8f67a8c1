package agents

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/record"
)

// A turn ends as one that is stuck after its limit without progress. A tool that runs, or a
// wait that is known beforehand, does not count as standing still.
func TestATurnWithoutProgressIsStuck(t *testing.T) {
	const limit = time.Minute
	for name, tt := range map[string]struct {
		during func(p *progress)
		ends   time.Duration
	}{
		"nothing happens":            {func(*progress) {}, limit},
		"an event":                   {func(p *progress) { time.Sleep(40 * time.Second); p.tick() }, 40*time.Second + limit},
		"a wait before the next try": {func(p *progress) { p.pause(2 * time.Minute) }, 2*time.Minute + limit},
		"a long tool":                {func(p *progress) { free := p.hold(); time.Sleep(time.Hour); free() }, time.Hour + limit},
		"two tools beside each other": {func(p *progress) {
			one, two := p.hold(), p.hold()
			time.Sleep(time.Hour)
			one()
			time.Sleep(time.Hour)
			two()
		}, 2*time.Hour + limit},
		"an event beside a tool": {func(p *progress) {
			free := p.hold()
			p.tick()
			time.Sleep(time.Hour)
			free()
		}, time.Hour + limit},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				ctx, p := watchProgress(t.Context(), limit)
				defer p.stop()
				tt.during(p)

				select {
				case <-ctx.Done():
				case <-time.After(24 * time.Hour):
				}
				if took := time.Since(begin); took != tt.ends || !errors.Is(context.Cause(ctx), errStuck) {
					t.Errorf("the turn ended after %v because of %v, want after %v as stuck", took, context.Cause(ctx), tt.ends)
				}
			})
		})
	}
}

// A turn that is over was not stuck, however late somebody looks.
func TestATurnThatIsOverWasNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, p := watchProgress(t.Context(), time.Minute)
		p.stop()
		if err := ctx.Err(); err == nil {
			t.Error("what works for the turn goes on after its end")
		}
		time.Sleep(time.Hour)
		if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
			t.Errorf("the turn ended because of %v", cause)
		}
	})
}

// The same call with the same result goes in circles when it comes the fifth time among
// the newest ten, whatever is between.
func TestWhatGoesInCircles(t *testing.T) {
	for calls, circle := range map[string]int{ // at which call; 0: none
		"aaaa":           0,
		"aaaaa":          5,
		"abababab":       0,
		"ababababa":      9,
		"abcabcabcabca":  0, // only four of the newest ten are the same
		"aaaabcdefgha":   0, // the first ones are too long ago
		"abcdefaghaiaaa": 14,
	} {
		var g loopGuard
		at := 0
		for i, c := range calls {
			r := &record.ToolResult{Status: record.StatusOK, Output: record.Output{Text: "result"}}
			if g.again(record.ToolCall{Name: "read", Arguments: []byte(fmt.Sprintf(`{"path":"%c"}`, c))}, r) && at == 0 {
				at = i + 1
			}
		}
		if at != circle {
			t.Errorf("%s: a circle is seen at call %d, want %d", calls, at, circle)
		}
	}
}

// A call is the same only with the same tool, arguments, status and output.
func TestCallsThatDifferAreNoCircle(t *testing.T) {
	var g loopGuard
	for _, tt := range []struct {
		name, args, text string
		status           record.Status
	}{
		{"read", `{"a":1}`, "x", record.StatusOK}, {"list", `{"a":1}`, "x", record.StatusOK}, {"read", `{"a":2}`, "x", record.StatusOK},
		{"read", `{"a":1}`, "y", record.StatusOK}, {"read", `{"a":1}`, "x", record.StatusError},
	} {
		r := &record.ToolResult{Status: tt.status, Output: record.Output{Text: tt.text}}
		if g.again(record.ToolCall{Name: tt.name, Arguments: []byte(tt.args)}, r) {
			t.Errorf("%+v is taken for the same as the calls before it", tt)
		}
	}
}
