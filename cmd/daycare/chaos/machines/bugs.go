package machines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Bug is a defect that can be switched on in a binary built with the tag seededbugs, what it does wrong,
// and the way to die that shows it.
type Bug struct {
	Name, Does string
	shows      string // what violations say that show it, separated by |
	by         string // the way to die
	do         func(context.Context, *world, *Row) error
}

// Bugs are all of them.
var Bugs = []Bug{
	{"nocas", "an append succeeds although another machine wrote in between", "lost: |doubled: |out of order: |read the log of",
		"standing still", standStill(5 * time.Second)},
	{"ackfirst", "messages are acknowledged before the servers have them", "lost: ", "black hole, then kill", cutAndKill},
	{"noclaim", "a folder is built before the agent is claimed", "lost: |read the log of", "black hole",
		blackHole(aboutALease)},
	{"stale", "a folder is built from a server that is behind", "lost: |doubled: |read the log of",
		"kill -9 of machines", killMachine},
	{"blindforward", "a message that is forwarded again becomes a second item", "doubled: ", "black hole",
		blackHole(func() time.Duration { return 2300 * time.Millisecond })},
	{"deaf", "a machine that lost its agents keeps writing", "lost: |doubled: |out of order: |read the log of", "standing still",
		standStill(5 * time.Second)},
	{"blindseed", "a machine that lost its agents begins a lost log anew", "lost: |out of order: |read the log of",
		"wiped while late", wipeWhileLate},
}

// Caught says how a seeded bug was found; By is empty if it was not.
type Caught struct {
	Bug   string `json:"bug"`
	Does  string `json:"breaks"` // what it does wrong
	By    string `json:"by"`
	Saw   string `json:"saw"`
	Tries int    `json:"tries"`
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
	c = Caught{Bug: b.Name, Does: b.Does}
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
