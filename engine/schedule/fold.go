package schedule

import (
	"slices"
	"time"
)

// A state is what a ledger says, seen from a time.
type state struct {
	spec string    // which schedule the newest slots are of; "": never seen
	set  string    // its text, if the line is near enough
	from time.Time // since when it counts
	// cursor: every slot up to here has its line. done are those after it that
	// have one too: the clock was ahead once, and what ran then does not run again.
	cursor time.Time
	done   map[int64]bool
	anchor time.Time // a point of the grid of every
	hash   string    // of what was watched when it ran last
	open   *line     // a firing whose end is not known
	last   *line     // the newest line with an outcome
	at     time.Time // when something was last run or skipped
	fails  int       // failed runs without one that ran in between
	okHash string    // of the inputs when the newest run had nothing to report
	text   string    // what the newest run answered
}

// fold reads the lines of a ledger.
func fold(lines []line, now time.Time) state {
	s := state{done: map[int64]bool{}}
	for _, l := range lines {
		s.add(l, now)
	}
	if s.cursor.After(now) {
		s.cursor = now // the schedule was made while the clock was ahead
	}
	return s
}

// add takes one line more.
func (s *state) add(l line, now time.Time) {
	switch {
	case l.Set != "":
		s.begin(l, now)
	case l.Firing != nil:
		s.open = &l
		s.mark(l, now)
	case l.Slot != nil && l.Outcome != "":
		s.end(l, now)
	}
	if l.Hash != "" && l.Firing == nil {
		s.hash = l.Hash
	}
}

func (s *state) begin(l line, now time.Time) {
	s.set, s.spec, s.from = l.Set, specHash(l.Set), l.At
	if l.From != nil {
		s.from = *l.From
	}
	s.cursor, s.anchor, s.done = s.from, s.from, map[int64]bool{}
	s.at, s.last = l.At, nil
}

func (s *state) end(l line, now time.Time) {
	s.last, s.at = &l, l.At
	if s.open != nil && s.open.Firing.Equal(*l.Slot) && s.open.Via == l.Via {
		s.open = nil
	}
	switch {
	case l.Outcome == Failed:
		s.fails++
	case l.Outcome == Ran:
		s.fails, s.text, s.okHash = 0, l.Text, ""
		if l.OK {
			s.okHash = l.Hash
		}
	}
	s.mark(l, now)
}

// mark notes that a slot has its line. What is noted as missed and has not come
// yet (the clock went back since) was not missed after all.
func (s *state) mark(l line, now time.Time) {
	if !l.Via.nominal() {
		return
	}
	slot := *l.slot()
	if l.Spec != "" {
		s.spec = l.Spec
	}
	if s.anchor = slot; l.From != nil {
		s.anchor = *l.From // where many share a line its end may lie between two slots
	}
	switch {
	case !slot.After(now):
		s.cursor = later(s.cursor, slot)
	case l.Count > 1 && l.From != nil && !l.From.After(now):
		s.cursor = later(s.cursor, now)
	case l.Outcome != Missed && l.Count <= 1:
		s.done[slot.Unix()] = true
	}
}

// next is the first slot after t that has no line.
func (s *state) next(when Schedule, t time.Time) (time.Time, bool) {
	for {
		slot, ok := when.Next(t, s.anchor)
		if !ok || !s.done[slot.Unix()] {
			return slot, ok
		}
		t = slot
	}
}

// manySlots is how many slots get a line each before they share one.
const manySlots = 100

// A backlog is the slots that are due and have no line: the newest, and what comes
// before it.
type backlog struct {
	oldest, newest time.Time
	count          int
	before         []time.Time // all but the newest, while they are not too many
}

func (s *state) backlog(when Schedule, now time.Time) backlog {
	var b backlog
	for t, ok := s.next(when, s.cursor); ok && !t.After(now); t, ok = s.next(when, t) {
		if b.count++; b.count == 1 {
			b.oldest = t
		} else if b.count <= manySlots+1 {
			b.before = append(b.before, b.newest)
		}
		b.newest = t
	}
	return b
}

// lines are the lines of all slots but the newest; with it set, of all.
func (b backlog) lines(l line, newest bool) []line {
	all := slices.Clone(b.before)
	last := time.Time{}
	if newest {
		all, last = append(all, b.newest), b.newest
	} else if len(all) > 0 {
		last = all[len(all)-1]
	}
	n := b.count
	if !newest {
		n--
	}
	switch {
	case n <= 0:
		return nil
	case n > manySlots:
		if !newest { // before is cut short; the line ends right before the newest
			last = b.newest.Add(-time.Second)
		}
		l.From, l.Slot, l.Count = &b.oldest, &last, n
		return []line{l}
	}
	lines := make([]line, 0, n)
	for _, t := range all {
		one := l
		one.Slot = &t
		lines = append(lines, one)
	}
	return lines
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// earlier is the earlier of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
