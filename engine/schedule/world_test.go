package schedule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
)

// A world is everything around a Scheduler: a disk, a clock that can jump, an
// engine that takes each dedupe key once.
type world struct {
	t     testing.TB
	root  string
	vol   *disk.Volume
	now   time.Time
	zone  *time.Location
	every time.Duration

	sched  *Scheduler
	ctx    context.Context
	cancel context.CancelFunc

	work     []func()       // what the Scheduler started, done one after the other
	accepted map[string]int // dedupe key -> how often it was taken as new
	offered  int
	due      func(w *world, f Firing) (Result, error) // nil: ran
	gate     GateFunc
	runs     []Run
	said     []string
	firings  []Firing
}

func newWorld(t testing.TB, zone *time.Location, now time.Time) *world {
	w := &world{t: t, root: filepath.Join(t.TempDir(), ".daycare"), zone: zone, now: now, accepted: map[string]int{}}
	if err := os.Mkdir(w.root, 0o700); err != nil {
		t.Fatal(err)
	}
	w.vol = disk.NewVolume(w.root)
	w.start()
	return w
}

// TestMain has the files in memory: a world lives through millions of barriers.
func TestMain(m *testing.M) {
	os.Setenv("TMPDIR", crashtest.Memory())
	m.Run()
}

// start makes a Scheduler as a new process would.
func (w *world) start() {
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.work = nil
	w.sched = New(Options{
		Store: &Store{Root: w.root, Volume: w.vol, Now: func() time.Time { return w.now },
			Zone: func() *time.Location { return w.zone }, Every: func() time.Duration { return w.every },
			Hours: func() Hours { return Hours{} }},
		Workspace: filepath.Dir(w.root), Gate: w.gate,
		Target: func(_ context.Context, f Firing) (string, error) { return "agent", nil },
		Due:    func(_ context.Context, f Firing) (Result, error) { return w.take(f) },
		OnRun: func(f Firing, r Run) {
			if r.Outcome != "" {
				w.runs = append(w.runs, r)
			}
		},
		Say: func(_ context.Context, _, text string) error { w.said = append(w.said, text); return nil },
	})
	w.sched.spawn = func(f func()) { w.work = append(w.work, f) }
}

func (w *world) take(f Firing) (Result, error) {
	if w.ctx.Err() != nil {
		return Result{}, w.ctx.Err()
	}
	w.offered++
	if w.due != nil {
		if res, err := w.due(w, f); err != nil || res.Outcome != "" {
			return res, err
		}
	}
	w.accept(f)

	return Result{Outcome: Ran, Item: "item"}, nil
}

func (w *world) accept(f Firing) {
	if w.accepted[f.Dedupe] == 0 {
		w.accepted[f.Dedupe]++
		w.firings = append(w.firings, f)
	}
}

var errCrash = errors.New("the process died")

// crash is what a Due returns when the process dies in it.
func (w *world) crash() (Result, error) {
	w.cancel()
	return Result{}, errCrash
}

// settle does all that is due at this moment.
func (w *world) settle() (next time.Time) {
	for {
		next = w.sched.step(w.ctx, w.now)
		if len(w.work) == 0 || w.ctx.Err() != nil {
			return next
		}
		work := w.work
		w.work = nil
		for _, f := range work {
			f()
		}
	}
}

// until lets time pass, waking when the Scheduler asks to.
func (w *world) until(end time.Time) {
	for {
		next := w.settle()
		if w.ctx.Err() != nil {
			w.start()
			continue
		}
		if next.IsZero() || next.After(end) {
			w.now = end
			w.settle()
			return
		}
		w.now = later(next, w.now)
	}
}

func (w *world) write(path, text string) {
	w.t.Helper()
	dir := filepath.Dir(w.root)
	if strings.HasPrefix(path, "cron/") || strings.HasPrefix(path, "heartbeat/") {
		dir = w.root
	}
	path = filepath.Join(dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chtimes(path, w.now, w.now); err != nil {
		w.t.Fatal(err)
	}

	w.sched.Changed()
}

func (w *world) task(slug, keys string) {
	w.write("cron/"+slug+"/TASK.md", "---\n"+keys+"\n---\nDo it.\n")
}

// lines are the ledger of a task as it stands on disk, all of it: a rotated ledger
// begins with the lines that the closed one ends with.
func (w *world) lines(path string) []line {
	w.t.Helper()
	path = filepath.Join(w.root, path)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "runs", "*.jsonl")) // sorted
	if err != nil {
		w.t.Fatal(err)
	}

	seen := map[string]bool{}
	var all []line
	for _, file := range append(files, path) {
		data, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			w.t.Fatal(err)
		}

		for text := range strings.Lines(string(data)) {
			if !seen[text] {
				all = append(all, decodeLines([]byte(text))...)
			}
			seen[text] = true
		}
	}

	return all
}

// nominal are the slots that a task should have had, from its ledger's first line.
func nominal(t Task, lines []line, until time.Time) []time.Time {
	from := *lines[0].From
	var all []time.Time
	for at, ok := t.When.Next(from, from); ok && !at.After(until); at, ok = t.When.Next(at, from) {
		all = append(all, at)
	}
	return all
}

func key4(t Task, slot time.Time) string {
	return fmt.Sprintf("cron:%s/%s", t.ID, slot.UTC().Format(time.RFC3339))
}
