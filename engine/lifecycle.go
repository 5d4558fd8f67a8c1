package engine

import (
	"context"
	"fmt"
	"slices"

	"daycare/engine/address"
	"daycare/engine/crash"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

var (
	// ErrBusy: the agent has work in progress or waiting.
	ErrBusy = fault.Busy
	// ErrProtected: agents of this kind are not killed; reset or remove them.
	ErrProtected = fault.Protected
)

// A lifecycle is how agents begin and end.
type lifecycle struct {
	place
	actors    *actors
	recent    *recent
	registrar *registrar
	directory *directory
	approvals *approvals
}

// Create makes an agent by hand. Its id is made here if the descriptor has none.
// One of the terminal without a channel gets the next serial number as its own,
// however many are made at once.
func (l *lifecycle) Create(_ context.Context, d address.Descriptor) (event.Agent, error) {
	if d.Type != address.User && d.ID == "" {
		d.ID = cuid.New()
	}
	create := l.registrar.create
	if d.Type == address.User && d.Connector == Terminal().Connector && d.ChannelID == "" {
		create = l.registrar.createNext
	}

	meta, err := create(d)
	if err != nil {
		return event.Agent{}, err
	}

	return l.directory.look(meta), nil
}

// Stop cancels the turn that an agent is in, or, where it is not "", that of an item; false: it is in none.
func (l *lifecycle) Stop(_ context.Context, id, item string) (bool, error) {
	if _, ok := l.index.Get(id); !ok {
		return false, message.ErrUnknownAgent
	}
	e, ok := l.actors.awake(id)
	return ok && e.stopTurn(item), nil
}

// Drop removes an item that waits.
func (l *lifecycle) Drop(_ context.Context, id, item string) error {
	return l.change(id, item, event.ItemDropped, inbox.Mailbox.Drop)
}

// Front moves an item that waits before all others.
func (l *lifecycle) Front(_ context.Context, id, item string) error {
	return l.change(id, item, event.ItemMoved, inbox.Mailbox.Front)
}

// change does something with an item that waits, and says so.
func (l *lifecycle) change(id, item string, done event.Type, do func(inbox.Mailbox, string) error) error {
	e, box, err := l.actors.acquire(id)
	if err != nil {
		return err
	}
	defer e.release()
	if err := do(box, item); err != nil {
		return err
	}

	l.events.Emit(event.Event{Type: done, Agent: id, Body: event.Item{Item: item}})

	return nil
}

// Kill ends an agent permanently, and its children with it. Its folder stays
// readable until it is removed.
func (l *lifecycle) Kill(ctx context.Context, id string) error {
	meta, ok := l.index.Get(id)
	if !ok {
		return message.ErrUnknownAgent
	}
	if !killable(meta) {
		return ErrProtected
	}

	for _, child := range l.below(id) {
		if err := l.retire(ctx, child.ID, "killed"); err != nil {
			return err
		}
	}

	return l.retire(ctx, id, "killed")
}

// below is the agents that an agent started, and those that they started, the youngest
// generation first. A circle, which a hand edit can make, is gone round once.
func (l *lifecycle) below(id string) (list []address.Meta) {
	seen := map[string]bool{id: true}
	for next := []string{id}; len(next) > 0; next = next[1:] {
		for _, child := range l.index.Children(next[0]) {
			if !seen[child.ID] {
				seen[child.ID] = true
				list, next = append(list, child), append(next, child.ID)
			}
		}
	}

	slices.Reverse(list)

	return list
}

// killable: what a user or an agent started may be killed; what an address maps
// to would be made again by the next message.
func killable(meta address.Meta) bool {
	switch d := meta.Descriptor; d.Type {
	case address.Subagent, address.Permanent:
		return true
	case address.User:
		return Here(d.Connector) && d.ChannelID != "default"
	}

	return false
}

// retire writes that the agent has ended, lets deliveries in flight finish and
// stops its actor.
func (l *lifecycle) retire(ctx context.Context, id, reason string) error {
	release, err := l.actors.hold(id)
	if err != nil {
		return err
	}
	defer release()
	e, err := l.actors.entry(id)
	if err != nil {
		return err
	}

	// First the mark, synced, then the stop: a crash in between ends it as well.
	kept, err := record.EndState(l.vol, l.folder(id), record.Ended{At: disk.StampOf(crash.Now()), Reason: reason})
	if err != nil {
		return fmt.Errorf("end agent %s: %w", id, err)
	}
	if kept != "" {
		l.log.Warn("state.json had errors when its agent ended; replaced by the last valid version", "agent", id, "kept", kept)
	}

	err = e.halt(ctx)
	l.index.SetEnded(id, true)
	l.actors.rest(id) // it may have slept
	if err != nil {
		return err
	}

	l.actors.abandon(id, reason)
	l.approvals.withdraw(id)
	l.events.Emit(event.Event{Type: event.AgentEnded, Agent: id, Body: event.Reason{Reason: reason}})

	return nil
}

// Remove moves an agent's folder to the trash, and the folders of the agents that it started, because they could
// no longer report to it. One with items or answers that wait is removed only by force; they go along with it.
func (l *lifecycle) Remove(ctx context.Context, id string, force bool) (trash string, err error) {
	if _, ok := l.index.Get(id); !ok {
		return "", message.ErrUnknownAgent
	}
	family := l.below(id)
	if !force && (l.unfinished(id) || slices.ContainsFunc(family, func(m address.Meta) bool { return l.unfinished(m.ID) })) {
		return "", ErrBusy
	}

	for _, child := range family {
		if _, err := l.remove(ctx, child.ID); err != nil {
			return "", err
		}
	}

	return l.remove(ctx, id)
}

// remove ends one agent and moves its folder to the trash.
func (l *lifecycle) remove(ctx context.Context, id string) (trash string, err error) {
	meta, _ := l.index.Get(id)
	release, err := l.actors.hold(id)
	if err != nil {
		return "", err
	}
	defer release()
	if err := l.retire(ctx, id, "removed"); err != nil {
		return "", err
	}
	if e, ok := l.actors.awake(id); ok { // someone still waits for something of it
		l.actors.forget(e)
	}

	l.problems.Forget(id)
	trash, err = l.index.Remove(id)
	l.recent.look(id)
	l.actors.spent.Delete(id)
	if err == nil && l.peers != nil {
		if err = l.peers.Retire(id); err != nil {
			l.index.Met(meta) // the other machines still have it: it can be removed again
			l.index.SetEnded(id, true)
		}
	}

	return trash, err
}

// unfinished reports whether an agent has items or answers that wait.
func (l *lifecycle) unfinished(id string) bool {
	return len(l.actors.waiting(id)) > 0 || !l.settled(id)
}
