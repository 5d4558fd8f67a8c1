package schedule

import (
	"fmt"
	"strings"
	"time"
)

// String describes in words when the schedule is due, including its time zone.
func (s Schedule) String() string {
	switch {
	case s.expr != nil:
		return s.expression() + " (" + s.zone.String() + ")"
	case s.every > 0:
		return "every " + span(s.every)
	case !s.at.IsZero():
		return "once, on " + s.at.In(s.zone).Format("Monday 2 January 2006 at 15:04") + " (" + s.zone.String() + ")"
	}

	return "when something changes"
}

// starBit is how the library marks a field that was written as a star.
const starBit = 1 << 63

func (s Schedule) expression() string {
	times, days := s.times(), s.days()
	if strings.HasPrefix(times, "at ") {
		return days + " " + times
	}
	if days == "every day" {
		return times
	}

	return times + ", " + days
}

// times says the minutes and hours.
func (s Schedule) times() string {
	minutes, hours := set(s.expr.Minute, 0, 59), set(s.expr.Hour, 0, 23)
	step, even := stride(minutes, 60)
	switch {
	case len(minutes)*len(hours) <= 4:
		var all []string
		for _, h := range hours {
			for _, m := range minutes {
				all = append(all, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
		return "at " + list(all)
	case even && step == 1:
		return "every minute" + during(hours)
	case even && len(minutes) > 1:
		return fmt.Sprintf("every %d minutes", step) + during(hours)
	case len(minutes) == 1 && len(hours) < 24:
		if every, ok := stride(hours, 24); ok {
			return fmt.Sprintf("every %d hours at minute %d", every, minutes[0])
		}
	}

	return "every hour at minute " + list(numbers(minutes)) + during(hours)
}

// during says the hours, if not all.
func during(hours []int) string {
	if len(hours) == 24 {
		return ""
	}
	if n := len(hours); n > 1 && hours[n-1]-hours[0] == n-1 {
		return fmt.Sprintf(" from %02d:00 to %02d:59", hours[0], hours[n-1])
	}

	return " in the hours " + list(numbers(hours))
}

// days says the days and months.
func (s Schedule) days() string {
	dom, dow, month := s.expr.Dom, s.expr.Dow, s.expr.Month
	var parts []string
	if dom&starBit == 0 {
		parts = append(parts, "on day "+list(numbers(set(dom, 1, 31)))+" of the month")
	}
	if dow&starBit == 0 {
		parts = append(parts, weekdayWords(set(dow, 0, 6)))
	}

	text := "every day"
	if len(parts) > 0 {
		text = strings.Join(parts, " and ")
	}
	if months := set(month, 1, 12); len(months) < 12 {
		var names []string
		for _, m := range months {
			names = append(names, time.Month(m).String())
		}
		text += " in " + list(names)
	}

	return text
}

func weekdayWords(days []int) string {
	if len(days) > 1 && days[0] == 0 { // users' weeks end on Sunday
		days = append(days[1:], 7)
	}
	n := len(days)
	name := func(d int) string { return time.Weekday(d % 7).String() }
	if n == 7 {
		return "every day"
	}
	if n > 2 && days[n-1]-days[0] == n-1 {
		return name(days[0]) + " to " + name(days[n-1])
	}

	var names []string
	for _, d := range days {
		names = append(names, name(d))
	}

	return "every " + list(names)
}

// set is the numbers whose bits are set.
func set(bits uint64, low, high int) []int {
	var all []int
	for n := low; n <= high; n++ {
		if bits&(1<<n) != 0 {
			all = append(all, n)
		}
	}

	return all
}

// stride is n if the numbers are 0, n, 2n … up to the end of a circle.
func stride(all []int, circle int) (n int, ok bool) {
	if len(all) == 0 || all[0] != 0 || circle%len(all) != 0 {
		return 0, false
	}
	n = circle / len(all)
	for i, v := range all {
		if v != i*n {
			return 0, false
		}
	}

	return n, true
}

func numbers(all []int) []string {
	text := make([]string, len(all))
	for i, n := range all {
		text[i] = fmt.Sprint(n)
	}

	return text
}

// list joins words as users do.
func list(all []string) string {
	if n := len(all); n > 1 {
		return strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	}
	return strings.Join(all, "")
}

// span is a length of time in words.
func span(d time.Duration) string {
	var parts []string
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}} {
		n := d / unit.length
		d -= n * unit.length
		switch {
		case n == 1 && d == 0 && len(parts) == 0:
			return unit.name
		case n == 1:
			parts = append(parts, "1 "+unit.name)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, unit.name))
		}
	}

	return list(parts)
}
