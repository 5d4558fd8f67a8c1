package message

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Results are taken in the order in which they came, each once; those that could not be
// recorded come first again.
func TestResultsKeepTheirOrder(t *testing.T) {
	f := NewResults()
	outs := func(list []Result) (all string) {
		for _, result := range list {
			all += result.Out
		}
		return all
	}
	if f.Len() != 0 || f.Has("a") || len(f.Take()) != 0 {
		t.Error("there is something at the beginning")
	}

	f.Put(Result{Out: "a"})
	f.Put(Result{Out: "b"})
	if f.Len() != 2 || !f.Has("a") || !f.Has("b") || f.Has("c") {
		t.Errorf("%d came", f.Len())
	}

	select {
	case <-f.Arrived():
	default:
		t.Error("nobody is told that results came")
	}
	taken := f.Take()
	f.Put(Result{Out: "c"})
	f.Return(taken)
	f.Put(Result{Out: "d"})
	if got := outs(f.Take()); got != "abcd" || f.Len() != 0 || f.Has("a") {
		t.Errorf("taken were %s, %d are left", got, f.Len())
	}
	if taken[0].Out != "a" || len(taken) != 2 {
		t.Errorf("what was returned became %v", taken)
	}
}

// No result is lost or doubled between many who put and one who takes.
func TestResultsFromManySides(t *testing.T) {
	const many, each = 8, 200
	f := NewResults()
	var wg sync.WaitGroup
	for n := range many {
		wg.Go(func() {
			for i := range each {
				f.Put(Result{Out: fmt.Sprint(n), Part: i})
			}
		})
	}

	next, got := map[string]int{}, 0
	for deadline := time.After(time.Minute); got < many*each; {
		select {
		case <-f.Arrived():
		case <-deadline:
			t.Fatalf("%d of %d came", got, many*each)
		}

		for _, result := range f.Take() {
			if result.Part != next[result.Out] {
				t.Fatalf("of %s came %d, want %d", result.Out, result.Part, next[result.Out])
			}
			next[result.Out]++
			got++
		}
	}

	wg.Wait()
	if f.Len() != 0 {
		t.Errorf("%d came twice", f.Len())
	}
}

func TestWhatAnAnswerIsCalled(t *testing.T) {
	for key, out := range map[string]Outgoing{"a": {ID: "a"}, "b": {ID: "b", Part: 0, Parts: 1}, "c.0": {ID: "c", Parts: 2},
		"d.2": {ID: "d", Part: 2, Parts: 3}} {
		if out.Key() != key {
			t.Errorf("%+v is %s, want %s", out, out.Key(), key)
		}
	}

	for _, tt := range []struct {
		result    Result
		delivered bool
	}{
		{Result{}, true}, {Result{Error: "x"}, false}, {Result{Kept: true}, false},
		{Result{Error: "x", Kept: true}, false}, {Result{Retry: true}, true},
	} {
		if tt.result.Delivered() != tt.delivered {
			t.Errorf("%+v is delivered: %v", tt.result, !tt.delivered)
		}
	}
}

// Who writes too fast is told a time after which there is room.
func TestErrorsOfDelivering(t *testing.T) {
	for after, seconds := range map[time.Duration]int{0: 1, 400 * time.Millisecond: 1, time.Second: 2, 90 * time.Second: 91} {
		if e := (&TooFast{after}); e.Seconds() != seconds || time.Duration(e.Seconds())*time.Second < after || e.Error() == "" {
			t.Errorf("%v is %d seconds, want %d", after, e.Seconds(), seconds)
		}
	}
	cause := errors.New("blocked")
	var err error = &NotSent{Final: true, Err: cause}
	if !errors.Is(err, cause) || err.Error() != "blocked" {
		t.Errorf("%v", err)
	}
}

// What an agent read is named with it, bounded in length.
func TestRelayed(t *testing.T) {
	if got := Relayed("Ops", nil); got != "" {
		t.Errorf("nothing was read: %q", got)
	}
	if got := Relayed("Ops", []string{"mail of eve", "a page"}); got != "agent Ops, which read mail of eve, a page" {
		t.Errorf("%q", got)
	}

	long := Relayed("Ops", slices.Repeat([]string{strings.Repeat("ä", 50)}, 20))
	if n := len([]rune(long)); n != maxRelayed || !strings.HasPrefix(long, "agent Ops, which read ä") {
		t.Errorf("%d characters: %q", n, long)
	}

	for text, want := range map[string]string{"x <!-- untrusted: mail": "a text that was cut",
		"x <!-- untrusted: a --> y <!-- untrusted: b": "a; a text that was cut"} {
		if got := SourceOf(text); got != want {
			t.Errorf("%q comes from %q, want %q", text, got, want)
		}
	}
}
