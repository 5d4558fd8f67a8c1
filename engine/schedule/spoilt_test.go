package schedule

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// Lines of a ledger that a hand has made, or that begin in the middle of what happened, say no
// more than they do, and never end the program.
func TestLinesThatSayTooLittle(t *testing.T) {
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	slot := func(minutes int) *time.Time { t := at(minutes); return &t }
	for name, tt := range map[string]struct {
		first line
		want  time.Time // every slot up to here counts as noted
	}{
		"a slot":                {line{Slot: slot(-5), At: at(-2), Outcome: Ran}, at(-5)},
		"a slot that was late":  {line{Slot: slot(-5), At: at(-2), Outcome: Ran, Via: ViaCatchUp}, at(-5)},
		"a firing":              {line{Firing: slot(-5), At: at(-2)}, at(-5)},
		"a run by hand":         {line{Slot: slot(-5), At: at(-2), Outcome: Ran, Via: ViaHand}, at(-2)},
		"a look":                {line{At: at(-2), Hash: "x", Reason: "watching begins"}, at(-2)},
		"an outcome of nothing": {line{At: at(-2), Outcome: Ran}, at(-2)},
		"a slot without an end": {line{Slot: slot(-5), At: at(-2)}, at(-5)},
		"a time to come":        {line{At: at(2), Hash: "x"}, noon},
	} {
		st := fold([]line{tt.first}, noon)
		if !st.cursor.Equal(tt.want) {
			t.Errorf("%s: counted from %v, want %v", name, st.cursor, tt.want)
		}
		if ended := tt.first.Slot != nil && tt.first.Outcome != ""; (st.last != nil) != ended ||
			len(runsOf([]line{tt.first})) > 0 != (ended || tt.first.Firing != nil) {
			t.Errorf("%s: the newest run is %+v of %+v", name, st.last, runsOf([]line{tt.first}))
		}
	}
	if st := fold(nil, noon); !st.cursor.IsZero() || st.last != nil {
		t.Errorf("of nothing: %+v", st)
	}
}

// A run does what the file says when it begins; a file that is broken or another task's by then
// changes nothing.
func TestARunDoesWhatTheFileSaysThen(t *testing.T) {
	const id = "taskId: tz4a98xxat96iws9zmbrgj3a\n"
	for name, tt := range map[string]struct{ text, want string }{
		"edited":         {"---\n" + id + "every: 10m\n---\nDo that.\n", "Do that."},
		"broken":         {"---\n" + id + "every: often\n---\nDo that.\n", "Do it."},
		"another's":      {"---\ntaskId: tz4a98xxat96iws9zmbrgj3b\nevery: 10m\n---\nDo that.\n", "Do it."},
		"not as before":  {"---\n" + id + "every: 20m\n---\nDo that.\n", "Do that."},
		"without its id": {"---\nevery: 10m\n---\nDo that.\n", "Do it."},
		"gone":           {"", "Do it."},
	} {
		w := newWorld(t, time.UTC, noon)
		w.task("t", id+"every: 10m")
		w.settle()
		w.now = noon.Add(10 * time.Minute)
		w.sched.step(w.ctx, w.now)
		work := w.work
		w.work = nil
		path := filepath.Join(w.root, "cron/t/TASK.md")
		err := os.WriteFile(path, []byte(tt.text), 0o600)
		if tt.text == "" {
			err = os.Remove(path)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range work {
			f()
		}
		if len(w.firings) != 1 || w.firings[0].Prompt != tt.want {
			t.Errorf("%s: fired %+v, want %q", name, w.firings, tt.want)
		}
	}
}

// What a file says counts at once, unless it is broken: then what it said before, if that was read.
func TestWhatIsInForceBeforeTheNextLook(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	const id = "taskId: tz4a98xxat96iws9zmbrgj3a\n"
	w.task("t", id+"every: 10m\nname: old")
	w.settle()
	w.task("t", id+"every: 20m\nname: new")
	w.task("u", "every: often\nname: broken")
	if e, err := w.sched.Task("t"); err != nil || e.Name != "new" || len(e.Found) > 0 {
		t.Errorf("edited, it is %+v, %v", e, err)
	}
	if e, err := w.sched.Task("u"); err != nil || e.Slug != "u" || e.Name != "broken" || finding.Join(e.Found) == nil {
		t.Errorf("broken from the beginning, it is %+v, %v", e, err)
	}
	w.task("t", id+"every: often\nname: broken")
	if e, err := w.sched.Task("t"); err != nil || e.Name != "old" || finding.Join(e.Found) == nil {
		t.Errorf("broken now, it is %+v, %v", e, err)
	}
}

// A task that the loop has not read yet is not a copy of one that it has; what runs already is the
// original of two, however old the file is.
func TestWhichOfTwoIsTheCopy(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	const id = "taskId: tz4a98xxat96iws9zmbrgj3a\n"
	if err := os.MkdirAll(filepath.Join(w.root, "cron/empty"), 0o700); err != nil { // one that is being made
		t.Fatal(err)
	}
	w.task("runs", id+"every: 10m")
	w.settle()
	w.task("other", "taskId: tz4a98xxat96iws9zmbrgj3b\nevery: 10m")
	w.task("none", "every: 10m")
	for _, slug := range []string{"other", "none"} {
		if e, err := w.sched.Task(slug); err != nil || len(e.Found) > 0 || len(e.Next) != 3 {
			t.Errorf("%s, which was not read yet: %+v, %v", slug, e, err)
		}
	}
	w.task("copy", id+"every: 10m")
	old := noon.Add(-48 * time.Hour)
	if err := os.Chtimes(filepath.Join(w.root, "cron/copy/TASK.md"), old, old); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"before the next look", "after it"} {
		if e, err := w.sched.Task("copy"); err != nil || finding.Join(e.Found) == nil || len(e.Next) != 0 {
			t.Errorf("the copy %s: %+v, %v", when, e, err)
		}
		if e, err := w.sched.Task("runs"); err != nil || len(e.Found) > 0 || len(e.Next) != 3 {
			t.Errorf("the original %s: %+v, %v", when, e, err)
		}
		w.settle()
	}
}

