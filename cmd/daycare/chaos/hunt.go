package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// bugs shows that each seeded bug is caught: a harness that never failed proves
// nothing.
func (h *harness) bugs(ctx context.Context) error {
	if h.Build == nil {
		return fmt.Errorf("seeded bugs need a binary built with -tags seededbugs, and nothing here can build one")
	}
	binary := filepath.Join(h.dir, "daycare-seededbugs")
	if err := h.Build(ctx, binary); err != nil {
		return err
	}

	h.Binary = binary
	scenarios, err := h.scenarios()
	if err != nil {
		return err
	}
	if err := h.learnAll(ctx, scenarios); err != nil {
		return err
	}

	ground := h.ground(scenarios)
	bugs := slices.DeleteFunc(slices.Clone(Bugs), func(b Bug) bool {
		if h.Bug != "" {
			return b.Name != h.Bug
		}
		return h.Length == Short && slices.Contains(hidden, b.Name)
	})
	caught := make([]Caught, len(bugs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers())
	var done atomic.Int64
	for i, bug := range bugs {
		group.Go(func() (err error) {
			caught[i], err = h.hunt(ctx, bug, ground)
			h.Progress(int(done.Add(1)), len(bugs), "seeded bug "+bug.Name)
			return err
		})
	}

	err = group.Wait()
	h.report.Bugs = caught
	return err
}

// hunt plays one case after the other until one shows the bug.
func (h *harness) hunt(ctx context.Context, bug Bug, ground []Case) (Caught, error) {
	caught := Caught{Bug: bug.Name, Breaks: bug.Breaks, Stopped: true}
	for _, c := range ground {
		c.Bug = bug.Name
		r, err := h.play(ctx, c)
		if err != nil {
			return caught, err
		}
		caught.Cases++

		for _, v := range r.Violations {
			if bug.shownBy(v) {
				caught.Stopped = false
				caught.By, caught.Case, caught.Saw = r.way, r.Case, v
				return caught, os.RemoveAll(r.Dir)
			}
			caught.Saw = v
		}

		if err := os.RemoveAll(r.Dir); err != nil {
			return caught, err
		}
	}

	caught.Stopped = false
	return caught, nil
}

// ground are the cases that are played against each bug, in the same order: one of each
// scenario, chosen by lot, in each round. The rounds are kills, power cuts, no death at
// all, a kill and then a power cut, and two kills; at the end there are deaths at random
// moments.
func (h *planner) ground(scenarios []*Scenario) (all []Case) {
	lot := rand.New(rand.NewPCG(0, 0)) // the same order each time
	var rounds [][]Case
	for _, s := range scenarios {
		passed := h.learned[s.Name]
		kill, killTwice := split(h.killCases(s, passed))
		cut, killThenCut := split(h.cutCases(s, passed))
		kinds := [][]Case{kill, cut, {h.peace(s)}, killThenCut, killTwice}
		for _, cases := range kinds {
			lot.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
		}

		for n := 0; ; n++ {
			left := false
			for i, cases := range kinds {
				if len(rounds) == n*len(kinds)+i {
					rounds = append(rounds, nil)
				}
				if n < len(cases) {
					left = true
					rounds[n*len(kinds)+i] = append(rounds[n*len(kinds)+i], cases[n])
				}
			}

			if !left {
				break
			}
		}
	}

	for _, round := range rounds {
		lot.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		all = append(all, round...)
	}
	return append(all[:min(len(all), mostHunted)], randomCase(deathsPerLoad, false), randomCase(deathsPerLoad, true))
}

// split parts cases of one death from those of two.
func split(cases []Case) (once, twice []Case) {
	for _, c := range cases {
		if len(c.Deaths) == 1 {
			once = append(once, c)
		} else {
			twice = append(twice, c)
		}
	}

	return once, twice
}

// mostHunted bounds the cases that are played against one bug.
const mostHunted = 600
