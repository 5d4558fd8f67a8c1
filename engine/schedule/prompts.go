package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"daycare/engine/finding"
)

// DefaultEvery is the interval of the heartbeat.
const DefaultEvery = 30 * time.Minute

// A HeartbeatStatus is the heartbeat as a whole: its items and the state computed from its ledger.
type HeartbeatStatus struct {
	Prompts []PromptEntry
	Every   time.Duration // 0: switched off
	Next    time.Time     // zero: not due (no items, stopped, switched off)
	Last    *Run
	Running bool
	Stopped bool // after too many failures in a row
}

// A PromptEntry is a heartbeat item with the problems of its file.
type PromptEntry struct {
	Prompt
	Found []finding.Finding
}

// Heartbeat reads all items and the ledger. Problems of an item's file are in its entry.
func (s *Store) Heartbeat() (HeartbeatStatus, []finding.Finding, error) {
	b := HeartbeatStatus{Every: s.Every()}
	names, found, err := slugs(s.files().heart(), ".md")
	if err != nil {
		return b, nil, err
	}
	on := false
	for _, slug := range names {
		path := s.files().heart(slug + ".md")
		data, err := read(path)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			b.Prompts = append(b.Prompts, PromptEntry{Prompt{Slug: slug, Title: slug}, []finding.Finding{unreadable(path, err)}})
			continue
		}
		p, bad := DecodePrompt(path, slug, data)
		b.Prompts = append(b.Prompts, PromptEntry{p, bad})
		on = on || p.beats(bad)
	}
	lines, err := readTail(s.files().heart(runsFile))
	if err != nil {
		return b, append(found, unreadable(s.files().heart(runsFile), err)), nil
	}
	st := fold(lines, s.Now())
	if runs := runsOf(lines); len(runs) > 0 {
		b.Last = &runs[len(runs)-1]
	}
	b.Running, b.Stopped = st.open != nil, st.fails >= maxFails
	if on && !b.Stopped && b.Every > 0 {
		b.Next = beatDue(st, b.Every, s.Now())
	}

	return b, found, nil
}

// beats reports a prompt that takes part in the heartbeat.
func (p Prompt) beats(found []finding.Finding) bool {
	return p.Enabled && p.Text != "" && finding.Join(found) == nil
}

// beatDue is when the heartbeat is due: a while after the last time it was looked
// at, whatever the result.
func beatDue(st state, every time.Duration, now time.Time) time.Time {
	last := st.at
	if last.IsZero() || last.After(now) {
		last = now // never yet, or the clock went back
	}

	return last.Add(every).UTC().Truncate(time.Second)
}

// AddPrompt adds a heartbeat item. With replay, an item with the same title and text is returned as
// the one that an earlier attempt created.
func (s *Store) AddPrompt(title, text, gate, hours string, replay bool) (PromptEntry, error) {
	if title = strings.TrimSpace(title); title == "" {
		title = strings.Join(collect(firstWords(text, 4)), " ")
	}
	var keys []key
	keys = append(keys, key{"title", quote(title)})
	if hours != "" {
		keys = append(keys, key{"activeHours", jsonText(hours)})
	}
	if gate != "" {
		keys = append(keys, key{"gate", "{ command: " + jsonText(gate) + " }"})
	}
	data := withBody(withKeys(nil, keys...), text)
	if replay {
		b, _, err := s.Heartbeat()
		if err != nil {
			return PromptEntry{}, err
		}
		for _, p := range b.Prompts {
			if p.Title == title && p.Text == strings.TrimSpace(text) {
				return p, nil
			}
		}
	}
	slug := freeSlug(s.files().heart(), ".md", title)
	p, found := DecodePrompt(slug+".md", slug, data)
	if p.Text == "" {
		found = append(found, finding.Finding{ID: "schedule-empty", Severity: finding.Error, File: slug + ".md",
			Reason: "the item has no text"})
	}
	if err := finding.Join(found); err != nil {
		return PromptEntry{}, err
	}
	if err := s.files().publish(s.files().heart(slug+".md"), data, nil); err != nil {
		return PromptEntry{}, err
	}
	s.changed()
	return PromptEntry{p, found}, nil
}

func collect(seq func(func(string) bool)) []string {
	var all []string
	for v := range seq {
		all = append(all, v)
	}

	return all
}

// RemovePrompt moves a heartbeat item to the trash and returns its new path.
func (s *Store) RemovePrompt(slug string) (string, error) {
	if !ValidSlug(slug) {
		return "", fmt.Errorf("%w: %q", ErrName, slug)
	}
	to, err := s.files().trash(s.files().heart(slug+".md"), slug+".md")
	if err == nil {
		s.changed()
	}

	return to, err
}

// PromptRuns returns the newest n runs of the heartbeat, oldest first.
func (s *Store) PromptRuns(n int) ([]Run, error) { return newest(s.files().heart(runsFile), n) }

// prompts reads the prompts that take part now.
func (s *Store) prompts() ([]Prompt, error) {
	b, _, err := s.Heartbeat()
	var all []Prompt
	for _, p := range b.Prompts {
		if p.beats(p.Found) {
			all = append(all, p.Prompt)
		}
	}

	return all, err
}
