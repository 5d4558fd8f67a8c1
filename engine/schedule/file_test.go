package schedule

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// What is wrong with a TASK.md is told with its place.
func TestFindings(t *testing.T) {
	for _, tt := range []struct {
		name, text, place, reason string
	}{
		{"no text", "---\nevery: 1h\n---\n", "F", "text below the keys is missing"},
		{"no time", "---\nname: x\n---\nDo it.\n", "F", "neither a time"},
		{"no end", "---\nevery: 1h\nDo it.\n", "F:1:1", "a second ---"},
		{"not yaml", "---\nname: x\nschedule: *\n---\nDo it.\n", "F:3", "not YAML"},
		{"bad field", "---\nname: x\nschedule: \"61 * * * *\"\n---\nDo it.\n", "F:3:11", "above maximum"},
		{"bad zone", "---\nevery: 1h\ntimezone: Berlin\n---\nDo it.\n", "F:3:11", "Europe/Berlin"},
		{"bad catchUp", "---\nevery: 1h\ncatchUp: some\n---\nDo it.\n", "F:3:10", "one, all, none"},
		{"bad flag", "---\nevery: 1h\nenabled: perhaps\n---\nDo it.\n", "F:3:10", "true or false"},
		{"a list for a text", "---\nevery: [1h]\n---\nDo it.\n", "F:2:8", "found a list, allowed: a text"},
		{"twice", "---\nevery: 1h\nevery: 2h\n---\nDo it.\n", "F:3:1", "twice"},
		{"gate without command", "---\nevery: 1h\ngate: { timeoutMs: 5 }\n---\nDo it.\n", "F:3:7", "gate.command is missing"},
		{"gate too slow", "---\nevery: 1h\ngate: { command: x, timeoutMs: 1e9 }\n---\nDo it.\n", "F:3:32", "from 1 to 600000"},
		{"watch outside", "---\nwatch: [\"../*\"]\n---\nDo it.\n", "F:2:8", "inside the workspace"},
		{"two times", "---\nevery: 1h\nat: 2026-12-01T09:00\n---\nDo it.\n", "F:2:8", "more than one"},
	} {
		_, found := DecodeTask("F", "t", []byte(tt.text), time.UTC)
		if len(found) == 0 || finding.Join(found) == nil {
			t.Errorf("%s: nothing found", tt.name)
			continue
		}
		if f := found[0]; f.Place() != tt.place || !strings.Contains(f.Reason, tt.reason) {
			t.Errorf("%s: found %s: %s; want %s with %q", tt.name, f.Place(), f.Reason, tt.place, tt.reason)
		}
	}

	task, found := DecodeTask("F", "t", []byte("---\r\ntaskid: x\r\nevery: 1h\r\n---\r\nDo it.\r\n"), time.UTC)
	if len(found) != 1 || found[0].Severity != finding.Warning || finding.Join(found) != nil || task.Prompt != "Do it." {
		t.Errorf("an unknown key gave %+v and %+v", task, found)
	}
}

// A name that cannot be used is told of by whoever reads the file, and what is not a file
// of a task or prompt by who looks at the folder.
func TestOddNames(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.write("heartbeat/Disk Check.md", "Is the disk full?\n")
	w.write("heartbeat/disk.txt", "Is the disk full?\n")
	w.write("heartbeat/runs.jsonl", "")
	for _, file := range []string{"heartbeat/.disk.md", "heartbeat/disk.md~", "cron/.fine/TASK.md", "cron/fine~/TASK.md"} {
		w.write(file, "Of an editor.\n")
	}
	w.write("cron/report.md", "---\nevery: 1h\n---\nDo it.\n")
	w.task("fine", "every: 1h")
	if _, found := DecodePrompt("F", "Disk Check", []byte("Is the disk full?\n")); finding.Join(found) == nil {
		t.Error("nothing is said of a prompt with a name that cannot be used")
	}
	if _, found := DecodeTask("F", "My Task", []byte("---\nevery: 1h\n---\nDo it.\n"), time.UTC); finding.Join(found) == nil {
		t.Error("nothing is said of a task with a name that cannot be used")
	}

	strays, err := Strays(w.root)
	if err != nil || len(strays) != 2 || filepath.Base(strays[0].File) != "report.md" || filepath.Base(strays[1].File) != "disk.txt" {
		t.Fatalf("found %+v, %v; want cron/report.md and heartbeat/disk.txt", strays, err)
	}
	for i, want := range []string{"a task is a folder", "does not end in .md"}[:len(strays)] {
		if !strings.Contains(strays[i].Reason, want) {
			t.Errorf("of %s is said %q", strays[i].File, strays[i].Reason)
		}
	}
	_, found, err := w.sched.Heartbeat()
	if err != nil || len(found) != 2 {
		t.Errorf("of the heartbeat's folder found %+v, %v", found, err)
	}
	if all, found, err := w.sched.Tasks(); err != nil || len(found) != 1 || len(all) != 1 {
		t.Errorf("of the tasks' folder found %+v, %v; there are %+v", found, err, all)
	}
}

