package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"daycare/engine/finding"
	"daycare/engine/form"
)

// A simScript says what happens in a simulation.
type simScript struct {
	From    string            `json:"from"`   // 2026-12-07, or with a time: 2026-12-07T08:00; default: now
	For     string            `json:"for"`    // such as 7d
	Script  json.RawMessage   `json:"script"` // the scripted model: the path of its file, or the script itself; default: the offline model
	Answers string            `json:"answers" allow:"|allow|deny|none"`
	After   string            `json:"answerAfter"` // how long approval requests wait for their answer
	Files   map[string]string `json:"files"`       // of the workspace, by path
	Events  []simEvent        `json:"events"`

	file    string
	from    time.Time
	length  time.Duration
	pending time.Duration
}

// A simEvent happens at a time from the beginning: someone says something, a provider is down, the machine is off.
type simEvent struct {
	At    string  `json:"at"`    // such as 2d9h30m; default: at the beginning, or with every, one of its periods later
	Every string  `json:"every"` // and again so often
	To    string  `json:"to"`    // the agent that gets it; default: the terminal's own
	Say   string  `json:"say"`
	Fault *outage `json:"fault"`
	Off   string  `json:"off"` // how long the machine is off

	at, every, off time.Duration
}

// An outage is a provider that answers with an error for a while.
type outage struct {
	Provider string `json:"provider"` // default: all
	Status   int    `json:"status" min:"400" max:"599"`
	For      string `json:"for" check:"required"`

	length time.Duration
}

const (
	maxSimulated = 366 * 24 * time.Hour
	maxSimScript = 4 << 20 // bytes
)

var simKind = form.Kind{ID: "simulation", Max: maxSimScript, Unknown: finding.Error}

// readSimScript reads a script. Its error lists all mistakes with their places.
func readSimScript(file string, data []byte, now time.Time) (s simScript, err error) {
	s.file = file
	f := simKind.YAML(file, data)
	if f.Failed() {
		return s, finding.Join(f.Found)
	}
	f.Read(&s)
	f.Need("for")
	long := func(at, text string, into *time.Duration) {
		d, err := howLong(text)
		if *into = d; err != nil && !f.Failed() {
			f.Bad(at, ": %v", err)
		}
	}
	long("for", s.For, &s.length)
	long("answerAfter", s.After, &s.pending)
	if s.length > maxSimulated {
		f.Bad("for", " is longer than a year")
	}
	if s.from, err = moment(s.From, now); err != nil {
		f.Bad("from", ": %v", err)
	}
	for _, path := range slices.Sorted(maps.Keys(s.Files)) {
		if !filepath.IsLocal(path) {
			f.Bad(form.Join("files", path), ": %q is not in the workspace: name a path relative to it", path)
		}
	}
	for i := range s.Events {
		e, at := &s.Events[i], fmt.Sprintf("events[%d]", i)
		long(form.Join(at, "at"), e.At, &e.at)
		long(form.Join(at, "every"), e.Every, &e.every)
		long(form.Join(at, "off"), e.Off, &e.off)
		if e.Fault != nil {
			long(form.Join(at, "fault.for"), e.Fault.For, &e.Fault.length)
		}
		if e.at == 0 {
			e.at = e.every
		}
		if kinds := e.kinds(); kinds != 1 && !f.Failed() {
			f.Bad(at, " has %d of say, fault and off, allowed: one", kinds)
		}
		if e.Every != "" && e.every < time.Minute && !f.Failed() {
			f.Bad(form.Join(at, "every"), " is less than a minute")
		}
		if e.off >= max(e.every, 1) && e.every > 0 {
			f.Bad(form.Join(at, "off"), " is longer than its interval, every")
		}
	}

	return s, finding.Join(f.Found)
}

func (e simEvent) kinds() (n int) {
	for _, set := range []bool{e.Say != "", e.Fault != nil, e.Off != ""} {
		if set {
			n++
		}
	}

	return n
}

var spans = regexp.MustCompile(`^(\d+)(w|d|h|m|s)`)

// howLong reads 7d, 2d9h30m; "" is 0.
func howLong(text string) (sum time.Duration, err error) {
	units := map[string]time.Duration{"w": 7 * 24 * time.Hour, "d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second}
	for rest := text; rest != ""; {
		part := spans.FindStringSubmatch(rest)
		if part == nil {
			return 0, fmt.Errorf("%q is not a length of time, such as 7d or 2d9h30m", text)
		}
		n, err := strconv.ParseInt(part[1], 10, 32)
		if err != nil || time.Duration(n) > maxSimulated/units[part[2]] {
			return 0, fmt.Errorf("%q is longer than a year", text)
		}
		sum += time.Duration(n) * units[part[2]]
		rest = rest[len(part[0]):]
	}

	return sum, nil
}

// moment reads the beginning, in the zone of the machine.
func moment(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return now.Truncate(time.Minute), nil
	}
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04Z07:00", time.RFC3339} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}

	return now, fmt.Errorf("%q is not a time, such as 2026-12-07 or 2026-12-07T08:00", text)
}

// agenda are all events in their order, the repeated ones too.
func (s simScript) agenda() (all []agendum) {
	for _, e := range s.Events {
		for at := e.at; at < s.length; at += e.every {
			one := e
			all = append(all, agendum{s.from.Add(at), func(ctx context.Context, w *simulation) error { return w.happens(ctx, one) }})
			if e.every == 0 {
				break
			}
		}
	}
	slices.SortStableFunc(all, func(a, b agendum) int { return a.at.Compare(b.at) })

	return all
}

// An agendum is something that happens at a time.
type agendum struct {
	at time.Time
	do func(context.Context, *simulation) error
}
