package chaos

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// bugs shows that each seeded bug is caught: a harness that never failed proves
// nothing.
func (h *harness) bugs(ctx context.Context) error {
	if h.Build == nil {
		return fmt.Errorf("seeded bugs need a binary built with -tags seededbugs, and nothing here can build one")
	}
	binary := filepath.Join(h.dir, seededName)
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

	bugs := slices.DeleteFunc(slices.Clone(Bugs), func(b Bug) bool { return h.Bug != "" && b.Name != h.Bug })
	// A short hunt is in another order, and not among fewer cases: the one that shows a bug
	// early might be among those that are left out.
	short := h.Length == Short
	h.Length = Default
	ground := h.ground(scenarios)

	caught := make([]Caught, len(bugs))
	group, ctx := errgroup.WithContext(ctx)
	slots := make(chan struct{}, workers())
	var done atomic.Int64
	for i, bug := range bugs {
		group.Go(func() (err error) {
			cases := ground
			if short {
				cases = sooner(soonest[bug.Name], ground)
			}
			caught[i], err = h.hunt(ctx, bug, cases, slots)
			h.Progress(int(done.Add(1)), len(bugs), "seeded bug "+bug.Name)
			return err
		})
	}

	err = group.Wait()
	h.report.Bugs = caught
	return err
}

// sooner are the same cases, those of one way to die or one scenario before the others.
func sooner(what string, cases []Case) []Case {
	var early, late []Case
	for _, c := range cases {
		if c.Way == what || c.Scenario.Name == what {
			early = append(early, c)
		} else {
			late = append(late, c)
		}
	}

	return append(early, late...)
}

// hunt plays cases until one shows the bug: the first in their order that does. All hunts share
// the slots. The longer one takes the more cases it plays beside each other, because in the
// end there are only hunts that take long, and a case waits more than it computes.
func (h *harness) hunt(ctx context.Context, bug Bug, ground []Case, slots chan struct{}) (Caught, error) {
	caught := Caught{Bug: bug.Name, Does: bug.Does, Stopped: true}
	for len(ground) > 0 {
		some := ground[:min(len(ground), cap(slots), 1+caught.Cases/casesPerLane)]
		ground = ground[len(some):]
		results, err := h.playWith(ctx, bug, some, slots)
		if err != nil {
			return caught, err
		}

		for _, r := range results {
			if caught.By == "" {
				caught.sees(bug, r)
			}
			if err := os.RemoveAll(r.Dir); err != nil {
				return caught, err
			}
		}

		if caught.By != "" {
			break
		}
	}

	caught.Stopped = false
	return caught, nil
}

// seededName is the binary that has the seeded bugs, in the folder of cases.
const seededName = "daycare-seededbugs"

// casesPerLane is after how many cases a hunt plays one more of them at a time.
const casesPerLane = 16

// playWith plays cases with the bug switched on, each as soon as there is a slot for it.
func (h *harness) playWith(ctx context.Context, bug Bug, cases []Case, slots chan struct{}) ([]*Result, error) {
	results := make([]*Result, len(cases))
	group, ctx := errgroup.WithContext(ctx)
	for i, c := range cases {
		c.Bug = bug.Name
		group.Go(func() (err error) {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			defer func() { <-slots }()

			results[i], err = h.play(ctx, c)
			return err
		})
	}

	return results, group.Wait()
}

// sees counts a case, and says whether it shows the bug.
func (c *Caught) sees(bug Bug, r *Result) {
	c.Cases++
	for _, v := range r.Violations {
		c.Saw = v
		if bug.shownBy(v) {
			c.By, c.Case = r.way, r.Case
			return
		}
	}
}

// ground are the cases that are played against each bug, in the same order: one of each
// scenario, chosen by lot, in each round. The rounds are kills, power cuts, no death at
// all, a kill and then a power cut, and two kills; at the end there are deaths at random
// moments.
func (h *planner) ground(scenarios []*Scenario) (all []Case) {
	var rounds [][]Case
	for _, s := range scenarios {
		passed := h.learned[s.Name]
		kill, killTwice := split(h.killCases(s, passed))
		cut, killThenCut := split(h.cutCases(s, passed))
		kinds := [][]Case{kill, cut, {h.peace(s)}, killThenCut, killTwice}
		for _, cases := range kinds {
			byLot(cases, func(c Case) string { return c.named(passed) })
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

	for n, round := range rounds {
		byLot(round, func(c Case) string { return fmt.Sprint(n, c.Scenario.Name) })
		all = append(all, round...)
	}

	return append(all[:min(len(all), mostHunted)], randomCase(deathsPerLoad, false), randomCase(deathsPerLoad, true))
}

// byLot orders cases by a number that is drawn for the name of each. A case has its place
// whatever the others are: a shuffle would put all of them elsewhere when a scenario passes a
// step more than in the run before, and a hunt that took a minute would take four.
func byLot(cases []Case, name func(Case) string) {
	slices.SortFunc(cases, func(a, b Case) int {
		one, other := sha256.Sum256([]byte(name(a))), sha256.Sum256([]byte(name(b)))
		return bytes.Compare(one[:], other[:])
	})
}

// named is a case with the operation that dies first called by its failpoint, and not counted
// from the start: a step more before it makes it no other case.
func (c Case) named(passed []string) string {
	if len(c.Deaths) == 0 {
		return c.String()
	}
	action, rest, counted := strings.Cut(c.Deaths[0].Failpoint, "@#")
	number, tear, _ := strings.Cut(rest, ":")
	k, err := strconv.Atoi(number)
	if !counted || err != nil || k < 1 || k > len(passed) {
		return c.String()
	}

	times := 0
	for _, name := range passed[:k] {
		if name == passed[k-1] {
			times++
		}
	}
	c.Deaths = slices.Clone(c.Deaths)
	c.Deaths[0].Failpoint = fmt.Sprintf("%s@%s#%d:%s", action, passed[k-1], times, tear)
	return c.String()
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
