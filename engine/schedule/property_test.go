package schedule

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"daycare/engine/disk"
)

func decodeLines(data []byte) []line {
	var all []line
	for _, text := range disk.Lines(data) {
		var l line
		if json.Unmarshal(text, &l) == nil {
			all = append(all, l)
		}
	}

	return all
}

// clocked are the tasks of the property test: each way to write a time under each
// way to catch up.
var clocked = []string{
	`schedule: "0 */8 * * *"`, `schedule: "30 2 * * *"`, `schedule: "45 1-2 * * *"`, `schedule: "0 0 * * *"`,
	"every: 11h", `schedule: "15 9 * * mon-fri"`,
}

// everySlotOnce: every slot is fired exactly once if all are caught up with, at most once else,
// and each has its line in the ledger, whatever happens to the process and to the
// clock in so many years and days. One thing in rare happens to them.
func everySlotOnce(t *testing.T, years, days, rare int, some []string) {
	var mu sync.Mutex
	total := tally{}
	for i, name := range some {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			z := zone(t, name)
			w := newWorld(t, z, time.Date(2025, 3, 20, 11, 7, 13, 0, time.UTC))
			for n, when := range clocked {
				for m, c := range []CatchUp{CatchUpAll, CatchUpOne, CatchUpNone} {
					w.task(fmt.Sprintf("t%d-%s", n, c), fmt.Sprintf("taskId: %024d\n%s\ncatchUp: %s", n*10+m, when, c))
				}
			}

			one := tally{zones: 1}
			one.life = w.live(rand.New(rand.NewPCG(uint64(i), 8)), w.now.AddDate(years, 0, days), rare)
			one.judge(w)
			mu.Lock()
			defer mu.Unlock()
			total.add(one)
		})
	}

	t.Cleanup(func() { t.Logf("%+v", total) }) // when all have ended
}

// A tally is what a world lived through and what its ledgers say. twice and lost
// are the slots that were fired more than once, and those that had to be fired and
// were not: both must be 0.
type tally struct {
	zones, tasks, slots, fired, offered, lines int
	ran, missed, skipped, failed, twice, lost  int
	life                                       life
}

func (a *tally) add(b tally) {
	for _, sum := range []struct {
		to *int
		n  int
	}{
		{&a.zones, b.zones}, {&a.tasks, b.tasks}, {&a.slots, b.slots}, {&a.fired, b.fired}, {&a.offered, b.offered}, {&a.lines, b.lines},
		{&a.ran, b.ran}, {&a.missed, b.missed}, {&a.skipped, b.skipped}, {&a.failed, b.failed}, {&a.twice, b.twice}, {&a.lost, b.lost},
		{&a.life.restarts, b.life.restarts}, {&a.life.kills, b.life.kills}, {&a.life.forward, b.life.forward},
		{&a.life.back, b.life.back}, {&a.life.sleeps, b.life.sleeps}, {&a.life.long, b.life.long},
	} {
		*sum.to += sum.n
	}
}

// judge holds the ledgers and what was taken against the slots that should be.
func (a *tally) judge(w *world) {
	w.t.Helper()
	tasks, _, err := w.sched.Tasks()
	if err != nil || len(tasks) == 0 {
		w.t.Fatalf("tasks: %v, %d", err, len(tasks))
	}
	a.tasks = len(tasks)
	known := map[string]bool{}
	for _, e := range tasks {
		lines := w.lines("cron/" + e.Slug + "/runs.jsonl")
		has, covered := a.count(w, e.Slug, lines)
		bad := 0
		complain := func(format string, args ...any) {
			if bad++; bad <= 5 {
				w.t.Errorf(e.Slug+": "+format, args...)
			}
		}
		for _, slot := range nominal(e.Task, lines, w.now) {
			a.slots++
			key := key4(e.Task, slot)
			known[key] = true
			n := w.accepted[key]
			a.fired += n

			switch {
			case n > 1 || has[slot.Unix()] > 1:
				a.twice++
				complain("slot %s was fired %d times and has %d lines that say so", slot, n, has[slot.Unix()])
			case e.CatchUp == CatchUpAll && n != 1:
				a.lost++
				complain("slot %s was never fired", slot)
			case n != has[slot.Unix()]:
				complain("slot %s was fired %d times and has %d lines that say so", slot, n, has[slot.Unix()])
			case n == 0 && !covered(slot):
				complain("slot %s has no line", slot)
			}
		}
	}

	for key := range w.accepted {
		if !known[key] {
			w.t.Errorf("%s was fired and is no slot", key)
		}
	}
	a.offered = w.offered
}

// count adds up the lines of one ledger. has is how many lines say that a slot ran.
func (a *tally) count(w *world, slug string, lines []line) (has map[int64]int, covered func(time.Time) bool) {
	has = map[int64]int{}
	single := map[int64]Outcome{}
	var spans [][2]time.Time
	for _, l := range lines {
		if l.Slot == nil || l.Outcome == "" {
			continue
		}
		a.lines++

		switch l.Outcome {
		case Ran:
			a.ran++
			has[l.Slot.Unix()]++
		case Missed:
			a.missed += max(l.Count, 1)
		case Skipped:
			a.skipped++
		case Failed:
			a.failed++
		}

		if l.Count > 1 {
			spans = append(spans, [2]time.Time{*l.From, *l.Slot})
		}

		// What was missed while the clock was ahead has its time after all.
		if before := single[l.Slot.Unix()]; before != "" && before != Missed {
			w.t.Errorf("%s: slot %s has two lines: %s and %s", slug, l.Slot, before, l.Outcome)
		}
		single[l.Slot.Unix()] = l.Outcome
	}

	return has, func(slot time.Time) bool {
		if single[slot.Unix()] != "" {
			return true
		}
		for _, s := range spans {
			if !slot.Before(s[0]) && !slot.After(s[1]) {
				return true
			}
		}

		return false
	}
}
