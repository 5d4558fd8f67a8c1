package schedule

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

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
