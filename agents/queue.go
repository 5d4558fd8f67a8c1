package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"daycare/engine/crash"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// A Queue says how messages that wait are taken.
type Queue string

const (
	Steer     Queue = "steer"     // what arrives during a turn joins it before the next model call
	Followup  Queue = "followup"  // one turn each
	Collect   Queue = "collect"   // all that waits becomes one next turn
	Interrupt Queue = "interrupt" // a new message cancels the turn under way
)

// joinWithin is how close two messages of one sender are to be read as one.
const joinWithin = 2 * time.Second

type findings = []finding.Finding

// queue is how a waiting message is taken: as it asks itself, else as the agent's own
// state says, else as the connector that it came by is set, else the agent's own
// connector, else as all are.
func (a *agent) queue(h inbox.Head) Queue {
	if h.Queue != "" {
		return Queue(h.Queue)
	}
	if q := Queue(a.state.Queue); q != "" {
		return q
	}
	for _, connector := range []string{h.Connector, a.Meta.Descriptor.Connector} {
		if q := a.Settings.Queues[connector]; q != "" {
			return q
		}
	}
	return a.Settings.Queue
}

// interrupts reports whether any message could interrupt a turn.
func (a *agent) interrupts() bool {
	if a.state.Queue != "" {
		return Queue(a.state.Queue) == Interrupt
	}
	for _, q := range a.Settings.Queues {
		if q == Interrupt {
			return true
		}
	}
	return a.Settings.Queue == Interrupt
}

// take works on the first of what waits: a reset, decision or compaction wherever
// it stands, else the messages that make the next turn.
func (a *agent) take(ctx context.Context) (worked bool, err error) {
	heads := slices.DeleteFunc(a.Inbox.Open(), func(h inbox.Head) bool { return a.postponed.waits(h.ID) })
	if len(heads) == 0 {
		return false, nil
	}
	for _, h := range heads {
		if control(h.Kind) {
			return true, a.control(ctx, h.ID)
		}
	}
	if quiet := leading(heads, func(h inbox.Head) bool { return h.Silent }); len(quiet) > 0 {
		return true, a.hear(quiet)
	}
	items, err := a.claim(ids(a.next(heads))...)
	if err != nil || len(items) == 0 {
		return len(items) == 0, err
	}
	return true, a.begin(ctx, items)
}

// claim takes those of the items that still wait. A person may drop one between the
// look into the inbox and here, which is no error.
func (a *agent) claim(ids ...string) ([]inbox.Item, error) {
	for {
		items, err := a.Inbox.Take(ids...)
		if err == nil {
			return items, nil
		}
		open := map[string]bool{}
		for _, h := range a.Inbox.Open() {
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

// next is which of the waiting messages make the next turn.
func (a *agent) next(heads []inbox.Head) []inbox.Head {
	speaking := heads[:0:0]
	for _, h := range heads {
		if !h.Silent {
			speaking = append(speaking, h)
		}
	}
	alone := func(h inbox.Head) bool { return a.queue(h) == Followup }
	if alone(speaking[0]) {
		return joined(speaking)
	}
	return leading(speaking, func(h inbox.Head) bool { return !alone(h) })
}

// joined is the first message and those that its sender wrote right after it.
func joined(heads []inbox.Head) []inbox.Head {
	n := 1
	for n < len(heads) && joins(heads[n-1], heads[n]) {
		n++
	}
	return heads[:n]
}

func joins(before, h inbox.Head) bool {
	return h.Kind == message.Text && before.Kind == message.Text && h.Queue == before.Queue &&
		h.Sender == before.Sender && h.At.Sub(before.At) <= joinWithin
}

func control(k message.Kind) bool {
	switch k {
	case message.Reset, message.Permission, message.Compact, message.Rewind, message.Mark:
		return true
	}
	return false
}

func leading(heads []inbox.Head, ok func(inbox.Head) bool) []inbox.Head {
	n := 0
	for n < len(heads) && ok(heads[n]) {
		n++
	}
	return heads[:n]
}

func ids(heads []inbox.Head) []string {
	out := make([]string, len(heads))
	for i, h := range heads {
		out[i] = h.ID
	}
	return out
}

// hear records silent messages: they are part of the next context and ask for no
// turn.
func (a *agent) hear(heads []inbox.Head) error {
	items, err := a.claim(ids(heads)...)
	if err != nil || len(items) == 0 {
		return err
	}
	if _, err := a.append(a.users("", items)...); err != nil {
		return err
	}
	if err := a.barrier(); err != nil {
		return err
	}
	heard := make([]string, len(items))
	for i, it := range items {
		heard[i] = it.ID
	}
	return a.done(heard...)
}

// users are the records of items as they enter the conversation, in a turn or, if
// they are silent, between turns.
func (a *agent) users(turn string, items []inbox.Item) []record.Record {
	recs := make([]record.Record, len(items))
	for i, it := range items {
		u := &record.User{Item: it.ID, Text: it.Text, Files: it.Files, Route: it.Route, Zone: a.Settings.Zone,
			Silent: it.Silent, Hops: it.Hops, Untrusted: it.Untrusted, Source: it.Source}
		if it.Kind == message.System {
			u.Origin = it.Origin
			if u.Origin == "" {
				u.Origin = "system"
			}
		}
		if i == 0 && turn != "" {
			u.Preface = a.preface(it.Kind)
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
		a.emit(event.ItemTaken, turn, event.Item{Item: it.ID, Kind: string(it.Kind)})
	}
	return recs
}

// preface is what stands before a message: what varies, rendered once.
func (a *agent) preface(kind message.Kind) string {
	lines := a.notices()
	if kind == message.Text {
		if text := a.Briefing.Preface(); text != "" {
			lines = append(lines, text)
		}
	}
	return strings.Join(lines, "\n")
}

func sender(it inbox.Item) string {
	s := it.Context.Sender
	if it.Route != nil {
		s = it.Route.Connector + "/" + it.Route.ChannelID + "/" + it.Route.UserID + "/" + s
	}
	return s
}

// done closes items whose closing record is durable.
func (a *agent) done(items ...string) error {
	if len(items) == 0 {
		return nil
	}
	if err := a.Inbox.Done(items...); err != nil {
		return fmt.Errorf("close items: %w", err)
	}
	a.Inbox.Reached(a.history.Obligations().LastSeq)
	for _, id := range items {
		a.emit(event.ItemDone, "", event.Item{Item: id})
	}
	return nil
}
