package schedule

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// outcomes are the lines of a ledger in short: minute outcome reason via.
func (w *world) outcomes(slug string) []string {
	var all []string
	for _, l := range w.lines("cron/" + slug + "/runs.jsonl") {
		if l.Outcome != "" {
			text := l.Slot.Format("15:04") + " " + string(l.Outcome)
			if l.Via != "" {
				text += " " + string(l.Via)
			}
			if l.Count > 0 {
				text += " many"
			}
			if before, _, _ := strings.Cut(l.Reason, ":"); before != "" {
				text += " (" + before + ")"
			}
			all = append(all, text)
		}
	}

	return all
}

func (w *world) want(slug string, want ...string) {
	w.t.Helper()
	if d := cmp.Diff(want, w.outcomes(slug)); d != "" {
		w.t.Errorf("ledger of %s (-want +got):\n%s", slug, d)
	}
}

func TestCatchUp(t *testing.T) {
	for catchUp, want := range map[string][]string{
		"one": {"12:10 missed (daycare was not running)", "12:20 missed (daycare was not running)", "12:30 ran catch-up"},
		"all": {"12:10 ran catch-up", "12:20 ran catch-up", "12:30 ran catch-up"},
		"none": {"12:10 missed (daycare was not running)", "12:20 missed (daycare was not running)",
			"12:30 missed (daycare was not running)"},
	} {
		w := newWorld(t, time.UTC, noon)
		w.task("t", "schedule: \"*/10 * * * *\"\ncatchUp: "+catchUp)
		w.settle()
		w.now = noon.Add(35 * time.Minute)
		w.start()
		w.settle()
		w.want("t", want...)
	}
}

// A clock that was hours ahead for a while and is right again has cost nothing: what
// it made look missed runs when its time comes, and what ran then does not run again.
func TestClockAheadForAWhile(t *testing.T) {
	for catchUp, want := range map[string][]string{
		"one": {"12:30 missed (daycare was not running)", "13:00 missed (daycare was not running)", "13:30 ran catch-up",
			"12:30 ran", "13:00 ran", "14:00 ran"},
		"all": {"12:30 ran catch-up", "13:00 ran catch-up", "13:30 ran catch-up", "14:00 ran"},
		"none": {"12:30 missed (daycare was not running)", "13:00 missed (daycare was not running)",
			"13:30 missed (daycare was not running)", "12:30 ran", "13:00 ran", "13:30 ran", "14:00 ran"},
	} {
		w := newWorld(t, time.UTC, noon)
		w.task("t", "schedule: \"*/30 * * * *\"\ncatchUp: "+catchUp)
		w.settle()
		w.now = noon.Add(95 * time.Minute)
		w.settle()
		w.now = noon.Add(5 * time.Minute)
		w.until(noon.Add(125 * time.Minute))
		w.want("t", want...)
	}
}

// Hours of missed minutes share a line.
func TestManyMissedShareALine(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", `schedule: "* * * * *"`)
	w.settle()
	w.now = noon.Add(5*time.Hour + 30*time.Second)
	w.start()
	w.settle()
	w.want("t", "16:59 missed many (daycare was not running)", "17:00 ran")
	if l := w.lines("cron/t/runs.jsonl")[1]; l.Count != 299 || !l.From.Equal(noon.Add(time.Minute)) {
		t.Errorf("the line is of %d slots from %v, want 299 from 12:01", l.Count, l.From)
	}
	if runs, err := w.sched.Runs("t", 0); err != nil || runs[0].Count != 299 || !runs[0].From.Equal(noon.Add(time.Minute)) ||
		!runs[1].From.IsZero() {
		t.Errorf("shown are %+v, %v", runs, err)
	}

	w.start() // the line is read again
	w.until(noon.Add(5*time.Hour + 2*time.Minute))
	w.want("t", "16:59 missed many (daycare was not running)", "17:00 ran", "17:01 ran", "17:02 ran")
}

func TestGate(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	outs := []Output{{Code: 1, Text: "nothing"}, {Code: 0, Text: "5 lines\n"}, {Refused: "waits for approval abc"}}
	w.gate = func(_ context.Context, agent, dir string, g Gate) (Output, error) {
		if agent != "agent" || g.Command != "test -s queue" || !strings.HasSuffix(dir, "cron/t/files") {
			t.Errorf("gate %+v of %s in %s", g, agent, dir)
		}
		if len(outs) == 0 {
			return Output{}, errors.New("no shell")
		}
		out := outs[0]
		outs = outs[1:]

		return out, nil
	}
	w.start()
	w.task("t", "every: 1m\ngate: { command: test -s queue, timeoutMs: 500 }")
	w.until(noon.Add(4 * time.Minute))
	w.want("t", "12:01 skipped (gate)", "12:02 ran", "12:03 skipped (gate)", "12:04 failed (run gate)")
	if len(w.firings) != 1 || w.firings[0].Gate != "5 lines" {
		t.Errorf("fired %+v", w.firings)
	}
}

