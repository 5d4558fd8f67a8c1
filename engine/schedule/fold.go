package schedule

import (
	"slices"
	"sort"
	"time"
)

// A state is what a ledger says, seen from a time.
type state struct {
	accounted
	spec   string    // hash of the schedule that the newest slots belong to; "": never seen
	set    string    // text of that schedule, if its line was read
	from   time.Time // when that schedule took effect
	hash   string    // of what was watched when it ran last
	open   *line     // a firing whose result is not known
	last   *line     // the newest line with an outcome
	at     time.Time // when something was last run or skipped
	fails  int       // number of failed runs since the last one that ran
	okHash string    // of the inputs when the newest run had nothing to report
	text   string    // answer of the newest run
}

// accounted says which slots of a schedule have a line. Slots after cursor have one if the
// clock was ahead once: what ran then does not run again.
type accounted struct {
	cursor time.Time // every slot up to here has a line
	done   []int64   // the slots after cursor that have one, in Unix seconds, ascending
	top    time.Time // the newest slot that has one
	anchor time.Time // a slot from which the others of "every" are calculated
}

// fold reads the lines of a ledger. It assumes nothing about the time before the first line.
func fold(lines []line, now time.Time) state {
	var s state
	if len(lines) > 0 && lines[0].Set == "" {
		s.cursor = lines[0].At
		if slot := lines[0].slot(); slot != nil && lines[0].Via.nominal() {
			s.cursor = *slot
		}
	}

	for _, l := range lines {
		s.add(l, now)
	}
	if s.cursor.After(now) {
		s.cursor = now // the clock was ahead when the first line was written
	}

	return s
}

// recall adds what older lines than those that were folded say of slots to come.
func (s *state) recall(older []line, now time.Time) {
	for _, l := range older {
		if l.Set != "" {
			s.done, s.top = nil, time.Time{} // of another schedule
		}
		if slot := l.slot(); slot != nil && slot.After(now) {
			s.account(l, now)
		}
	}
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
	if watched(l.Set) != watched(s.set) {
		s.hash = "" // it was of something else
	}
	s.set, s.spec, s.from = l.Set, specHash(l.Set), l.At
	if l.From != nil {
		s.from = later(*l.From, l.At.Add(-firstSight))
	}
	s.cursor, s.anchor, s.done, s.top = s.from, s.from, nil, time.Time{}
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

// mark notes that a slot has its line.
func (s *state) mark(l line, now time.Time) {
	if !l.Via.nominal() {
		return
	}
	if l.Spec != "" {
		s.spec = l.Spec
	}
	if s.anchor = *l.slot(); l.From != nil {
		s.anchor = *l.From // where many share a line its end may lie between two slots
	}
	if l.Top != nil {
		s.top = later(s.top, *l.Top)
	}

	s.account(l, now)
}

// account notes which slots a line is of. What is noted as missed and has not come
// yet (the clock went back since) was not missed after all.
func (a *accounted) account(l line, now time.Time) {
	slot := *l.slot()
	top := slot
	switch {
	case !l.Via.nominal():
		return
	case !slot.After(now):
		a.cursor = later(a.cursor, slot)
	case l.From != nil && !l.From.After(now):
		a.cursor = later(a.cursor, now)
	}

	if l.Outcome == Missed || l.From != nil {
		top = top.Add(-time.Second)
	} else if i, known := slices.BinarySearch(a.done, slot.Unix()); !known && slot.After(now) {
		a.done = slices.Insert(a.done, i, slot.Unix())
	}

	a.top = later(a.top, top)
}

// pass moves the cursor over slots that have a line since the clock was ahead, as
// their time comes.
func (a *accounted) pass(now time.Time) {
	i, known := slices.BinarySearch(a.done, now.Unix())
	if known {
		i++
	}
	if i > 0 {
		a.cursor = later(a.cursor, time.Unix(a.done[i-1], 0))
		a.done = slices.Delete(a.done, 0, i)
	}
	if !a.top.After(now) {
		a.cursor = later(a.cursor, a.top)
	}
}

// ahead is the newest slot with a line, if it is after t; else nil.
func (a *accounted) ahead(t time.Time) *time.Time {
	if !a.top.After(t) {
		return nil
	}
	top := a.top
	return &top
}

// next is the first slot after t that has no line.
func (a *accounted) next(when Schedule, t time.Time) (time.Time, bool) {
	for {
		slot, ok := when.Next(t, a.anchor)
		if _, done := slices.BinarySearch(a.done, slot.Unix()); !ok || !done {
			return slot, ok
		}
		t = slot
	}
}

// manySlots is how many slots get a line each before they share one.
const manySlots = 100

// maxCatchUp is how many slots are caught up with where all are to run. A clock that
// was wrong by years must not cost a run for each minute of them.
const maxCatchUp = 1000

// A backlog is the slots in (after, until] that are due and have no line.
type backlog struct {
	state  *state
	when   Schedule
	after  time.Time
	until  time.Time
	oldest time.Time
	newest time.Time
	count  int
}

// backlog finds what is due. It counts, and steps through no more slots than get a
// line each, however far the clock has jumped.
func (s *state) backlog(when Schedule, now time.Time) backlog {
	s.pass(now)
	b := backlog{state: s, when: when, after: s.cursor, until: now}
	if b.count = b.since(b.after); b.count > 0 {
		b.oldest, _ = s.next(when, b.after)
		b.newest = b.back(1)
	}

	return b
}

// since counts the slots after t. What is done lies after until.
func (b backlog) since(t time.Time) int { return b.when.count(t, b.until, b.state.anchor) }

// back is the nth slot from the newest.
func (b backlog) back(n int) time.Time {
	last := b.until.Unix()
	span := int(last - b.after.Unix())
	d := sort.Search(span, func(d int) bool { return b.since(time.Unix(last-int64(d), 0)) >= n })
	return time.Unix(last-int64(d)+1, 0).UTC()
}

// lines are the lines of the oldest n slots.
func (b backlog) lines(l line, n int) []line {
	if n > manySlots {
		end := b.newest
		if n < b.count { // right before the first that is left
			end = b.back(b.count - n).Add(-time.Second)
		}
		l.From, l.Slot, l.Count = &b.oldest, &end, n
		return []line{l}
	}

	var lines []line
	for slot := b.oldest; len(lines) < n; slot, _ = b.state.next(b.when, slot) {
		one := l
		one.Slot = &slot
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

// earlier returns the earlier of two times; zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
