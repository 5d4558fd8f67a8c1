package schedule

import (
	"testing"
	"time"
)

func TestWhenHoursEnd(t *testing.T) {
	at := func(day int, clock string) time.Time {
		c, err := time.Parse("15:04", clock)
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2026, 3, day, c.Hour(), c.Minute(), 30, 0, time.UTC)
	}
	for _, tt := range []struct {
		hours, now string
		day        int // of the end; 0: they do not cover it
		end        string
	}{
		{"22:00-07:00", "23:10", 2, "07:00"}, {"22:00-07:00", "06:59", 1, "07:00"}, {"22:00-07:00", "07:00", 0, ""},
		{"22:00-07:00", "12:00", 0, ""}, {"13:00-15:00", "14:00", 1, "15:00"}, {"20:00-24:00", "23:59", 2, "00:00"}, {"", "12:00", 0, ""},
	} {
		h, err := ParseHours(tt.hours)
		if err != nil {
			t.Fatal(err)
		}
		want := time.Time{}
		if tt.day > 0 {
			want = at(tt.day, tt.end).Truncate(time.Minute)
		}
		if got := h.End(at(1, tt.now)); !got.Equal(want) {
			t.Errorf("%s at %s end at %v, want %v", tt.hours, tt.now, got, want)
		}
	}
}
