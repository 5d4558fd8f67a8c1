package agents

import (
	"context"
	"slices"
	"time"

	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// A Queue says how messages that wait are taken.
type Queue string

const (
	Steer     Queue = "steer"     // what arrives during a turn joins it before the next model call
	Followup  Queue = "followup"  // one turn each
	Collect   Queue = "collect"   // all that waits becomes one next turn
	Interrupt Queue = "interrupt" // a new message cancels the current turn
)

// joinWithin is how close two messages of one sender are to be read as one.
const joinWithin = 2 * time.Second

type findings = []finding.Finding

// queue is how a waiting message is taken: as it asks itself, else as the agent's own
// state says, else as the connector that it came by is set, else the agent's own
// connector, else as all are.
func (s *self) queue(h inbox.Head) Queue {
	if h.Queue != "" {
		return Queue(h.Queue)
	}
	if q := Queue(s.state.Queue); q != "" {
		return q
	}
	for _, connector := range []string{h.Connector, s.meta.Descriptor.Connector} {
		if q := s.settings.Queues[connector]; q != "" {
			return q
		}
	}

	return s.settings.Queue
}

// interrupts reports whether any message could interrupt a turn.
func (s *self) interrupts() bool {
	if s.state.Queue != "" {
		return Queue(s.state.Queue) == Interrupt
	}
	for _, q := range s.settings.Queues {
		if q == Interrupt {
			return true
		}
	}

	return s.settings.Queue == Interrupt
}

// next is which of the waiting messages make the next turn.
func (s *self) next(heads []inbox.Head) []inbox.Head {
	speaking := heads[:0:0]
	for _, h := range heads {
		if !h.Silent {
			speaking = append(speaking, h)
		}
	}
	alone := func(h inbox.Head) bool { return s.queue(h) == Followup }
	if alone(speaking[0]) {
		return joined(speaking)
	}

	return leading(speaking, func(h inbox.Head) bool { return !alone(h) })
}

// take works on the first of what waits: a reset, decision or compaction wherever
// it stands, else the messages that make the next turn.
func (a *agent) take(ctx context.Context) (worked bool, err error) {
	heads := slices.DeleteFunc(a.Inbox.Open(), func(h inbox.Head) bool { return a.permits.postponed.waits(h.ID) })
	if len(heads) == 0 {
		return false, nil
	}
	for _, h := range heads {
		if control(h.Kind) {
			return true, a.control(ctx, h.ID)
		}
	}
	if quiet := leading(heads, func(h inbox.Head) bool { return h.Silent }); len(quiet) > 0 {
		return true, a.intake.hear(ctx, &a.files.self, quiet)
	}
	items, err := a.intake.claim(ids(a.files.next(heads))...)
	if err != nil || len(items) == 0 {
		return len(items) == 0, err
	}

	return true, a.begin(ctx, items)
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

func sender(it inbox.Item) string {
	s := it.Context.Sender
	if it.Route != nil {
		s = it.Route.Connector + "/" + it.Route.ChannelID + "/" + it.Route.UserID + "/" + s
	}

	return s
}
