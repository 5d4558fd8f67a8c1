package machines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Bug is a defect that can be switched on in a binary built with the tag seededbugs, the promise that
// it breaks, and the way to die that shows it.
type Bug struct {
	Name, Breaks string
	shows        string // what violations say that show it, separated by |
	by           string // the way to die
	do           func(context.Context, *world, *Row) error
}

// Bugs are all of them.
var Bugs = []Bug{
	{"nocas", "an append is refused if another machine wrote in between: it is not", "lost: |doubled: |out of order: |read the log of",
		"standing still", standStill(5 * time.Second)},
	{"ackfirst", "accepted means that the servers have it: it is said before", "lost: ", "black hole, then kill", cutAndKill},
	{"noclaim", "a folder is built of all before the claim: it is built before the claim", "lost: |read the log of", "black hole",
		blackHole(aboutALease)},
	{"stale", "a folder is not built of what a server says that is behind: it is", "lost: |doubled: |read the log of",
		"kill -9 of machines", killMachine},
	{"blindforward", "what is passed on again is the same item: it is another", "doubled: ", "black hole",
		blackHole(func() time.Duration { return 2300 * time.Millisecond })},
	{"deaf", "who was replaced does not write any more: it writes", "lost: |doubled: |out of order: |read the log of", "standing still",
		standStill(5 * time.Second)},
	{"blindseed", "who was replaced does not begin a lost log anew: it does", "lost: |out of order: |read the log of",
		"wiped while late", wipeWhileLate},
}

// Caught says how a seeded bug was found; By is empty if it was not.
type Caught struct {
	Bug    string `json:"bug"`
	Breaks string `json:"breaks"`
	By     string `json:"by"`
	Saw    string `json:"saw"`
	Tries  int    `json:"tries"`
}

const (
	// mostTries is how often a bug has its chance to show.
	mostTries = 20
	// bugsAtOnce is how many are hunted beside each other: each waits for leases more than it computes.
	bugsAtOnce = 3
)

// bugs shows that each seeded bug is caught.
func (h *harness) bugs(ctx context.Context) error {
	all := slices.DeleteFunc(slices.Clone(Bugs), func(b Bug) bool { return h.Bug != "" && b.Name != h.Bug })
	if len(all) == 0 {
		return fmt.Errorf("there is no seeded bug %q of the cluster", h.Bug)
	}
	h.report.Bugs = make([]Caught, len(all))
	slots := make(chan struct{}, bugsAtOnce)
	errs := make([]error, len(all))
	var hunting sync.WaitGroup
	for i, b := range all {
		hunting.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			h.report.Bugs[i], errs[i] = h.hunt(ctx, b)
			h.mu.Lock()
			h.done++
			h.Progress(h.done, len(all), "seeded bug "+b.Name)
			h.mu.Unlock()
		})
	}
	hunting.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}

	return nil
}

// sees says whether violations show the bug.
func (c *Caught) sees(b Bug, violations []string) {
	for _, v := range violations {
		c.Saw = v
		if slices.ContainsFunc(strings.Split(b.shows, "|"), func(s string) bool { return strings.Contains(v, s) }) {
			c.By = b.by
			return
		}
	}
}

// hunt plays the way to die that shows a bug until it does. What a bug breaks may keep a world from being played any
// further without showing which bug it is: then it is hunted in a new one.
func (h *harness) hunt(ctx context.Context, b Bug) (c Caught, err error) {
	c = Caught{Bug: b.Name, Breaks: b.Breaks}
	var w *world
	defer func() {
		if w != nil {
			w.end()
		}
	}()
	for c.By == "" && c.Tries < mostTries && ctx.Err() == nil {
		c.Tries++
		if w == nil {
			if w, err = h.newWorld(fmt.Sprint(b.Name, c.Tries), 1, b.Name); err != nil {
				return c, err
			}
		}
		r, err := w.suffer(ctx, way{name: b.by, servers: 1, times: 1, do: b.do}, c.Tries)
		if err != nil {
			r.violate("%v", err)
			w.end()
			w = nil
		}
		c.sees(b, r.Violations)
	}

	return c, ctx.Err()
}
