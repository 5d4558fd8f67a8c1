package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nrednav/cuid2"

	"daycare/engine/address"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

var (
	// ErrBusy: the agent has work under way or waiting.
	ErrBusy = fault.Busy
	// ErrProtected: agents of this kind are not killed; reset or remove them.
	ErrProtected = fault.Protected
)

// Create makes an agent by hand. Its id is made here if the descriptor has none.
// One of the terminal without a channel gets the next serial number as its own,
// however many are made at once.
func (s *System) Create(_ context.Context, d address.Descriptor) (event.Agent, error) {
	if d.Type != address.User && d.ID == "" {
		d.ID = cuid2.Generate()
	}
	create := s.create
	if d.Type == address.User && d.Connector == Terminal().Connector && d.ChannelID == "" {
		create = s.createNext
	}
	meta, err := create(d)
	if err != nil {
		return event.Agent{}, err
	}
	return s.look(meta), nil
}

// Stop cancels the turn that an agent is in; false: it is in none.
func (s *System) Stop(_ context.Context, id string) (bool, error) {
	if _, ok := s.index.Get(id); !ok {
		return false, message.ErrUnknownAgent
	}
	e, ok := s.awake(id)
	return ok && e.stopTurn(), nil
}

// Drop removes an item that waits.
func (s *System) Drop(_ context.Context, id, item string) error {
	e, box, err := s.acquire(id)
	if err != nil {
		return err
	}
	defer e.release()
	if err := box.Drop(item); err != nil {
		return err
	}
	s.events.Emit(event.Event{Type: event.ItemDropped, Agent: id, Body: event.Item{Item: item}})
	return nil
}

// Front moves an item that waits before all others.
func (s *System) Front(_ context.Context, id, item string) error {
	e, box, err := s.acquire(id)
	if err != nil {
		return err
	}
	defer e.release()
	return box.Front(item)
}

// Kill ends an agent for good, and its children with it. Its folder stays
// readable until it is removed.
func (s *System) Kill(ctx context.Context, id string) error {
	meta, ok := s.index.Get(id)
	if !ok {
		return message.ErrUnknownAgent
	}
	if !killable(meta) {
		return ErrProtected
	}
	for _, child := range s.below(id) {
		if err := s.retire(ctx, child.ID, "killed"); err != nil {
			return err
		}
	}
	return s.retire(ctx, id, "killed")
}

// below is the agents that an agent started, and those that they started, the youngest
// generation first. A circle, which a hand edit can make, is gone round once.
func (s *System) below(id string) (list []address.Meta) {
	seen := map[string]bool{id: true}
	for next := []string{id}; len(next) > 0; next = next[1:] {
		for _, child := range s.index.Children(next[0]) {
			if !seen[child.ID] {
				seen[child.ID] = true
				list, next = append(list, child), append(next, child.ID)
			}
		}
	}
	slices.Reverse(list)
	return list
}

// killable: what a person or an agent started may be killed; what an address maps
// to would be made again by the next message.
func killable(meta address.Meta) bool {
	switch d := meta.Descriptor; d.Type {
	case address.Subagent, address.Permanent:
		return true
	case address.User:
		return d.Connector == "terminal" && d.ChannelID != "default"
	}
	return false
}

// retire writes that the agent has ended, lets deliveries in flight finish and
// stops its actor.
func (s *System) retire(ctx context.Context, id, reason string) error {
	e, err := s.entry(id)
	if err != nil {
		return err
	}
	// First the mark, synced, then the stop: a crash in between ends it as well.
	kept, err := record.EndState(s.vol, s.folder(id), record.Ended{At: disk.StampOf(crash.Now()), Reason: reason})
	if err != nil {
		return fmt.Errorf("end agent %s: %w", id, err)
	}
	if kept != "" {
		s.log.Warn("state.json had errors when its agent ended: the last good version is in its place", "agent", id, "kept", kept)
	}
	err = e.halt(ctx)
	s.index.SetEnded(id, true)
	if err != nil {
		return err
	}
	s.abandon(id, reason)
	s.withdraw(id)
	s.events.Emit(event.Event{Type: event.AgentEnded, Agent: id, Body: event.Reason{Reason: reason}})
	return nil
}

