package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"daycare/engine/lazyregexp"
)

// ErrPhrase: the words contain no time, or can mean more than one.
var ErrPhrase = errors.New("ambiguous time")

const phraseHelp = `say it like "every weekday at 9:00", "every 10 minutes", "every monday at 18:30", ` +
	`"every month on the 1st at 8", "tomorrow at 7:30", "in 20 minutes"; or give a cron expression`

var (
	inPhrase    = lazyregexp.New(`^in (\d{1,4}|an?) (minute|hour|day)s?$`)
	everyPhrase = lazyregexp.New(`^every (\d{1,4} )?(second|minute|hour)s?$`)
	dayPhrase   = lazyregexp.New(`^(?:every )?(days?|daily|weekdays?|weekends?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?` +
		`(?:(?:,| and|, and) (?:mon|tues|wednes|thurs|fri|satur|sun)days?)*) at (.+)$`)
	monthPhrase = lazyregexp.New(`^every month on the (\d{1,2})(?:st|nd|rd|th)? at (.+)$`)
	datePhrase  = lazyregexp.New(`^(today|tomorrow) at (.+)$`)
	hourPhrase  = lazyregexp.New(`^(\d{1,2})(?::(\d{2}))? ?(am|pm)?$`)
)

// ParsePhrase reads a time from plain words, but only if they can mean one thing; otherwise the
// error is ErrPhrase, with a hint.
func ParsePhrase(text string, now time.Time, zone *time.Location) (Timing, error) {
	p := strings.Join(strings.Fields(strings.ToLower(strings.Trim(strings.TrimSpace(text), "."))), " ")
	if m := inPhrase.FindStringSubmatch(p); m != nil {
		return fromNow(m[1], m[2], now, zone), nil
	}
	if m := everyPhrase.FindStringSubmatch(p); m != nil {
		return repeating(strings.TrimSpace(m[1]), m[2])
	}
	if m := monthPhrase.FindStringSubmatch(p); m != nil {
		return monthly(m[1], m[2], text)
	}
	if m := datePhrase.FindStringSubmatch(p); m != nil {
		return onDate(m[1], m[2], text, now, zone)
	}
	if m := dayPhrase.FindStringSubmatch(p); m != nil {
		hour, minute, err := clock(m[2], text)
		days, ok := daysOf(m[1], strings.HasPrefix(p, "every "))
		if err == nil && !ok {
			err = unclear(text, "say \"every\" if it repeats, or give the date")
		}
		return Timing{Cron: fmt.Sprintf("%d %d * * %s", minute, hour, days)}, err
	}

	switch p {
	case "hourly":
		return Timing{Cron: "@hourly"}, nil
	case "every day", "daily", "every weekday", "every week", "weekly", "every month", "monthly":
		return Timing{}, unclear(text, "at what time? "+phraseHelp)
	}

	if len(strings.Fields(p)) == 5 || strings.HasPrefix(p, "@") {
		if _, _, err := parseExpression(p); err == nil {
			return Timing{Cron: p}, nil
		}
	}

	return Timing{}, unclear(text, phraseHelp)
}

// ParseWhen reads a time in any form that users write: a date and time, a duration, a cron
// expression, plain words.
func ParseWhen(text string, now time.Time, zone *time.Location) (Timing, error) {
	text = strings.TrimSpace(text)
	for _, t := range []Timing{{At: text}, {Every: text}} {
		if _, err := NewSchedule(t, zone); err == nil && text != "" {
			return t, nil
		}
	}

	timing, err := ParsePhrase(text, now, zone)
	if err != nil && len(strings.Fields(text)) == 5 && strings.ContainsAny(text[:1], "*0123456789") {
		// It looks like an expression: say what is wrong with it as one.
		if _, _, wrong := parseExpression(text); wrong != nil {
			err = fmt.Errorf("%w: %w", ErrPhrase, wrong)
		}
	}

	return timing, err
}

