package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones must be right on systems that have none

	"github.com/robfig/cron/v3"
)

// A Timing is a schedule as users write it. At most one member is set.
type Timing struct {
	Cron  string `json:"schedule" jsonschema:"five fields as in cron, or @hourly, @daily, @weekly, @monthly, @yearly"`
	Every string `json:"every" jsonschema:"instead of schedule: a duration like 10m"`
	At    string `json:"at" jsonschema:"instead of schedule: once, like 2026-12-01T09:00"`
}

// Empty reports whether no member is set.
func (t Timing) Empty() bool { return t == Timing{} }

// A Schedule says when a task is due. The zero value is never due.
type Schedule struct {
	timing Timing
	zone   *time.Location
	expr   *cron.SpecSchedule // Cron
	fixed  bool               // the hours are named, so the wall clock decides
	every  time.Duration
	at     time.Time
}

// Bounds of Every.
const (
	MinEvery = 10 * time.Second
	MaxEvery = 366 * 24 * time.Hour
)

// NewSchedule reads a timing in a time zone.
func NewSchedule(t Timing, zone *time.Location) (Schedule, error) {
	s := Schedule{timing: t, zone: zone}
	n := 0
	for _, set := range []bool{t.Cron != "", t.Every != "", t.At != ""} {
		if set {
			n++
		}
	}

	if n > 1 {
		return s, errors.New("has more than one of schedule, every and at; keep one")
	}
	var err error
	switch {
	case t.Cron != "":
		s.expr, s.fixed, err = parseExpression(t.Cron)
	case t.Every != "":
		s.every, err = parseEvery(t.Every)
	case t.At != "":
		s.at, err = parseAt(t.At, zone)
	}

	return s, err
}

// Timing returns the timing that the schedule was made from.
func (s Schedule) Timing() Timing { return s.timing }

// Zone is the time zone of the schedule.
func (s Schedule) Zone() *time.Location { return s.zone }

// Once reports whether the schedule has only one slot.
func (s Schedule) Once() bool { return !s.at.IsZero() }

// text tells two schedules apart.
func (s Schedule) text() string {
	if s.timing.Empty() {
		return ""
	}
	return s.timing.Cron + s.timing.Every + s.timing.At + " " + s.zone.String()
}

// Next returns the first slot after a time; ok is false if there is none. The slots of Every are on
// a grid through anchor: any earlier slot, or the time from which the schedule applies.
func (s Schedule) Next(after, anchor time.Time) (slot time.Time, ok bool) {
	switch {
	case s.expr != nil && s.fixed:
		slot = s.nextByWall(after)
	case s.expr != nil:
		slot = s.nextByClock(after)
	case s.every > 0:
		steps := after.Sub(anchor) / s.every
		if after.Before(anchor) && after.Sub(anchor)%s.every != 0 {
			steps--
		}
		slot = anchor.Add((steps + 1) * s.every)
	case after.Before(s.at):
		slot = s.at
	}

	return slot.UTC(), !slot.IsZero()
}

// nextByClock is Next for schedules of every hour that passes. It looks at one span between two changes of the clocks after
// the other: a step of the library over a change that is no whole hour, or at midnight, can pass slots.
func (s Schedule) nextByClock(after time.Time) time.Time {
	at := after.In(s.zone)
	for wall := wallOf(at); ; wall = wallOf(at).Add(-time.Second) {
		next := s.expr.Next(wall)
		if next.IsZero() {
			return next
		}
		end := changeAfter(at)
		if slot := at.Add(next.Sub(wallOf(at))); end.IsZero() || slot.Before(end) {
			return slot
		}
		at = end
	}
}

// changeAfter is when the clocks change next after t, zero for never, or a moment before that.
func changeAfter(t time.Time) time.Time {
	_, change := t.ZoneBounds()
	if !change.IsZero() && !change.After(t) { // the library has 365 days in each year that is past its tables
		change = t.Add(24 * time.Hour)
	}

	return change
}

// nextByWall is Next for schedules that name their hours. They go by the clock on
// the wall: a time that a change of the clocks skips counts at the first instant
// after it, one that comes twice counts the first time only.
func (s Schedule) nextByWall(after time.Time) time.Time {
	wall := wallOf(after.In(s.zone))
	for {
		if wall = s.expr.Next(wall); wall.IsZero() {
			return wall
		}
		if t := instant(wall, s.zone); t.After(after) {
			return t
		}
	}
}

// wallOf is what the clock shows at t, labelled as UTC, where every time exists
// exactly once.
func wallOf(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// instant is the first time at which the clock of a zone shows wall, or the moment
// at which the clocks jumped over it. It never decreases as wall increases.
func instant(wall time.Time, zone *time.Location) time.Time {
	t := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), wall.Nanosecond(), zone)
	begin, end := t.ZoneBounds()
	switch shown := wallOf(t); {
	case shown.After(wall):
		return begin
	case shown.Before(wall):
		return end
	}

	_, now := t.Zone()
	_, before := begin.Add(-time.Second).Zone()
	if earlier := t.Add(time.Duration(now-before) * time.Second); earlier.Before(begin) {
		return earlier
	}

	return t
}

func parseEvery(text string) (time.Duration, error) {
	d, err := duration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("every is %q; want a time span such as 10m, 2h or 1d", text)
	case d < MinEvery || d > MaxEvery:
		return 0, fmt.Errorf("every is %q; want %s to 366d", text, MinEvery)
	case d%time.Second != 0:
		return 0, fmt.Errorf("every is %q; want whole seconds", text)
	}

	return d, nil
}

// duration is time.ParseDuration with days.
func duration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n > 100_000 {
			return 0, errors.New("not a number of days")
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}

	return time.ParseDuration(text)
}

// atLayouts are the ways to write a time; those without an offset are read on the
// clock of the task's zone.
var atLayouts = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"}

func parseAt(text string, zone *time.Location) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.Truncate(time.Second), sane(t, text)
		}
	}

	for _, layout := range atLayouts {
		if wall, err := time.Parse(layout, text); err == nil {
			return instant(wall, zone), sane(wall, text)
		}
	}

	return time.Time{}, fmt.Errorf("at is %q; want a date and time such as 2026-12-01T09:00", text)
}

func sane(t time.Time, text string) error {
	if t.Year() < 2000 || t.Year() > 2200 {
		return fmt.Errorf("at is %q; want a year from 2000 to 2200", text)
	}
	return nil
}

// LoadZone returns the time zone with an IANA name; "" is byDefault.
func LoadZone(name string, byDefault *time.Location) (*time.Location, error) {
	if name == "" || strings.EqualFold(name, "local") {
		return byDefault, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("timezone is %q; want a name such as Europe/Berlin", name)
	}

	return zone, nil
}
