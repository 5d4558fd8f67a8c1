package schedule

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
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

// Every slot is fired exactly once if all are caught up with, at most once else,
// and each has its line in the ledger, whatever happens to the process and to the
// clock. DAYCARE_LONG=1 runs 20 zones for three years each.
func TestEverySlotOnce(t *testing.T) {
	years, days, some := 0, 14, []string{"Europe/Berlin", "Africa/Casablanca", "Australia/Lord_Howe"}
	if os.Getenv("DAYCARE_LONG") != "" {
		years, days, some = 3, 0, zones
	}
	var mu sync.Mutex
	var total tally
	for i, name := range some {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // they wait for the disk most of the time
			z := zone(t, name)
			w := newWorld(t, z, time.Date(2025, 3, 25, 11, 7, 13, 0, time.UTC))
			for n, when := range []string{
				`schedule: "0 * * * *"`, `schedule: "30 2 * * *"`, `schedule: "*/20 1-3 * * *"`, `schedule: "0 0 * * *"`, `every: 7h`, `schedule: "15 9 * * mon-fri"`,
			} {
				for _, c := range []CatchUp{CatchUpAll, CatchUpOne, CatchUpNone} {
					if c == CatchUpNone && n%3 != 1 {
						continue
					}
					w.task(fmt.Sprintf("t%d-%s", n, c), fmt.Sprintf("taskId: %024d\n%s\ncatchUp: %s", n*100+len(c)*10+int(c[0]), when, c))
				}
			}
			r := rand.New(rand.NewPCG(uint64(i), 8))
			var one tally
			one.restarts, one.jumps, one.crashes = w.live(r, w.now.AddDate(years, 0, days))
			one.judge(w)
			mu.Lock()
			defer mu.Unlock()
			total.add(one)
		})
	}
	t.Cleanup(func() { t.Logf("%+v", total) }) // when all have ended
}

type tally struct {
	slots, fired, offered, lines, restarts, jumps, crashes int
	ran, missed, skipped, failed                           int
}

func (a *tally) add(b tally) {
	a.slots += b.slots
	a.fired += b.fired
	a.offered += b.offered
	a.lines += b.lines
	a.restarts += b.restarts
	a.jumps += b.jumps
	a.crashes += b.crashes
	a.ran += b.ran
	a.missed += b.missed
	a.skipped += b.skipped
	a.failed += b.failed
}

// judge holds the ledgers and what was taken against the slots that should be.
func (a *tally) judge(w *world) {
	w.t.Helper()
	tasks, _, err := w.sched.Tasks()
	if err != nil || len(tasks) == 0 {
		w.t.Fatalf("tasks: %v, %d", err, len(tasks))
	}
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
			case n > 1:
				complain("slot %s was fired %d times", slot, n)
			case e.CatchUp == CatchUpAll && n != 1:
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
	single := map[int64]bool{}
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
		if single[l.Slot.Unix()] && l.Outcome != Ran && l.Outcome != Missed {
			w.t.Errorf("%s: slot %s has two lines", slug, l.Slot)
		}
		single[l.Slot.Unix()] = true
	}
	return has, func(slot time.Time) bool {
		if single[slot.Unix()] {
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
