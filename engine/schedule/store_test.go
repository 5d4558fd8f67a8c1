package schedule

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/beneath"
	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
	"daycare/engine/finding"
)

// bySchedule compares schedules by what they say.
var bySchedule = cmp.Comparer(func(a, b Schedule) bool { return a.text() == b.text() })

// counted is a store of a world that counts how often it says that something changed.
func counted(w *world) (s *Store, changed *int) {
	s, changed = &Store{}, new(int)
	*s = *w.sched.Store
	s.Changed = func() { *changed++ }
	return s, changed
}

// Each member of a change becomes a line of the file, and is read as it was meant; an empty
// one takes its line out.
func TestAChangeIsReadAsItWasMeant(t *testing.T) {
	s, changed := counted(newWorld(t, time.UTC, noon))
	e, err := s.Create("", Change{Name: ptr("Queue: watch"), Description: ptr("looks # at it"), Prompt: ptr("\nLook.\n"),
		Timing: &Timing{Cron: "0 9 * * *"}, Timezone: ptr("Europe/Berlin"), Enabled: ptr(false), Agent: ptr("anna"),
		CreatedBy: ptr("bert"), Source: ptr("mail from eve"), CatchUp: ptr(CatchUpAll), DeleteAfterRun: ptr(true), Model: ptr("m"),
		GateCommand: ptr(`test "$x" = 1 # y`), Watch: &[]string{"a/*", "b: c"}, WatchCommand: ptr("date")})
	if err != nil || !idRule.MatchString(e.ID) || *changed != 1 {
		t.Fatalf("made %+v, %v; changed %d times", e, err, *changed)
	}
	want := Task{Slug: "queue-watch", ID: e.ID, Name: "Queue: watch", Description: "looks # at it", Prompt: "Look.",
		When: cronOf(t, "0 9 * * *", "Europe/Berlin"), Timezone: "Europe/Berlin", Agent: "anna", CreatedBy: "bert",
		Source: "mail from eve", CatchUp: CatchUpAll, DeleteAfterRun: true, Model: "m",
		Gate: &Gate{Command: `test "$x" = 1 # y`, Timeout: gateTimeout}, Watch: []string{"a/*", "b: c"}, WatchCommand: "date"}
	if d := cmp.Diff(want, e.Task, bySchedule); d != "" {
		t.Errorf("made (-want +got):\n%s", d)
	}

	e, err = s.Update("queue-watch", Change{Timing: &Timing{Every: "1h"}, Enabled: ptr(true), Prompt: ptr("Look again.")})
	want.When, want.Enabled, want.Prompt = must(NewSchedule(Timing{Every: "1h"}, zone(t, "Europe/Berlin"))), true, "Look again."
	if d := cmp.Diff(want, e.Task, bySchedule); d != "" || err != nil || *changed != 2 {
		t.Errorf("changed (%v, %d times; -want +got):\n%s", err, *changed, d)
	}

	e, err = s.Update("queue-watch", Change{Timing: &Timing{At: "2026-12-01T09:00"}})
	want.When = must(NewSchedule(Timing{At: "2026-12-01T09:00"}, zone(t, "Europe/Berlin")))
	if d := cmp.Diff(want, e.Task, bySchedule); d != "" || err != nil {
		t.Errorf("once (%v; -want +got):\n%s", err, d)
	}

	e, err = s.Update("queue-watch", Change{Timing: &Timing{Every: "1h"}, Description: ptr(""), Timezone: ptr(""),
		Agent: ptr(""), CreatedBy: ptr(""), Source: ptr(""),
		CatchUp: ptr(CatchUp("")), DeleteAfterRun: ptr(false), Model: ptr(""), GateCommand: ptr("a <b && c"), Watch: &[]string{},
		WatchCommand: ptr("")})
	if text := must(s.Source("queue-watch")); err != nil || !strings.Contains(text, "\ngate: { command: \"a <b && c\" }\n") {
		t.Errorf("%v, the gate is written as\n%s", err, text)
	}

	e, err = s.Update("queue-watch", Change{GateCommand: ptr("")})
	want = Task{Slug: "queue-watch", ID: e.ID, Name: "Queue: watch", Prompt: "Look again.", Enabled: true, CatchUp: CatchUpOne,
		When: must(NewSchedule(Timing{Every: "1h"}, time.UTC))}
	if d := cmp.Diff(want, e.Task, bySchedule); d != "" || err != nil {
		t.Errorf("emptied (%v; -want +got):\n%s", err, d)
	}
	text, err := s.Source("queue-watch")
	if want := fmt.Sprintf("---\ntaskId: %s\nname: \"Queue: watch\"\nenabled: true\ndeleteAfterRun: false\nevery: 1h\n---\nLook again.\n",
		e.ID); err != nil || text != want {
		t.Errorf("%v, the file is\n%s\nwant\n%s", err, text, want)
	}
}