// The example of the documentation, whole.
func TestDecodeTask(t *testing.T) {
	data, err := os.ReadFile("testdata/TASK.md")
	if err != nil {
		t.Fatal(err)
	}
	task, found := DecodeTask("TASK.md", "queue-watch", data, time.UTC)
	if len(found) > 0 {
		t.Fatal(found)
	}

	when := task.When
	task.When = Schedule{}
	want := Task{Slug: "queue-watch", ID: "tz4a98xxat96iws9zmbrgj3a", Name: "Queue watch", Timezone: "Europe/Berlin",
		Enabled: true, CatchUp: CatchUpOne,
		Gate:   &Gate{Command: "test -s queue.txt", Timeout: 5 * time.Second},
		Prompt: "Summarise what is waiting in the queue."}
	if d := cmp.Diff(want, task, cmp.AllowUnexported(Schedule{})); d != "" {
		t.Error(d)
	}
	if when.String() != "every 20 minutes from 08:00 to 18:59, Monday to Friday (Europe/Berlin)" {
		t.Errorf("it is due %s", when)
	}
}

func TestWithKeys(t *testing.T) {
	const file = "---\n# mine\nname: Queue   # a name\nwatch:\n  - a\n  - b\n\n# when\nschedule: \"@daily\"\nother: { " +
		"x: 1 }\n---\n\nText.\n---\nmore\n"
	got := string(withKeys([]byte(file), key{"name", "New"}, key{"watch", `["c"]`}, key{"schedule", ""}, key{"every", "1h"}))
	want := "---\n# mine\nname: New   # a name\nwatch: [\"c\"]\n\n# when\nother: { x: 1 }\nevery: 1h\n---\n\nText.\n---\nmore\n"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if got := string(withKeys([]byte("Just text.\n"), key{"title", "x"})); got != "---\ntitle: x\n---\nJust text.\n" {
		t.Errorf("a file without keys becomes %q", got)
	}
	if got := string(withBody([]byte("Just text.\n"), " New text.\n\n")); got != "New text.\n" {
		t.Errorf("a file without keys gets the text %q", got)
	}
}

// A user who saves while the runtime writes loses nothing.
func TestEditUnderAPersonsHands(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "every: 1h")
	s := w.sched.Store
	tries := 0
	err := s.files().edit(s.files().cron("t", taskFile), func(data []byte) ([]byte, error) {
		if tries++; tries == 1 {
			w.task("t", "every: 1h\ndescription: saved meanwhile")
		}
		return withKeys(data, key{"name", "New"}), nil
	})
	text, _ := s.Source("t")
	if err != nil || tries != 2 || !strings.Contains(text, "saved meanwhile") || !strings.Contains(text, "name: New") {
		t.Errorf("%v after %d tries:\n%s", err, tries, text)
	}
}

func TestNamesAreNeverPaths(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "every: 1h")
	for _, name := range []string{"..", "../cron/t", "/etc", "t/../t", ".", "", "T", "t.", "t\x00", "ü", strings.Repeat("a", 65), "-t"} {
		_, err1 := w.sched.Task(name)
		_, err2 := w.sched.Update(name, Change{Name: ptr("x")})
		_, err3 := w.sched.Remove(name)
		_, err4 := w.sched.Memory(name)
		_, err5 := w.sched.RemovePrompt(name)
		_, err6 := w.sched.Runs(name, 1)
		_, err7 := w.sched.Source(name)
		for i, err := range []error{err1, err2, err3, err4, w.sched.SetMemory(name, "x"), err5, err6, err7} {
			if !errors.Is(err, ErrName) {
				t.Errorf("call %d with %q: %v", i, name, err)
			}
		}
	}
}

