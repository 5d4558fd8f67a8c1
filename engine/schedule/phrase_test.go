package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// A time is read in any way in which users write one.
func TestTimesAsPeopleWriteThem(t *testing.T) {
	now := time.Date(2026, 11, 20, 17, 22, 3, 0, time.UTC) // a Friday; 18:22 in Berlin
	berlin := zone(t, "Europe/Berlin")
	for text, want := range map[string]Timing{
		" 10m ":                              {Every: "10m"},
		"1d":                                 {Every: "1d"},
		"2026-12-01T09:00":                   {At: "2026-12-01T09:00"},
		"2026-12-01 09:00:30":                {At: "2026-12-01 09:00:30"},
		"2026-12-01T09:00:00+02:00":          {At: "2026-12-01T09:00:00+02:00"},
		"0 9 * * 1-5":                        {Cron: "0 9 * * 1-5"},
		"@weekly":                            {Cron: "@weekly"},
		"in 3 days":                          {At: "2026-11-23T18:22:03+01:00"},
		"in a minute":                        {At: "2026-11-20T18:23:03+01:00"},
		"in 2 hours":                         {At: "2026-11-20T20:22:03+01:00"},
		"in 1 day":                           {At: "2026-11-21T18:22:03+01:00"},
		"every minute":                       {Cron: "* * * * *"},
		"every 30 seconds":                   {Every: "30s"},
		"every 2 hours":                      {Every: "2h"},
		"today at 18:23":                     {At: "2026-11-20T18:23"},
		"tomorrow at midnight":               {At: "2026-11-21T00:00"},
		"every month on the 28th at 12pm":    {Cron: "0 12 28 * *"},
		"every month on the 2 at 1am":        {Cron: "0 1 2 * *"},
		"weekends at 12:59am":                {Cron: "59 0 * * 6,0"},
		"mondays, tuesdays and fridays at 8": {Cron: "0 8 * * 1,2,5"},
		"every day at 23:59":                 {Cron: "59 23 * * *"},
	} {
		got, err := ParseWhen(text, now, berlin)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}

	for _, text := range []string{"every month on the 0 at 8", "every month on the 29th at 8", "every day at 24:00", "every day at nine",
		"every month on the 1st at nine", "tomorrow at nine", "every day at 0am",
		"every day at 12:60", "monday and tuesdays at 8", "weekday at 9", "weekend at 9", "today at 18:22", "* * * * * *",
		"@never", "in 5 weeks",
		"every second", "61 9 * * *", "* * * * x"} {
		if got, err := ParseWhen(text, now, berlin); !errors.Is(err, ErrPhrase) {
			t.Errorf("%q is %+v, %v; want it refused", text, got, err)
		}
	}
	if _, err := ParseWhen("61 9 * * *", now, berlin); err == nil || !strings.Contains(err.Error(), "above maximum") {
		t.Errorf("of a wrong expression is said: %v", err)
	}
}

