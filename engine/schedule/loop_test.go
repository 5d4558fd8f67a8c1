package schedule

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/finding"
)

// A run that a new process continues with skips the slots that come meanwhile, as any other.
func TestBusyAfterARestart(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", `schedule: "* * * * *"`)
	w.until(noon.Add(time.Minute))
	w.start()
	w.now = noon.Add(2 * time.Minute)
	w.sched.step(w.ctx, w.now) // started and not ended
	held := w.work
	w.work = nil
	w.now = noon.Add(3 * time.Minute)
	w.sched.step(w.ctx, w.now)
	for _, f := range held {
		f()
	}

	w.settle()
	w.want("t", "12:01 ran", "12:03 skipped (busy)", "12:02 ran")
}

// While a run is in progress that is not of the schedule, or of one that was switched off, no
// slot is skipped: there is none, or it waits.
func TestWhatIsNotSkippedMeanwhile(t *testing.T) {
	for name, tt := range map[string]struct {
		keys string
		want []string
	}{
		"all":      {"schedule: \"* * * * *\"\ncatchUp: all", []string{"12:00 ran hand", "12:01 ran", "12:02 ran"}},
		"off":      {"schedule: \"* * * * *\"\nenabled: false", []string{"12:00 ran hand"}},
		"watching": {"watch: notes/*", []string{"12:00 ran hand"}},
		"on":       {`schedule: "* * * * *"`, []string{"12:01 skipped (busy)", "12:02 skipped (busy)", "12:00 ran hand"}},
	} {
		w := newWorld(t, time.UTC, noon)
		w.task("t", tt.keys)
		w.settle()
		if _, err := w.sched.RunNow("t"); err != nil {
			t.Fatal(err)
		}

		w.sched.step(w.ctx, w.now)
		held := w.work
		w.work = nil
		for range 2 {
			w.now = w.now.Add(time.Minute)
			w.sched.step(w.ctx, w.now)
			if len(w.work) != 0 {
				t.Errorf("%s: a second run began beside the first", name)
			}
		}

		for _, f := range held {
			f()
		}
		w.settle()
		if got := w.outcomes("t"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// Another schedule leaves what a task watches as it is: a change from before still counts.
func TestAnotherScheduleWatchesTheSame(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.write("notes/a.md", "x")
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nschedule: \"*/10 * * * *\"\nwatch: notes/*.md")
	w.until(noon.Add(11 * time.Minute))
	w.write("notes/a.md", "xy")
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nschedule: \"5-59/10 * * * *\"\nwatch: notes/*.md")
	w.until(noon.Add(26 * time.Minute))
	w.want("t", "12:10 skipped (unchanged)", "12:15 ran", "12:25 skipped (unchanged)")
}

// Where the clock went back, what a task watches is looked at by the clock as it is now.
func TestLooksAfterTheClockWentBack(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.write("notes/a.md", "x")
	w.task("t", "watch: notes/*.md")
	w.until(noon.Add(time.Minute))
	w.now = noon.Add(-24 * time.Hour)
	w.settle()
	w.write("notes/a.md", "xy")
	w.until(w.now.Add(longest + time.Second))
	if got := w.outcomes("t"); len(got) != 1 || !strings.Contains(got[0], "ran watch") {
		t.Errorf("half a minute after the change: %v", got)
	}
}

// The folders to watch are told when they change, and what is wrong with files when that does.
func TestChangesAreTold(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	var told [][]string
	var found [][]finding.Finding
	w.sched.o.Folders = func(dirs []string) { told = append(told, dirs) }
	w.sched.o.Findings = func(f []finding.Finding) { found = append(found, f) }
	want := func(what string, folders, findings int) {
		t.Helper()
		w.sched.Changed()
		if w.settle(); len(told) != folders || len(found) != findings {
			t.Fatalf("%s: folders were told %d times, findings %d; want %d, %d", what, len(told), len(found), folders, findings)
		}
	}
	want("at the first look", 1, 1)
	want("at another", 1, 1)
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 10m")
	want("of a new task", 2, 1)
	if dirs := told[1]; !slices.Equal(dirs, []string{filepath.Join(w.root, "cron"), filepath.Join(w.root, "heartbeat"),
		filepath.Join(w.root, "cron/t")}) {
		t.Errorf("folders are %v", dirs)
	}

	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 20m")
	want("of an edit", 2, 1)
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 20m\nevri: 1")
	want("of a mistake", 2, 2)
	want("and of the same", 2, 2)
	w.write("heartbeat/p.md", "---\nactiveHours: x\n---\nx")
	want("of another in a prompt", 2, 3)
	if last := found[2]; len(last) != 2 || !strings.HasSuffix(last[0].File, taskFile) || !strings.HasSuffix(last[1].File, "p.md") {
		t.Errorf("found are %+v", last)
	}

	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 20m")
	if err := os.Remove(filepath.Join(w.root, "heartbeat/p.md")); err != nil {
		t.Fatal(err)
	}
	want("of both repaired", 2, 4)
	if len(found[3]) != 0 {
		t.Errorf("found are %+v", found[3])
	}
}

// A file that is found half written is read again soon, though nobody says that it changed;
// until a second is over nothing is said of it.
func TestAFileThatIsHalfWritten(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	var found []finding.Finding
	w.sched.o.Findings = func(f []finding.Finding) { found = f }
	const good = "---\ntaskId: tz4a98xxat96iws9zmbrgj3a\nevery: 10m\n---\nDo it.\n"
	w.write("cron/t/TASK.md", good)
	w.settle()
	save := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(w.root, "cron/t/TASK.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save("---\ntaskId: ")
	w.sched.Changed("t")

	for _, pause := range rereads {
		if next := w.settle(); !next.Equal(noon.Add(pause)) || len(found) != 0 {
			t.Errorf("it is read again at %v, want after %v; found %v", next, pause, found)
		}
		w.now = noon.Add(pause)
	}

	if w.settle(); len(found) == 0 {
		t.Error("after a second nothing is said of it")
	}
	w.until(noon.Add(10 * time.Minute))
	w.want("t", "12:10 ran")
	save(strings.Replace(good, "Do it.", "Do that.", 1))
	w.sched.Changed("t")
	if w.settle(); len(found) != 0 || w.sched.jobs["t"].task.Prompt != "Do that." {
		t.Errorf("repaired, it is %+v; found %v", w.sched.jobs["t"].task, found)
	}

	save("---\ntaskId: ")
	w.sched.Changed("t")
	w.settle()
	save(good)
	w.until(w.now.Add(rereads[0] + time.Millisecond))
	if len(found) != 0 || w.sched.jobs["t"].task.Prompt != "Do it." {
		t.Errorf("saved whole soon after, it is %+v; found %v", w.sched.jobs["t"].task, found)
	}
}

// A folder of tasks that cannot be listed leaves those that are known in force, and is listed
// again by itself.
func TestAFolderOfTasksThatCannotBeListed(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 10m")
	w.settle()
	dir := filepath.Join(w.root, "cron")
	if err := errors.Join(os.Rename(dir, dir+".away"), os.Symlink("cron", dir)); err != nil {
		t.Fatal(err)
	}

	w.sched.Changed()
	if next := w.settle(); !next.Equal(noon.Add(longest)) || len(w.sched.jobs) != 1 {
		t.Errorf("it is listed again at %v; %d tasks are known", next, len(w.sched.jobs))
	}
	if _, _, err := w.sched.Tasks(); err == nil {
		t.Error("nobody is told that tasks cannot be listed")
	}
	if _, err := Strays(w.root); err == nil {
		t.Error("nobody is told that it cannot be looked at")
	}
	if err := errors.Join(os.Remove(dir), os.Rename(dir+".away", dir)); err != nil {
		t.Fatal(err)
	}

	w.task("new", "every: 10m")
	<-w.sched.wake // nobody says that it is back
	w.sched.stale.take()
	w.until(noon.Add(11 * time.Minute))
	w.want("new", "12:10 ran")
}

// Who works in a task's folder is the task's own agent, no other.
func TestWhoseFilesATaskHas(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("own", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 10m")
	w.task("other", "taskId: tz4a98xxat96iws9zmbrgj3b\nevery: 10m\nagentId: anna")
	w.settle()

	for agent, want := range map[string]string{"tz4a98xxat96iws9zmbrgj3a": filepath.Join(w.root, "cron/own/files"),
		"tz4a98xxat96iws9zmbrgj3b": "", "anna": "", "": ""} {
		if got := w.sched.FilesOf(agent); got != want {
			t.Errorf("%q works in %q, want %q", agent, got, want)
		}
	}
}

// A task whose file is broken is not run by hand in the version of before.
func TestABrokenTaskIsNotRunByHand(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 10m")
	w.settle()
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: often")
	if _, err := w.sched.RunNow("t"); err == nil {
		t.Error("it runs")
	}

	w.settle()
	w.want("t")
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 10m\nname: new")
	if _, err := w.sched.RunNow("t"); err != nil {
		t.Fatal(err)
	}
	if w.settle(); len(w.firings) != 1 || w.firings[0].Name != "new" {
		t.Errorf("fired %+v, want what was saved just before", w.firings)
	}
}

// The end of the program is not a failure of a run: it comes again.
func TestTheEndOfTheProgramIsNoFailure(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	ended := false
	w.due = func(w *world, f Firing) (Result, error) {
		if ended {
			return Result{}, nil
		}
		ended = true
		w.cancel()
		return Result{}, w.ctx.Err()
	}
	w.task("t", "every: 10m\ncatchUp: none")
	w.until(noon.Add(15 * time.Minute))
	w.want("t", "12:10 ran")
	if len(w.firings) != 1 || !w.firings[0].Resumed {
		t.Errorf("fired %+v", w.firings)
	}
}

// How late a run is, is told by the minute.
func TestALateRunSaysHowLate(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "schedule: 0 * * * *")
	w.settle()
	for late, want := range map[time.Duration]struct {
		via Via
		why string
	}{grace: {ViaSchedule, ""}, grace + time.Second: {ViaCatchUp, "late by minute"},
		25*time.Minute + 10*time.Second: {ViaCatchUp, "late by 25 minutes"}} {
		w := newWorld(t, time.UTC, noon)
		w.task("t", "schedule: 0 * * * *")
		w.settle()
		w.now = noon.Add(time.Hour + late)
		if w.settle(); len(w.firings) != 1 || w.firings[0].Via != want.via || w.firings[0].Why != want.why {
			t.Errorf("%v late: fired %+v, want %+v", late, w.firings, want)
		}
	}
}

// Another schedule counts from when the current run has ended: until then none of its slots
// is skipped.
func TestAnotherScheduleDuringARun(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	const id = "taskId: tz4a98xxat96iws9zmbrgj3a\n"
	w.task("t", id+"schedule: \"*/10 * * * *\"")
	w.settle()
	w.now = noon.Add(10 * time.Minute)
	w.sched.step(w.ctx, w.now)
	held := w.work
	w.work = nil
	w.now = w.now.Add(30 * time.Second)
	w.task("t", id+"schedule: \"* * * * *\"")

	for range 3 {
		w.now = w.now.Add(30 * time.Second)
		w.sched.step(w.ctx, w.now)
	}
	for _, f := range held {
		f()
	}

	w.until(noon.Add(13 * time.Minute))
	w.want("t", "12:10 ran", "12:11 missed (daycare was not running)", "12:12 ran", "12:13 ran")
}

// Whoever watches is told of each line of a ledger that has an outcome, once and in its order.
func TestEveryOutcomeIsTold(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	const id = "taskId: tz4a98xxat96iws9zmbrgj3a\n"
	w.task("t", id+"schedule: \"*/10 * * * *\"")
	w.until(noon.Add(11 * time.Minute))
	w.task("t", id+"schedule: \"*/10 * * * *\"\nenabled: false")
	w.until(noon.Add(35 * time.Minute))
	w.task("t", id+"schedule: \"*/10 * * * *\"")
	w.until(noon.Add(41 * time.Minute))
	w.now = noon.Add(3 * time.Hour)
	w.settle()
	w.now = w.now.Add(48 * time.Hour)
	w.settle()
	w.task("t", id+"at: 2026-11-20T11:00")
	w.settle()
	w.due = func(*world, Firing) (Result, error) { return Result{}, errors.New("no agent") }
	w.task("over", "at: 2026-11-20T11:00")
	if _, err := w.sched.RunNow("t"); err != nil {
		t.Fatal(err)
	}

	w.settle()
	var noted []Run
	for _, slug := range []string{"t", "over"} {
		for _, l := range w.lines("cron/" + slug + "/runs.jsonl") {
			if l.Outcome != "" {
				noted = append(noted, runOf(l))
			}
		}
	}

	short := func(all []Run) (list []string) {
		for _, r := range all {
			list = append(list, r.Slot.UTC().Format("02 15:04 ")+string(r.Outcome)+" "+string(r.Via)+" "+r.Reason)
		}
		slices.Sort(list)
		return list
	}
	if got, want := short(w.runs), short(noted); !slices.Equal(got, want) || len(want) < 8 {
		t.Errorf("told were\n%s\nnoted are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What the loop does to files keeps nobody waiting who asks where a task works, or
// says that a file changed.
func TestNobodyWaitsForTheLoop(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nschedule: \"* * * * *\"")
	w.settle()
	w.sched.loop.Lock()
	defer w.sched.loop.Unlock()
	done := make(chan string)
	go func() {
		w.sched.Changed()
		if _, err := w.sched.Task("t"); err != nil {
			t.Error(err)
		}
		done <- w.sched.FilesOf("tz4a98xxat96iws9zmbrgj3a")
	}()

	select {
	case dir := <-done:
		if want := filepath.Join(w.root, "cron/t/files"); dir != want {
			t.Errorf("the task works in %q, want %q", dir, want)
		}
	case <-time.After(time.Minute):
		t.Fatal("asking where a task works waits for the loop")
	}
}

// A folder is watched before the task in it is read: what is saved until then is read, and all that comes later is hinted. A task
// that comes between counts, too.
func TestTasksAreWatchedBeforeTheyAreRead(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	defer w.cancel()
	w.task("t", `schedule: "0 9 * * *"`)
	var watched []string
	w.sched.o.Folders = func(folders []string) {
		if watched == nil { // the last moment at which a change gives no hint
			w.write("cron/t/TASK.md", "---\nschedule: \"0 9 * * *\"\n---\nDo that.\n")
			w.task("new", `schedule: "0 9 * * *"`)
		}
		watched = folders
	}

	w.settle()
	if j := w.sched.jobs["t"]; j == nil || j.task.Prompt != "Do that." {
		t.Errorf("the task reads %+v", j)
	}
	if w.sched.jobs["new"] == nil || !slices.Contains(watched, filepath.Join(w.root, "cron", "new")) {
		t.Errorf("a task that came meanwhile is known: %v; watched are %q", w.sched.jobs["new"] != nil, watched)
	}
}
