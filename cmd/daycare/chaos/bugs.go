package chaos

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"
)

// A Bug is a defect that can be switched on in a binary built with the tag
// seededbugs, and the promise that it breaks.
type Bug struct {
	Name, Breaks string
	// shows is how the violation begins that shows it. Others may come of it, or of
	// something else, and show nothing.
	shows string
	// scenario and deaths are what is played first, as --scenario and --kill take it:
	// a death where it hurts. If it does not show the bug, all others follow.
	scenario, deaths string
}

// Bugs are all of them.
var Bugs = []Bug{
	{"nosync", "a barrier is one: nothing is synced", "lost: ", "chat", "stall@turn.taken#1:0/none"},
	{"ackearly", "accepted means durable: it is said before the barrier", "lost: ", "chat", "stall@turn.taken#1:0/none"},
	{"nostart", "a side effect is recorded before it happens: its start is not", "unrecorded: call ", "tools", "kill@tool.after#2:0"},
	{"sendfirst", "an answer is recorded before it leaves: it leaves first", "unrecorded: answer ", "chat", "stall@history.sync#1:0/none"},
	{"rerun", "a call that may have had its effect does not run again: it does", "repeated: ", "tools", "kill@tool.after#2:0"},
	{"twice", "an item that history closes is not done again: it is", "duplicated: ", "chat", "kill@turn.closed#1:0/none"},
	{"lifo", "items are taken in the order in which they came: newest first", "reordered: ", "waiting", "kill@inbox.accepted#4:0"},
	{"nodedupe", "what is delivered again is the same item: it is another", "duplicated: ", "chat", "kill@inbox.accepted#1:0"},
}

// Caught says how a seeded bug was found; By is empty if it was not.
type Caught struct {
	Bug    string `json:"bug"`
	By     string `json:"by"`   // the way to die
	Case   string `json:"case"` // that showed it
	Saw    string `json:"saw"`
	Cases  int    `json:"cases"` // played before it was found, and it
	Breaks string `json:"breaks"`
}

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
	scenarios := slices.DeleteFunc(Scenarios(), func(s *Scenario) bool { return !slices.Contains(hunted, s.Name) })
	if err := h.learnAll(ctx, scenarios); err != nil {
		return err
	}
	caught := make([]Caught, len(Bugs))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(workers())
	var done atomic.Int64
	for i, bug := range Bugs {
		group.Go(func() (err error) {
			caught[i], err = h.hunt(ctx, bug, scenarios)
			h.Progress(int(done.Add(1)), len(Bugs), "seeded bug "+bug.Name)
			return err
		})
	}
	err := group.Wait()
	h.report.Bugs = caught
	return err
}

// hunted are the scenarios that are played against a bug.
var hunted = []string{"chat", "waiting", "tools"}

// hunt plays one case after the other until one shows the bug.
func (h *harness) hunt(ctx context.Context, bug Bug, scenarios []*Scenario) (Caught, error) {
	caught := Caught{Bug: bug.Name, Breaks: bug.Breaks}
	cases, err := h.prey(bug, scenarios)
	if err != nil {
		return caught, err
	}
	for _, c := range cases {
		r, err := h.play(ctx, c)
		if err != nil {
			return caught, err
		}
		caught.Cases++
		for _, v := range r.Violations {
			if strings.HasPrefix(v, bug.shows) {
				caught.By, caught.Case, caught.Saw = r.way, r.Case, v
				return caught, nil
			}
			caught.Saw = v
		}
		if err := os.RemoveAll(r.Dir); err != nil {
			return caught, err
		}
	}
	return caught, nil
}

// prey are the cases that are played against a bug: the death that shows it soonest,
// then kills and power cuts in turn, then random deaths.
func (h *harness) prey(bug Bug, scenarios []*Scenario) ([]Case, error) {
	deaths, err := ParseDeaths(bug.deaths)
	if err != nil {
		return nil, err
	}
	soonest := Case{Way: wayOf(deaths), Deaths: deaths, Bug: bug.Name}
	var kills, powerCuts []Case
	for _, s := range scenarios {
		if s.Name == bug.scenario {
			soonest.Scenario = s
		}
		passed := h.learned[s.Name]
		kills, powerCuts = append(kills, h.killCases(s, passed, bug.Name)...), append(powerCuts, h.cutCases(s, passed, bug.Name)...)
	}
	all := append([]Case{soonest}, inTurn(kills, powerCuts)...)
	return append(all, randomCase(deathsPerLoad, false, bug.Name), randomCase(deathsPerLoad, true, bug.Name)), nil
}

// wayOf is what the report calls it to die so.
func wayOf(deaths []Death) string {
	if slices.ContainsFunc(deaths, func(d Death) bool { return d.Cut != "" }) {
		return "power cut"
	}
	return "kill"
}

// inTurn takes one of each list after the other, and then what is left of the longer.
func inTurn(a, b []Case) (all []Case) {
	for i := range max(len(a), len(b)) {
		if i < len(a) {
			all = append(all, a[i])
		}
		if i < len(b) {
			all = append(all, b[i])
		}
	}
	return all
}

func (r *Report) printBugs(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SEEDED BUG\tWHAT IT BREAKS\tCAUGHT BY\tCASES\tSEEN AS")
	for _, c := range r.Bugs {
		by := c.By
		if by == "" {
			by = "NOT CAUGHT"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%.90s\n", c.Bug, c.Breaks, by, c.Cases, c.Saw)
	}
	return t.Flush()
}
