package schedule

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// Of two machines with the same files one fires what is due, and when it ends the other one takes over
// where it stopped. By hand a task is run on the one that fires.
func TestOneMachineFires(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w := newWorld(t, time.UTC, start)
	w.task("a", "every: 1m")
	leads, elsewhere := false, errors.New("elsewhere")
	first := w.sched
	w.start() // another process on the same files
	var asked []string
	w.sched.o.Leads = func() bool { return leads }
	w.sched.o.Elsewhere = func(slug string) (time.Time, error) { asked = append(asked, slug); return time.Time{}, elsewhere }
	second := w.sched
	for w.sched = second; len(*second.tasks.Load()) == 0; { // both know the task
		w.settle()
	}
	if _, err := second.RunNow("a"); !errors.Is(err, elsewhere) {
		t.Errorf("run on the machine that does not fire: %v", err)
	}
	if _, err := second.BeatNow(); !errors.Is(err, elsewhere) || !slices.Equal(asked, []string{"a", ""}) {
		t.Errorf("asked elsewhere for %q, %v", asked, err)
	}
	first.spawn = second.spawn
	w.sched = first
	w.until(start.Add(3*time.Minute + time.Second))
	fired := len(w.firings)
	w.sched = second
	w.until(start.Add(5*time.Minute + 2*time.Second))
	if fired != 3 || len(w.firings) != fired {
		t.Fatalf("%d were fired by the first, %d by the second", fired, len(w.firings)-fired)
	}

	leads = true
	Lead{second}.Passed()
	w.until(start.Add(7*time.Minute + time.Second))
	var slots []string
	for _, f := range w.firings {
		slots = append(slots, f.Slot.Format("04:05"))
	}
	if !slices.Equal(slots, []string{"01:00", "02:00", "03:00", "05:00", "06:00", "07:00"}) {
		t.Errorf("fired are %q", slots)
	}
}