// A gate that opened is not asked again when the process died behind it.
func TestCrashBehindTheGate(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	gates, crashed := 0, false
	w.gate = func(context.Context, string, string, Gate) (Output, error) {
		gates++
		return Output{Text: "5 lines"}, nil
	}
	w.due = func(w *world, f Firing) (Result, error) {
		if !crashed {
			crashed = true
			return w.crash()
		}
		return Result{}, nil
	}
	w.start()
	w.task("t", "schedule: 1 12 * * *\ngate: { command: x }")
	w.until(noon.Add(10 * time.Minute))
	w.want("t", "12:01 ran")
	if gates != 1 || len(w.firings) != 1 || w.firings[0].Gate != "5 lines" || !w.firings[0].Resumed {
		t.Errorf("%d gates, fired %+v", gates, w.firings)
	}
}

// A firing is in the ledger before it is handed over, and its end comes after.
func TestAFiringIsNotedBeforeItIsHandedOver(t *testing.T) {
	for point, want := range map[string]string{"task.due": "noted 0, offered 0", "task.fired": "noted 1, offered 0",
		"task.ended": "noted 1, offered 1"} {
		w := newWorld(t, time.UTC, noon)
		w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 10m")
		w.settle()
		var got []string
		crash.Meanwhile(t, point, func(int) {
			got = append(got, fmt.Sprintf("noted %d, offered %d", len(w.lines("cron/t/runs.jsonl"))-1, w.offered))
		})
		if w.until(noon.Add(10 * time.Minute)); len(got) != 1 || got[0] != want {
			t.Errorf("at %s: %q, want %s", point, got, want)
		}
	}
}

func TestOneShot(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	fail := true
	w.due = func(*world, Firing) (Result, error) {
		if fail {
			return Result{Outcome: Failed, Reason: "error"}, nil
		}
		return Result{}, nil
	}
	w.task("once", "at: 2026-11-20T12:05\ndeleteAfterRun: true")
	w.task("over", "at: 2026-11-20T11:00")
	w.until(noon.Add(10 * time.Minute))
	w.want("once", "12:05 failed (error)") // what failed did not happen: it stays
	w.want("over", "11:00 missed (the time had passed when the task was first read)")
	fail = false
	w.task("again", "at: 2026-11-20T12:15\ndeleteAfterRun: true")
	if next := w.settle(); !next.Equal(noon.Add(15 * time.Minute)) {
		t.Errorf("the next thing is at %v", next)
	}

	w.until(noon.Add(20 * time.Minute))
	if _, err := os.Stat(filepath.Join(w.root, "cron/again")); !os.IsNotExist(err) {
		t.Error("a task that was to be deleted after its run is still there")
	}
	if kept, _ := filepath.Glob(filepath.Join(w.root, "trash/*-again/runs.jsonl")); len(kept) != 1 {
		t.Error("its ledger is not in the trash")
	}
	if next := w.settle(); !next.IsZero() {
		t.Errorf("nothing is to come, but it wants to wake at %v", next)
	}
}

// What is to run again stays: a task that got another time during its run, also if its process died then, and one that
// was run by hand before its time.
func TestOneShotThatIsToRunAgain(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.due = func(w *world, f Firing) (Result, error) {
		if f.Slug == "early" || !f.Slot.Before(noon.Add(10*time.Minute)) || f.Resumed {
			return Result{}, nil
		}
		if _, err := w.sched.Update(f.Slug, Change{Timing: &Timing{At: "2026-11-20T12:30"}}); err != nil {
			t.Error(err)
		}
		if f.Slug == "died" {
			return w.crash()
		}
		return Result{}, nil
	}
	w.task("late", "at: 2026-11-20T12:05\ndeleteAfterRun: true")
	w.task("died", "at: 2026-11-20T12:06\ndeleteAfterRun: true")
	w.task("early", "at: 2026-11-20T12:20\ndeleteAfterRun: true")
	w.settle()
	if _, err := w.sched.RunNow("early"); err != nil {
		t.Fatal(err)
	}
	w.until(noon.Add(8 * time.Minute))
	for _, slug := range []string{"late", "died", "early"} {
		if !exists(filepath.Join(w.root, "cron", slug)) {
			t.Errorf("%s was removed before its time", slug)
		}
	}

	w.until(noon.Add(40 * time.Minute))
	for slug, want := range map[string]string{"late": "12:30", "died": "12:30", "early": "12:20"} {
		var slots []string
		for _, f := range w.firings {
			if f.Slug == slug {
				slots = append(slots, f.Slot.Format("15:04"))
			}
		}
		if len(slots) != 2 || slots[1] != want || exists(filepath.Join(w.root, "cron", slug)) {
			t.Errorf("%s ran at %v, want the last one at %s and its removal then", slug, slots, want)
		}
	}
}

