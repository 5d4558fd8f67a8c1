package agents

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"daycare/engine/crash"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// An intake takes items out of the inbox, makes records of them, and closes them.
type intake struct {
	box      inbox.Mailbox
	journal  *journal
	briefing Briefing
}

// claim takes those of the items that still wait. A person may drop one between the
// look into the inbox and here, which is no error.
func (in *intake) claim(ids ...string) ([]inbox.Item, error) {
	for {
		items, err := in.box.Take(ids...)
		if err == nil {
			return items, nil
		}
		open := map[string]bool{}
		for _, h := range in.box.Open() {
			open[h.ID] = true
		}
		waiting := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !open[id] })
		switch {
		case !errors.Is(err, inbox.ErrUnknown), len(waiting) == len(ids):
			return nil, fmt.Errorf("take: %w", err)
		case len(waiting) == 0:
			return nil, nil
		}
		ids = waiting
	}
}

// done closes items whose closing record is durable.
func (in *intake) done(items ...string) error {
	if len(items) == 0 {
		return nil
	}
	if err := in.box.Done(items...); err != nil {
		return fmt.Errorf("close items: %w", err)
	}
	in.box.Reached(in.journal.history.Obligations().LastSeq)
	for _, id := range items {
		in.journal.emit(event.ItemDone, "", event.Item{Item: id})
	}
	return nil
}

// close writes the record that closes an item, and is done with it.
func (in *intake) close(it inbox.Item, rec record.Record) error {
	if err := in.journal.begin(); err != nil {
		return err
	}
	if _, err := in.journal.append(rec); err != nil {
		return err
	}
	if err := in.journal.barrier(); err != nil {
		return err
	}
	return in.done(it.ID)
}

// hear records silent messages: they are part of the next context and ask for no
// turn.
func (in *intake) hear(s *self, heads []inbox.Head) error {
	items, err := in.claim(ids(heads)...)
	if err != nil || len(items) == 0 {
		return err
	}
	if _, err := in.journal.append(in.users(s, "", items)...); err != nil {
		return err
	}
	if err := in.journal.barrier(); err != nil {
		return err
	}
	heard := make([]string, len(items))
	for i, it := range items {
		heard[i] = it.ID
	}
	return in.done(heard...)
}

// users are the records of items as they enter the conversation, in a turn or, if
// they are silent, between turns.
func (in *intake) users(s *self, turn string, items []inbox.Item) []record.Record {
	recs := make([]record.Record, len(items))
	for i, it := range items {
		u := &record.User{Item: it.ID, Text: it.Text, Files: it.Files, Route: it.Route, Zone: s.settings.Zone,
			Silent: it.Silent, Hops: it.Hops, Untrusted: it.Untrusted, Source: it.Source}
		if it.Kind == message.System {
			u.Origin = it.Origin
			if u.Origin == "" {
				u.Origin = "system"
			}
		}
		if i == 0 && turn != "" {
			u.Preface = in.preface(it.Kind)
		}
		if it.Context != (message.Context{}) {
			c := it.Context
			u.Context = &c
		}
		if i > 0 {
			p := items[i-1]
			u.Joins = it.Kind == message.Text && p.Kind == message.Text && sender(it) == sender(p) && it.At.Sub(p.At) <= joinWithin
		}
		if crash.Bug("wrongtext") {
			u.Text = strings.TrimSuffix(u.Text, "o")
		}
		if crash.Bug("nofiles") {
			u.Files = nil
		}
		if crash.Bug("wrongsender") && u.Context != nil {
			u.Context.Sender = crash.Swap("sender", u.Context.Sender).(string)
		}
		recs[i] = u
		in.journal.emit(event.ItemTaken, turn, event.Item{Item: it.ID, Kind: string(it.Kind)})
	}
	return recs
}

// preface is what stands before a message: what varies, rendered once.
func (in *intake) preface(kind message.Kind) string {
	lines := notices(in.briefing.Broken(), in.journal.readNotices())
	if kind == message.Text {
		if text := in.briefing.Preface(); text != "" {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n")
}

// fold takes what arrived meanwhile and is to join the turn. That happens only directly
// before a model call; resets, decisions and compactions wait for the turn's end.
func (in *intake) fold(t *turn) ([]*record.Entry, error) {
	heads := in.box.Open()
	joining := heads[:0:0]
	for _, h := range heads {
		if h.Taken || control(h.Kind) || (t.queue(h) != Steer && !h.Silent) {
			continue
		}
		joining = append(joining, h)
	}
	if len(joining) == 0 {
		return nil, nil
	}
	items, err := in.claim(ids(joining)...)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return in.journal.append(in.users(&t.self, t.id, items)...)
}

// takeAgain marks the turn's items as being worked on, and records those whose
// user message a torn write lost.
func (in *intake) takeAgain(t *turn, open *record.OpenTurn) ([]*record.Entry, error) {
	recorded := map[string]bool{}
	for _, id := range t.items {
		recorded[id] = true
	}
	waiting := map[string]bool{}
	for _, h := range in.box.Open() {
		waiting[h.ID] = true
	}
	var lost []string
	for _, id := range open.Taken {
		if !recorded[id] && waiting[id] {
			lost = append(lost, id)
		}
	}
	for _, id := range t.items {
		if waiting[id] {
			if _, err := in.claim(id); err != nil {
				return nil, err
			}
		}
	}
	if len(lost) == 0 {
		return nil, nil
	}
	items, err := in.claim(lost...)
	if err != nil {
		return nil, err
	}
	return in.journal.append(in.users(&t.self, t.id, items)...)
}

// decisionWaits finds the token of a request whose decision lies in the inbox. A
// turn that is taken up again after a crash comes to the same call once more; the
// person who answered meanwhile must not be asked twice.
func (in *intake) decisionWaits(sha string) (token string) {
	for _, h := range in.box.Open() {
		if h.Kind != message.Permission {
			continue
		}
		if it, err := in.box.Read(h.ID); err == nil && it.SHA256 == sha {
			return it.Token
		}
	}
	return ""
}
