package chaos

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// scenarios are those that are asked for.
func (h *harness) scenarios() ([]*Scenario, error) {
	all := Scenarios()
	if h.Scenario == "" {
		return all, nil
	}
	var names []string
	for _, s := range all {
		if s.Name == h.Scenario {
			return []*Scenario{s}, nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("there is no scenario %q, only %s", h.Scenario, strings.Join(names, ", "))
}

// learnAll plays the scenarios in peace, beside each other.
func (h *harness) learnAll(ctx context.Context, scenarios []*Scenario) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers())
	for _, s := range scenarios {
		group.Go(func() error {
			_, err := h.learn(ctx, s)
			return err
		})
	}
	return group.Wait()
}

// learn plays a scenario in peace, once, and returns the failpoints that it passes.
func (h *harness) learn(ctx context.Context, s *Scenario) ([]string, error) {
	h.mu.Lock()
	passed, ok := h.learned[s.Name]
	h.mu.Unlock()
	if ok {
		return passed, nil
	}
	r, err := h.play(ctx, Case{Way: "peace", Scenario: s})
	if err != nil {
		return nil, err
	}
	h.take(r)
	if len(r.Violations) > 0 {
		r.Passed = nil // what does not hold in peace need not be killed
	}
	h.mu.Lock()
	h.learned[s.Name] = r.Passed
	h.mu.Unlock()
	return r.Passed, nil
}

// take adds a result to the report and lets go of the folder of a case that held.
func (h *harness) take(r *Result) {
	h.report.add(r)
	if len(r.Violations) == 0 {
		os.RemoveAll(r.Dir)
	}
}

// every makes the cases of all scenarios and plays them beside each other.
func (h *harness) every(ctx context.Context, what string, cases func(s *Scenario, passed []string) []Case) error {
	scenarios, err := h.scenarios()
	if err != nil {
		return err
	}
	if err := h.learnAll(ctx, scenarios); err != nil {
		return err
	}
	var all []Case
	for _, s := range scenarios {
		all = append(all, cases(s, h.learned[s.Name])...)
	}
	return h.each(ctx, what, all)
}

// each plays cases beside each other.
func (h *harness) each(ctx context.Context, what string, cases []Case) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers())
	var done atomic.Int64
	for _, c := range cases {
		group.Go(func() error {
			if h.report.enough() {
				return nil
			}
			r, err := h.play(ctx, c)
			if err != nil {
				return err
			}
			h.take(r)
			h.Progress(int(done.Add(1)), len(cases), what)
			return nil
		})
	}
	return group.Wait()
}

// workers is more than the processors, because a case often waits for a timer or
// another process.
func workers() int { return 3 * runtime.GOMAXPROCS(0) }

// enumerate kills the daemon at every operation of every scenario, and once more
// while it recovers.
func (h *harness) enumerate(ctx context.Context) error {
	return h.every(ctx, "kill -9", func(s *Scenario, passed []string) []Case {
		return h.killCases(s, passed, "")
	})
}

// killCases are a death at each operation with each tear, and double deaths.
func (h *harness) killCases(s *Scenario, passed []string, bug string) (cases []Case) {
	tears := []int{0, 100}
	if h.Length == Full {
		tears = []int{0, 1, 50, 99, 100}
	}
	n, before := 0, map[string]bool{}
	for k, name := range passed {
		if !h.worth(s, k, name) {
			continue
		}
		n++
		h.considered++
		if h.spared(s, n, before[name]) {
			h.unplayed++
			continue
		}
		before[name] = true
		for i, tear := range tears {
			first := Death{Failpoint: fmt.Sprintf("kill@#%d:%d", k+1, tear)}
			cases = append(cases, Case{Way: "kill", Scenario: s, Deaths: []Death{first}, Bug: bug})
			for _, j := range h.again(n + i) {
				second := Death{Failpoint: fmt.Sprintf("kill@#%d:%d", j, tear)}
				cases = append(cases, Case{Way: "kill twice", Scenario: s, Deaths: []Death{first, second}, Bug: bug})
			}
		}
	}
	return cases
}

// recoverySteps is how many operations of a start are looked at for a second death.
const recoverySteps = 16

// again are the operations of the second life to die at. Going through them one
// case after the other meets all of them, though not in all combinations.
func (h *harness) again(n int) (at []int) {
	if h.Length != Full {
		if n%6 != 0 || h.Length == Short {
			return nil
		}
		return []int{1 + n/6%recoverySteps}
	}
	for j := range recoverySteps {
		at = append(at, j+1)
	}
	return at
}

// shortEvery is how far the operations that a short run dies at lie apart.
const shortEvery = 9

// spared reports whether the n-th operation of a scenario is left out; again: the point
// was died at before in this scenario. But for a short run none is left out altogether.
func (h *harness) spared(s *Scenario, n int, again bool) bool {
	switch h.Length {
	case Full:
		return false
	case Short:
		return n%(shortEvery*max(s.Every, 1)) != 0
	default:
		return again && n%max(s.Every, 1) != 0
	}
}

// worth reports whether to die at the k-th operation of a scenario. The first ones
// are those of every start: one scenario is enough for them.
func (h *harness) worth(s *Scenario, k int, name string) bool {
	if h.Length != Full && k < startSteps && len(s.Before) > 0 {
		return false
	}
	return len(s.Only) == 0 || slices.ContainsFunc(s.Only, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// startSteps are the operations of a start before anything is taken or worked on.
const startSteps = 5

// repeat plays one case, as a failing one was printed.
func (h *harness) repeat(ctx context.Context) error {
	scenarios, err := h.scenarios()
	if err != nil {
		return err
	}
	if len(scenarios) != 1 {
		return fmt.Errorf("say of which scenario: --scenario NAME")
	}
	deaths, err := ParseDeaths(h.Kill)
	if err != nil {
		return err
	}
	r, err := h.play(ctx, Case{Way: wayOf(deaths), Scenario: scenarios[0], Deaths: deaths})
	if err == nil {
		h.take(r)
	}
	return err
}
