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
func (h *planner) scenarios() ([]*Scenario, error) {
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
	return h.patiently(ctx, func(late *lateCases) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(workers())
		for _, s := range scenarios {
			group.Go(func() error {
				r, err := h.play(ctx, h.peace(s))
				if err != nil {
					return err
				}
				h.learn(s, r)
				if !late.keep(h.peace(s), r) {
					h.take(r)
				}
				return nil
			})
		}

		return group.Wait()
	})
}

// learn keeps the failpoints that a scenario passes in peace. What does not hold then need not be killed.
func (h *harness) learn(s *Scenario, r *Result) {
	if len(r.Violations) > 0 && !r.onlyLate() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.learned[s.Name] = r.Passed
}

// peace is a scenario without any death. When it is over platforms offer all again.
func (h *planner) peace(s *Scenario) Case { return Case{Way: "peace", Scenario: s, Late: !s.Clocked} }

// take adds a result to the report and lets go of the folder of a case that held.
func (h *harness) take(r *Result) {
	h.report.add(r)
	if len(r.Violations) == 0 {
		os.RemoveAll(r.Dir)
	}
}

// plan makes all cases but those of real file systems.
func (h *planner) plan(scenarios []*Scenario) []Case {
	var kills, powerCuts, faults, pressed []Case
	tried := map[string]bool{}
	for _, s := range scenarios {
		passed := h.learned[s.Name]
		if h.Way == "" {
			h.count(passed, h.operations(s, passed))
		}
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

// first plays cases beside each other, and keeps those that were only late.
func (l *lateCases) first(ctx context.Context, h *harness, cases []Case) error {
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

			if !l.keep(c, r) {
				h.take(r)
			}
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
func (h *planner) count(passed []string, played []operation) {
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
func (h *planner) killCases(s *Scenario, passed []string) (cases []Case) {
	for n, o := range h.operations(s, passed) {
		tears := h.tears(o)
		for _, tear := range tears {
			cases = append(cases, Case{Way: "kill", Scenario: s, Deaths: []Death{o.kill(tear)}})
		}
		if step := h.again(n+1, o); step > 0 {
			tear := tears[n%len(tears)]
			second := Death{Failpoint: fmt.Sprintf("kill@#%d:%d", step, tear)}
			cases = append(cases, Case{Way: "kill twice", Scenario: s, Deaths: []Death{o.kill(tear), second}})
		}
	}

	return cases
}

// recoverySteps is how many operations of a start are looked at for a second death.
const recoverySteps = 16

// again is the operation of the second life to die at after the n-th operation of this
// length; 0: none. Going through them one case after the other meets all of them, though
// not in all combinations.
func (h *planner) again(n int, o operation) int {
	switch {
	case !o.aim || h.Length == Short:
		return 0
	case h.Length == Full && o.dear():
		return 1 + n%recoverySteps
	case h.Length == Default && n%againEvery == 0:
		return 1 + n/againEvery%recoverySteps
	}

	return 0
}

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
