//go:build !race

package schedule

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// What starts no goroutine: the race detector has nothing to find there and makes it take
// ten times as long. .ci/run runs these tests without it.

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
