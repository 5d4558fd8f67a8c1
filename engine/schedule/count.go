package schedule

import (
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

const daySeconds = 24 * 60 * 60

// count returns how many slots there are in (after, until]. It goes through days,
// not through slots, so that a clock that was years off costs nothing.
func (s Schedule) count(after, until, anchor time.Time) int {
	from, to := after.Unix()+1, until.Unix()+1 // slots are whole seconds in [from, to)
	switch {
	case from >= to:
		return 0
	case s.expr != nil:
		return s.countByWall(from, to)
	case s.every > 0:
		step := int64(s.every / time.Second)
		return int(floorDiv(to-1-anchor.Unix(), step) - floorDiv(from-1-anchor.Unix(), step))
	case s.at.Unix() >= from && s.at.Unix() < to:
		return 1
	}

	return 0
}

// countByWall counts the slots of an expression: between two changes of the clocks
// they are the times that the clock on the wall shows.
func (s Schedule) countByWall(from, to int64) (n int) {
	for from < to {
		t := time.Unix(from, 0).In(s.zone)
		_, now := t.Zone()
		begin, _ := t.ZoneBounds()
		end := to
		if change := changeAfter(t); !change.IsZero() {
			end = min(to, change.Unix())
		}

		low, high := from+int64(now), end+int64(now)
		if s.fixed {
			_, before := begin.Add(-time.Second).Zone()
			shown, first := begin.Unix()+int64(before), begin.Unix()+int64(now)
			if begin.Unix() == from && walls(s.expr, shown, first) > 0 && walls(s.expr, first, first+1) == 0 {
				n++ // what the clocks jumped over is due at the jump
			}
			low = max(low, shown) // what comes a second time is not due again
		}

		n += walls(s.expr, low, high)
		from = end
	}

	return n
}

// walls counts the times of an expression in [low, high), in seconds of a clock that
// never changes.
func walls(e *cron.SpecSchedule, low, high int64) (n int) {
	if low >= high {
		return 0
	}
	first, last := floorDiv(low, daySeconds), floorDiv(high, daySeconds)
	whole := inDay(e, daySeconds)
	for day := first; day <= last; day++ {
		if !onDay(e, time.Unix(day*daySeconds, 0).UTC()) {
			continue
		}
		n += whole
		if day == first {
			n -= inDay(e, low-day*daySeconds)
		}
		if day == last {
			n -= whole - inDay(e, high-day*daySeconds)
		}
	}

	return n
}

// inDay counts the times of an expression before a second of the day.
func inDay(e *cron.SpecSchedule, second int64) int {
	minute := (second + 59) / 60 // slots are whole minutes
	hour := minute / 60
	n := bits.OnesCount64(e.Hour&(1<<hour-1)) * bits.OnesCount64(e.Minute&(1<<60-1))
	if e.Hour&(1<<hour) != 0 {
		n += bits.OnesCount64(e.Minute & (1<<(minute%60) - 1))
	}

	return n
}

// onDay reports whether an expression has times on a day. Of its two fields for days
// one that was written as a star leaves the choice to the other.
func onDay(e *cron.SpecSchedule, day time.Time) bool {
	if e.Month&(1<<uint(day.Month())) == 0 {
		return false
	}
	dom, dow := e.Dom&(1<<uint(day.Day())) != 0, e.Dow&(1<<uint(day.Weekday())) != 0
	if e.Dom&starBit != 0 || e.Dow&starBit != 0 {
		return dom && dow
	}

	return dom || dow
}

// floorDiv is a/b rounded down, for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}

	return q
}