// What would not be active is refused, and nothing of it is left.
func TestAChangeThatIsRefusedLeavesNothing(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	s, changed := counted(w)
	for name, c := range map[string]Change{
		"no time":   {Name: ptr("x"), Prompt: ptr("Do it.")},
		"no text":   {Name: ptr("x"), Timing: &Timing{Every: "1h"}},
		"bad time":  {Name: ptr("x"), Prompt: ptr("Do it."), Timing: &Timing{Every: "1s"}},
		"two times": {Name: ptr("x"), Prompt: ptr("Do it."), Timing: &Timing{Every: "1h", Cron: "@daily"}},
		"too long":  {Name: ptr("x"), Prompt: ptr(strings.Repeat("word ", maxFile/5)), Timing: &Timing{Every: "1h"}},
	} {
		if e, err := s.Create("", c); err == nil {
			t.Errorf("%s: made %+v", name, e)
		}
	}
	if all, _ := filepath.Glob(filepath.Join(w.root, "cron/*/*")); len(all) > 0 || *changed != 0 {
		t.Errorf("%v are left, changed %d times", all, *changed)
	}
	w.task("t", "every: 1h")
	before := must(s.Source("t"))
	for name, c := range map[string]Change{
		"no time":  {Timing: &Timing{}},
		"no text":  {Prompt: ptr(" ")},
		"bad zone": {Timezone: ptr("Berlin")},
		"too long": {Prompt: ptr(strings.Repeat("word ", maxFile/5))},
	} {
		if e, err := s.Update("t", c); err == nil {
			t.Errorf("%s: changed to %+v", name, e)
		}
	}
	if now := must(s.Source("t")); now != before || *changed != 0 {
		t.Errorf("changed %d times, to\n%s", *changed, now)
	}
	for name, err := range map[string]error{
		"update": second(s.Update("none", Change{Name: ptr("x")})), "remove": second(s.Remove("none")), "source": second(s.Source("none")),
		"memory": second(s.Memory("none")), "set memory": s.SetMemory("none", "x"), "runs": second(s.Runs("none", 1)),
		"task": second(s.Task("none")), "remove a prompt": second(s.RemovePrompt("none")),
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s of a task that is not there: %v", name, err)
		}
	}
	if *changed != 0 || exists(filepath.Join(w.root, "cron/none")) {
		t.Errorf("changed %d times, or a folder was made", *changed)
	}
}

// second is the error of a call.
func second[T any](_ T, err error) error { return err }