// Without a scheduler a store reads what one left, and changes files as a user would.
func TestStoreAlone(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "taskId: tttttttttttttttttttttttt\nevery: 10m")
	w.until(noon.Add(25 * time.Minute))
	s := *w.sched.Store
	s.Volume, s.Changed = disk.NewVolume(w.root), nil
	e, err := s.Task("t")
	if err != nil || e.Last == nil || e.Last.Outcome != Ran || len(e.Next) != 3 || !e.Next[0].Equal(noon.Add(30*time.Minute)) {
		t.Errorf("%+v, %v", e, err)
	}
	if runs, err := s.Runs("t", 1); err != nil || len(runs) != 1 || !runs[0].Slot.Equal(noon.Add(20*time.Minute)) {
		t.Errorf("%+v, %v", runs, err)
	}
	if e, err := s.Update("t", Change{Name: ptr("other")}); err != nil || e.Name != "other" || e.ID != "tttttttttttttttttttttttt" {
		t.Errorf("%+v, %v", e, err)
	}
}

// Lines of a ledger that users or crashes spoilt are passed over.
func TestSpoiltLedger(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "every: 10m")
	w.until(noon.Add(10 * time.Minute))
	path := filepath.Join(w.root, "cron/t/runs.jsonl")
	data := must(os.ReadFile(path))
	if err := os.WriteFile(path, append(append([]byte("not json\n\n"), data...), `{"slot":"2026-11`...), 0o600); err != nil {
		t.Fatal(err)
	}

	w.start()
	w.until(noon.Add(20 * time.Minute))
	w.want("t", "12:10 ran", "12:20 ran")
	if kept, _ := filepath.Glob(path + ".torn-*"); len(kept) != 1 {
		t.Error("the torn line was not kept")
	}
}

func FuzzTask(f *testing.F) {
	for _, s := range []string{"---\nevery: 1h\n---\nDo it.\n", "---\na: &x [1]\nwatch: *x\n---\nx",
		"---\ngate: {command: [x]}\n---\n", "---\n- a\n---\n", "---\nname: \"\\0\"\nevery: 1h\n---\nx",
		"---\r\nevery: 1h # c\r\n---\r\nx", "---\n? a\n: b\n---\n", "---\ntaskId: tttttttttttttttttttttttt\n---\n---\n---\n"} {
		f.Add([]byte(s), "new: \"name\"")
	}
	f.Fuzz(func(t *testing.T, data []byte, name string) {
		task, found := DecodeTask("F", "t", data, time.UTC)
		_, _ = DecodePrompt("F", "t", data)
		if finding.Join(found) != nil || strings.ContainsRune(name, 0) {
			return
		}

		for _, f := range found {
			if f.Line < 0 || f.Reason == "" {
				t.Errorf("finding %+v", f)
			}
		}

		// What is written into a file that is active is read again, and nothing
		// else is changed by it.
		if name = strings.TrimSpace(strings.ToValidUTF8(name, "")); name == "" {
			return
		}
		change := Change{Name: &name, Enabled: ptr(false)}
		again, found := DecodeTask("F", "t", withKeys(data, change.keys()...), time.UTC)
		if finding.Join(found) != nil {
			t.Skip("a key in a shape that cannot be replaced is refused by Update")
		}

		task.Name, task.Enabled = again.Name, false
		if again.Name != name && strings.TrimSpace(again.Name) != name {
			t.Errorf("%q was written and %q is read from\n%s", name, again.Name, withKeys(data, change.keys()...))
		}
		if d := cmp.Diff(task, again, cmp.Comparer(func(a, b Schedule) bool { return a.text() == b.text() })); d != "" {
			t.Errorf("of\n%s\nother things changed:\n%s", data, d)
		}
	})
}
