package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"daycare/engine/crash"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/tools/hooks"
)

// An intake takes items out of the inbox, makes records of them, and closes them.
type intake struct {
	box      inbox.Mailbox
	journal  *journal
	briefing Briefing
	hooks    *hooking
	read     fileNotices
}

// claim takes those of the items that still wait. A user may drop one between the
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
	in.box.Reached(in.journal.history.LastSeq())
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
func (in *intake) hear(ctx context.Context, s *self, heads []inbox.Head) error {
	items, err := in.claim(ids(heads)...)
	if err != nil {
		return err
	}
	recs, _ := in.users(ctx, s, "", items)
	if _, err := in.journal.append(recs...); err != nil {
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
// they are silent, between turns. refused is why hooks refused all of those that speak; "":
// they did not.
func (in *intake) users(ctx context.Context, s *self, turn string, items []inbox.Item) (recs []record.Record, refused string) {
	verdicts := in.hooks.heard(ctx, s, turn, items)
	accepted := false
	recs = make([]record.Record, 0, len(items))
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
		if verdicts == nil {
			recs = append(recs, u)
		} else {
			recs = append(recs, in.hooks.receive(u, verdicts[i])...)
			if refuses(verdicts[i]) {
				refused = verdicts[i].Reason
			} else if !it.Silent {
				accepted = true
			}
		}
		in.journal.emit(event.ItemTaken, turn, event.Item{Item: it.ID, Kind: string(it.Kind)})
	}
	if accepted {
		refused = ""
	}

	return recs, refused
}

// cut reports whether the work ended while hooks looked at items. They wait in the inbox then,
// so that no message enters the conversation without its hooks.
func (in *intake) cut(ctx context.Context, items []inbox.Item) bool {
	if ctx.Err() == nil || !in.hooks.any(hooks.OnMessage, "") {
		return false
	}
	for _, it := range items {
		in.box.Untake(it.ID)
	}

	return true
}

// preface is what stands before a message: what varies, rendered once.
func (in *intake) preface(kind message.Kind) string {
	lines := notices(in.briefing.Broken(), in.known())
	if kind == message.Text {
		if text := in.briefing.Preface(); text != "" {
			lines = append(lines, text)
		}
	}

	return strings.Join(lines, "\n")
}

// known are the lines on broken files that the model has read; nil if that cannot be said.
func (in *intake) known() map[string][]string {
	c, err := in.journal.history.Context()
	if err != nil {
		in.journal.log.Warn("cannot read which file problems were reported to the model", "err", err)
		return nil
	}

	return in.read.of(c)
}

// fold takes what arrived meanwhile and is to join the turn. That happens only directly
// before a model call; resets, decisions and compactions wait for the turn's end.
func (in *intake) fold(ctx context.Context, t *turn) ([]*record.Entry, error) {
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
	if err != nil {
		return nil, err
	}
	recs, _ := in.users(ctx, &t.self, t.id, items)
	if in.cut(ctx, items) {
		return nil, nil
	}

	return in.journal.append(recs...)
}

// takeAgain marks the turn's items as being worked on, and records those whose
// user message a torn write lost.
func (in *intake) takeAgain(ctx context.Context, t *turn, open *record.OpenTurn) ([]*record.Entry, error) {
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
	items, err := in.claim(lost...)
	if err != nil {
		return nil, err
	}
	recs, refused := in.users(ctx, &t.self, t.id, items)
	if in.cut(ctx, items) {
		return nil, nil
	}
	if len(t.items) == 0 {
		t.refused = refused
	}

	return in.journal.append(recs...)
}

// decisionWaits finds the token of a request whose decision is in the inbox. A
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
