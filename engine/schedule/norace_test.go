//go:build !race

package schedule

import (
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What starts no goroutine: the race detector has nothing to find there and makes it take
// ten times as long. .ci/run runs these tests without it. Of lives there is a short one in race_test.go.

// DAYCARE_LONG=1 runs 20 zones for three years each.
func TestEverySlotOnce(t *testing.T) {
	if os.Getenv("DAYCARE_LONG") == "" {
		everySlotOnce(t, 0, 30, 20, []string{"Europe/Berlin", "Africa/Casablanca", "Australia/Lord_Howe"})
		return
	}
	before := debug.SetGCPercent(400)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	everySlotOnce(t, 3, 0, 500, zones)
}

// Slots are counted as if they were stepped through.
func TestCountAgainstSteps(t *testing.T) {
	if cronOf(t, "* * * * *", "Europe/Berlin").count(time.Date(2040, 12, 30, 0, 0, 0, 0, time.UTC),
		time.Date(2041, 1, 2, 0, 0, 0, 0, time.UTC), noon) != 3*24*60 {
		t.Error("the last day of a leap year is not counted")
	}
	exprs := []string{"0 * * * *", "30 */2 * * *", "45 1,2 * * *", "15 0 * * *", "30 3 1 * mon", "* * * * *",
		"*/7 2 */3 * *", "59 23 29 2 *", "0 0 * * *", "*/20 8-18 * * mon-fri"}
	checked, spans := 0, 3
	if os.Getenv("DAYCARE_LONG") != "" {
		spans = 300
	}

	for _, name := range zones {
		r := rand.New(rand.NewPCG(9, 9))
		all := []Schedule{must(NewSchedule(Timing{Every: "97s"}, zone(t, name)))}
		for _, expr := range exprs {
			all = append(all, cronOf(t, expr, name))
		}

		for range spans {
			from := time.Date(2024, 1, 1, 0, 0, 0, r.IntN(2), time.UTC).Add(time.Duration(r.Int64N(3*365*24*3600)) * time.Second)
			to := from.Add(time.Duration(r.Int64N(4*24*3600)) * time.Second)
			for _, s := range all {
				checked++
				n := 0
				for at, ok := s.Next(from, noon); ok && !at.After(to); at, ok = s.Next(at, noon) {
					n++
				}
				if got := s.count(from, to, noon); got != n {
					t.Errorf("%s in %s has %d slots in (%s, %s], counted are %d", s.text(), name, n, from, to, got)
				}
			}
		}
	}

	t.Logf("%d spans were counted", checked)
}

// The slots of expressions are held against an oracle that looks at every minute.
func TestSlotsAgainstEveryMinute(t *testing.T) {
	years, some := 1, []string{"Europe/Berlin", "America/Havana", "Africa/Casablanca", "Australia/Lord_Howe"}
	if os.Getenv("DAYCARE_LONG") != "" {
		years, some = 3, zones
	}
	exprs := []string{"0 * * * *", "30 */2 * * *", "45 1,2 * * *", "15 0 * * *", "30 3 1 * mon", "0 */6 * * fri-sun"}
	from := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(years, 0, 0)
	for _, name := range some {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []Schedule
			for _, expr := range exprs {
				all = append(all, cronOf(t, expr, name))
			}

			for i, want := range oracle(all, from, to) {
				if got := slots(all[i], from, to); !slices.EqualFunc(got, want, time.Time.Equal) {
					t.Errorf("%s in %s (-want +got):\n%s", exprs[i], name, cmp.Diff(want, got))
				}
			}
		})
	}
}