// A call that is repeated with its id finds the task that the first one made.
func TestATaskIsMadeOnce(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	s, changed := counted(w)
	const id = "tz4a98xxat96iws9zmbrgj3a"
	first, err := s.Create(id, Change{Prompt: ptr("Water the plants in the hall."), Timing: &Timing{Every: "1h"}})
	if err != nil || first.ID != id || first.Slug != "water-the-plants-in" || first.Name != "Water the plants in" {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := s.Create(id, Change{Prompt: ptr("Something else."), Timing: &Timing{Every: "2h"}})
	if d := cmp.Diff(first.Task, again.Task, bySchedule); d != "" || err != nil || *changed != 1 {
		t.Errorf("%v, changed %d times:\n%s", err, *changed, d)
	}
	for i, tt := range []struct{ name, slug string }{
		{"Water the plants in", "water-the-plants-in-2"}, {"Water the PLANTS, in", "water-the-plants-in-3"}, {"…", "task"}, {"?", "task-2"},
		{"A name that is longer than the forty letters of a folder", "a-name-that-is-longer-than-the-forty-let"},
		{"A name that is longer than forty lette rs", "a-name-that-is-longer-than-forty-lette-r"},
		{"A name that is longer than a forty letter rs", "a-name-that-is-longer-than-a-forty-lette"},
		{"A name which ends at the fortieth and l x", "a-name-which-ends-at-the-fortieth-and-l"},
	} {
		e, err := s.Create("", Change{Name: &tt.name, Prompt: ptr("x"), Timing: &Timing{Every: "1h"}})
		if err != nil || e.Slug != tt.slug || e.Name != tt.name {
			t.Errorf("%d: %q became %s, %q, %v; want %s", i, tt.name, e.Slug, e.Name, err, tt.slug)
		}
	}
}

// What a task keeps for its next run is replaced as a whole, and is never too long.
func TestTheMemoryOfATask(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "every: 1h")
	s := w.sched.Store
	if text, err := s.Memory("t"); text != "" || err != nil {
		t.Errorf("before any: %q, %v", text, err)
	}
	for _, text := range []string{"one\n\n", "two"} {
		if err := s.SetMemory("t", text); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Memory("t"); got != strings.TrimSpace(text)+"\n" || err != nil {
			t.Errorf("%q is kept as %q, %v", text, got, err)
		}
	}
	if err := s.SetMemory("t", strings.Repeat("x", maxFile)); err == nil {
		t.Error("more than fits is kept")
	}
	if err := s.SetMemory("t", strings.Repeat("x", maxFile-1)); err != nil {
		t.Errorf("as much as fits: %v", err)
	}
	path := filepath.Join(w.root, "cron/t", memoryFile)
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if text, err := s.Memory("t"); err == nil {
		t.Errorf("a folder in its place is read as %q", text)
	}
	if err := s.SetMemory("t", "x"); !errors.Is(err, beneath.ErrKind) {
		t.Errorf("a folder in its place: %v", err)
	}
}

