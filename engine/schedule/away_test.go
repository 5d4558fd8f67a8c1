package schedule

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"daycare/engine/disk"
	"daycare/engine/message"
)

// While the machine that has the agent of a task does not answer, the slot waits, and nothing has failed. What is missed
// meanwhile says why, and what is run by hand is skipped with the reason.
func TestSlotsOfAnAgentThatIsAway(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.every = 20 * time.Minute
	gone, gates := true, 0
	away := func() error {
		if !gone {
			return nil
		}
		return fmt.Errorf("%w: %w", disk.ErrAway, &message.Elsewhere{Node: "m2"})
	}
	w.gate = func(context.Context, string, string, Gate) (Output, error) { gates++; return Output{}, away() }
	w.start()
	w.task("t", "every: 10m\ngate: { command: x }")
	w.write("heartbeat/x.md", "---\ntitle: X\ngate: { command: x }\n---\nLook.\n")
	w.until(noon.Add(19*time.Minute + 45*time.Second))
	if len(w.runs) > 0 || len(w.firings) > 0 || gates < 10 {
		t.Errorf("with gates that cannot be asked, which were asked %d times: %+v", gates, w.runs)
	}
	w.until(noon.Add(35 * time.Minute))
	if _, err := w.sched.RunNow("t"); err != nil {
		t.Fatal(err)
	}
	w.until(noon.Add(36 * time.Minute))
	var missed, skipped int
	for _, r := range w.runs {
		switch {
		case !strings.Contains(r.Reason, "do not answer"):
			t.Errorf("a run says not why: %+v", r)
		case r.Outcome == Missed:
			missed += max(r.Count, 1)
		case r.Outcome == Skipped && r.Via == ViaHand:
			skipped++
		default:
			t.Errorf("%+v", r)
		}
	}
	if missed != 2 || skipped != 1 || len(w.firings) > 0 {
		t.Errorf("%d missed, %d run by hand, %d fired", missed, skipped, len(w.firings))
	}

	gone, w.runs = false, nil
	w.until(noon.Add(37 * time.Minute))
	var ran []string
	for _, f := range w.firings {
		ran = append(ran, string(f.Kind)+f.Slot.Format(" 15:04"))
	}
	if got := strings.Join(ran, ", "); len(ran) != 2 || !strings.Contains(got, "cron 12:30") || !strings.Contains(got, "heartbeat") {
		t.Errorf("when the machine answers again: %s", got)
	}

	// It is gone when the run was handed over: that run is waited for, and is no other one.
	tries := 0
	w.due = func(_ *world, f Firing) (Result, error) {
		if tries++; tries < 3 {
			return Result{}, away()
		}
		return Result{}, nil
	}
	gone = false
	w.until(noon.Add(39 * time.Minute))
	gone, w.gate = true, nil
	w.task("u", "every: 5m")
	w.until(noon.Add(45 * time.Minute))
	gone = false
	w.until(noon.Add(47 * time.Minute))
	for _, r := range w.runs {
		if r.Outcome == Failed {
			t.Errorf("failed: %+v", r)
		}
	}
	for key, n := range w.accepted {
		if n != 1 {
			t.Errorf("%s was accepted %d times", key, n)
		}
	}
	if tries < 4 {
		t.Errorf("handed over %d times", tries)
	}
}
