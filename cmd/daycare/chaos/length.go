package chaos

import (
	"fmt"
	"runtime"
	"syscall"
)

// announce says how much there is to play and about how long that takes, by the
// processor seconds that learning what the scenarios pass took.
func (h *harness) announce(scenarios []*Scenario, cases []Case, learned float64) error {
	peaceful := 0
	for _, s := range scenarios {
		if peaceful++; len(s.Before) > 0 {
			peaceful++
		}
	}

	random, cuts := h.randomDeaths(), 2*h.powerCuts()
	if h.Way != "" {
		random, cuts = 0, 0 // they are not all played, or not in this number
	}
	lives := 0
	for _, c := range cases {
		if c.Random == nil {
			lives += 1 + len(c.Deaths)
		}
	}

	seconds := float64(lives+random+cuts) * learned / float64(peaceful*runtime.GOMAXPROCS(0))
	more := ""
	if random+cuts > 0 {
		more = fmt.Sprintf(", %d random deaths and %d power cuts of real file systems", random, cuts)
	}

	_, err := fmt.Fprintf(h.Log, "%d cases%s: about %.0f minutes on %d processors that have nothing else to do\n",
		len(cases), more, max(1, seconds/60), runtime.GOMAXPROCS(0))

	return err
}

// randomDeaths is how many of them are played.
func (h *planner) randomDeaths() int {
	if h.Scenario != "" && h.Random < 0 {
		return 0
	}
	return h.pick(h.Random, shortRandom, normalRandom, fullRandom)
}

// powerCuts is how many of them are played of each real file system.
func (h *planner) powerCuts() int {
	if h.Scenario != "" && h.Power < 0 {
		return 0
	}
	return h.pick(h.Power, shortCuts, normalCuts, fullCuts)
}

// leftOut says what this length does not play and a longer one does.
func (h *planner) leftOut() string {
	if h.Bugs || h.Kill != "" {
		return ""
	}
	if h.Way != "" {
		return "all other ways to die"
	}

	const doubles = "disk faults in more than one scenario, most second deaths; --full plays them"
	switch h.Length {
	case Short:
		return fmt.Sprintf("%d of %d operations (each %dth is played, with 2 of 5 tears of a write), 2 of 10 disk "+
			"faults at each failpoint, "+
			"%d of %d random deaths, most second deaths; the default length plays them", h.unplayed, h.considered, shortEvery,
			normalRandom-h.pick(h.Random, shortRandom, normalRandom, fullRandom), normalRandom)
	case Full:
		return fmt.Sprintf("where a scenario passes a failpoint once more: all tears of a write but one, all second deaths "+
			"and jumps of the clock but each %dth; second deaths at 15 of 16 steps of a recovery, another one of them "+
			"after each first death", dearEvery)
	}

	return fmt.Sprintf("%d of %d operations (most of those that pass a failpoint of their scenario once more), "+
		"3 of 5 tears of a write, %s", h.unplayed, h.considered, doubles)
}

// processorSeconds is the time that this process and those that it started used.
func processorSeconds() (sum float64) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
		}
	}

	return sum
}