// What is removed is in the trash, whole.
func TestWhatIsRemovedIsInTheTrash(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	s, changed := counted(w)
	w.task("t", "every: 1h")
	w.write("heartbeat/disk.md", "Is the disk full?")
	for remove, file := range map[string]string{must(s.Remove("t")): taskFile, must(s.RemovePrompt("disk")): ""} {
		if filepath.Dir(remove) != filepath.Join(w.root, "trash") || !exists(filepath.Join(remove, file)) ||
			!strings.HasPrefix(filepath.Base(remove), "20261120T120000.000Z-") {
			t.Errorf("it was moved to %s", remove)
		}
	}
	if *changed != 2 || exists(filepath.Join(w.root, "cron/t")) || exists(filepath.Join(w.root, "heartbeat/disk.md")) {
		t.Errorf("changed %d times, or something is left", *changed)
	}
	w.task("u", "every: 1h")
	w.remove("trash")
	if err := os.WriteFile(filepath.Join(w.root, "trash"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remove("u"); err == nil || !strings.Contains(err.Error(), "make trash") || !exists(filepath.Join(w.root, "cron/u")) {
		t.Errorf("without a trash: %v", err)
	}
}

// What is written into a file is durable when the call returns, at the price of one barrier for its
// folder, also where it says that already.
func TestAnEditCostsOneBarrier(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "every: 1h")
	for _, name := range []string{"new", "new", "newer"} {
		barriers := 0
		crash.Meanwhile(t, "task.dirsync", func(k int) { barriers = k })
		if _, err := w.sched.Store.Update("t", Change{Name: &name}); err != nil || barriers != 1 {
			t.Errorf("%s: %d barriers, %v", name, barriers, err)
		}
	}
}

// Whoever changes tasks and prompts hears of any step that fails.
func TestEachFailedStepOfATaskIsReported(t *testing.T) {
	full := Change{Name: ptr("t"), Prompt: ptr("Do it."), Timing: &Timing{Every: "1h"}}
	for name, op := range map[string]func(s *Store) error{
		"create": func(s *Store) error { return second(s.Create("", full)) },
		"update": func(s *Store) error { return second(s.Update("old", Change{Name: ptr("new")})) },
		"create again": func(s *Store) error {
			_, err := s.Create("tz4a98xxat96iws9zmbrgj3a", full)
			return err
		},
		"no change":  func(s *Store) error { return second(s.Update("old", Change{Timing: &Timing{Every: "1h"}})) },
		"remove":     func(s *Store) error { return second(s.Remove("old")) },
		"memory":     func(s *Store) error { return s.SetMemory("old", "x") },
		"prompt":     func(s *Store) error { return second(s.AddPrompt("t", "x", "", "", false)) },
		"no prompt":  func(s *Store) error { return second(s.RemovePrompt("old")) },
		"give it id": func(s *Store) error { return s.files().identify("old") },
		"line of a run": func(s *Store) error {
			return write(s.Volume, s.files().cron("old", runsFile), line{At: noon, Slot: &noon, Outcome: Ran})
		},
	} {
		for _, fault := range []string{"eio", "enospc"} {
			if name == "line of a run" && fault == "enospc" {
				continue // for the lines of a ledger room is kept back
			}
			t.Run(name, func(t *testing.T) {
				crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
					w := newWorld(t, time.UTC, noon)
					w.task("old", "every: 1h")
					w.task("made", "taskId: tz4a98xxat96iws9zmbrgj3a\nevery: 1h")
					w.write("heartbeat/old.md", "x")
					return func() error { return op(w.sched.Store) }
				})
			})
		}
	}
}

// A run is in progress from its firing to its end; the newest are shown, the oldest first.
func TestRunsOfATask(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	seen := 0
	w.due = func(w *world, f Firing) (Result, error) {
		e, err := w.sched.Task("t")
		runs, err2 := w.sched.Runs("t", 0)
		if err != nil || err2 != nil || !e.Running || len(runs) == 0 || e.Last == nil || *e.Last != runs[len(runs)-1] {
			t.Fatalf("%+v, %+v, %v, %v", e, runs, err, err2)
		}
		if last := runs[len(runs)-1]; last.Outcome != "" || !last.Slot.Equal(f.Slot) {
			t.Errorf("under way is %+v, of %s", last, f.Slot)
		}
		seen++
		w.now = w.now.Add(1500 * time.Millisecond)
		return Result{}, nil
	}
	w.task("t", "every: 10m")
	w.until(noon.Add(35 * time.Minute))
	for n, want := range map[int]int{0: 3, 1: 1, 2: 2, 3: 3, 9: 3} {
		runs, err := w.sched.Runs("t", n)
		if err != nil || len(runs) != want {
			t.Errorf("of the newest %d there are %+v, %v", n, runs, err)
			continue
		}
		for i, r := range runs {
			if at := noon.Add(time.Duration(3-want+i+1) * 10 * time.Minute); !r.Slot.Equal(at) || r.Outcome != Ran || r.MS != 1500 ||
				r.Count != 1 || r.Item != "item" {
				t.Errorf("of the newest %d number %d is %+v", n, i, r)
			}
		}
	}
	if e, err := w.sched.Task("t"); err != nil || e.Running || seen != 3 {
		t.Errorf("after %d runs: %+v, %v", seen, e, err)
	}
}

