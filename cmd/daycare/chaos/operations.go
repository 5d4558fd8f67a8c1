package chaos

import (
	"fmt"
	"slices"
	"strings"
)

// An operation is the k-th passing of a failpoint, by all that a scenario passes.
type operation struct {
	k      int
	name   string
	before int  // how often the scenario passed this failpoint before
	aim    bool // what the scenario is for: deaths of all kinds; others are killed at
}

func (o operation) kill(tear int) Death {
	return Death{Failpoint: fmt.Sprintf("kill@#%d:%d", o.k, tear)}
}

// dear reports whether a full run plays second deaths and jumps of the clock here: at the
// first passing of a failpoint in a scenario, and at each fourth one after it.
func (o operation) dear() bool { return o.before%dearEvery == 0 }

// operations are those that this length dies at. The default length dies at the first
// passing of each distinct failpoint of each scenario, a full one at all passings; at the
// first with all that it has.
func (h *planner) operations(s *Scenario, passed []string) (all []operation) {
	before, n := map[string]int{}, 0
	for i, name := range passed {
		o := operation{k: i + 1, name: name, before: before[name]}
		first := o.before == 0
		o.aim = s.aims(name) || first && h.Length == Full
		before[name]++
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

// How far the operations lie apart that a run dies at: a short one of all, one of the
// default length of those that pass a point once more that the scenario passed before;
// those after which one of the default length dies once more; and the later passings of a
// failpoint at which a full run plays what is dear.
const (
	shortEvery  = 9
	repeatEvery = 24
	againEvery  = 12
	dearEvery   = 4
)

// tears are how much of an operation is done when the process dies, in percent. A place
// between two operations has no parts, and what is not a write is done or not. To have done
// all is about the same as not to have begun with what comes next, so a run dies before or
// after an operation, in turn. Only a full run plays all tears, where a scenario passes a
// failpoint first.
func (h *planner) tears(o operation) []int {
	parts := []int{0, 100}
	switch write := strings.HasSuffix(o.name, "write"); {
	case !fails(o.name):
		return []int{0}
	case write && h.Length != Full:
		return []int{0, 50}
	case write:
		parts = []int{0, 1, 50, 99, 100}
	}

	if h.Length == Full && o.before == 0 {
		return parts
	}
	one := o.k % len(parts)
	return parts[one : one+1]
}
