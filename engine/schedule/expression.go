package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

var parser = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// words are the names of common expressions.
var words = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// parseExpression reads a cron expression. fixed says that it names its hours:
// only then does a change of the clocks move a slot (an hour of * is every hour
// that passes, 25 of them in autumn).
func parseExpression(text string) (expr *cron.SpecSchedule, fixed bool, err error) {
	plain := text
	if strings.HasPrefix(text, "@") {
		if plain = words[strings.ToLower(text)]; plain == "" {
			return nil, false, fmt.Errorf("schedule is %q; want five fields or one of @hourly, @daily, @weekly, @monthly, @yearly", text)
		}
	}

	fields := strings.Fields(plain)
	if len(fields) != 5 {
		return nil, false, fmt.Errorf("schedule %q has %d fields; "+
			"want five: minute, hour, day of month, month, day of week", text, len(fields))
	}

	for i, f := range fields {
		if err := checkField(f, fieldSteps[i]); err != nil {
			return nil, false, fmt.Errorf("schedule %q: %s %q: %w", text, fieldNames[i], f, err)
		}
	}

	if fields[4], err = weekdays(fields[4]); err != nil {
		return nil, false, fmt.Errorf("schedule %q: day of week: %w", text, err)
	}

	parsed, err := parser.Parse(strings.Join(fields, " "))
	if err != nil {
		return nil, false, fmt.Errorf("schedule %q: %w", text, err)
	}
	expr = parsed.(*cron.SpecSchedule) // five fields never are anything else
	if expr.Next(time.Date(2023, 3, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, false, fmt.Errorf("schedule %q never runs: no month has that day", text)
	}

	return expr, !strings.HasPrefix(fields[1], "*"), nil
}

var fieldNames = []string{"minute", "hour", "day of month", "month", "day of week"}

// fieldSteps is the longest step of each field: a longer one leaves a single value,
// which nobody means who writes */70.
var fieldSteps = []int{59, 23, 30, 11, 7}

// checkField refuses what the library takes for something else: nothing between
// two commas, a question mark, letters of other dialects of cron, a step that is
// longer than the field.
func checkField(field string, longest int) error {
	for part := range strings.SplitSeq(field, ",") {
		_, step, _ := strings.Cut(part, "/")
		n, _ := strconv.Atoi(step) // what is not a number the library refuses
		switch {
		case part == "":
			return errors.New("empty entry between two commas")
		case strings.ContainsAny(part, "?#"),
			len(part) > 1 && strings.HasSuffix(strings.ToUpper(part), "L") && !strings.HasSuffix(strings.ToUpper(part), "JUL"),
			strings.EqualFold(part, "L"):
			return errors.New("the signs L, W, # and ? are not supported")
		case strings.HasPrefix(part, "*") && part != "*" && !strings.HasPrefix(part, "*/"):
			return errors.New("after * only /STEP may follow")
		case n > longest:
			return fmt.Errorf("the step is %d; want 1 to %d", n, longest)
		}
	}

	return nil
}

var dayNames = map[string]int{"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6,
	"sunday": 0, "monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6}

// weekdays rewrites the last field so that the library reads it: there 7 is not
// Sunday, and a range cannot end on it.
func weekdays(field string) (string, error) {
	if strings.HasPrefix(field, "*") && !strings.Contains(field, ",") {
		return field, nil
	}
	var days []string
	for part := range strings.SplitSeq(field, ",") {
		span, stepText, hasStep := strings.Cut(part, "/")
		low, high, hasHigh := strings.Cut(span, "-")
		first, last, step := 0, 6, 1
		var err error
		if hasStep {
			if step, err = strconv.Atoi(stepText); err != nil || step < 1 || step > 7 {
				return "", fmt.Errorf("%q: want a step from 1 to 7 after the slash", part)
			}
		}
		if span != "*" {
			if first, err = day(low); err != nil {
				return "", err
			}
			switch {
			case hasHigh:
				if last, err = day(high); err != nil {
					return "", err
				}
			case !hasStep:
				last = first
			}
		}
		if last == 0 && hasHigh && first > 0 {
			last = 7 // fri-sun
		}
		if first > last {
			return "", fmt.Errorf("%q ends before it begins", part)
		}

		for d := first; d <= last; d += step {
			days = append(days, strconv.Itoa(d%7))
		}
	}

	return strings.Join(days, ","), nil
}

func day(text string) (int, error) {
	if d, ok := dayNames[strings.ToLower(text)]; ok {
		return d, nil
	}
	d, err := strconv.Atoi(text)
	if err != nil || d < 0 || d > 7 {
		return 0, fmt.Errorf("found %q, want 0 to 7 (both are Sunday) or mon, tue, wed, thu, fri, sat, sun", text)
	}

	return d, nil
}
