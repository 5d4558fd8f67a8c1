package chaos

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"time"
)

// Ways to be in trouble without dying: the disk is slow, the clock jumps, the process
// is stopped while someone starts another one, it is out of descriptors, or out of
// places in the system's table of watched folders.

// pressureCases are those of a scenario.
func (h *planner) pressureCases(s *Scenario, passed []string) (cases []Case) {
	slow, watched := slowly, watching
	if h.Length == Short {
		slow, watched = slow[:1], watched[:1]
	}
	if slices.Contains(slow, s.Name) {
		cases = append(cases, Case{Way: "slow disk", Scenario: s, Deaths: []Death{{Failpoint: "slow@#1+"}}})
	}
	if slices.Contains(watched, s.Name) {
		if err := exec.Command("unshare", "--user", "--map-root-user", "true").Run(); err != nil {
			h.report.skip("a full inotify table, scenario %s: unshare: %v", s.Name, err)
		} else {
			cases = append(cases, Case{Way: "full inotify table", Scenario: s, Limit: noInotify})
		}
	}
	if s.Crowd {
		cases = append(cases, Case{Way: "few descriptors", Scenario: s, Limit: fewDescriptors})
	}

	return append(cases, h.jumpCases(s, passed)...)
}

// slowly are the scenarios that are played with a disk that takes a second for a sync,
// watching those without inotify.
var (
	slowly   = []string{"chat", "tools", "approval", "letters", "background"}
	watching = []string{"letters", "chat", "telegram", "edit", "hand-edit", "cron"}
)

// jumps are how far the clock jumps, in turn. The last two are a battery that ran out and
// the time server that comes after it.
var jumps = []string{"+72h", "-72h", "+1h", "-1h", "-219000h", "+219000h"}

// jumpCases have the clock jump at a step, there and back in turn: at each fourth of those
// of this length, of a full one at the first passing of a failpoint and at each fourth
// later one. What is due by the clock is due at another time then, which is judged in a
// scenario of its own.
func (h *planner) jumpCases(s *Scenario, passed []string) (cases []Case) {
	if s.Clocked {
		return nil
	}
	for n, o := range h.operations(s, passed) {
		if h.Length == Full && o.dear() || h.Length != Full && n%4 == len(s.Name)%4 {
			cases = append(cases, Case{Way: "clock jump", Scenario: s,
				Deaths: []Death{{Failpoint: fmt.Sprintf("clock%s@#%d", jumps[(len(cases)+len(s.Name))%len(jumps)], o.k)}}})
		}
	}

	return cases
}

// pausedCases are deaths and pauses under load.
func (h *planner) pausedCases() (cases []Case) {
	if h.Scenario != "" {
		return nil
	}
	for range h.pick(-1, 1, 4, 40) {
		c := randomCase(pausesPerLoad, false)
		c.Way, c.Pauses = "standing still", func() (runs, stands time.Duration) {
			return time.Duration(50+rand.IntN(200)) * time.Millisecond, time.Duration(rand.IntN(300)) * time.Millisecond
		}
		random := c.Random
		c.Random = func(life int) Death {
			d := random(life)
			if d.After > 0 {
				d.After += time.Second
			}
			return d
		}
		cases = append(cases, c)
	}

	return cases
}

// pausesPerLoad is how many deaths such a case has.
const pausesPerLoad = 4
