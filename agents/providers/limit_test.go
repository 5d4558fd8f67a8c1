package providers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// slow takes a second a call and notes who was served.
type slow struct {
	mu     sync.Mutex
	served []string
	now    atomic.Int32
	most   atomic.Int32
}

func (s *slow) ID() string   { return "slow" }
func (s *slow) Wire() string { return "slow" }

func (s *slow) Stream(ctx context.Context, req *Request) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		n := s.now.Add(1)
		defer s.now.Add(-1)
		if n > s.most.Load() {
			s.most.Store(n)
		}
		s.mu.Lock()
		s.served = append(s.served, req.Agent)
		s.mu.Unlock()
		sleep(ctx, time.Second)
		yield(Complete{})
	}
}

func ask(ctx context.Context, p Provider, agent string, foreground bool) (last Event) {
	for ev := range p.Stream(ctx, &Request{Agent: agent, Foreground: foreground}) {
		last = ev
	}
	return last
}

func TestLimitIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		l := Limit(s, 1)
		var wg sync.WaitGroup
		for _, one := range []struct {
			agent string
			front bool
		}{{"a", false}, {"a", false}, {"a", false}, {"a", false}, {"b", false}, {"b", false}, {"c", false}, {"f", true},
			{"f", true}, {"g", true}} {
			wg.Go(func() { ask(t.Context(), l, one.agent, one.front) })
			synctest.Wait() // they come in this order
		}

		if l.Waiting() != 9 {
			t.Errorf("%d wait, want 9", l.Waiting())
		}
		wg.Wait()
		want := []string{"a", "f", "g", "f", "a", "b", "c", "a", "b", "a"}
		if diff := cmp.Diff(want, s.served); diff != "" {
			t.Errorf("served (-want +got):\n%s", diff)
		}
	})
}

func TestLimitBoundsAndLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		l := Limit(s, 3)
		var wg sync.WaitGroup
		var gone atomic.Int32
		for i := range 200 {
			wg.Go(func() {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Duration(rand.IntN(90_000))*time.Millisecond, errors.New("tired"))
				defer cancel()
				if e, ok := ask(ctx, l, fmt.Sprint(i%7), i%5 == 0).(Error); ok {
					gone.Add(1)
					if e.Err.Error() != "tired" {
						t.Errorf("who leaves the line is told %v, want the cause", e.Err)
					}
				}
			})
		}

		wg.Wait()
		if s.most.Load() != 3 {
			t.Errorf("%d calls at once, want 3", s.most.Load())
		}
		if int(gone.Load())+len(s.served) != 200 || gone.Load() == 0 {
			t.Errorf("%d served, %d gave up", len(s.served), gone.Load())
		}

		// Nothing is left behind: all places are free again.
		if l.free != 3 || l.Waiting() != 0 || len(l.lines[0].agents)+len(l.lines[1].agents) != 0 {
			t.Errorf("%d places free, %d waiting", l.free, l.Waiting())
		}
	})
}

// Leaving the loop early gives the place back.
// However many background calls there are, one of several places is left for a
// foreground call, also as calls end.
func TestLimitKeepsAPlaceForTheForeground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		l := Limit(s, 8)
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() { ask(t.Context(), l, fmt.Sprint("child", i), false) })
		}

		for range 5 {
			synctest.Wait()
			if s.now.Load() != 7 {
				t.Errorf("%d background calls are under way, want 7 of 8", s.now.Load())
			}
			began := time.Now()
			ask(t.Context(), l, "parent", true)
			if took := time.Since(began); took != time.Second {
				t.Errorf("the foreground's call took %s, want the second that it takes", took)
			}
		}

		wg.Wait()
		if l.free != 8 || l.Waiting() != 0 {
			t.Errorf("at the end %d places are free and %d wait", l.free, l.Waiting())
		}
	})
}

func TestLimitBreak(t *testing.T) {
	l := Limit(&fake{id: "a", answers: []answer{good}}, 1)
	for range 3 {
		for range l.Stream(t.Context(), &Request{}) {
			break
		}
	}
	if l.free != 1 {
		t.Errorf("%d places free, want 1", l.free)
	}
}
