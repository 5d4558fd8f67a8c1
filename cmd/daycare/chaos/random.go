package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// Random deaths of each length.
const (
	shortRandom  = 100
	normalRandom = 1000
	fullRandom   = 10_000
)

// Power cuts of each real file system, of each length.
const (
	shortCuts  = 10
	normalCuts = 100
	fullCuts   = 1000
)

const (
	loadHooks     = 8  // agents under load
	deathsPerLoad = 25 // of one workspace: longer histories make the comparison slow
)

// load is what all agents are busy with until so many deaths have come.
func load(hooks, deaths int) *Scenario {
	s := &Scenario{Name: "load"}
	var all []step
	for i := range hooks {
		hook := string(rune('a' + i))
		s.Hooks = append(s.Hooks, hook)
		all = append(all, chatter(hook, deaths))
	}

	s.Steps = []step{together(all...)}

	return s
}

// chatter says one thing after the other on a hook.
func chatter(hook string, deaths int) step {
	words := []string{"think", "act", "hello", "look", "slow", "several", "hello"}
	return func(ctx context.Context, u *user) error {
		for i := 0; u.livesLost() < deaths; i++ {
			if err := u.say(ctx, hook, fmt.Sprintf("%s%d", hook, i), words[(i+int(hook[0]))%len(words)]); err != nil {
				return err
			}
		}

		return nil
	}
}

// anyMoment is a time from the start of the process to the middle of its work.
func anyMoment() time.Duration {
	return time.Duration(2+rand.IntN(78)) * time.Millisecond
}

// randomCases are deaths at any moment, under load.
func (h *planner) randomCases() (cases []Case) {
	for left := h.randomDeaths(); left > 0; left -= deathsPerLoad {
		cases = append(cases, randomCase(min(left, deathsPerLoad), len(cases)%4 == 3))
	}
	return cases
}

// randomCase is one workspace's share of random deaths; with power also the power
// goes, and what was not synced is lost.
func randomCase(deaths int, power bool) Case {
	c := Case{Way: "random kill -9", Scenario: load(loadHooks, deaths), Mirrored: power, Patience: 4 * time.Minute}
	if power {
		c.Way = "random power cut"
	}
	c.Random = func(life int) Death {
		if life >= deaths {
			return Death{}
		}
		d := Death{After: anyMoment(), Busy: rand.IntN(4) > 0}
		if power {
			d.Cut = cuts[rand.IntN(len(cuts))]
		}

		return d
	}

	return c
}
