package chaos

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"
)

// Bugs are the defects that can be switched on in a binary built with the tag
// seededbugs, and the promise that each breaks.
var Bugs = []struct{ Name, Breaks string }{
	{"nosync", "a barrier is one: nothing is synced"},
	{"ackearly", "accepted means durable: it is said before the barrier"},
	{"nostart", "a side effect is recorded before it happens: its start is not"},
	{"sendfirst", "an answer is recorded before it leaves: it leaves first"},
	{"rerun", "a call that may have had its effect does not run again: it does"},
	{"twice", "an item that history closes is not done again: it is"},
	{"lifo", "items are taken in the order in which they came: newest first"},
	{"nodedupe", "what is delivered again is the same item: it is another"},
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
	for i, bug := range Bugs {
		c, err := h.hunt(ctx, bug.Name)
		if err != nil {
			return err
		}
		c.Breaks = bug.Breaks
		h.report.Bugs = append(h.report.Bugs, c)
		h.Progress(i+1, len(Bugs), "seeded bug "+bug.Name)
	}
	return nil
}

// hunted are the scenarios that are played against a bug.
var hunted = []string{"chat", "waiting", "tools"}

// hunt plays the ways to die in turn until one shows the bug.
func (h *harness) hunt(ctx context.Context, bug string) (Caught, error) {
	caught := Caught{Bug: bug}
	var kills, powerCuts []Case
	for _, s := range Scenarios() {
		if !slices.Contains(hunted, s.Name) {
			continue
		}
		passed, err := h.learn(ctx, s)
		if err != nil {
			return caught, err
		}
		kills, powerCuts = append(kills, h.killCases(s, passed, bug)...), append(powerCuts, h.cutCases(s, passed, bug)...)
	}
	cases := append(inTurn(kills, powerCuts), randomCase(deathsPerLoad, false, bug), randomCase(deathsPerLoad, true, bug))
	found, played, err := h.firstFailure(ctx, cases)
	caught.Cases = played
	if found != nil {
		caught.By, caught.Case, caught.Saw = found.way, found.Case, found.Violations[0]
	}
	return caught, err
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

// firstFailure plays cases until one fails, without putting them on the report.
func (h *harness) firstFailure(ctx context.Context, cases []Case) (found *Result, played int, err error) {
	for len(cases) > 0 && found == nil {
		n := min(len(cases), workers())
		results := make([]*Result, n)
		group, inner := errgroup.WithContext(ctx)
		for i, c := range cases[:n] {
			group.Go(func() (err error) {
				results[i], err = h.play(inner, c)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, played, err
		}
		for _, r := range results {
			played++
			if len(r.Violations) > 0 {
				found = r
				break
			}
		}
		cases = cases[n:]
	}
	return found, played, nil
}

func (r *Report) printBugs(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SEEDED BUG\tWHAT IT BREAKS\tCAUGHT BY\tAFTER\tSEEN AS")
	for _, c := range r.Bugs {
		by := c.By
		if by == "" {
			by = "NOT CAUGHT"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d cases\t%.90s\n", c.Bug, c.Breaks, by, c.Cases, c.Saw)
	}
	return t.Flush()
}
