package engine

import (
	"context"
	"errors"
	"time"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// Peers are the other machines that work on the same agents: each agent is awake on one of
// them at a time, its owner. A System without peers owns all of its agents.
type Peers interface {
	// Acquire makes this machine the owner of an agent. When it returns nil the agent's
	// folder is as its last owner left it, and disk.Volume replicates it. Acquiring an agent
	// that is owned here already does nothing. Errors: *message.Elsewhere, disk.ErrAway.
	Acquire(agent string) error
	// Release gives an agent up; its files are closed. open says that it has work left, so
	// that another machine continues with it when this one ends.
	Release(agent string, open bool)
	// Forward gives an item, which has an id, to the machine that owns its agent and returns
	// when it is durable there. *message.Elsewhere: that one does not own the agent, or does
	// not answer; the item may have been accepted, and can be offered again.
	Forward(ctx context.Context, node, agent string, it inbox.Item) (message.Receipt, error)
	// Watch calls adopt for each agent with work left whose owner has ended, and lose for
	// each agent that another machine has taken over from this one. It returns when ctx ends.
	Watch(ctx context.Context, adopt, lose func(agent string))
}

const (
	// movedFor bounds how long a message looks for the owner of its agent: an owner that died
	// is replaced within seconds.
	movedFor   = 30 * time.Second
	movedFirst = 10 * time.Millisecond // before it looks again, doubled each time
	movedLast  = time.Second
)

// post makes an item durable at its agent, on whichever machine that is.
func (m *mailroom) post(ctx context.Context, id string, it inbox.Item) (message.Receipt, error) {
	it.Text = m.redact.Text(it.Text) // history would have it so, and the inbox is a file as well
	if m.peers == nil {
		return m.postHere(ctx, id, it)
	}

	// It may be offered several times, to more than one machine: the id tells that it is one.
	made := it.ID == ""
	if made {
		it.ID = inbox.NewID()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, movedFor, disk.ErrAway)
	defer cancel()
	for pause := movedFirst; ; pause = min(2*pause, movedLast) {
		receipt, err := m.postHere(ctx, id, it)
		if there, ok := errors.AsType[*message.Elsewhere](err); ok {
			receipt, err = m.peers.Forward(ctx, there.Node, id, it)
		}
		if made && receipt.Item == it.ID {
			receipt.Duplicate = false // of an earlier try of this call
		}
		if !hasMoved(err) {
			return receipt, err
		}

		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return message.Receipt{}, context.Cause(ctx)
		}
	}
}

// hasMoved reports whether an error says that an agent is, or is about to be, on another
// machine than the one that was asked.
func hasMoved(err error) bool {
	return errors.Is(err, disk.ErrFenced) || errors.As(err, new(*message.Elsewhere))
}

// Posted makes an item durable that another machine forwarded. Errors: *message.Elsewhere
// and disk.ErrFenced, besides those of Deliver.
func (m *mailroom) Posted(ctx context.Context, id string, it inbox.Item) (message.Receipt, error) {
	return m.postHere(ctx, id, it)
}

// adopt continues with an agent whose owner has ended. Its folder may be new here.
func (s *System) adopt(id string) {
	if _, known := s.index.Get(id); !known {
		if err := s.peers.Acquire(id); err != nil {
			s.log.Info("agent not taken over", "agent", id, "err", err)
			return
		}
		s.folderWatch.rescan(id)
	}

	s.actors.wake(id)
}

// lose stops the work on an agent that another machine has taken over.
func (s *System) lose(id string) {
	if e, ok := s.actors.awake(id); ok {
		s.actors.letGo(e)
	}
}

// own makes this machine the owner of an agent.
func (p place) own(id string) error {
	if p.peers == nil {
		return nil
	}
	return p.peers.Acquire(id)
}

// giveUp lets another machine be the owner of an agent whose files are closed. fenced: one is
// already.
func (p place) giveUp(id string, fenced bool) {
	if p.peers != nil {
		p.peers.Release(id, !fenced && !p.settled(id))
	}
}

// letGo ends the work on an agent that another machine has taken over. It accepts nothing
// more here until its files are closed.
func (a *actors) letGo(e *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.box == nil {
		return // it sleeps
	}
	e.fenced = true
	if e.running {
		e.cancel(disk.ErrFenced)
	}
}
