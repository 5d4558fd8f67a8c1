package chaos

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Death is how one life ends before its time.
type Death struct {
	Failpoint string        // as DAYCARE_FAILPOINT has it; "": none
	Cut       Cut           // the power goes with the process; "": it does not
	After     time.Duration // kill -9 this long after the start; 0: not by the clock
	Busy      bool          // After counts from the first message that is accepted
}

// String is a death as --kill takes it: kill@#17:100, or kill@#17:0/names where the
// power is cut too.
func (d Death) String() string {
	if d.Cut != "" {
		return d.Failpoint + "/" + string(d.Cut)
	}
	return d.Failpoint
}

// ParseDeaths reads what a failing case was printed with.
func ParseDeaths(s string) ([]Death, error) {
	var deaths []Death
	for one := range strings.SplitSeq(s, ",") {
		point, cut, _ := strings.Cut(strings.TrimSpace(one), "/")
		if !strings.Contains(point, "@") {
			return nil, fmt.Errorf("%q is not ACTION@POINT#K[:PERCENT][/CUT]", one)
		}
		deaths = append(deaths, Death{Failpoint: point, Cut: Cut(cut)})
	}

	return deaths, nil
}

// A Case is a scenario and how its lives end; the life after the last death ends in
// order.
type Case struct {
	Way      string // of dying: what the report calls it
	Scenario *Scenario
	Deaths   []Death
	Bug      string
	Root     string        // "": a folder in memory; else an empty one, on the file system under test
	Patience time.Duration // 0: the usual
	// Lost is called instead of killing, where the file system dies too.
	Lost func(d *daemon) error
	// Random is where deaths come from when there is no list; the zero Death is none.
	Random   func(life int) Death
	Mirrored bool // the power is cut in this case
	// Pauses is how long the process runs, and is then stopped, again and again; nil: it
	// never does.
	Pauses func() (runs, stands time.Duration)
	Limit  limit // of the process
	// Late: when everything is done, platforms offer it all again, days later.
	Late bool
}

// patience is how long a case may take before it counts as stuck. It is long, because
// a machine may have much else to do, and a case that is stuck ends all the same.
const patience = time.Minute

// String names a case.
func (c Case) String() string {
	return strings.Join(slices.DeleteFunc([]string{c.Way, c.Scenario.Name, c.deaths(), string(c.Limit)},
		func(s string) bool { return s == "" }), " ")
}

func (c Case) deaths() string {
	list := make([]string, len(c.Deaths))
	for i, d := range c.Deaths {
		list[i] = d.String()
	}

	return strings.Join(list, ",")
}

// flags play the case again; "" where chance had a part in it.
func (c Case) flags() string {
	if len(c.Deaths) == 0 || c.Random != nil {
		return ""
	}
	return fmt.Sprintf("--scenario %s --kill '%s'", c.Scenario.Name, c.deaths())
}

// does reports whether the first failpoint of a case has one of these actions.
func (c Case) does(actions ...string) bool {
	return len(c.Deaths) > 0 && slices.ContainsFunc(actions, func(a string) bool { return strings.HasPrefix(c.Deaths[0].Failpoint, a) })
}

// broken reports whether the case is one of a disk that fails.
func (c Case) broken() bool { return len(c.Deaths) > 0 && !c.does("kill@", "stall@", "slow@", "clock") }

// timed reports whether a case says anything about time: its clock is the harness's, and
// neither its disk nor the process is slowed down.
func (c Case) timed() bool { return !c.broken() && !c.does("slow@", "clock") && c.Pauses == nil }
