package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/agents"
	"daycare/agents/providers"
)

// instant is a model that answers at once: what is left is daycare's own time.
type instant struct{ text string }

func (instant) ID() string   { return "instant" }
func (instant) Wire() string { return "instant" }

func (m instant) Stream(_ context.Context, req *providers.Request) iter.Seq[providers.Event] {
	return func(yield func(providers.Event) bool) {
		for _, msg := range req.Messages { // as a wire does: every message has its encoded form
			msg.Encoded("instant", func(*providers.Message) []byte { return []byte{} })
		}
		if yield(providers.ContentDelta{Text: m.text}) {
			yield(providers.Complete{Finish: providers.EndTurn, Usage: providers.Usage{Input: 1, Output: 1}, Model: "instant"})
		}
	}
}

// A Place is where agents are while something is measured.
type Place struct {
	Dir  string // a folder is made in it
	Join Join   // nil: the agents are on this machine alone
	// Beside are the processes that work for these agents beside this one.
	Beside func() []int
}

// spent is the processor time of all processes that work for the agents.
func (p Place) spent() (sum time.Duration, err error) {
	pids := []int{os.Getpid()}
	if p.Beside != nil {
		pids = append(pids, p.Beside()...)
	}
	for _, pid := range pids {
		one, err := cpuTime(pid)
		if err != nil {
			return 0, err
		}
		sum += one
	}

	return sum, nil
}

// A Load is the result of a measurement of messages or turns.
type Load struct {
	Rate     float64 // turns a second
	P50, P99 time.Duration
	Spent    time.Duration // processor time of a turn, of the model and of who asks, too; 0 where it cannot be told
	Resident int64         // this process in bytes while all agents are in memory; 0 where it cannot be told
}

// Accept measures how fast messages become durable in the inboxes of n agents, each
// from a sender of its own, while no agent works.
func Accept(ctx context.Context, at Place, n int, d time.Duration) (rate float64, p50, p99 time.Duration, err error) {
	return inWorld(at, func(w *World) (float64, time.Duration, time.Duration, error) {
		ids, err := w.Agents(ctx, n)
		if err != nil {
			return 0, 0, 0, err
		}
		var warm sync.WaitGroup
		for _, id := range ids { // the first message of each opens its files
			warm.Go(func() { w.Say(ctx, id, "first") })
		}

		warm.Wait()
		return spread(ctx, ids, d, func(ctx context.Context, id string) error {
			_, err := w.Say(ctx, id, "a message of a usual length, which says what somebody wants")
			return err
		})
	}, false)
}

// Turns measures whole turns of n agents on a model that answers at once: each
// asks, waits for the answer, and asks again.
func Turns(ctx context.Context, at Place, n, each int) (l Load, err error) {
	l.Rate, l.P50, l.P99, err = inWorld(at, func(w *World) (float64, time.Duration, time.Duration, error) {
		ids, err := w.Agents(ctx, n)
		if err != nil {
			return 0, 0, 0, err
		}
		before, err := at.spent()
		if err != nil {
			return 0, 0, 0, err
		}
		times := make([][]time.Duration, n)
		errs := make([]error, n)
		begin := time.Now()
		var wg sync.WaitGroup
		for i, id := range ids {
			wg.Go(func() {
				for range each {
					at := time.Now()
					if o, err := w.Ask(ctx, id, "hello"); err != nil || o.Reason != "done" {
						errs[i] = fmt.Errorf("turn: %s: %w", o.Reason, err)
						return
					}
					times[i] = append(times[i], time.Since(at))
				}
			})
		}

		wg.Wait()
		took := time.Since(begin)
		l.Resident = rss()
		after, err := at.spent()
		if err = errors.Join(append(errs, err)...); err != nil {
			return 0, 0, 0, err
		}

		all := slices.Concat(times...)
		l.Spent = (after - before) / time.Duration(len(all))
		slices.Sort(all)
		return float64(len(all)) / took.Seconds(), quantile(all, 0.5), quantile(all, 0.99), nil
	}, true)

	return l, err
}

// Overhead measures one agent's turn with a context of the given size, over a model
// that answers at once.
func Overhead(ctx context.Context, dir string, contextBytes, turns int) (p50, p99 time.Duration, err error) {
	_, p50, p99, err = inWorld(Place{Dir: dir}, func(w *World) (float64, time.Duration, time.Duration, error) {
		ids, err := w.Agents(ctx, 1)
		if err != nil {
			return 0, 0, 0, err
		}
		const piece = 1000
		for i := 0; i < contextBytes/piece; i++ {
			if _, err := w.Ask(ctx, ids[0], strings.Repeat("word ", piece/5)); err != nil {
				return 0, 0, 0, err
			}
		}

		var all []time.Duration
		for range turns {
			at := time.Now()
			if _, err := w.Ask(ctx, ids[0], "hello"); err != nil {
				return 0, 0, 0, err
			}
			all = append(all, time.Since(at))
		}

		slices.Sort(all)
		return 0, quantile(all, 0.5), quantile(all, 0.99), nil
	}, true)

	return p50, p99, err
}

func inWorld(at Place, f func(*World) (float64, time.Duration, time.Duration, error),
	running bool) (float64, time.Duration, time.Duration, error) {
	work, err := os.MkdirTemp(at.Dir, "bench-")
	if err != nil {
		return 0, 0, 0, err
	}
	defer os.RemoveAll(work)
	w, err := NewWorldWith(work, at.Join, instant{"ok"}, agents.Followup)
	if err != nil {
		return 0, 0, 0, err
	}
	if running {
		w.Run()
	} else {
		w.Hold()
	}

	rate, p50, p99, err := f(w)
	if cerr := w.Close(); err == nil {
		err = cerr
	}

	return rate, p50, p99, err
}

// spread calls f for each id from a goroutine of its own, again and again for d.
func spread(ctx context.Context, ids []string, d time.Duration,
	f func(context.Context, string) error) (rate float64, p50, p99 time.Duration, err error) {
	end := time.Now().Add(d)
	times := make([][]time.Duration, len(ids))
	errs := make([]error, len(ids))
	begin := time.Now()
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			for time.Now().Before(end) && errs[i] == nil && len(times[i]) < 900 { // an inbox holds 1,000
				at := time.Now()
				errs[i] = f(ctx, id)
				times[i] = append(times[i], time.Since(at))
			}
		})
	}

	wg.Wait()
	took := time.Since(begin)
	for _, err := range errs {
		if err != nil {
			return 0, 0, 0, err
		}
	}

	all := slices.Concat(times...)
	slices.Sort(all)
	return float64(len(all)) / took.Seconds(), quantile(all, 0.5), quantile(all, 0.99), nil
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// rss is the resident memory of this process in bytes; 0 where it cannot be told.
func rss() int64 {
	if runtime.GOOS != "linux" {
		return 0
	}
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}

	var size, resident int64
	if _, err := fmt.Sscan(string(data), &size, &resident); err != nil {
		return 0
	}

	return resident * int64(os.Getpagesize())
}
