package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	r, err := h.play(ctx, h.peace(s))
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

// peace is a scenario without any death. When it is over platforms offer all again.
func (h *harness) peace(s *Scenario) Case { return Case{Way: "peace", Scenario: s, Late: !s.Clocked} }

// take adds a result to the report and lets go of the folder of a case that held.
func (h *harness) take(r *Result) {
	h.report.add(r)
	if len(r.Violations) == 0 {
		os.RemoveAll(r.Dir)
	}
}

// plan makes all cases but those of real file systems.
func (h *harness) plan(scenarios []*Scenario) []Case {
	var kills, powerCuts, faults, pressed []Case
	tried := map[string]bool{}
	for _, s := range scenarios {
		passed := h.learned[s.Name]
		h.count(passed, h.operations(s, passed))
		kills = append(kills, h.killCases(s, passed)...)
		powerCuts = append(powerCuts, h.cutCases(s, passed)...)
		faults = append(faults, h.faultCases(s, passed, tried)...)
		pressed = append(pressed, h.pressureCases(s, passed)...)
	}
	for i := range kills { // each needs a life more
		kills[i].Late = i%lateEvery == 0 && !kills[i].Scenario.Clocked
	}
	all := slices.Concat(kills, powerCuts, faults, pressed)
	// Some scenarios wait, others work: mixed, they keep the processors busy.
	mix := rand.New(rand.NewPCG(0, 0)) // the same order each time
	mix.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return spread(append(h.pausedCases(), h.randomCases()...), all)
}

// lateEvery is how many kills there are to one after which platforms offer all again.
const lateEvery = 16

// spread puts long cases between short ones, the last of them at three quarters: they
// wait much, and at the end nobody is to wait for one of them alone.
func spread(long, short []Case) (all []Case) {
	for i, c := range long {
		from, to := i*len(short)*3/4/len(long), (i+1)*len(short)*3/4/len(long)
		all = append(append(all, c), short[from:to]...)
	}
	return append(all, short[len(all)-len(long):]...)
}

// each plays cases beside each other.
func (h *harness) each(ctx context.Context, cases []Case) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers())
	var done atomic.Int64
	for _, c := range cases {
		group.Go(func() error {
			if h.report.enough() || ctx.Err() != nil {
				return ctx.Err()
			}
			r, err := h.play(ctx, c)
			if err != nil {
				return err
			}
			h.take(r)
			h.Progress(int(done.Add(1)), len(cases), r.way)
			return nil
		})
	}
	err := group.Wait()
	h.report.Planned, h.report.Unplayed = len(cases), len(cases)-int(done.Load())
	return err
}

// workers is more than the processors, because a case often waits for a timer or
// another process.
func workers() int { return 4 * runtime.GOMAXPROCS(0) }

// count adds up what is played of what a scenario passes.
func (h *harness) count(passed []string, played []operation) {
	all, died := map[string]bool{}, map[string]bool{}
	for _, name := range passed {
		all[name] = true
	}
	for _, o := range played {
		died[o.name] = true
	}
	h.considered, h.unplayed = h.considered+len(passed), h.unplayed+len(passed)-len(played)
	h.report.Points, h.report.PointsPlayed = h.report.Points+len(all), h.report.PointsPlayed+len(died)
}

// killCases are a death at each operation with each tear, and double deaths, where the
// daemon dies once more while it recovers.
func (h *harness) killCases(s *Scenario, passed []string) (cases []Case) {
	for n, o := range h.operations(s, passed) {
		for i, tear := range h.tears(o) {
			first := Death{Failpoint: fmt.Sprintf("kill@#%d:%d", o.k, tear)}
			cases = append(cases, Case{Way: "kill", Scenario: s, Deaths: []Death{first}})
			for _, j := range h.again(n + 1 + i) {
				if !o.aim {
					break
				}
				second := Death{Failpoint: fmt.Sprintf("kill@#%d:%d", j, tear)}
				cases = append(cases, Case{Way: "kill twice", Scenario: s, Deaths: []Death{first, second}})
			}
		}
	}
	return cases
}

// tears are how much of an operation is done when the process dies, in percent. A place
// between two operations has no parts, and what is no write is done or not. To have done
// all is about the same as not to have begun with what comes next, so only a full run dies
// both before and after the same operation.
func (h *harness) tears(o operation) []int {
	write := strings.HasSuffix(o.name, "write")
	switch {
	case !fails(o.name):
		return []int{0}
	case write && h.Length == Full:
		return []int{0, 1, 50, 99, 100}
	case write:
		return []int{0, 50}
	case h.Length == Full:
		return []int{0, 100}
	}
	return []int{o.k % 2 * 100}
}

// recoverySteps is how many operations of a start are looked at for a second death.
const recoverySteps = 16

// again are the operations of the second life to die at. Going through them one
// case after the other meets all of them, though not in all combinations: a full run
// has one for each first death, so five in a row for the tears of one operation, and
// all sixteen after any dozen operations in a row.
func (h *harness) again(n int) []int {
	if h.Length == Full {
		return []int{1 + n%recoverySteps}
	}
	if n%againEvery != 0 || h.Length == Short {
		return nil
	}
	return []int{1 + n/againEvery%recoverySteps}
}

// How far the operations lie apart that a run dies at: a short one of all, one of the
// default length of those that pass a point once more that the scenario passed before;
// and those after which one of the default length dies once more.
const (
	shortEvery  = 9
	repeatEvery = 24
	againEvery  = 12
)

// An operation is the k-th passing of a failpoint, by all that a scenario passes.
type operation struct {
	k    int
	name string
	aim  bool // what the scenario is for: deaths of all kinds; others are killed at
}

// operations are those that this length dies at. The default length dies at the first
// passing of each distinct failpoint of each scenario.
func (h *harness) operations(s *Scenario, passed []string) (all []operation) {
	before, n := map[string]bool{}, 0
	for i, name := range passed {
		o := operation{i + 1, name, h.Length == Full || s.aims(name)}
		first := !before[name]
		before[name] = true
		if h.Length == Full || h.Length == Default && first {
			all = append(all, o)
			continue
		}
		if !s.worth(i, name) {
			continue
		}
		n++
		if h.Length == Short && n%shortEvery == 0 || h.Length == Default && n%repeatEvery == 0 {
			all = append(all, o)
		}
	}
	return all
}

// worth reports whether to die at the k-th operation of a scenario again. The first ones
// are those of every start: one scenario is enough for them.
func (s *Scenario) worth(k int, name string) bool {
	if k < startSteps && len(s.Before) > 0 {
		return false
	}
	return s.aims(name)
}

func (s *Scenario) aims(name string) bool {
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
	r, err := h.play(ctx, Case{Way: wayOf(deaths), Scenario: scenarios[0], Deaths: deaths, Late: !scenarios[0].Clocked})
	if err == nil {
		h.take(r)
	}
	return err
}

// wayOf is what the report calls it to die so.
func wayOf(deaths []Death) string {
	c := Case{Deaths: deaths}
	switch {
	case c.broken():
		return "disk fault"
	case c.does("slow@"):
		return "slow disk"
	case c.does("clock"):
		return "clock jump"
	case slices.ContainsFunc(deaths, func(d Death) bool { return d.Cut != "" }):
		return "power cut"
	}
	return "kill"
}