// What a crash left half done and cannot be ended is said, and stops no clock: the rest is
// recovered all the same.
func TestWhatCannotBeRecoveredIsSaid(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "every: 10m")
	w.task("u", "every: 10m")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	run := func() string {
		t.Helper()
		var said strings.Builder
		w.sched.o.Log = slog.New(slog.NewTextHandler(&said, nil))
		if err := w.sched.Run(ctx); err != nil {
			t.Errorf("the clocks do not run: %v", err)
		}
		return said.String()
	}
	if said := run(); said != "" {
		t.Errorf("before, said is %s", said)
	}
	for _, dir := range []string{"cron/t", "heartbeat"} {
		left := filepath.Join(w.root, dir, ".tmp-left")
		if err := os.MkdirAll(filepath.Join(left, "x"), 0o700); err != nil {
			t.Fatal(err)
		}
		w.write("cron/u/.tmp-left", "half")
		if said := run(); !strings.Contains(said, left) {
			t.Errorf("in %s: %s", dir, said)
		}
		if disk.Exists(filepath.Join(w.root, "cron/u/.tmp-left")) {
			t.Errorf("what is in the way in %s keeps another task from being recovered", dir)
		}
		if err := os.RemoveAll(left); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"cron", "heartbeat"} {
		path := filepath.Join(w.root, dir)
		if err := errors.Join(os.Rename(path, path+".away"), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if err := w.sched.Run(ctx); err == nil {
			t.Errorf("a file in the place of %s is not said", dir)
		}
		if err := errors.Join(os.Remove(path), os.Rename(path+".away", path)); err != nil {
			t.Fatal(err)
		}
	}
}

// A job sleeps until its time comes, or where something else will say: a run that is in progress
// is looked at by the clock.
func TestWhenAJobSleeps(t *testing.T) {
	for i, tt := range []struct {
		job  track
		want bool
	}{
		{track{}, false}, {track{reckoned: true}, true}, {track{reckoned: true, running: true}, false},
		{track{reckoned: true, next: noon.Add(time.Second)}, true},
		{track{reckoned: true, running: true, next: noon.Add(time.Second)}, true},
		{track{reckoned: true, next: noon}, false}, {track{next: noon.Add(time.Second)}, false},
	} {
		if got := tt.job.sleeps(noon); got != tt.want {
			t.Errorf("%d: sleeps %v, want %v", i, got, tt.want)
		}
	}
	first, second := noon, noon.Add(time.Second)
	times := []time.Time{earlier(first, second), earlier(second, first), earlier(time.Time{}, first), earlier(first, time.Time{}),
		later(second, first), later(first, second)}
	if !slices.Equal(times, []time.Time{first, first, first, first, second, second}) {
		t.Errorf("earlier and later are %v", times)
	}
}
