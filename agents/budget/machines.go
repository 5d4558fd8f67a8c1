package budget

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// Several machines may work on the same agents, each with a ledger of its own. Each says what it has spent in all: a sum for
// everybody, and one for each agent with all below it. A limit bounds what all of them have spent. Requests that run are not in
// it, so machines that ask at the same moment may exceed a limit by what these cost.

// Names of what a machine says: the sums for everybody, and those of an agent.
const (
	sayAll   = "all"
	sayAgent = "agent." // and its id
)

// sayDays is how many days a machine says of itself. Others need the current one, and clocks may differ.
const sayDays = 3

// sayPause is how long a machine waits at least before it says more.
const sayPause = time.Second

// A Says is one sum of a machine.
type Says struct {
	Machine, Name string
	Data          []byte // JSON: an Amount of an agent; total and days of everybody
}

// overall is what a machine has spent for everybody.
type overall struct {
	Total Amount            `json:"total"`
	Days  map[string]Amount `json:"days"` // the newest
}

// beside is what a ledger knows of the other machines. The lock of the ledger guards it.
type beside struct {
	own     string // the lasting id of this machine; "": it is alone
	others  map[string]*sums
	runs    map[*reservation]bool
	unsaid  map[string]bool // names
	changed chan struct{}   // something is unsaid
}

// Machines are a ledger as that of one of several machines.
type Machines struct{ *Ledger }

// Join makes the ledger that of one of several machines. id is its own for ever. there is what all have said so far.
func (l Machines) Join(id string, there iter.Seq[Says]) {
	l.mu.Lock()
	l.beside = beside{own: id, others: map[string]*sums{}, runs: map[*reservation]bool{}, unsaid: map[string]bool{},
		changed: make(chan struct{}, 1)}
	for _, name := range l.names() {
		l.unsaid[name] = true
	}
	l.mu.Unlock()

	for one := range there {
		if one.Machine != id {
			l.Heard(one)
			continue
		}
		l.mu.Lock()
		if string(l.say(one.Name)) == string(one.Data) {
			delete(l.unsaid, one.Name)
		}
		l.mu.Unlock()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.haveSaid()
}

// names are those of all that this machine has to say. l.mu is held.
func (l Machines) names() []string {
	if l.spent.Total == (Amount{}) {
		return nil
	}
	list := []string{sayAll}
	for agent := range l.spent.Agents {
		list = append(list, sayAgent+agent)
	}

	return list
}

// say is one sum of this machine, without requests that run. l.mu is held.
func (l Machines) say(name string) []byte {
	agent, ofAgent := strings.CutPrefix(name, sayAgent)
	settled := func(a Amount, of func(*reservation) bool) Amount {
		for r := range l.runs {
			if of(r) {
				a = a.minus(r.amount)
			}
		}
		return a
	}
	var value any
	if ofAgent {
		value = settled(l.spent.Agents[agent], func(r *reservation) bool { return slices.Contains(r.family, agent) })
	} else {
		days := slices.DeleteFunc(slices.Sorted(maps.Keys(l.spent.Days)), func(day string) bool { return day == "" })
		days = append(days[max(0, len(days)-sayDays):], l.calendar.Day)
		all := overall{settled(l.spent.Total, func(*reservation) bool { return true }), map[string]Amount{}}
		for _, day := range days {
			all.Days[day] = settled(l.spent.Days[day], func(r *reservation) bool { return r.day == day })
		}
		value = all
	}
	data, _ := json.Marshal(value) // numbers alone

	return data
}

// begun and ended note which requests run. l.mu is held.
func (m *beside) begun(r *reservation) {
	if m.own != "" {
		m.runs[r] = true
	}
}

func (m *beside) ended(r *reservation) { delete(m.runs, r) }

// spentBy notes that a family has spent something. l.mu is held.
func (m *beside) spentBy(family []string) {
	if m.own == "" {
		return
	}
	m.unsaid[sayAll] = true
	for _, agent := range family {
		m.unsaid[sayAgent+agent] = true
	}
	m.haveSaid()
}

// haveSaid has Tell say what is unsaid.
func (m *beside) haveSaid() {
	if len(m.unsaid) == 0 {
		return
	}
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// Heard takes in what another machine says. What cannot be read is of a newer daycare, and does not count.
func (l Machines) Heard(one Says) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if one.Machine == l.own || l.own == "" {
		return
	}
	theirs := l.others[one.Machine]
	if theirs == nil {
		s := newSums()
		theirs = &s
		l.others[one.Machine] = theirs
	}
	if agent, ok := strings.CutPrefix(one.Name, sayAgent); ok {
		var a Amount
		if json.Unmarshal(one.Data, &a) == nil {
			theirs.Agents[agent] = a
		}
		return
	}
	var all overall
	if one.Name == sayAll && json.Unmarshal(one.Data, &all) == nil {
		theirs.Total, theirs.Days = all.Total, all.Days
	}
}

// elsewhere is what all other machines have spent of something. l.mu is held.
func (m *beside) elsewhere(of func(*sums) Amount) (a Amount) {
	for _, theirs := range m.others {
		a = a.plus(of(theirs))
	}
	return a
}

// Says is all that is known of what machines have spent.
func (l Machines) Says() iter.Seq[Says] {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Says
	for _, name := range l.names() {
		list = append(list, Says{l.own, name, l.say(name)})
	}
	for machine, theirs := range l.others {
		data, _ := json.Marshal(overall{theirs.Total, theirs.Days}) // numbers alone
		list = append(list, Says{machine, sayAll, data})
		for agent, a := range theirs.Agents {
			data, _ := json.Marshal(a)
			list = append(list, Says{machine, sayAgent + agent, data})
		}
	}

	return slices.Values(list)
}

// Today is what a machine has spent on the current day, as this one knows it; "": this one.
func (l Machines) Today(machine string) Amount {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	if machine == "" || machine == l.own {
		return l.today()
	}
	if theirs := l.others[machine]; theirs != nil {
		return theirs.Days[l.calendar.Day]
	}

	return Amount{}
}

// Tell says what this machine spends, by put, until ctx ends. What could not be said is said again.
func (l Machines) Tell(ctx context.Context, put func(ctx context.Context, name string, data []byte) error) {
	for {
		select {
		case <-l.changed:
		case <-ctx.Done():
			return
		}
		l.TellNow(ctx, put)
		select {
		case <-time.After(sayPause):
		case <-ctx.Done():
			return
		}
	}
}

// TellNow says what is unsaid, once.
func (l Machines) TellNow(ctx context.Context, put func(ctx context.Context, name string, data []byte) error) {
	l.mu.Lock()
	names := slices.Sorted(maps.Keys(l.unsaid))
	l.mu.Unlock()
	for i, name := range names {
		l.mu.Lock()
		delete(l.unsaid, name)
		data := l.say(name)
		l.mu.Unlock()
		err := put(ctx, name, data)
		if err == nil {
			continue
		}

		l.o.Log.Debug("what was spent is not said to the other machines yet", "err", err)
		l.mu.Lock()
		for _, name := range names[i:] {
			l.unsaid[name] = true
		}
		l.haveSaid()
		l.mu.Unlock()

		return
	}
}

// Reread has raises apply that another machine was given.
func (l Machines) Reread() {
	list, _, err := l.o.readRaises()
	if err != nil {
		l.o.Log.Warn("cannot read one-time budget raises; those of other machines do not apply", "err", err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.raises = list
}
