package schedule

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/crash"
	"daycare/engine/disk"
)

// block puts a folder in the place of a file until what it returns is called.
func (w *world) block(path string) (restore func()) {
	w.t.Helper()
	path = filepath.Join(w.root, path)
	err := os.Rename(path, path+"~")
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err = errors.Join(err, os.Mkdir(path, 0o700)); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		w.t.Helper()
		err := os.Remove(path)
		if disk.Exists(path + "~") {
			err = errors.Join(err, os.Rename(path+"~", path))
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// loop puts a link to itself in the place of a folder: one that cannot be listed.
func (w *world) loop(path string) {
	w.t.Helper()
	path = filepath.Join(w.root, path)
	if err := errors.Join(os.RemoveAll(path), os.Symlink(filepath.Base(path), path)); err != nil {
		w.t.Fatal(err)
	}
}

// remove takes a folder away, and says so to no one.
func (w *world) remove(path string) {
	w.t.Helper()
	if err := os.RemoveAll(filepath.Join(w.root, path)); err != nil {
		w.t.Fatal(err)
	}
}

// Where a ledger cannot be read, what it said before is not taken for what it says: it is read
// again in half a minute.
func TestALedgerThatCannotBeReadAnyMore(t *testing.T) {
	for _, path := range []string{"cron/t/runs.jsonl", "heartbeat/runs.jsonl"} {
		w := hearts(t)
		if strings.HasPrefix(path, "cron") {
			w.task("t", "every: 30m")
		} else {
			w.write("heartbeat/disk.md", "Is the disk full?")
		}
		if next := w.settle(); !next.Equal(noon.Add(30 * time.Minute)) {
			t.Fatalf("%s: it is due at %v", path, next)
		}
		restore := w.block(path)
		Lead{w.sched}.Passed()
		if next := w.settle(); !next.Equal(noon.Add(longest)) {
			t.Errorf("%s: it is read again at %v", path, next)
		}
		_, err := w.sched.Runs("t", 1)
		if _, beats := w.sched.PromptRuns(1); err == nil && beats == nil {
			t.Errorf("%s: nothing is said of it", path)
		}
		if w.until(noon.Add(31 * time.Minute)); w.offered != 0 {
			t.Errorf("%s: something runs that nothing is known of", path)
		}
		restore()
		if w.until(noon.Add(32 * time.Minute)); w.offered != 1 {
			t.Errorf("%s: when it can be read again there are %d runs", path, w.offered)
		}
	}
}

// A task whose ledger cannot be read is left alone for half a minute, whatever happens meanwhile: the trouble is logged once.
func TestATroubledTaskIsLeftAlone(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "every: 30m")
	w.settle()
	var log bytes.Buffer
	w.sched.o.Log = slog.New(slog.NewTextHandler(&log, nil))
	restore := w.block("cron/t/runs.jsonl")
	for range 4 {
		Lead{w.sched}.Passed()
		if next := w.settle(); !next.Equal(noon.Add(longest)) {
			t.Errorf("at %v: it is read again at %v", w.now, next)
		}
		w.now = w.now.Add(longest / 5)
	}
	if n := strings.Count(log.String(), "scheduler failed"); n != 1 {
		t.Errorf("%d lines of one trouble:\n%s", n, &log)
	}
	restore()
	w.now = noon.Add(longest)
	if next := w.settle(); !next.Equal(noon.Add(30 * time.Minute)) {
		t.Errorf("it is due at %v", next)
	}
}

// What a ledger that cannot be read at the first look says comes later.
func TestALedgerThatCannotBeReadAtFirst(t *testing.T) {
	w := hearts(t)
	w.write("heartbeat/disk.md", "Is the disk full?")
	restore := w.block("heartbeat/runs.jsonl")
	if next := w.settle(); !next.Equal(noon.Add(longest)) {
		t.Errorf("it is read again at %v", next)
	}
	restore()
	w.now = noon.Add(longest)
	if next := w.settle(); !next.Equal(noon.Add(longest + 30*time.Minute)) {
		t.Errorf("the first beat is at %v", next)
	}
}

// A folder that was removed is looked for again: nothing of what was in it runs, nothing is made
// again, and no trouble is reported.
func TestAFolderThatIsGone(t *testing.T) {
	for _, path := range []string{"cron/t", "heartbeat"} {
		w := hearts(t)
		var said strings.Builder
		w.sched.o.Log = slog.New(slog.NewTextHandler(&said, nil))
		leads := false
		w.sched.o.Leads = func() bool { return leads }
		if path == "heartbeat" {
			w.write("heartbeat/disk.md", "Is the disk full?")
		} else {
			w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nat: 2026-11-20T12:10")
		}
		w.settle() // it is known, and its ledger was never read
		w.remove(path)
		leads = true
		if next := w.sched.step(w.ctx, w.now); !next.Equal(noon.Add(longest)) || len(w.work) > 0 {
			t.Errorf("%s: %d runs, it is looked for at %v", path, len(w.work), next)
		}
		if !w.sched.stale.any() {
			t.Errorf("%s: no folder is read again", path)
		}
		w.until(noon.Add(time.Hour))
		if w.offered > 0 || said.Len() > 0 || exists(filepath.Join(w.root, path)) {
			t.Errorf("%s: it ran %d times, or it was made again; said is %s", path, w.offered, said.String())
		}
		if n := len(w.sched.jobs) + w.sched.heartbeat.prompts + len(*w.sched.tasks.Load()); n > 0 {
			t.Errorf("%s: it is still known", path)
		}
	}
}

// A task whose folder is removed while the clock stands still fires nothing of what is late.
func TestWhatIsLateOfATaskThatIsGone(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 10m")
	w.settle()
	w.remove("cron/t")
	w.now = noon.Add(35 * time.Minute)
	if next := w.sched.step(w.ctx, w.now); !next.Equal(w.now.Add(longest)) || len(w.work) > 0 || len(w.runs) > 0 {
		t.Errorf("%d runs, told were %v; it is looked for at %v", len(w.work), w.runs, next)
	}
	if w.settle(); len(w.sched.jobs) > 0 || w.sched.FilesOf("tz4a98xxat96iws9zmbrgj3a") != "" {
		t.Error("it is still known")
	}
}

// Since when a schedule counts is read from the ledger: where it cannot be read right after it
// was written, it is read again in half a minute.
func TestABeginningThatCannotBeReadBack(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nat: 2026-11-20T12:10")
	var restore func()
	crash.Meanwhile(t, "runs.sync", func(k int) {
		if k == 1 {
			restore = w.block("cron/t/runs.jsonl")
		}
	})
	if next := w.settle(); !next.Equal(noon.Add(longest)) {
		t.Errorf("it is read again at %v", next)
	}
	restore()
	w.until(noon.Add(10 * time.Minute))
	w.want("t", "12:10 ran")
}

// A run whose end cannot be noted is handed over again, and what was to be removed after it stays
// until then.
func TestAnEndThatCannotBeNoted(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	var restore func()
	w.due = func(w *world, f Firing) (Result, error) {
		if restore == nil {
			restore = w.block("cron/once/runs.jsonl")
		}
		w.accept(f)
		return Result{Outcome: Ran}, nil
	}
	w.task("once", "at: 2026-11-20T12:05\ndeleteAfterRun: true")
	w.until(noon.Add(5 * time.Minute))
	if w.offered != 1 || !exists(filepath.Join(w.root, "cron/once")) || len(w.runs) > 0 {
		t.Fatalf("it was offered %d times; told were %v", w.offered, w.runs)
	}
	restore()
	w.until(noon.Add(6 * time.Minute))
	if w.offered != 2 || len(w.firings) != 1 || exists(filepath.Join(w.root, "cron/once")) {
		t.Errorf("it was offered %d times, fired %+v", w.offered, w.firings)
	}
}

// A beat that cannot be noted is not begun.
func TestABeatThatCannotBeNoted(t *testing.T) {
	w := hearts(t)
	w.write("heartbeat/disk.md", "Is the disk full?")
	w.settle()
	restore := w.block("heartbeat/runs.jsonl")
	w.now = noon.Add(30 * time.Minute)
	w.sched.step(w.ctx, w.now)
	work := w.work
	w.work = nil
	for _, f := range work {
		f()
	}
	if next := w.sched.step(w.ctx, w.now); len(work) != 1 || w.offered > 0 || !next.Equal(w.now.Add(longest)) {
		t.Errorf("%d beats began, %d were handed over; the next is at %v", len(work), w.offered, next)
	}
	restore()
	if w.until(noon.Add(31 * time.Minute)); w.offered != 1 {
		t.Errorf("when it can be noted there are %d beats", w.offered)
	}
}

// A beat in which the process died is handed over again as it was: under its key, with the text of
// that time.
func TestCrashInABeat(t *testing.T) {
	w := hearts(t)
	w.write("heartbeat/disk.md", "Is the disk full?")
	var got []Firing
	w.due = func(w *world, f Firing) (Result, error) {
		if got = append(got, f); len(got) == 1 {
			w.write("heartbeat/disk.md", "Is the new disk full?")
			w.sched.Store.Hours = func() Hours { return must(ParseHours("20:00-22:00")) }
			return w.crash()
		}
		return Result{Outcome: Ran}, nil
	}
	w.until(noon.Add(31 * time.Minute))
	if len(got) != 2 || got[0].Resumed || !got[1].Resumed || got[0].Dedupe != got[1].Dedupe || got[1].Prompt != got[0].Prompt {
		t.Errorf("handed over were %+v", got)
	}
	if beats := w.beats(); !slices.Equal(beats, []string{"12:30 ran"}) {
		t.Errorf("beats are %v", beats)
	}
}

// That the heartbeat has stopped is said until it was, and under one key.
func TestThatItStoppedIsSaidAgain(t *testing.T) {
	w := hearts(t)
	w.due = func(*world, Firing) (Result, error) { return Result{}, errors.New("no key") }
	var keys []string
	w.sched.o.Say = func(_ context.Context, key, _ string) error {
		if keys = append(keys, key); len(keys) < 3 {
			return errors.New("no channel")
		}
		return nil
	}
	w.write("heartbeat/disk.md", "Is the disk full?")
	w.until(noon.Add(5 * time.Hour))
	if len(keys) != 3 || keys[0] != keys[2] || keys[0] != "heartbeat:stopped/2026-11-20T14:30:00Z" {
		t.Errorf("it was said under %q", keys)
	}
	if beats := w.beats(); len(beats) != maxFails+1 || beats[maxFails] != "14:31 skipped stopped after 5 failures in a row" {
		t.Errorf("beats are %q", beats)
	}
}

// A gate or a command that cannot be run is a failure, and not something that has not changed.
func TestACommandThatCannotBeRunIsAFailure(t *testing.T) {
	for name, keys := range map[string]string{"gate": "gate: x", "command": "watchCommand: x"} {
		w := hearts(t)
		w.gate = func(context.Context, string, string, Gate) (Output, error) { return Output{}, errors.New("no shell") }
		w.start()
		w.write("heartbeat/p.md", "---\n"+keys+"\n---\nLook.")
		w.task("t", "every: 30m\n"+strings.Replace(keys, "gate: x", "gate: { command: x }", 1))
		w.until(noon.Add(31 * time.Minute))
		if got := append(w.beats(), w.outcomes("t")...); len(got) != 2 || !strings.Contains(got[0], "12:30 failed") ||
			!strings.Contains(got[1], "12:30 failed") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// Heartbeat items that cannot be listed are reported, and those that are known stay so.
func TestHeartbeatItemsThatCannotBeListed(t *testing.T) {
	w := hearts(t)
	w.write("heartbeat/disk.md", "Is the disk full?")
	w.settle()
	w.loop("heartbeat")
	_, _, none := w.sched.Heartbeat()
	_, added := w.sched.AddPrompt("t", "x", "", "", true)
	_, _, _, batch := w.sched.batch(w.ctx, "agent", w.now, true)
	for name, err := range map[string]error{"listed": none, "added": added, "asked": batch} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	w.sched.Changed()
	if w.settle(); w.sched.heartbeat.prompts != 1 {
		t.Errorf("known are %d", w.sched.heartbeat.prompts)
	}
}

// A ledger of the heartbeat that cannot be read is reported beside its items.
func TestAHeartbeatWithoutItsLedger(t *testing.T) {
	w := hearts(t)
	w.write("heartbeat/disk.md", "Is the disk full?")
	w.block("heartbeat/runs.jsonl")
	b, found, err := w.sched.Heartbeat()
	if err != nil || !unreadOnly(found, filepath.Join(w.root, "heartbeat/runs.jsonl")) || len(b.Prompts) != 1 || !b.Next.IsZero() {
		t.Errorf("the heartbeat is %+v, %v, %v", b, found, err)
	}
}

// A ledger that is thrown away begins anew: nothing of the time before is missed.
func TestALedgerThatIsThrownAway(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 10m")
	w.until(noon.Add(10 * time.Minute))
	w.block("cron/t/runs.jsonl")
	w.until(noon.Add(20 * time.Minute)) // it cannot be noted
	w.remove("cron/t/runs.jsonl")
	w.until(noon.Add(25 * time.Minute))
	if all := w.lines("cron/t/runs.jsonl"); len(all) == 0 || all[0].Set != "10m UTC" {
		t.Errorf("the ledger is %+v", all)
	}
}

// During a run the loop wakes when the next slot is to be skipped.
func TestWhenTheLoopWakesDuringARun(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", `schedule: "* * * * *"`)
	w.settle()
	w.now = noon.Add(time.Minute)
	w.sched.step(w.ctx, w.now)
	w.now = w.now.Add(10 * time.Second)
	if next := w.sched.step(w.ctx, w.now); !next.Equal(noon.Add(2 * time.Minute)) {
		t.Errorf("it wakes at %v", next)
	}
}

// A file is the same if it was neither replaced nor saved since.
func TestWhetherAFileIsTheSame(t *testing.T) {
	dir := t.TempDir()
	stat := func(name, text string, saved time.Time) os.FileInfo {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, saved, saved)); err != nil {
			t.Fatal(err)
		}
		return must(os.Stat(path))
	}
	first := stat("a", "text", noon)
	for name, tt := range map[string]struct {
		a, b os.FileInfo
		want bool
	}{
		"as it was": {first, stat("a", "text", noon), true}, "never seen": {nil, first, false},
		"another": {first, stat("b", "text", noon), false}, "saved": {first, stat("a", "text", noon.Add(time.Second)), false},
		"longer": {first, stat("a", "texts", noon), false},
	} {
		if got := same(tt.a, tt.b); got != tt.want {
			t.Errorf("%s: the same is %v", name, got)
		}
	}
}

// A link to nothing is no heartbeat item.
func TestALinkToNothingIsNoItem(t *testing.T) {
	w := hearts(t)
	w.write("heartbeat/disk.md", "Is the disk full?")
	if err := os.Symlink("none", filepath.Join(w.root, "heartbeat/link.md")); err != nil {
		t.Fatal(err)
	}
	if b, found, err := w.sched.Heartbeat(); err != nil || len(found) > 0 || len(b.Prompts) != 1 || b.Prompts[0].Slug != "disk" {
		t.Errorf("the heartbeat is %+v, %v, %v", b, found, err)
	}
}

// A task is not made twice where it cannot be seen whether it was made.
func TestATaskIsNotMadeBlindly(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.sched.step(w.ctx, w.now)
	w.loop("cron")
	s, changed := counted(w)
	change := Change{Name: ptr("t"), Prompt: ptr("Do it."), Timing: &Timing{Every: "1h"}}
	if _, err := s.Create("tz4a98xxat96iws9zmbrgj3a", change); err == nil || !strings.Contains(err.Error(), "list") || *changed != 0 {
		t.Errorf("%v, changed %d times", err, *changed)
	}
}

// An id is given to a task that has none and is right; any other file stays as it is.
func TestWhichTasksGetAnId(t *testing.T) {
	for keys, gets := range map[string]bool{"every: 10m": true, "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 10m": false,
		"every: often": false, "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: often": false} {
		w := newWorld(t, time.UTC, noon)
		w.task("t", keys)
		before := must(w.sched.Source("t"))
		if err := w.sched.files().identify("t"); err != nil {
			t.Errorf("%q: %v", keys, err)
		}
		if got := must(w.sched.Source("t")) != before; got != gets {
			t.Errorf("%q: it gets an id: %v", keys, got)
		}
	}
}

// A task that cannot be given its id runs when it has one.
func TestATaskThatGetsNoId(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "every: 10m")
	crash.Arm(t, "enospc@task.write#1")
	if next := w.settle(); !next.Equal(noon.Add(rereads[2])) || len(w.sched.jobs) > 0 {
		t.Errorf("%d tasks are known; it is looked at again at %v", len(w.sched.jobs), next)
	}
	w.until(noon.Add(10 * time.Minute))
	w.want("t", "12:10 ran")
}