// The number of slots between any two moments is how many there are when they are gone
// through one by one: around each change of the clocks, and at slots to the second.
func TestCountIsTheNumberOfSlots(t *testing.T) {
	compared := 0
	for _, where := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo"} {
		z := zone(t, where)
		var schedules []Schedule
		for _, expr := range []string{"30 2 * * *", "*/20 2 * * *", "0 2,3 * * *", "0 3 * * *", "59 1 * * *", "15 * * * *", "0 0 * * *",
			"*/7 1-3 * * *", "0 2 * * 0", "0 0 1 * *", "0 2 * 4 *", "30 2 * 3,10 *"} {
			schedules = append(schedules, cronOf(t, expr, where))
		}

		for _, timing := range []Timing{{Every: "45m"}, {Every: "1h"}, {At: "2026-03-29T02:30"}, {At: "2026-10-25T02:00"}} {
			s, err := NewSchedule(timing, z)
			if err != nil {
				t.Fatal(err)
			}
			schedules = append(schedules, s)
		}

		var moments []time.Time
		for _, day := range []string{"2018-11-04", "2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01"} {
			at := utc(t, day+"T00:00").In(z)
			for range 3 { // the day before the change, and the one after
				begin, change := at.ZoneBounds()
				for _, m := range []time.Time{at, begin, change} {
					if m.Sub(at).Abs() < 72*time.Hour {
						for _, off := range []time.Duration{-time.Hour, -time.Second, 0, time.Second, 90 * time.Minute} {
							moments = append(moments, m.Add(off))
						}
					}
				}
				at = at.Add(24 * time.Hour)
			}
		}

		slices.SortFunc(moments, time.Time.Compare)
		for _, s := range schedules {
			for i, after := range moments {
				for _, until := range moments[i:min(i+7, len(moments))] {
					if until.Sub(after) > 96*time.Hour {
						break
					}
					compared++
					anchor := after.Add(-17 * time.Minute)
					want := 0
					for slot, ok := s.Next(after, anchor); ok && !slot.After(until); slot, ok = s.Next(slot, anchor) {
						want++
					}

					if got := s.count(after, until, anchor); got != want {
						t.Fatalf("%s in %s: %d slots after %v until %v, and there are %d", s.String(), where, got, after, until, want)
					}
					if got := s.count(until, after, anchor); got != 0 && !until.Equal(after) {
						t.Fatalf("%s: %d slots in no time", s.String(), got)
					}
				}
			}
		}
	}
	t.Logf("%d counts compared", compared)
}

// What many tasks cost: memory for each, and in a step an entry of a list for each, of which those that were
// edited are read. DAYCARE_LONG=1 has ten thousand.
func TestTenThousandTasks(t *testing.T) {
	n := uint64(2000)
	if os.Getenv("DAYCARE_LONG") != "" { // their folders take longer to make than to read
		n = 10_000
	}
	with := stepsWith(t, int(n))
	for name, most := range map[string]uint64{"first look": 30_000, "kept in memory": 3000, "nothing to do": 16, "one edited": 800} {
		t.Logf("%-15s %5d bytes for each task, %v", name, with[name].bytes/n, with[name].took)
		if with[name].bytes > most*n {
			t.Errorf("%s: %d bytes for each of %d tasks, want at most %d", name, with[name].bytes/n, n, most)
		}
	}
}

// A step's price is what it allocates, and how long it takes.
type price struct {
	bytes uint64
	took  time.Duration
}

func stepsWith(t *testing.T, n int) map[string]price {
	t.Helper()
	all := map[string]price{}
	heap := func() (m runtime.MemStats) {
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m
	}
	made := manyTasks(t, n)
	var s *Scheduler
	cost := func(name string, do func()) {
		before, at := heap(), time.Now()
		do()
		took := time.Since(at)
		all[name] = price{heap().TotalAlloc - before.TotalAlloc, took}
	}
	before := heap().HeapAlloc
	cost("first look", func() {
		s = New(made.o)
		s.step(t.Context(), s.Now())
	})
	all["kept in memory"] = price{bytes: heap().HeapAlloc - before}
	cost("nothing to do", func() { s.step(t.Context(), s.Now()) })
	path := s.files().cron("task-7", taskFile)
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(data, "More.\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Changed("task-7")
	cost("one edited", func() { s.step(t.Context(), s.Now()) })
	if got := s.jobs["task-7"].task.Prompt; got != "Look around.\nMore." {
		t.Errorf("the edited task says %q", got)
	}
	runtime.KeepAlive(made)

	return all
}