// Remove moves an agent's folder to the trash, and those of the agents that it started:
// they would have nobody to report to. One with items or answers that wait is removed
// only by force; they go along with it.
func (s *System) Remove(ctx context.Context, id string, force bool) (trash string, err error) {
	if _, ok := s.index.Get(id); !ok {
		return "", message.ErrUnknownAgent
	}
	family := s.below(id)
	if !force && (s.unfinished(id) || slices.ContainsFunc(family, func(m address.Meta) bool { return s.unfinished(m.ID) })) {
		return "", ErrBusy
	}
	for _, child := range family {
		if _, err := s.remove(ctx, child.ID); err != nil {
			return "", err
		}
	}
	return s.remove(ctx, id)
}

// remove ends one agent and moves its folder to the trash.
func (s *System) remove(ctx context.Context, id string) (trash string, err error) {
	if err := s.retire(ctx, id, "removed"); err != nil {
		return "", err
	}
	if e, ok := s.awake(id); ok {
		e.mu.Lock()
		e.sleep()
		e.mu.Unlock()
		s.forget(e)
	}
	s.board.Forget(id)
	trash, err = s.index.Remove(id)
	s.recent.look(id)
	s.spent.Delete(id)
	return trash, err
}

// unfinished reports whether an agent has items or answers that wait.
func (s *System) unfinished(id string) bool { return len(s.waiting(id)) > 0 || !s.settled(id) }

// withdraw takes the requests of an agent that has ended out of the queue: there is
// nobody left whom an answer could reach.
func (s *System) withdraw(id string) {
	if s.asks == nil {
		return
	}
	const by = "daycare: the agent has ended"
	for _, p := range s.asks.Of(id) {
		if _, err := s.asks.Settle(p.Token, permission.Expired, by, time.Now()); err != nil {
			s.log.Warn("a request of an agent that has ended still waits", "agent", id, "token", p.Token, "err", err)
			continue
		}
		s.events.Emit(event.Event{Type: event.PermissionDecided, Agent: id,
			Body: event.Asked{Token: p.Token, Tag: p.Request.Tag, Decision: string(permission.Expired), By: by}})
	}
}

// Asks lists the permission requests that wait.
func (s *System) Asks(context.Context) ([]event.Ask, error) {
	asks := []event.Ask{}
	for _, p := range s.asks.List() {
		asks = append(asks, p.Ask())
	}
	return asks, nil
}

// Decide answers a permission request: the decision becomes an item of the agent
// that asked. The first answer wins: earlier reports the one that was first, however
// long ago; for that the beginning of the token is enough. Errors: permission.ErrUnknown, and those of Deliver.
func (s *System) Decide(ctx context.Context, token string, d permission.Decision, by string) (earlier *permission.Pending, err error) {
	p, err := s.asks.Get(token)
	if errors.Is(err, permission.ErrUnknown) {
		if old, ok := s.answered(token); ok {
			return &old, nil
		}
	}
	if err != nil {
		return nil, err
	}
	in := message.Incoming{Agent: p.Agent, Kind: message.Permission, Dedupe: p.DedupeKey(), Text: p.Request.Detail.String(),
		Token: token, Decision: string(d), By: by, Tag: p.Request.Tag, SHA256: p.SHA256, Silent: p.Request.Gate}
	if d == permission.Prefix {
		if p.Request.Prefix == "" {
			return nil, fmt.Errorf("%w: %s", permission.ErrNoPrefix, token)
		}
		in.Tag, in.Scripts = p.Request.Prefix, p.Request.Scripts
	}
	receipt, err := s.Deliver(ctx, in)
	if errors.Is(err, message.ErrUnknownAgent) { // its folder was taken away by hand, or a death came before
		s.withdraw(p.Agent)
	}
	if err != nil {
		return nil, err
	}
	if receipt.Duplicate {
		first := s.firstAnswer(p, receipt.Item)
		if first.Decision != "" { // a death may have come before it left the queue
			if _, err := s.asks.Settle(token, first.Decision, first.DecidedBy, first.DecidedAt); err != nil &&
				!errors.Is(err, permission.ErrUnknown) {
				return nil, err
			}
		}
		return &first, nil
	}
	_, err = s.asks.Settle(token, d, by, time.Now())
	// Afterwards: who hears of it and lists what waits must not find it again.
	s.events.Emit(event.Event{Type: event.PermissionDecided, Agent: p.Agent,
		Body: event.Asked{Token: token, Tag: p.Request.Tag, Decision: string(d), By: by}})
	if err != nil && !errors.Is(err, permission.ErrUnknown) {
		return nil, err
	}
	return nil, nil
}
