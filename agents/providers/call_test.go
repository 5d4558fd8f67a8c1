package providers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A fake answers call after call from a list; the last one is repeated.
type fake struct {
	id      string
	answers []answer
	calls   int
	models  []string // that were asked for
}

type answer []Event

func (f *fake) ID() string   { return f.id }
func (f *fake) Wire() string { return "fake" }

func (f *fake) Stream(ctx context.Context, req *Request) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		a := f.answers[min(f.calls, len(f.answers)-1)]
		f.calls++
		f.models = append(f.models, req.Model)
		for _, ev := range a {
			if ctx.Err() != nil {
				yield(Error{context.Cause(ctx)})
				return
			}
			if !yield(ev) {
				return
			}
		}
	}
}

func fails(kind Kind, status int, after time.Duration) answer {
	return answer{Error{&Failure{Kind: kind, Provider: "f", Status: status, RetryAfter: after}}}
}

var good = answer{ContentDelta{"Hi."}, Complete{Finish: EndTurn, Usage: Usage{Input: 1, Output: 1}, Model: "m"}}

// notes runs one call and returns what a watcher is told of retries, and when.
func notes(t *testing.T, chain ...Provider) (r *Response, lines []string, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		c := Caller{Chain: chain}
		r, err = c.Call(t.Context(), &Request{Model: "first's"}, func(ev Event) {
			if n, ok := ev.(Retry); ok {
				lines = append(lines, fmt.Sprintf("%d/%d status %d fallback %q discard %v", n.N, n.Of, n.Status, n.Fallback, n.Discard))
				if want := firstDelay << (n.N - 1); n.Fallback == "" && len(chain) == 1 && n.Status == 429 &&
					(n.In < want*8/10 || n.In > want*12/10) {
					t.Errorf("retry %d waits %v, want %v ± 20 %%", n.N, n.In, want)
				}
			}
		})
		lines = append(lines, fmt.Sprintf("end after about %v", time.Since(start).Round(10*time.Second)))
	})

	return r, lines, err
}

func TestRetryUntilTheEnd(t *testing.T) {
	p := &fake{id: "a", answers: []answer{fails(Busy, 429, 0)}}
	_, lines, err := notes(t, p)
	if p.calls != 8 {
		t.Errorf("%d requests, want 8", p.calls)
	}
	var f *Failure
	if !errors.As(err, &f) || f.Status != 429 {
		t.Errorf("error %v, want the last failure", err)
	}
	if len(lines) != 8 || lines[1] != `2/8 status 429 fallback "" discard false` {
		t.Errorf("notes:\n%s", strings.Join(lines, "\n"))
	}
}

// A server of this machine that does not run is asked once more and no further; the
// rest of the requests is for the next provider.
func TestServerThatIsDownIsAskedTwice(t *testing.T) {
	p := &fake{id: "a", answers: []answer{fails(Down, 0, 0)}}
	_, lines, err := notes(t, p)
	var f *Failure
	if p.calls != 2 || !errors.As(err, &f) || f.Kind != Down || lines[0] != `1/2 status 0 fallback "" discard false` {
		t.Errorf("%d requests, %v\n%s", p.calls, err, strings.Join(lines, "\n"))
	}
	a, b := &fake{id: "a", answers: []answer{fails(Down, 0, 0)}}, &fake{id: "b", answers: []answer{good}}
	if r, lines, err := notes(t, a, b); err != nil || r.Provider != "b" || a.calls != 2 || b.calls != 1 {
		t.Errorf("%+v, %v after %d and %d requests\n%s", r, err, a.calls, b.calls, strings.Join(lines, "\n"))
	}
}

