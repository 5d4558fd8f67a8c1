package schedule

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"daycare/engine/disk"
)

// A hint names the task whose folder changed, and that one is read; one without a name, a
// new task, one that is gone and one with another id have all looked at.
func TestAChangedTaskIsReadAlone(t *testing.T) {
	s := manyTasks(t, 20)
	save := func(slug, text string) {
		t.Helper()
		if err := os.MkdirAll(s.files().cron(slug), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.files().cron(slug, taskFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	task := func(id int, prompt string) string {
		return fmt.Sprintf("---\ntaskId: c%023d\nschedule: 5 4 * * *\n---\n%s\n", id, prompt)
	}
	prompts := func(want ...string) {
		t.Helper()
		s.step(t.Context(), s.Now())
		for i, slug := range []string{"task-1", "task-2", "task-3"} {
			got := "gone"
			if j := s.jobs[slug]; j != nil {
				got = j.task.Prompt
			}
			if got != want[i] {
				t.Errorf("the prompt of %s is %q, want %q", slug, got, want[i])
			}
		}
	}
	prompts("Look around.", "Look around.", "Look around.")
	save("task-1", task(1, "One."))
	save("task-2", task(2, "Two."))
	s.Changed("task-2")
	prompts("Look around.", "Two.", "Look around.")
	save("task-3", task(99, "Another."))
	s.Changed("task-3")
	prompts("One.", "Two.", "Another.")
	save("task-1", task(1, "One more."))
	save("new", task(50, "New."))
	s.Changed("new")
	prompts("One more.", "Two.", "Another.")
	if err := os.RemoveAll(s.files().cron("task-2")); err != nil {
		t.Fatal(err)
	}

	s.Changed("task-2")
	prompts("One more.", "gone", "Another.")
	save("task-3", task(1, "A copy."))
	s.Changed("task-3")
	prompts("One more.", "gone", "gone")
	save("task-1", task(7777, "Not the original any more."))
	s.Changed("task-1")
	prompts("Not the original any more.", "gone", "A copy.")
	save("task-1", task(7777, "Once more."))
	s.Changed()
	prompts("Once more.", "gone", "A copy.")
}

// BenchmarkEditedTask: one task of 3,000 is edited.
func BenchmarkEditedTask(b *testing.B) {
	s := manyTasks(b, 3000)
	path := s.files().cron("task-7", taskFile)
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}

	for b.Loop() {
		data = append(data, '\n')
		if err := os.WriteFile(path, data, 0o600); err != nil {
			b.Fatal(err)
		}
		s.Changed("task-7")
		s.step(b.Context(), s.Now())
	}
}

// BenchmarkFirstLook: 3,000 tasks are read at a start.
func BenchmarkFirstLook(b *testing.B) {
	s := manyTasks(b, 3000)
	for b.Loop() {
		again := New(s.o)
		again.step(b.Context(), s.Now())
	}
}

// manyTasks is a scheduler that has looked at so many tasks.
func manyTasks(tb testing.TB, n int) *Scheduler {
	tb.Helper()
	root := tb.TempDir()
	later := (time.Now().UTC().Hour() + 12) % 24 // none is due while they are measured
	for i := range n {
		dir := filepath.Join(root, "cron", fmt.Sprint("task-", i))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			tb.Fatal(err)
		}
		text := fmt.Sprintf("---\ntaskId: c%023d\nschedule: %d %d * * *\n---\nLook around.\n", i, i%60, later)
		if err := os.WriteFile(filepath.Join(dir, taskFile), []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}

	s := New(Options{Store: &Store{Root: root, Volume: disk.NewVolume(root), Now: time.Now,
		Zone:  func() *time.Location { return time.UTC },
		Every: func() time.Duration { return 0 }, Hours: func() Hours { return Hours{} }}})
	s.step(tb.Context(), s.Now())
	if len(s.jobs) != n {
		tb.Fatalf("%d tasks were read, want %d: %v", len(s.jobs), n, s.seen.told)
	}

	return s
}
