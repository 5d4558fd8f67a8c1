package schedule

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"daycare/engine/finding"
)

// A Prompt is one heartbeat/<slug>.md.
type Prompt struct {
	Slug         string
	Title        string
	Enabled      bool
	Gate         *Gate
	Hours        Hours
	Watch        []string
	WatchCommand string
	Text         string
}

// DecodePrompt reads a heartbeat item. The keys are optional, and so are the lines of --- around
// them.
func DecodePrompt(file, slug string, data []byte) (Prompt, []finding.Finding) {
	f := kind.Front(file, data)
	k := promptKeys{Enabled: true}
	f.Read(&k)
	p := Prompt{Slug: slug, Title: cmp.Or(k.Title, slug), Enabled: k.Enabled, Gate: k.gate(), Watch: k.Watch,
		WatchCommand: k.WatchCommand, Text: f.Body}
	checkName(f, slug)
	var err error
	if p.Hours, err = ParseHours(k.ActiveHours); err != nil {
		f.Tell(finding.Error, "wrong-value", "activeHours", err.Error(), "")
	}

	checkWatch(f, p.Watch)

	return p, f.Found
}

// Hours are a part of the day in local time. The zero value is the whole day.
type Hours struct{ from, to int } // minutes from midnight

// ParseHours reads "08:00-22:00"; "22:00-06:00" crosses midnight, "" is the whole day.
func ParseHours(text string) (Hours, error) {
	if text == "" {
		return Hours{}, nil
	}
	low, high, _ := strings.Cut(text, "-") // nothing is no time
	from, ferr := time.Parse("15:04", strings.TrimSpace(low))
	to, terr := time.Parse("15:04", strings.TrimSpace(high))
	if strings.TrimSpace(high) == "24:00" {
		to, terr = time.Time{}, nil
	}

	h := Hours{minuteOf(from), minuteOf(to)}
	if ferr != nil || terr != nil || h.from == h.to && h.from != 0 {
		return Hours{}, fmt.Errorf("activeHours is %q; want hours such as 08:00-22:00", text)
	}

	return h, nil
}

func minuteOf(t time.Time) int { return t.Hour()*60 + t.Minute() }

// End returns when the hours that cover a time end, in its time zone; the zero time: they do not
// cover it.
func (h Hours) End(t time.Time) time.Time {
	if (h == Hours{}) || !h.Cover(t) {
		return time.Time{}
	}
	end := time.Date(t.Year(), t.Month(), t.Day(), 0, h.to, 0, 0, t.Location())
	if !end.After(t) {
		end = time.Date(t.Year(), t.Month(), t.Day()+1, 0, h.to, 0, 0, t.Location())
	}

	return end
}

// Cover reports whether a time is within the hours. t must be in the time zone of the schedule.
func (h Hours) Cover(t time.Time) bool {
	now := minuteOf(t)
	switch {
	case h == Hours{}:
		return true
	case h.from < h.to:
		return h.from <= now && now < h.to
	}

	return now >= h.from || now < h.to
}