// daycare writes an id into a task that has none. If it dies before the ledger says since
// when the task counts, that still is when the user saved it, not when the id came.
func TestCrashBehindTheId(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	path := filepath.Join(w.root, "cron/once/TASK.md")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("---\nat: 2026-11-20T11:30\n---\ngo\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	saved := noon.Add(-time.Hour)
	if err := os.Chtimes(path, saved, saved); err != nil {
		t.Fatal(err)
	}
	if err := w.sched.files().identify("once"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), "taskId: ") {
		t.Fatalf("no id was written: %v\n%s", err, text)
	}

	w.start() // as a new process, with no ledger
	w.until(noon.Add(time.Minute))
	w.want("once", "11:30 ran catch-up")
}

// A task that has run and was to go, but whose process died before, goes at the
// next start; it does not run again.
func TestCrashBeforeTheTrash(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("once", "at: 2026-11-20T12:05\ndeleteAfterRun: true")
	block := filepath.Join(w.root, "trash")
	if err := os.WriteFile(block, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	w.until(noon.Add(6 * time.Minute))
	w.want("once", "12:05 ran")
	if err := os.Remove(block); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.until(noon.Add(10 * time.Minute))
	if gone, _ := filepath.Glob(filepath.Join(w.root, "trash/*-once")); len(gone) != 1 || len(w.firings) != 1 {
		t.Errorf("in the trash %v, fired %d times", gone, len(w.firings))
	}
	if len(w.sched.jobs) > 0 || len(*w.sched.tasks.Load()) > 0 {
		t.Error("it is still known")
	}
}

// While a run is in progress the next slot is skipped; with all it waits.
func TestBusy(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("one", `schedule: "* * * * *"`)
	w.task("all", "schedule: \"* * * * *\"\ncatchUp: all")
	w.settle()
	w.now = noon.Add(time.Minute)
	w.sched.step(w.ctx, w.now) // started and not ended
	held := w.work
	w.work = nil

	for range 2 {
		w.now = w.now.Add(time.Minute)
		w.sched.step(w.ctx, w.now)
	}
	for _, f := range held {
		f()
	}

	w.settle()
	w.want("one", "12:02 skipped (busy)", "12:03 skipped (busy)", "12:01 ran")
	w.want("all", "12:01 ran", "12:02 ran", "12:03 ran")
}

func TestFilesChangedByHand(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	var found []finding.Finding
	begin := func() {
		w.start()
		w.sched.o.Findings = func(f []finding.Finding) { found = f }
	}
	begin()
	w.task("t", "# mine\nschedule: \"*/10 * * * *\"   # often")
	w.until(noon.Add(10 * time.Minute))
	data, _ := os.ReadFile(filepath.Join(w.root, "cron/t/TASK.md"))
	if text := string(data); !strings.HasPrefix(text, "---\ntaskId: ") ||
		!strings.HasSuffix(text, "\n# mine\nschedule: \"*/10 * * * *\"   # often\n---\nDo it.\n") {
		t.Errorf("with its id the file is\n%s", text)
	}
	// Broken: the last good version stays active, and the place is told.
	good := string(data)
	w.write("cron/t/TASK.md", strings.Replace(good, "*/10", "*/x", 1))
	w.until(noon.Add(20 * time.Minute))
	w.want("t", "12:10 ran", "12:20 ran")
	if e, err := w.sched.Task("t"); err != nil || e.When.String() != "every 10 minutes (UTC)" || len(e.Next) != 3 ||
		finding.Join(e.Found) == nil {
		t.Errorf("of a broken file is in force %s, next %v, with %v, %v", e.When, e.Next, e.Found, err)
	}
	if len(found) != 1 || found[0].Line != 4 || found[0].Column != 11 || !strings.Contains(found[0].Reason, "*/x") {
		t.Errorf("found %+v", found)
	}
	// Repaired, with another schedule: it counts from when it was saved.
	w.write("cron/t/TASK.md", strings.Replace(good, "*/10", "5-59/10", 1))
	w.until(noon.Add(26 * time.Minute))
	w.want("t", "12:10 ran", "12:20 ran", "12:25 ran")
	if len(found) != 0 {
		t.Errorf("repaired, but found %+v", found)
	}
	// Renamed: ledger and agent come along.
	if err := os.Rename(filepath.Join(w.root, "cron/t"), filepath.Join(w.root, "cron/renamed")); err != nil {
		t.Fatal(err)
	}
	w.sched.Changed()
	w.until(noon.Add(36 * time.Minute))
	w.want("renamed", "12:10 ran", "12:20 ran", "12:25 ran", "12:35 ran")
	// Switched off and on: what came in between is accounted for.
	on := string(must(os.ReadFile(filepath.Join(w.root, "cron/renamed/TASK.md"))))
	w.write("cron/renamed/TASK.md", strings.Replace(on, "# mine", "enabled: false", 1))
	w.until(noon.Add(56 * time.Minute))
	w.write("cron/renamed/TASK.md", on)
	w.until(noon.Add(66 * time.Minute))
	w.want("renamed", "12:10 ran", "12:20 ran", "12:25 ran", "12:35 ran", "12:45 skipped (disabled)",
		"12:55 skipped (disabled)", "13:05 ran")
	// A copy has the same id and does not run, whatever it is called and also after a
	// restart.
	w.write("cron/acopy/TASK.md", on)
	for range 2 {
		w.settle()
		all, _, err := w.sched.Tasks()
		if err != nil || len(all) != 2 || len(all[0].Next) != 0 || finding.Join(all[0].Found) == nil ||
			len(all[1].Next) != 3 || len(all[1].Found) != 0 {
			t.Errorf("with a copy there are %+v, %v", all, err)
		}
		if len(found) != 1 || found[0].ID != "schedule-duplicate" || !strings.Contains(found[0].File, "acopy") {
			t.Errorf("of a copy found %+v", found)
		}
		w.now = w.now.Add(time.Second)
		w.cancel()
		begin()
	}
	// Gone: nothing more, and nothing is made again.
	if err := os.RemoveAll(filepath.Join(w.root, "cron")); err != nil {
		t.Fatal(err)
	}
	w.sched.Changed()
	w.until(noon.Add(2 * time.Hour))
	if _, err := os.Stat(filepath.Join(w.root, "cron")); !os.IsNotExist(err) {
		t.Error("a folder that was removed was made again")
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestWakeOnChange(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	out := "a"
	w.gate = func(context.Context, string, string, Gate) (Output, error) { return Output{Text: out}, nil }
	w.start()
	w.write("notes/a.md", "x")
	w.task("files", `watch: ["notes/**/*.md"]`)
	w.task("both", "schedule: \"*/10 * * * *\"\nwatch: notes/*.md")
	w.task("command", "watchCommand: git rev-parse HEAD")
	w.until(noon.Add(12 * time.Minute))
	w.want("files")
	w.want("command")
	w.want("both", "12:10 skipped (unchanged)")
	w.write("notes/deep/b.md", "y")
	w.write("notes/c.txt", "z")
	w.until(noon.Add(15 * time.Minute))
	w.start() // what was seen is remembered
	w.until(noon.Add(21 * time.Minute))
	out = "b"
	w.until(noon.Add(22 * time.Minute))
	w.write("notes/a.md", "more")
	w.until(noon.Add(31 * time.Minute))
	w.want("files", "12:12 ran watch", "12:22 ran watch")
	w.want("command", "12:21 ran watch")
	w.want("both", "12:10 skipped (unchanged)", "12:20 skipped (unchanged)", "12:30 ran")
	if all := w.lines("cron/files/runs.jsonl"); len(all) != 6 || all[1].Reason != "started watching" {
		t.Errorf("the ledger of files is %+v; want its schedule, the first look, and two lines of each run", all)
	}

	for _, f := range w.firings {
		if want := map[string]string{"files": "changed: notes/**/*.md", "command": "changed: the output of git rev-parse HEAD",
			"both": "changed: notes/*.md"}[f.Slug]; f.Why != want {
			t.Errorf("%s woke because of %q, want %q", f.Slug, f.Why, want)
		}
	}
}

// A watch beside a schedule begins when the task does: a change before the first slot
// is one, and another pattern begins anew. If the command may not be run yet, it begins
// with the first slot that may.
func TestWatchBesideASchedule(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	refused := "waits for approval abc"
	out := "a"
	w.gate = func(context.Context, string, string, Gate) (Output, error) {
		return Output{Text: out, Refused: refused}, nil
	}
	w.start()
	w.write("notes/a.md", "x")
	w.task("t", "schedule: \"*/10 * * * *\"\nwatch: notes/*.md")
	w.task("command", "schedule: \"*/10 * * * *\"\nwatchCommand: git rev-parse HEAD")
	w.until(noon.Add(5 * time.Minute))
	w.write("notes/a.md", "xy")
	w.until(noon.Add(11 * time.Minute))
	refused = ""
	w.want("t", "12:10 ran")
	w.write("cron/t/TASK.md", strings.Replace(string(must(os.ReadFile(filepath.Join(w.root, "cron/t/TASK.md")))), "*.md", "*", 1))
	w.until(noon.Add(31 * time.Minute))
	w.want("t", "12:10 ran", "12:20 skipped (unchanged)", "12:30 skipped (unchanged)")
	w.want("command", "12:10 skipped (waits for approval abc)", "12:20 skipped (unchanged)", "12:30 skipped (unchanged)")
	out = "b"
	w.until(noon.Add(41 * time.Minute))
	w.want("command", "12:10 skipped (waits for approval abc)", "12:20 skipped (unchanged)", "12:30 skipped (unchanged)", "12:40 ran")
}

func TestRunNow(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "schedule: 0 9 * * *\nenabled: false")
	w.settle()
	for len(w.sched.wake) > 0 {
		<-w.sched.wake
	}
	if _, err := w.sched.RunNow("t"); err != nil || len(w.sched.wake) == 0 {
		t.Fatalf("%v, the loop is woken: %v", err, len(w.sched.wake) > 0)
	}
	if _, err := w.sched.RunNow("t"); !errors.Is(err, ErrBusy) {
		t.Errorf("a second run at once: %v", err)
	}

	w.settle()
	w.want("t", "12:00 ran hand")
	for _, name := range []string{"none", "../t", "", "T"} {
		if _, err := w.sched.RunNow(name); !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrName) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A run by hand moves no slot of the schedule.
func TestARunByHandMovesNoSlot(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "every: 10m")
	w.until(noon.Add(3 * time.Minute))
	if _, err := w.sched.RunNow("t"); err != nil {
		t.Fatal(err)
	}
	w.until(noon.Add(15 * time.Minute))
	w.want("t", "12:03 ran hand", "12:10 ran")
}

// Trouble with the ledger postpones; it never runs a slot twice.
func TestLedgerThatCannotBeWritten(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", `schedule: "* * * * *"`)
	w.until(noon.Add(time.Minute))
	path := filepath.Join(w.root, "cron/t/runs.jsonl")
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	w.until(noon.Add(3 * time.Minute))
	if len(w.firings) != 1 {
		t.Errorf("%d firings with no ledger to write to, want only the first", len(w.firings))
	}
	if err := errors.Join(os.Remove(path), os.Rename(path+".away", path)); err != nil {
		t.Fatal(err)
	}
	w.until(noon.Add(6 * time.Minute))
	w.want("t", "12:01 ran", "12:02 missed (daycare was not running)", "12:03 ran", "12:04 ran", "12:05 ran", "12:06 ran")
}

// With nothing scheduled the loop sleeps for good; with something it wakes when that
// is due, and at least every 30 seconds, because clocks jump.
func TestLoopSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		var asked, fired atomic.Int64
		store := &Store{Root: root, Volume: disk.NewVolume(root), Now: func() time.Time { asked.Add(1); return time.Now() },
			Zone: func() *time.Location { return time.UTC }, Every: func() time.Duration { return DefaultEvery },
			Hours: func() Hours { return Hours{} }}
		s := New(Options{Store: store, Target: func(context.Context, Firing) (string, error) { return "a", nil },
			Due: func(context.Context, Firing) (Result, error) { fired.Add(1); return Result{Outcome: Ran}, nil }})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		synctest.Wait()
		before := asked.Load()
		time.Sleep(24 * time.Hour)
		if woke := asked.Load() - before; woke != 0 {
			t.Errorf("idle for a day the loop woke %d times", woke)
		}
		if _, err := s.Create("", Change{Name: ptr("t"), Prompt: ptr("Do it."), Timing: &Timing{Cron: "0 * * * *"}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(24*time.Hour + time.Second)
		if n := fired.Load(); n != 24 {
			t.Errorf("an hourly task was fired %d times in a day", n)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func ptr[T any](v T) *T { return &v }