// A schedule in words names its minutes, hours, days and months.
func TestSchedulesInWords(t *testing.T) {
	for expr, want := range map[string]string{
		"0 9,17 * * *":       "every day at 09:00 and 17:00 (UTC)",
		"0,30 9,17 * * *":    "every day at 09:00, 09:30, 17:00 and 17:30 (UTC)",
		"0,20,40 9,17 * * *": "every 20 minutes in the hours 9 and 17 (UTC)",
		"*/15 * * * *":       "every 15 minutes (UTC)",
		"*/15 * * * 1":       "every 15 minutes, every Monday (UTC)",
		"5,25,45 * * * *":    "every hour at minute 5, 25 and 45 (UTC)",
		"5 8-18 * * *":       "every hour at minute 5 from 08:00 to 18:59 (UTC)",
		"5 1,3,5,7,11 * * *": "every hour at minute 5 in the hours 1, 3, 5, 7 and 11 (UTC)",
		"10 */3 * * *":       "every 3 hours at minute 10 (UTC)",
		"* 9 * * *":          "every minute in the hours 9 (UTC)",
		"* 9-10 * * *":       "every minute from 09:00 to 10:59 (UTC)",
		"0 9 1 1 *":          "on day 1 of the month in January at 09:00 (UTC)",
		"0 9 * 1-11 *": "every day in January, February, March, April, May, June, July, August, September, October and November " +
			"at 09:00 (UTC)",
		"0 9 1-3 * 1,2":   "on day 1, 2 and 3 of the month and every Monday and Tuesday at 09:00 (UTC)",
		"7 */2 * * *":     "every 2 hours at minute 7 (UTC)",
		"0,30 */12 * * *": "every day at 00:00, 00:30, 12:00 and 12:30 (UTC)",
	} {
		if got := cronOf(t, expr, "UTC").String(); got != want {
			t.Errorf("%s is said %q, want %q", expr, got, want)
		}
	}

	for d, want := range map[time.Duration]string{
		24 * time.Hour: "day", 48 * time.Hour: "2 days", time.Hour: "hour", time.Minute: "minute", time.Second: "second",
		10 * time.Second: "10 seconds",
		25 * time.Hour:   "1 day and 1 hour", 26*time.Hour + time.Minute + 5*time.Second: "1 day, 2 hours, 1 minute and 5 seconds",
		61 * time.Second: "1 minute and 1 second",
	} {
		if got := span(d); got != want {
			t.Errorf("%v is said %q, want %q", d, got, want)
		}
	}
}

// The slots of a span of time lie on a grid through any point of it, before or behind.
func TestTheGridOfASpan(t *testing.T) {
	s := must(NewSchedule(Timing{Every: "10m"}, time.UTC))
	for _, anchor := range []time.Time{noon, noon.Add(time.Hour), noon.Add(-time.Hour), noon.Add(50 * time.Minute)} {
		for after, want := range map[time.Duration]time.Duration{0: 10 * time.Minute, time.Second: 10 * time.Minute, -time.Second: 0,
			10 * time.Minute: 20 * time.Minute, 10*time.Minute - time.Nanosecond: 10 * time.Minute, -10 * time.Minute: 0} {
			if got, ok := s.Next(noon.Add(after), anchor); !ok || !got.Equal(noon.Add(want)) {
				t.Errorf("through %v, after %v: %v", anchor, after, got)
			}
		}
	}

	once := must(NewSchedule(Timing{At: "2026-11-20T12:00"}, time.UTC))
	if at, ok := once.Next(noon.Add(-time.Nanosecond), noon); !ok || !at.Equal(noon) || !once.Once() || s.Once() {
		t.Errorf("once, before: %v, %v", at, ok)
	}
	if at, ok := once.Next(noon, noon); ok {
		t.Errorf("once, and again at %v", at)
	}

	for text, want := range map[string]bool{"9s": false, "10s": true, "366d": true, "367d": false, "8784h1s": false, "-1d": false,
		"1.5d": false, "100001d": false} {
		if _, err := NewSchedule(Timing{Every: text}, time.UTC); (err == nil) != want {
			t.Errorf("every %s: %v", text, err)
		}
	}

	for text, want := range map[string]bool{"1999-12-31T23:59": false, "2000-01-01T00:00": true, "2200-12-31T23:59": true,
		"2201-01-01T00:00":  false,
		"1999-12-31T23:59Z": false, "2000-01-01T00:00:00Z": true} {
		if _, err := NewSchedule(Timing{At: text}, time.UTC); (err == nil) != want {
			t.Errorf("at %s: %v", text, err)
		}
	}

	for name, want := range map[string]string{"": "UTC", "local": "UTC", "LOCAL": "UTC", "Asia/Tokyo": "Asia/Tokyo"} {
		if got, err := LoadZone(name, time.UTC); err != nil || got.String() != want {
			t.Errorf("zone %q is %v, %v", name, got, err)
		}
	}
}