func unclear(text, help string) error { return fmt.Errorf("%w: %q; %s", ErrPhrase, text, help) }

func fromNow(count, unit string, now time.Time, zone *time.Location) Timing {
	n, err := strconv.Atoi(count)
	if err != nil {
		n = 1 // an hour
	}
	var t time.Time
	switch unit {
	case "minute":
		t = now.Add(time.Duration(n) * time.Minute)
	case "hour":
		t = now.Add(time.Duration(n) * time.Hour)
	default:
		t = now.In(zone).AddDate(0, 0, n)
	}

	// With its offset, so that a change of the clocks cannot make it another hour.
	return Timing{At: t.In(zone).Truncate(time.Second).Format(time.RFC3339)}
}

func repeating(count, unit string) (Timing, error) {
	if count == "" {
		switch unit {
		case "minute":
			return Timing{Cron: "* * * * *"}, nil
		case "hour":
			return Timing{Cron: "0 * * * *"}, nil
		}
		count = "1"
	}

	every := count + unit[:1]
	if _, err := parseEvery(every); err != nil {
		return Timing{}, fmt.Errorf("%w: %w", ErrPhrase, err)
	}

	return Timing{Every: every}, nil
}

func monthly(day, at, text string) (Timing, error) {
	hour, minute, err := clock(at, text)
	n, _ := strconv.Atoi(day) // the pattern has digits only
	if err == nil && (n < 1 || n > 28) {
		err = unclear(text, "not every month has that day; give a cron expression to say what you mean")
	}

	return Timing{Cron: fmt.Sprintf("%d %d %d * *", minute, hour, n)}, err
}

func onDate(word, at, text string, now time.Time, zone *time.Location) (Timing, error) {
	hour, minute, err := clock(at, text)
	if err != nil {
		return Timing{}, err
	}
	day := now.In(zone)
	if word == "tomorrow" {
		day = day.AddDate(0, 0, 1)
	}

	wall := time.Date(day.Year(), day.Month(), day.Day(), hour, minute, 0, 0, time.UTC)
	if !instant(wall, zone).After(now) {
		return Timing{}, unclear(text, "that time has passed")
	}

	return Timing{At: wall.Format("2006-01-02T15:04")}, nil
}

// clock reads a time of day.
func clock(at, text string) (hour, minute int, err error) {
	switch at {
	case "noon":
		return 12, 0, nil
	case "midnight":
		return 0, 0, nil
	}

	m := hourPhrase.FindStringSubmatch(at)
	if m == nil {
		return 0, 0, unclear(text, phraseHelp)
	}
	hour, _ = strconv.Atoi(m[1])
	minute, _ = strconv.Atoi("0" + m[2])
	half := m[3] != ""
	if hour > 23 || minute > 59 || half && (hour < 1 || hour > 12) {
		return 0, 0, unclear(text, "there is no such time of day")
	}
	if half {
		hour %= 12
		if m[3] == "pm" {
			hour += 12
		}
	}

	return hour, minute, nil
}

// daysOf is the last field of a cron expression. "friday" alone could be one
// Friday or all of them, so it needs "every" or the plural.
func daysOf(text string, every bool) (field string, ok bool) {
	switch text {
	case "day", "days", "daily":
		return "*", every || text == "daily"
	case "weekday", "weekdays":
		return "1-5", every || text == "weekdays"
	case "weekend", "weekends":
		return "6,0", every || text == "weekends"
	}

	var days []string
	for word := range strings.FieldsFuncSeq(strings.ReplaceAll(text, " and ", ","), func(r rune) bool { return r == ',' || r == ' ' }) {
		if word == "and" {
			continue
		}
		singular := strings.TrimSuffix(word, "s")
		if singular == word && !every {
			return "", false
		}
		days = append(days, strconv.Itoa(dayNames[singular]))
	}

	return strings.Join(days, ","), true
}
