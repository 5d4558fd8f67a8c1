//go:build !race

package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Clocks that jump, over years and thousands of slots. The tests run the steps of the loop themselves and
// start no goroutine, so the race detector would find nothing, ten times as slowly.

// ledger writes the ledger of a task: a run for each slot, and lines that are
// longer than what one look at a ledger reads.
func (w *world) ledger(slug string, spec string, slots ...time.Time) {
	w.t.Helper()
	var text []byte
	for _, slot := range slots {
		data, err := json.Marshal(line{Slot: &slot, At: slot, Outcome: Ran, Spec: specHash(spec), Reason: fmt.Sprintf("%80s", "")})
		if err != nil {
			w.t.Fatal(err)
		}
		text = append(append(text, data...), '\n')
	}
	if err := os.WriteFile(filepath.Join(w.root, "cron", slug, runsFile), text, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// minutes are n minutes in a row.
func minutes(from time.Time, n int) (all []time.Time) {
	for i := range n {
		all = append(all, from.Add(time.Duration(i)*time.Minute))
	}
	return all
}

// A ledger that is ahead of the clock does not make slots of the past due.
func TestLedgerAheadOfTheClock(t *testing.T) {
	for _, catchUp := range []CatchUp{CatchUpOne, CatchUpAll, CatchUpNone} {
		w := newWorld(t, time.UTC, noon)
		w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nschedule: \"* * * * *\"\ncatchUp: "+string(catchUp))
		w.ledger("t", "* * * * * UTC", minutes(noon.AddDate(3, 0, 0), 5000)...)
		w.due = func(w *world, f Firing) (Result, error) {
			if !f.Slot.Equal(noon.Add(time.Minute)) && !f.Slot.Equal(noon.Add(2*time.Minute)) {
				t.Errorf("%s: slot %s was fired at %s", catchUp, f.Slot, w.now)
				w.cancel()
			}
			return Result{}, nil
		}
		w.until(noon.Add(2*time.Minute + 10*time.Second))
		if len(w.firings) != 2 {
			t.Errorf("%s: %d slots were fired in two minutes, want 2", catchUp, len(w.firings))
		}
	}
}

// What ran while the clock was ahead does not run again, also if it was more than
// what one look at a ledger reads.
func TestLongTimeAhead(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	w.task("t", "taskId: tz4a98xxat96iws9zmbrgj3a\nschedule: \"* * * * *\"\ncatchUp: all")
	w.ledger("t", "* * * * * UTC", minutes(noon.Add(-time.Hour), 5000)...)
	w.until(noon.Add(70 * time.Minute))
	if len(w.firings) != 0 {
		t.Errorf("%d slots were fired again, the first is %s", len(w.firings), w.firings[0].Slot)
	}
	w.now = noon.Add(5000*time.Minute - time.Hour)
	w.settle()
	if len(w.firings) != 1 {
		t.Errorf("%d slots were fired when the clock had passed the ledger, want 1", len(w.firings))
	}
}

// A clock that starts in 2001 and is set right costs one late run, or as many as are
// caught up with at most. The backlog is counted, not stepped through.
func TestClockJumpsOverYears(t *testing.T) {
	for catchUp, want := range map[CatchUp]int{CatchUpOne: 1, CatchUpAll: maxCatchUp, CatchUpNone: 1} {
		w := newWorld(t, time.UTC, time.Date(2001, 1, 1, 0, 0, 30, 0, time.UTC))
		w.task("t", "schedule: \"* * * * *\"\ncatchUp: "+string(catchUp))
		w.settle()
		begin, newest := w.now.Truncate(time.Minute), noon.Add(-time.Minute)
		w.now = noon.Add(-time.Second)
		w.settle()
		fired := len(w.firings)
		if fired != want || !w.firings[fired-1].Slot.Equal(newest) {
			t.Fatalf("%s: %d slots were fired, want %d, the last %s", catchUp, fired, want, newest)
		}

		l := w.lines("cron/t/runs.jsonl")[1]
		if all := int(newest.Sub(begin) / time.Minute); l.Outcome != Missed || l.Count+fired != all {
			t.Errorf("%s: the ledger notes %d missed slots (%s), want %d", catchUp, l.Count, l.Outcome, all-fired)
		}
		w.start() // and that is how it is read again
		w.until(noon.Add(time.Second))
		if len(w.firings) != fired+1 {
			t.Errorf("%s: %d slots were fired in the next minute, want 1", catchUp, len(w.firings)-fired)
		}
	}
}

// A clock that shows 2001 for a while and is right again makes no backlog of the
// years in between.
func TestClockBackForAWhile(t *testing.T) {
	for _, restart := range []bool{false, true} {
		w := newWorld(t, time.UTC, noon)
		w.task("t", "schedule: \"* * * * *\"\ncatchUp: all")
		w.until(noon.Add(10*time.Minute + time.Second))
		w.now = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
		w.until(w.now.Add(20 * time.Hour)) // more than what one look at a ledger reads
		w.now = noon.Add(12*time.Minute + time.Second)
		if restart {
			w.start()
		}

		before := len(w.firings)
		w.settle()
		if got := len(w.firings) - before; got != 2 {
			t.Errorf("restart %v: %d slots were fired, want the two that were not", restart, got)
		}
	}
}

// When it is to end, the loop begins nothing more.
func TestEndsBetweenTasks(t *testing.T) {
	w := newWorld(t, time.UTC, noon)
	for i := range 10 {
		w.task(fmt.Sprintf("t%d", i), "schedule: \"* * * * *\"\ncatchUp: all")
	}
	w.settle()
	w.now = noon.Add(24 * time.Hour)
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	w.sched.step(ctx, w.now)
	if len(w.work) != 0 {
		t.Errorf("%d runs were begun after the end", len(w.work))
	}
}

// However the clock jumps, no slot runs twice, no jump costs more runs than are
// caught up with, and once the clock continues evenly every slot runs on time.
func TestWildClock(t *testing.T) {
	lives, fired, lines := 4, 0, 0
	if os.Getenv("DAYCARE_LONG") != "" {
		lives = 1000
	}

	for seed := range lives {
		r := rand.New(rand.NewPCG(uint64(seed), 5))
		w := newWorld(t, zone(t, zones[r.IntN(len(zones))]), noon.Add(time.Duration(r.Int64N(int64(time.Hour)))))
		for i, when := range []string{`schedule: "*/20 * * * *"`, "every: 7m", `schedule: "30 2 * * *"`} {
			for _, c := range []CatchUp{CatchUpAll, CatchUpOne, CatchUpNone} {
				w.task(fmt.Sprintf("t%d-%s", i, c), when+"\ncatchUp: "+string(c))
			}
		}

		for range 4 {
			before := len(w.firings)
			w.wild(r)
			w.settle()
			if n := len(w.firings) - before; n > 9*(maxCatchUp+2) {
				t.Fatalf("life %d: a jump to %s made %d runs", seed, w.now, n)
			}
			w.until(w.now.Add(time.Duration(r.Int64N(int64(3 * time.Hour)))))
		}

		from := w.now
		w.until(from.Add(9 * time.Hour))
		fired += len(w.firings)
		lines += w.judgeWild(seed, from)
	}

	t.Logf("%d lives: %d slots were fired, %d lines", lives, fired, lines)
}

// wild sets the clock to some other time, near or far, with or without a restart.
func (w *world) wild(r *rand.Rand) {
	switch r.IntN(4) {
	case 0:
		w.now = time.Unix(r.Int64N(4_000_000_000), 0)
	case 1:
		w.now = w.now.Add(time.Duration(r.Int64N(int64(96*time.Hour))) - 48*time.Hour)
	case 2:
		w.now = noon.Add(time.Duration(r.Int64N(int64(time.Hour)))) // right again
	default:
		w.now = w.now.Add(time.Duration(r.Int64N(int64(10*time.Minute))) - 5*time.Minute)
	}

	if r.IntN(2) == 0 {
		w.start()
	}
}

// judgeWild looks for slots with two runs, and for slots after from without one.
func (w *world) judgeWild(seed int, from time.Time) (lines int) {
	w.t.Helper()
	tasks, _, err := w.sched.Tasks()
	if err != nil {
		w.t.Fatal(err)
	}

	for _, e := range tasks {
		all := w.lines("cron/" + e.Slug + "/runs.jsonl")
		lines += len(all)
		ran := map[int64]int{}
		for _, l := range all {
			if l.Outcome == Ran {
				ran[l.Slot.Unix()]++
			}
		}

		for slot, n := range ran {
			if n > 1 {
				w.t.Errorf("life %d: %s ran slot %s %d times", seed, e.Slug, time.Unix(slot, 0).UTC(), n)
			}
		}
		anchor := all[slices.IndexFunc(all, func(l line) bool { return l.Set != "" })].From
		for at, ok := e.When.Next(from, *anchor); ok && !at.After(w.now); at, ok = e.When.Next(at, *anchor) {
			if ran[at.Unix()] != 1 {
				w.t.Errorf("life %d: %s did not run slot %s, though the clock went on evenly from %s", seed, e.Slug, at, from)
			}
		}
	}

	return lines
}

// A slot that ran while the clock was ahead is accounted for when its time comes, whatever the scheduler wakes for: it neither
// runs again nor was missed.
func TestASlotThatRanAheadOfTheClock(t *testing.T) {
	for _, catchUp := range []CatchUp{CatchUpAll, CatchUpOne, CatchUpNone} {
		task := "taskId: tz4a98xxat96iws9zmbrgj3a\nschedule: \"*/30 * * * *\"\ncatchUp: " + string(catchUp) + "\nname: "
		w := newWorld(t, time.UTC, noon)
		w.task("t", task+"first")
		w.until(noon.Add(130 * time.Minute))
		if w.offered != 4 || len(w.runs) != 4 {
			t.Fatalf("%s: %d runs in two hours", catchUp, w.offered)
		}
		w.now = noon.Add(5 * time.Minute)
		w.start()
		w.settle()
		for _, at := range []time.Duration{35, 65, 125} {
			w.now = noon.Add(at * time.Minute)
			w.task("t", task+at.String()) // it is looked at for another reason
			if w.settle(); w.offered != 4 || len(w.runs) != 4 {
				t.Errorf("%s: after %d minutes %d ran: %+v", catchUp, at, w.offered, w.runs)
			}
		}
		if w.until(noon.Add(151 * time.Minute)); w.offered != 5 || len(w.runs) != 5 {
			t.Errorf("%s: after all of them %d ran, want the next one, too", catchUp, w.offered)
		}
	}
}
