package schedule

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func cronOf(t testing.TB, expr, where string) Schedule {
	t.Helper()
	s, err := NewSchedule(Timing{Cron: expr}, zone(t, where))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// slots are all slots in (from, to].
func slots(s Schedule, from, to time.Time) []time.Time {
	var all []time.Time
	for t, ok := s.Next(from, from); ok && !t.After(to); t, ok = s.Next(t, from) {
		all = append(all, t)
	}
	return all
}

// The clocks change: what is skipped comes at the first instant after, what comes
// twice counts once, and an hour of * is every hour that passes.
func TestClockChanges(t *testing.T) {
	for _, tt := range []struct {
		name, zone, expr, from, to string // in UTC
		want                       []string
	}{
		{"spring, daily in the gap", "Europe/Berlin", "30 2 * * *", "2026-03-28T12:00", "2026-03-30T12:00",
			[]string{"2026-03-29 03:00 CEST", "2026-03-30 02:30 CEST"}},
		{"autumn, daily in the overlap", "Europe/Berlin", "30 2 * * *", "2026-10-24T12:00", "2026-10-26T12:00",
			[]string{"2026-10-25 02:30 CEST", "2026-10-26 02:30 CET"}},
		{"spring, several in the gap are one", "Europe/Berlin", "*/20 2 * * *", "2026-03-28T12:00", "2026-03-29T12:00",
			[]string{"2026-03-29 03:00 CEST"}},
		{"spring, gap and the hour after are one", "Europe/Berlin", "0 2,3 * * *", "2026-03-28T12:00", "2026-03-29T12:00",
			[]string{"2026-03-29 03:00 CEST"}},
		{"autumn, every 20 minutes of a named hour", "America/New_York", "*/20 1 * * *", "2026-11-01T02:00", "2026-11-01T12:00",
			[]string{"2026-11-01 01:00 EDT", "2026-11-01 01:20 EDT", "2026-11-01 01:40 EDT"}},
		{"midnight that is skipped", "America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00", "2018-11-05T12:00",
			[]string{"2018-11-04 01:00 -02", "2018-11-05 00:00 -02"}},
		{"midnight that comes twice", "America/Havana", "30 0 * * *", "2026-10-31T12:00", "2026-11-02T12:00",
			[]string{"2026-11-01 00:30 CDT", "2026-11-02 00:30 CST"}},
		{"half an hour", "Australia/Lord_Howe", "15 2 * * *", "2026-10-03T00:00", "2026-10-04T23:00",
			[]string{"2026-10-04 02:30 +11", "2026-10-05 02:15 +11"}},
		{"half an hour back", "Australia/Lord_Howe", "45 1 * * *", "2026-04-03T20:00", "2026-04-05T20:00",
			[]string{"2026-04-05 01:45 +11", "2026-04-06 01:45 +1030"}},
		{"half an hour back, every other hour", "Australia/Lord_Howe", "0 */2 * * *", "2026-04-04T12:00", "2026-04-04T18:00",
			[]string{"2026-04-05 00:00 +11", "2026-04-05 02:00 +1030", "2026-04-05 04:00 +1030"}},
		{"half an hour forward, every sixth hour", "Australia/Lord_Howe", "0 */6 * * sun", "2026-10-03T13:00", "2026-10-04T02:00",
			[]string{"2026-10-04 00:00 +1030", "2026-10-04 06:00 +11", "2026-10-04 12:00 +11"}},
		{"a day whose midnight is skipped", "Africa/Cairo", "30 */8 * * fri", "2026-04-22T00:00", "2026-04-25T00:00",
			[]string{"2026-04-24 08:30 EEST", "2026-04-24 16:30 EEST"}},
		{"a day that was skipped", "Pacific/Apia", "0 9 * * *", "2011-12-29T00:00", "2012-01-01T00:00",
			[]string{"2011-12-29 09:00 -10", "2011-12-31 00:00 +14", "2011-12-31 09:00 +14", "2012-01-01 09:00 +14"}},
		{"sunday and 7", "UTC", "0 12 * * 7", "2026-11-20T00:00", "2026-11-30T00:00",
			[]string{"2026-11-22 12:00 UTC", "2026-11-29 12:00 UTC"}},
		{"day of month or day of week", "UTC", "0 0 13 * fri", "2026-11-05T00:00", "2026-11-21T00:00",
			[]string{"2026-11-06 00:00 UTC", "2026-11-13 00:00 UTC", "2026-11-20 00:00 UTC"}},
		{"step on a range", "UTC", "0 8-18/5 * * *", "2026-11-20T00:00", "2026-11-20T23:00",
			[]string{"2026-11-20 08:00 UTC", "2026-11-20 13:00 UTC", "2026-11-20 18:00 UTC"}},
		{"to sunday by its name", "UTC", "0 12 * * sat-sun", "2026-11-19T00:00", "2026-11-24T00:00",
			[]string{"2026-11-21 12:00 UTC", "2026-11-22 12:00 UTC"}},
		{"from sunday to sunday", "UTC", "0 12 * * sun-0", "2026-11-19T00:00", "2026-11-24T00:00",
			[]string{"2026-11-22 12:00 UTC"}},
		{"over the weekend", "UTC", "0 12 * * fri-7/2", "2026-11-19T00:00", "2026-11-24T00:00",
			[]string{"2026-11-20 12:00 UTC", "2026-11-22 12:00 UTC"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := cronOf(t, tt.expr, tt.zone)
			var got []string
			for _, at := range slots(s, utc(t, tt.from), utc(t, tt.to)) {
				got = append(got, at.In(s.Zone()).Format("2006-01-02 15:04 MST"))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func utc(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04", text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// An hour of * gives 25 slots on the day the clocks go back, 23 on the other.
func TestEveryHourCountsRealHours(t *testing.T) {
	s := cronOf(t, "0 * * * *", "Europe/Berlin")
	for day, want := range map[string]int{"2026-10-24T22:00": 25, "2026-03-28T23:00": 23} {
		from := utc(t, day).Add(-time.Second)
		to := from.In(s.Zone()).Add(time.Second).AddDate(0, 0, 1).Add(-time.Second)
		if got := len(slots(s, from, to)); got != want {
			t.Errorf("on the day from %s there are %d slots, want %d", day, got, want)
		}
	}
}

// zones are 20 with different habits: no change at all, half an hour, at midnight,
// in the south, with Ramadan, far from UTC.
var zones = []string{
	"UTC", "Europe/Berlin", "Europe/London", "Europe/Dublin", "America/New_York", "America/Los_Angeles", "America/Sao_Paulo",
	"America/Havana", "America/St_Johns", "America/Santiago", "Asia/Kolkata", "Asia/Kathmandu", "Asia/Tokyo", "Asia/Beirut",
	"Africa/Cairo", "Africa/Casablanca", "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Auckland", "Pacific/Chatham",
}

// oracle finds the slots in (from, to] of schedules of one zone by asking every
// minute, without Next: a wall time counts when it is first shown; one that is
// jumped over counts at the jump.
func oracle(all []Schedule, from, to time.Time) [][]time.Time {
	found := make([][]time.Time, len(all))
	zone := all[0].zone
	shown := map[int64]bool{} // wall times, in seconds
	last := wallOf(from.Add(-24 * time.Hour).In(zone))
	for t := from.Add(-24 * time.Hour); !t.After(to); t = t.Add(time.Minute) {
		wall := wallOf(t.In(zone))
		now := faceOf(wall)
		var jumped []face
		for w := last.Add(time.Minute); w.Before(wall); w = w.Add(time.Minute) {
			if !shown[w.Unix()] {
				jumped = append(jumped, faceOf(w))
			}
			shown[w.Unix()] = true
		}

		again := shown[wall.Unix()]
		shown[wall.Unix()] = true
		last = wall
		for i, s := range all {
			due := now.matches(s) && !(s.fixed && again)
			for _, f := range jumped {
				due = due || s.fixed && f.matches(s)
			}
			if due && t.After(from) {
				found[i] = append(found[i], t)
			}
		}
	}

	return found
}

// A face is what a clock shows, with the date.
type face struct {
	minute, hour, day int
	month             time.Month
	weekday           time.Weekday
}

func faceOf(wall time.Time) face {
	_, month, day := wall.Date()
	hour, minute, _ := wall.Clock()
	return face{minute, hour, day, month, wall.Weekday()}
}

func (f face) matches(s Schedule) bool {
	e := s.expr
	dom := e.Dom&(1<<f.day) != 0
	dow := e.Dow&(1<<int(f.weekday)) != 0
	day := dom && dow
	if e.Dom&starBit == 0 && e.Dow&starBit == 0 {
		day = dom || dow
	}

	return day && e.Month&(1<<int(f.month)) != 0 && e.Hour&(1<<f.hour) != 0 && e.Minute&(1<<f.minute) != 0
}

func TestInWords(t *testing.T) {
	for _, tt := range []struct {
		timing Timing
		want   string
	}{
		{Timing{Cron: "0 9 * * *"}, "every day at 09:00 (Europe/Berlin)"},
		{Timing{Cron: "@daily"}, "every day at 00:00 (Europe/Berlin)"},
		{Timing{Cron: "0 9 * * 1-5"}, "Monday to Friday at 09:00 (Europe/Berlin)"},
		{Timing{Cron: "*/20 8-18 * * mon-fri"}, "every 20 minutes from 08:00 to 18:59, Monday to Friday (Europe/Berlin)"},
		{Timing{Cron: "* * * * *"}, "every minute (Europe/Berlin)"},
		{Timing{Cron: "5 * * * *"}, "every hour at minute 5 (Europe/Berlin)"},
		{Timing{Cron: "0 */6 * * *"}, "every day at 00:00, 06:00, 12:00 and 18:00 (Europe/Berlin)"},
		{Timing{Cron: "0 */2 * * *"}, "every 2 hours at minute 0 (Europe/Berlin)"},
		{Timing{Cron: "30 7 1,15 * *"}, "on day 1 and 15 of the month at 07:30 (Europe/Berlin)"},
		{Timing{Cron: "0 0 13 * fri"}, "on day 13 of the month and every Friday at 00:00 (Europe/Berlin)"},
		{Timing{Cron: "0 12 * 6,7 sat,sun"}, "every Saturday and Sunday in June and July at 12:00 (Europe/Berlin)"},
		{Timing{Every: "10m"}, "every 10 minutes"},
		{Timing{Every: "1d"}, "every day"},
		{Timing{Every: "90m"}, "every 1 hour and 30 minutes"},
		{Timing{At: "2026-12-01T09:00"}, "once, on Tuesday 1 December 2026 at 09:00 (Europe/Berlin)"},
		{Timing{}, "when something changes"},
	} {
		s, err := NewSchedule(tt.timing, zone(t, "Europe/Berlin"))
		if err != nil {
			t.Fatal(err)
		}
		if got := s.String(); got != tt.want {
			t.Errorf("%+v is said %q, want %q", tt.timing, got, tt.want)
		}
	}
}

func TestTimingsThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		timing Timing
		want   string // part of the error
	}{
		{Timing{Cron: "0 9 * *"}, "has 4 fields"},
		{Timing{Cron: "0 0 9 * * *"}, "has 6 fields"},
		{Timing{Cron: "61 * * * *"}, "above maximum"},
		{Timing{Cron: "0 9 * * 8"}, "0 to 7"},
		{Timing{Cron: "0 9 * * sat-mon"}, "ends before it begins"},
		{Timing{Cron: "0 9 * * mo"}, "mon, tue"},
		{Timing{Cron: "0 9 * * mon-fr"}, "mon, tue"},
		{Timing{Cron: "0 9 * * mon-fri/0"}, "step from 1 to 7"},
		{Timing{Cron: "0 9 * * mon-fri/-1"}, "step from 1 to 7"},
		{Timing{Cron: "0 9 * * mon-fri/x"}, "step from 1 to 7"},
		{Timing{Cron: "0 0 30 2 *"}, "never runs"},
		{Timing{Cron: "0 0 L * *"}, "not supported"},
		{Timing{Cron: "0 9 ? * *"}, "not supported"},
		{Timing{Cron: "0,,5 9 * * *"}, "empty entry between"},
		{Timing{Cron: "*5 9 * * *"}, "/STEP"},
		{Timing{Cron: "@every 5m"}, "@daily"},
		{Timing{Cron: "*/70 * * * *"}, "want 1 to 59"},
		{Timing{Cron: "0-59/60 * * * *"}, "want 1 to 59"},
		{Timing{Cron: "0 */24 * * *"}, "want 1 to 23"},
		{Timing{Cron: "0 0 */31 * *"}, "want 1 to 30"},
		{Timing{Cron: "0 0 1 1,*/12 *"}, "want 1 to 11"},
		{Timing{Cron: "0 0 * * */8"}, "want 1 to 7"},
		{Timing{Cron: "TZ=Europe/Berlin 0 9 * * *"}, "has 6 fields"},
		{Timing{Every: "0s"}, "10s to 366d"},
		{Timing{Every: "-5m"}, "10s to 366d"},
		{Timing{Every: "-5d"}, "10s to 366d"},
		{Timing{Every: "often"}, "10m, 2h or 1d"},
		{Timing{Every: "xd"}, "10m, 2h or 1d"},
		{Timing{Every: "100001d"}, "10m, 2h or 1d"},
		{Timing{Every: "10.5s"}, "whole seconds"},
		{Timing{At: "tomorrow"}, "2026-12-01T09:00"},
		{Timing{At: "9999-01-01T00:00"}, "year"},
		{Timing{Cron: "@daily", Every: "1h"}, "more than one"},
	} {
		_, err := NewSchedule(tt.timing, time.UTC)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want an error with %q", tt.timing, err, tt.want)
		}
	}
}

func TestPhrases(t *testing.T) {
	now := time.Date(2026, 11, 20, 17, 22, 3, 0, time.UTC) // a Friday; 18:22 in Berlin
	for text, want := range map[string]Timing{
		"every weekday at 9":                {Cron: "0 9 * * 1-5"},
		"Every day at 18:30.":               {Cron: "30 18 * * *"},
		"daily at 9pm":                      {Cron: "0 21 * * *"},
		"weekdays at 12am":                  {Cron: "0 0 * * 1-5"},
		"every monday and thursday at 8":    {Cron: "0 8 * * 1,4"},
		"mondays at noon":                   {Cron: "0 12 * * 1"},
		"every weekend at 10:15":            {Cron: "15 10 * * 6,0"},
		"every 10 minutes":                  {Every: "10m"},
		"every hour":                        {Cron: "0 * * * *"},
		"hourly":                            {Cron: "@hourly"},
		"every month on the 1st at 8":       {Cron: "0 8 1 * *"},
		"tomorrow at 7:30":                  {At: "2026-11-21T07:30"},
		"today at 20:00":                    {At: "2026-11-20T20:00"},
		"in 20 minutes":                     {At: "2026-11-20T18:42:03+01:00"},
		"in an hour":                        {At: "2026-11-20T19:22:03+01:00"},
		"*/5 9-17 * * mon-fri":              {Cron: "*/5 9-17 * * mon-fri"},
		"@daily":                            {Cron: "@daily"},
		"every sunday, and tuesday at 0:05": {Cron: "5 0 * * 0,2"},
	} {
		got, err := ParsePhrase(text, now, zone(t, "Europe/Berlin"))
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}

	for _, text := range []string{"", "soon", "every day", "friday at 9", "day at 9", "next week", "every week", "monthly",
		"today at 9", "every day at 25", "every day at 9:75", "every month on the 31st at 9", "every day at 13pm",
		"every 3 seconds", "at 9", "every 3rd friday at 10", "61 * * * *"} {
		for name, parse := range map[string]func(string, time.Time,
			*time.Location) (Timing, error){"phrase": ParsePhrase, "when": ParseWhen} {
			got, err := parse(text, now, zone(t, "Europe/Berlin"))
			if !errors.Is(err, ErrPhrase) {
				t.Errorf("%q as a %s is %+v, %v; want it refused as no clear time", text, name, got, err)
			}
			if err != nil && strings.Contains(err.Error(), "day of week") {
				t.Errorf("%q is taken for an expression: %v", text, err)
			}
		}
	}
}

func FuzzExpression(f *testing.F) {
	for _, s := range []string{"*/20 8-18 * * mon-fri", "@daily", "0 0 29 2 7", "1-5/2 * 13 * fri-7", "59 23 31 12 sun",
		"0,,5 * * * *", "*/9223372036854775807 * * * *"} {
		f.Add(s)
	}
	berlin := zone(f, "Europe/Berlin")
	after := time.Date(2026, 3, 29, 0, 59, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		s, err := NewSchedule(Timing{Cron: text}, berlin)
		if err != nil || text == "" {
			return
		}
		slot, ok := s.Next(after, after)
		if !ok || !slot.After(after) || s.String() == "" {
			t.Errorf("%q: next %v %v, said %q", text, slot, ok, s)
		}
	})
}

func FuzzTiming(f *testing.F) {
	f.Add("10m", "2026-12-01T09:00", "every day at 9")
	f.Add("1d", "2026-03-29T02:30", "in 5 days")
	berlin := zone(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, every, at, phrase string) {
		now := time.Date(2026, 3, 29, 0, 59, 0, 0, time.UTC)
		if s, err := NewSchedule(Timing{Every: every}, berlin); err == nil && every != "" {
			if slot, ok := s.Next(now, now.Add(time.Hour)); !ok || !slot.After(now) || slot.Sub(now) > MaxEvery {
				t.Errorf("every %q: next is %v", every, slot)
			}
		}
		if _, err := NewSchedule(Timing{At: at}, berlin); err != nil && err.Error() == "" {
			t.Error("an error that says nothing")
		}
		if timing, err := ParsePhrase(phrase, now, berlin); err == nil {
			if _, err := NewSchedule(timing, berlin); err != nil {
				t.Errorf("phrase %q gives %+v, which is refused: %v", phrase, timing, err)
			}
		}
	})
}

func ExampleSchedule_String() {
	s, _ := NewSchedule(Timing{Cron: "*/20 8-18 * * mon-fri"}, time.UTC)
	fmt.Println(s)
	// Output: every 20 minutes from 08:00 to 18:59, Monday to Friday (UTC)
}