// The loop ends with the error of a disk that has failed.
func TestADiskThatFailedEndsTheLoop(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 10m")
	crash.Arm(t, "eio@runs.sync#1")
	var said strings.Builder
	w.sched.o.Log = slog.New(slog.NewTextHandler(&said, nil))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.sched.Run(ctx); !errors.Is(err, disk.ErrFailed) || said.Len() > 0 {
		t.Errorf("the loop ended with %v; said is %s", err, said.String())
	}
}

// The loop has settled when it has seen this moment and every file, and what has ended; one that
// has not is woken.
func TestSettled(t *testing.T) {
	w := hearts(t)
	want := func(what string, settled bool, running int) {
		t.Helper()
		select {
		case <-w.sched.wake:
		default:
		}
		seen, n := w.sched.Settled()
		if rung := len(w.sched.wake) > 0; seen != settled || n != running || rung == settled {
			t.Errorf("%s: settled %v, with %d runs, woken %v", what, seen, n, rung)
		}
	}
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 30m")
	w.write("heartbeat/disk.md", "Is the disk full?")
	want("before the first look", false, 0)
	w.settle()
	want("after it", true, 0)
	w.sched.Changed("t")
	want("after one task changed", false, 0)
	w.settle()
	w.sched.Changed()
	want("after any file changed", false, 0)
	w.now = noon.Add(30 * time.Minute)
	w.sched.stale.take()
	want("when time has passed", false, 0)
	w.sched.step(w.ctx, w.now)
	want("in two runs", true, 2)
	work := w.work
	w.work = nil
	for i, f := range work {
		f()
		want("after one has ended", false, len(work)-1-i)
	}
	w.settle()
	want("after all have", true, 0)
}