// unreadOnly reports that one file cannot be read, and nothing else.
func unreadOnly(found []finding.Finding, path string) bool {
	return len(found) == 1 && found[0].ID == unread && found[0].File == path && found[0].Severity == finding.Error &&
		found[0].Reason != "" && found[0].Remedy != ""
}

// A task whose file, or whose ledger, cannot be read is listed with that, beside the others
// as they are. What this process has read of it continues, and it counts again once it can be
// read, though nothing says so.
func TestATaskThatCannotBeReadHidesNoOther(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	for _, slug := range []string{"a", "b", "c"} {
		w.task(slug, "every: 10m\nname: task "+slug)
	}
	w.until(noon.Add(time.Minute))
	path, ledger := filepath.Join(w.root, "cron/a", taskFile), filepath.Join(w.root, "cron/b", runsFile)
	for _, file := range []string{path, ledger} {
		if err := errors.Join(os.Rename(file, file+"~"), os.Mkdir(file, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	all, found, err := w.sched.Store.Tasks()
	if err != nil || len(found) > 0 || len(all) != 3 {
		t.Fatalf("listed are %+v, %v, %v", all, found, err)
	}
	if a := all[0]; a.Slug != "a" || a.Name != "a" || !unreadOnly(a.Found, path) || len(a.Next) > 0 {
		t.Errorf("without its file: %+v", a)
	}
	if b := all[1]; b.Name != "task b" || !unreadOnly(b.Found, ledger) || len(b.Next) > 0 {
		t.Errorf("without its ledger: %+v", b)
	}
	if c := all[2]; c.Name != "task c" || len(c.Found) > 0 || len(c.Next) != 3 {
		t.Errorf("the other: %+v", c)
	}
	w.sched.Changed("a", "b")
	w.until(noon.Add(11 * time.Minute))
	all, _, err = w.sched.Tasks()
	if err != nil || len(all) != 3 || all[0].Name != "task a" || !unreadOnly(all[0].Found, path) || len(all[0].Next) != 3 ||
		all[1].Name != "task b" || !unreadOnly(all[1].Found, ledger) || len(all[2].Found) > 0 {
		t.Errorf("as they are in force: %+v, %v", all, err)
	}
	w.want("a", "12:10 ran")
	w.want("c", "12:10 ran")
	for _, file := range []string{path, ledger} {
		if err := errors.Join(os.Remove(file), os.Rename(file+"~", file)); err != nil {
			t.Fatal(err)
		}
	}
	w.sched.stale.take()
	w.until(noon.Add(21 * time.Minute))
	if told := w.sched.seen.told; len(told) > 0 {
		t.Errorf("wrong is still %v", told)
	}
	if all, _, err = w.sched.Tasks(); err != nil || len(all[0].Found)+len(all[1].Found) > 0 {
		t.Errorf("once they can be read: %+v, %v", all, err)
	}
}

// A file is neither a task nor a prompt if it is too large, a folder or something else.
func TestFilesThatAreNoTasks(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("large", "every: 1h\ndescription: "+strings.Repeat("x", maxFile))
	if err := os.MkdirAll(filepath.Join(w.root, "cron/folder", taskFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if e, err := w.sched.Store.Task("large"); err == nil && finding.Join(e.Found) == nil {
		t.Errorf("a large file is %+v", e.Task.Slug)
	}
	if e, err := w.sched.Store.Task("folder"); err != nil || !unreadOnly(e.Found, filepath.Join(w.root, "cron/folder", taskFile)) {
		t.Errorf("a folder is %+v, %v", e, err)
	}
	w.settle()
	if len(w.sched.jobs) != 0 {
		t.Errorf("%d of them are in force", len(w.sched.jobs))
	}
}
