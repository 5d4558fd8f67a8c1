package bench

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"daycare/engine/control"
	"daycare/engine/lazyregexp"
)

// A Soak is steady work for a long time: what grows with time, and not with work,
// shows only so.
type Soak struct {
	Dir, Binary string
	For         time.Duration
	Agents      int // that are talked to all the time
	Progress    func(string)
}

const soakScript = `rules:
  - { contains: "list", round: 1, reply: [ { calls: [ { name: ls, arguments: { path: "." } } ] } ] }
  - { tool_result: ls, reply: [ { text: "listed" } ] }
  - { reply: [ { text: "ok" } ] }
`

// Run talks to the agents until the time is over: each asks, waits for the answer,
// and asks again; every fourth question makes a call. Conversations begin anew
// every 200 turns, as those of users do. Samples of what the daemon holds are taken all
// the time; the curves are theirs.
func (s Soak) Run(ctx context.Context) (rows []Row, curves []Series, err error) {
	work, err := os.MkdirTemp(s.Dir, "soak-")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err == nil {
			os.RemoveAll(work)
		}
	}()

	script := work + "/script.yaml"
	if err := os.WriteFile(script, []byte(soakScript), 0o600); err != nil {
		return nil, nil, err
	}
	d, err := launch(ctx, s.Binary, work,
		fmt.Sprintf("providers: [{id: offline, type: scripted, options: {script: %q}}]\nagents: {maxSpawned: 1000000}\n", script))
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if serr := d.stop(); err == nil {
			err = serr
		}
	}()
	before, err := d.usage(ctx)
	if err != nil {
		return nil, nil, err
	}
	w := &soaking{child: d, seen: make([]int, s.Agents)}
	begin := time.Now()
	work1, cancel := context.WithTimeout(ctx, s.For)
	defer cancel()
	var wg sync.WaitGroup
	for i := range s.Agents {
		wg.Go(func() { w.talk(ctx, work1, i) })
	}
	samples := s.sample(work1, d, begin)
	wg.Wait()
	took := time.Since(begin)
	rows, curves = w.rows(took, before, samples)
	if err := w.err(); err != nil {
		return rows, curves, err
	}
	missing, twice, err := w.check()
	rows = append(rows, Row{Name: "messages missing", Value: float64(missing)}, Row{Name: "messages taken twice", Value: float64(twice)})
	if err == nil && missing+twice > 0 {
		err = fmt.Errorf("%d messages are missing and %d were taken twice", missing, twice)
	}
	if err != nil {
		return rows, curves, err
	}
	s.Progress("what is still held when all is quiet")
	after, err := d.quiet(ctx, before)
	rows = append(rows, Row{Name: "held after it", Value: mib(after.RSS), Unit: "MiB", Note: after.held()})
	if err == nil && after.leaks(before) {
		err = fmt.Errorf("descriptors or goroutines are left over: %s; at first %s", after.held(), before.held())
	}
	return rows, curves, err
}

// A sample is what the daemon held at a time.
type sample struct {
	at time.Duration
	Usage
}

// sample looks at the daemon sixty times, evenly, and not more than once a second.
func (s Soak) sample(ctx context.Context, d *child, begin time.Time) (all []sample) {
	every := max(time.Second, s.For/60)
	for {
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return all
		}

		u, err := d.usage(ctx)
		if err != nil {
			return all
		}

		all = append(all, sample{time.Since(begin), u})
		if len(all)%10 == 0 {
			s.Progress(fmt.Sprintf("%s of %s: %.0f MiB, %s", time.Since(begin).Round(time.Second), s.For, mib(u.RSS), u.held()))
		}
	}
}

// soaking are the conversations of a soak.
type soaking struct {
	*child
	turns atomic.Int64
	seen  []int // questions asked, by agent
	mu    sync.Mutex
	first error
}

func (w *soaking) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first
}

// talk asks one agent until work is over; the last question is waited for.
func (w *soaking) talk(ctx, work context.Context, i int) {
	name := fmt.Sprintf("soak %d", i)
	a, err := w.client.Create(ctx, control.NewAgent{Name: name})
	for n := 0; err == nil && work.Err() == nil && w.err() == nil; n++ {
		text, want := fmt.Sprintf("ms%d-%d", i, n), "ok"
		if n%4 == 0 {
			text, want = text+" list", "listed"
		}
		o, aerr := w.client.Stream(ctx, a.ID, control.Message{Text: text, Dedupe: text}, func(control.RawEvent) {})
		if err = aerr; err != nil {
			break
		}

		w.seen[i] = n + 1
		if o.Reason != "done" || !strings.Contains(o.Text, want) {
			err = fmt.Errorf("question %d of %s was answered %q (%s), want %q", n, name, o.Text, o.Reason, want)
		}
		if w.turns.Add(1); n%200 == 199 && err == nil {
			_, err = w.client.Reset(ctx, a.ID)
		}
	}

	if err != nil && ctx.Err() == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.first = err
	}
}

var soakToken = lazyregexp.New(`\bms\d+-\d+\b`)

// check finds every question in the histories.
func (w *soaking) check() (missing, twice int, err error) {
	seen, err := w.count(soakToken)
	for i, asked := range w.seen {
		for n := range asked {
			switch seen[fmt.Sprintf("ms%d-%d", i, n)] {
			case 0:
				missing++
			case 1:
			default:
				twice++
			}
		}
	}

	return missing, twice, err
}

func (w *soaking) rows(took time.Duration, before Usage, samples []sample) (rows []Row, curves []Series) {
	rows = []Row{{Name: "turns", Value: float64(w.turns.Load()),
		Note: fmt.Sprintf("%.0f/s by %d agents for %s", float64(w.turns.Load())/took.Seconds(), len(w.seen), took.Round(time.Second))},
		{Name: "held before it", Value: mib(before.RSS), Unit: "MiB", Note: before.held()}}
	if len(samples) < 3 {
		return rows, nil
	}

	middle, last := samples[len(samples)/2], samples[len(samples)-1]
	rows = append(rows,
		Row{Name: "held in the middle", Value: mib(middle.RSS), Unit: "MiB", Note: middle.held()},
		Row{Name: "held at the end", Value: mib(last.RSS), Unit: "MiB", Note: last.held()},
		Row{Name: "resident, at most", Value: mib(last.Peak), Unit: "MiB"})
	memory, descriptors := Series{Name: "resident, MiB", By: "seconds"}, Series{Name: "descriptors", By: "seconds"}
	for _, s := range samples {
		memory.Points = append(memory.Points, Point{s.at.Seconds(), mib(s.RSS)})
		descriptors.Points = append(descriptors.Points, Point{s.at.Seconds(), float64(s.FDs)})
	}

	return rows, []Series{memory, descriptors}
}