func TestRetrySucceeds(t *testing.T) {
	p := &fake{id: "a", answers: []answer{
		fails(Broken, 0, 0), {ContentDelta{"half an ans"}, Error{&Failure{Kind: Broken}}}, fails(Busy, 529, 7*time.Second), good,
	}}
	r, lines, err := notes(t, p)
	if err != nil || r.Text != "Hi." || r.Provider != "a" || r.Model != "m" {
		t.Errorf("got %+v, %v; the half answer must be gone", r, err)
	}

	want := []string{
		`1/8 status 0 fallback "" discard false`,
		`2/8 status 0 fallback "" discard true`,
		`3/8 status 529 fallback "" discard false`,
		"end after about 10s",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRetryAfterWins(t *testing.T) {
	p := &fake{id: "a", answers: []answer{fails(Busy, 503, 4*time.Minute), good}}
	_, lines, err := notes(t, p)
	if err != nil || lines[1] != "end after about 4m0s" {
		t.Errorf("%v, notes %q", err, lines)
	}
}

func TestFallback(t *testing.T) {
	a := &fake{id: "a", answers: []answer{fails(Busy, 429, 0)}}
	b := &fake{id: "b", answers: []answer{fails(Broken, 0, 0), good}}
	r, lines, err := notes(t, a, b)
	if err != nil || r.Provider != "b" || a.calls != 4 || b.calls != 2 {
		t.Errorf("%+v, %v after %d and %d requests, want 4 and 2", r, err, a.calls, b.calls)
	}
	if diff := cmp.Diff([]string{"", ""}, b.models); diff != "" {
		t.Errorf("the second provider was asked for the first one's model: %v", b.models)
	}
	if len(lines) < 4 || lines[3] != `4/8 status 429 fallback "b" discard false` {
		t.Errorf("notes:\n%s", strings.Join(lines, "\n"))
	}
}

func TestBoundOverTheChain(t *testing.T) {
	for n := 1; n <= 10; n++ {
		var chain []Provider
		for i := range n {
			chain = append(chain, &fake{id: fmt.Sprint(i), answers: []answer{fails(Busy, 429, 0)}})
		}
		_, _, err := notes(t, chain...)
		sum := 0
		for _, p := range chain {
			sum += p.(*fake).calls
		}
		if sum != MaxRequests || err == nil {
			t.Errorf("chain of %d: %d requests, %v", n, sum, err)
		}
	}
}

func TestLongRetryAfterIsNotWaitedFor(t *testing.T) {
	a := &fake{id: "a", answers: []answer{fails(Busy, 429, time.Hour)}}
	b := &fake{id: "b", answers: []answer{good}}
	r, lines, err := notes(t, a, b)
	if err != nil || r.Provider != "b" || a.calls != 1 || lines[1] != "end after about 0s" {
		t.Errorf("%+v, %v, %d requests, notes %q", r, err, a.calls, lines)
	}
	a.calls = 0
	if _, _, err := notes(t, a); err == nil || a.calls != 1 {
		t.Errorf("alone: %v after %d requests, want its failure at once", err, a.calls)
	}
}

func TestOtherErrorsReturnAtOnce(t *testing.T) {
	for _, kind := range []Kind{Auth, Overflow, Rejected} {
		a := &fake{id: "a", answers: []answer{fails(kind, 400, 0)}}
		b := &fake{id: "b", answers: []answer{good}}
		_, lines, err := notes(t, a, b)
		var f *Failure
		if !errors.As(err, &f) || f.Kind != kind || b.calls != 0 || len(lines) != 1 {
			t.Errorf("%s: %v, second asked %d times, notes %q", kind, err, b.calls, lines)
		}
	}
}

func TestEmptyAnswer(t *testing.T) {
	empty := answer{ThinkingDelta{Text: "hm"}, Complete{Finish: EndTurn}}
	p := &fake{id: "a", answers: []answer{empty, good}}
	if r, _, err := notes(t, p); err != nil || r.Text != "Hi." {
		t.Errorf("%+v, %v", r, err)
	}
	p = &fake{id: "a", answers: []answer{empty}}
	_, _, err := notes(t, p)
	if !errors.Is(err, ErrEmpty) || p.calls != 3 {
		t.Errorf("%v after %d requests, want ErrEmpty after 3", err, p.calls)
	}

	for _, whole := range []answer{
		{Complete{Finish: Refusal}}, {Complete{Finish: MaxTokens}},
		{ToolUseStart{"1", "n"}, ToolUseStop{"1", "{}"}, Complete{Finish: ToolUse}},
	} {
		p = &fake{id: "a", answers: []answer{whole}}
		if _, _, err := notes(t, p); err != nil || p.calls != 1 {
			t.Errorf("%v: %v after %d requests", whole, err, p.calls)
		}
	}
}

func TestCancelWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		c := Caller{Chain: []Provider{&fake{id: "a", answers: []answer{fails(Busy, 429, time.Minute)}}}}
		time.AfterFunc(time.Second, func() { cancel(why) })
		_, err := c.Call(ctx, &Request{}, nil)
		if !errors.Is(err, why) || time.Since(start) != time.Second {
			t.Errorf("%v after %v, want the cause after 1 s", err, time.Since(start))
		}
	})
}

