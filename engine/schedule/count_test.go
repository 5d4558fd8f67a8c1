package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// The number of slots between any two moments is how many there are when they are gone
// through one by one: around each change of the clocks, and at slots to the second.
func TestCountIsTheNumberOfSlots(t *testing.T) {
	compared := 0
	for _, where := range []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo"} {
		z := zone(t, where)
		var schedules []Schedule
		for _, expr := range []string{"30 2 * * *", "*/20 2 * * *", "0 2,3 * * *", "0 3 * * *", "59 1 * * *", "15 * * * *", "0 0 * * *",
			"*/7 1-3 * * *", "0 2 * * 0", "0 0 1 * *", "0 2 * 4 *", "30 2 * 3,10 *"} {
			schedules = append(schedules, cronOf(t, expr, where))
		}

		for _, timing := range []Timing{{Every: "45m"}, {Every: "1h"}, {At: "2026-03-29T02:30"}, {At: "2026-10-25T02:00"}} {
			s, err := NewSchedule(timing, z)
			if err != nil {
				t.Fatal(err)
			}
			schedules = append(schedules, s)
		}

		var moments []time.Time
		for _, day := range []string{"2018-11-04", "2026-03-08", "2026-03-29", "2026-04-05", "2026-10-04", "2026-10-25", "2026-11-01"} {
			at := utc(t, day+"T00:00").In(z)
			for range 3 { // the day before the change, and the one after
				begin, change := at.ZoneBounds()
				for _, m := range []time.Time{at, begin, change} {
					if m.Sub(at).Abs() < 72*time.Hour {
						for _, off := range []time.Duration{-time.Hour, -time.Second, 0, time.Second, 90 * time.Minute} {
							moments = append(moments, m.Add(off))
						}
					}
				}
				at = at.Add(24 * time.Hour)
			}
		}

		slices.SortFunc(moments, time.Time.Compare)
		for _, s := range schedules {
			for i, after := range moments {
				for _, until := range moments[i:min(i+7, len(moments))] {
					if until.Sub(after) > 96*time.Hour {
						break
					}
					compared++
					anchor := after.Add(-17 * time.Minute)
					want := 0
					for slot, ok := s.Next(after, anchor); ok && !slot.After(until); slot, ok = s.Next(slot, anchor) {
						want++
					}

					if got := s.count(after, until, anchor); got != want {
						t.Fatalf("%s in %s: %d slots after %v until %v, and there are %d", s.String(), where, got, after, until, want)
					}
					if got := s.count(until, after, anchor); got != 0 && !until.Equal(after) {
						t.Fatalf("%s: %d slots in no time", s.String(), got)
					}
				}
			}
		}
	}
	t.Logf("%d counts compared", compared)
}

// A text that is written into a file is read as that text, whatever it looks like.
func TestQuotedTextsAreReadAsTheyWere(t *testing.T) {
	for _, text := range []string{"", "plain", "two words", "with: colon", "a # no comment", "#", "- item", "yes", "null", "~", "12", "1.5",
		"2026-01-01", "'single'", `"double"`, "tab\there", "two\nlines", " before", "after ", "{a: b}", "[a]", "&a", "*a", "!x", "|", ">",
		"%", "@", "`",
		"k: v", "é", "\u2028", "\x00", "a: b # c", strings.Repeat("x", 200)} {
		var got map[string]any
		if err := yaml.Unmarshal([]byte("k: "+quote(text)+"\n"), &got); err != nil || fmt.Sprint(got["k"]) != text ||
			got["k"] != any(text) {
			t.Errorf("%q is written as %s and read as %#v, %v", text, quote(text), got["k"], err)
		}
	}
	if quote("plain words") != "plain words" {
		t.Errorf("a plain text is written as %s", quote("plain words"))
	}
}

// Days of a week are said the way that users say them.
func TestDaysInWords(t *testing.T) {
	for expr, want := range map[string]string{
		"0 9 * * 0-6": "every day", "0 9 * * 1-5": "Monday to Friday", "0 9 * * 0": "every Sunday",
		"0 9 * * 6,0":   "every Saturday and Sunday",
		"0 9 * * 5,6,0": "Friday to Sunday", "0 9 * * 1,3,5": "every Monday, Wednesday and Friday",
		"0 9 * * 2,3": "every Tuesday and Wednesday",
	} {
		if got := cronOf(t, expr, "UTC").String(); !strings.Contains(got, want) {
			t.Errorf("%s is %q, want %q in it", expr, got, want)
		}
	}

	for _, tt := range []struct {
		all    []int
		circle int
		n      int
		ok     bool
	}{{[]int{0, 20, 40}, 60, 20, true}, {[]int{0, 15, 30, 45}, 60, 15, true}, {[]int{0, 10, 40}, 60, 0, false},
		{[]int{5, 25, 45}, 60, 0, false},
		{[]int{0, 7, 14}, 60, 0, false}, {nil, 60, 0, false}, {[]int{0}, 24, 24, true}} {
		if n, ok := stride(tt.all, tt.circle); n != tt.n || ok != tt.ok {
			t.Errorf("%v of %d: %d, %v", tt.all, tt.circle, n, ok)
		}
	}
}

// A slot of a span counts from its second on, and not before.
func TestCountToTheSecond(t *testing.T) {
	s := must(NewSchedule(Timing{Every: "10m"}, time.UTC))
	for _, anchor := range []time.Time{noon, noon.Add(-time.Hour), noon.Add(time.Hour)} {
		for _, after := range []int{-2, -1, 0, 1, 2, 598, 599, 600, 601, 602} {
			for until := after; until <= 1202; until++ {
				want := 0
				for slot := 0; slot <= 1200; slot += 600 {
					if slot > after && slot <= until {
						want++
					}
				}
				at := func(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }
				if got := s.count(at(after), at(until), anchor); got != want {
					t.Fatalf("through %s, in (%d s, %d s] there are %d slots, want %d", anchor, after, until, got, want)
				}
			}
		}
	}
}