func TestResponse(t *testing.T) {
	p := &fake{id: "a", answers: []answer{{
		ThinkingDelta{Text: "One "}, ThinkingDelta{Text: "block."}, ThinkingDelta{Signature: "s1"},
		ThinkingDelta{Signature: "redacted:x"}, ThinkingDelta{Text: "Open."},
		ContentDelta{"Te"}, ContentDelta{"xt"},
		ToolUseStart{"r1", "read"}, ToolUseStart{"r2", "list"}, ToolUseDelta{"r1", `{"a"`}, ToolUseDelta{"r1", `:1}`},
		ToolUseStop{"r2", ""}, ToolUseStop{"r1", `{"a":1}`},
		ToolUseStart{"r3", "bad"}, ToolUseStop{"r3", `{"a":`},
		ToolUseStart{"r4", "list"}, ToolUseStop{"r4", `["a"]`},
		Complete{Finish: ToolUse},
	}}}
	r, _, err := notes(t, p)
	if err != nil {
		t.Fatal(err)
	}

	want := &Response{
		Text: "Text",
		Thinking: []Reasoning{
			{Text: "One block.", Signature: "s1", Provider: "a"}, {Signature: "redacted:x", Provider: "a"}, {Text: "Open.", Provider: "a"},
		},
		Calls: []ResponseCall{
			{RemoteID: "r1", Name: "read", Arguments: []byte(`{"a":1}`), Valid: true},
			{RemoteID: "r2", Name: "list", Arguments: []byte(`{}`), Valid: true},
			{RemoteID: "r3", Name: "bad", Arguments: []byte(`{"a":`)},
			{RemoteID: "r4", Name: "list", Arguments: []byte(`["a"]`)},
		},
		Finish:   ToolUse,
		Usage:    Usage{Output: 14, Estimated: true},
		Provider: "a",
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What came of a stream without an end was paid for, and so was an empty answer; what
// was refused was not.
func TestWhatWasPaidForInVainIsTold(t *testing.T) {
	p := &fake{id: "a", answers: []answer{
		fails(Busy, 429, 0),
		{ContentDelta{"12345678"}, Error{&Failure{Kind: Broken}}},
		{Complete{Finish: EndTurn, Usage: Usage{Input: 7, Output: 1}, Model: "m-1"}},
		{ThinkingDelta{Text: "hm, hm"}},
		good,
	}}
	var told []string
	synctest.Test(t, func(t *testing.T) {
		c := Caller{Chain: []Provider{p}}
		if _, err := c.Call(t.Context(), &Request{Model: "m", System: "1234"}, func(ev Event) {
			switch ev := ev.(type) {
			case Asking, Wasted:
				told = append(told, fmt.Sprintf("%T%v", ev, ev))
			}
		}); err != nil {
			t.Fatal(err)
		}
	})

	want := []string{"providers.Asking{a m}", "providers.Asking{a m}", "providers.Wasted{a m {1 2 0 0 0 true}}",
		"providers.Asking{a m}", "providers.Wasted{a m-1 {7 1 0 0 0 false}}",
		"providers.Asking{a m}", "providers.Wasted{a m {1 2 0 0 0 true}}", "providers.Asking{a m}"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}
