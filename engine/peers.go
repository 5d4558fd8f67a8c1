package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"daycare/engine/address"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// Peers are the other machines that work on the same agents: each agent is awake on one of
// them at a time, its owner. A System without peers owns all of its agents.
type Peers interface {
	// Ids and handles of new agents are settled with the other machines.
	address.Registry
	// Announce tells all machines of an agent that is owned here, and whether it has ended.
	Announce(m address.Meta, ended bool) error
	// Edited brings files of an agent that is owned here to the other machines, as they are now: users may have
	// saved them. What is as it was, or half written, is left alone.
	Edited(agent string, names ...string) error
	// Retire ends an agent that is owned here: its folder was removed. A folder with its id is
	// a new agent from then on.
	Retire(agent string) error
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
	// Item is an item of an agent that another machine owns, as System.Item has it there. Errors: *message.Elsewhere: that one
	// does not own the agent, or does not answer; those of System.Item.
	Item(ctx context.Context, node, agent, item string) (event.Posted, error)
	// State is the state.json of an agent that another machine owns, as System.StateHere has it there. Errors: *message.Elsewhere:
	// that one does not own the agent, or does not answer; those of System.StateHere.
	State(ctx context.Context, node, agent string) ([]byte, error)
	// Lead runs do on one machine at a time, for each name: it waits until this one is it, and
	// again when it was not any more and do has ended with its context. It returns when do has
	// ended by itself, with its error, or when ctx ends.
	Lead(ctx context.Context, name string, do func(ctx context.Context) error) error
	// Watch tells what happens on other machines, until ctx ends. adopt: the owner of an agent
	// has ended, and work is left. lose: another machine has taken an agent over from this one.
	// met: an agent was announced, and is new or changed. parted: one was retired.
	Watch(ctx context.Context, adopt, lose func(agent string), met func(m address.Meta, ended bool), parted func(agent string))
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
		it.ID = cuid.Unique()
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

// Await returns how an item ended, waiting until it has, on whichever machine its agent is.
func (m *mailroom) Await(ctx context.Context, agent, item string) (event.Outcome, error) {
	for pause := movedFirst; ; pause = min(2*pause, movedLast) {
		o, err := m.awaitHere(ctx, agent, item)
		if there, ok := errors.AsType[*message.Elsewhere](err); ok {
			var p event.Posted
			p, err = m.peers.Item(ctx, there.Node, agent, item)
			switch {
			case err == nil && p.Outcome != nil:
				return *p.Outcome, nil
			case errors.Is(err, inbox.ErrUnknown):
				return droppedItem(agent, item), nil
			case err == nil:
				err = there // it has not ended
			}
		}
		if !hasMoved(err) {
			return o, err
		}

		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return event.Outcome{}, ctx.Err()
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

// watchPeers does what follows from what happens on other machines, until ctx ends.
func (s *System) watchPeers(ctx context.Context) {
	parted := func(id string) {
		s.index.Forget(id)
		s.recent.look(id)
		s.events.Emit(event.Event{Type: event.AgentEnded, Agent: id, Body: event.Reason{Reason: "removed on another machine"}})
	}

	s.peers.Watch(ctx, s.actors.wake, s.lose, s.met, parted)
}

// passOn brings what users save in the folders of agents to the other machines, until ctx ends.
func (s *System) passOn(ctx context.Context) {
	for {
		select {
		case <-s.actors.saved.hints:
		case <-ctx.Done():
			return
		}
		for _, id := range s.actors.saved.take() {
			if err := s.peers.Edited(id, settingFiles...); err != nil && !hasMoved(err) {
				s.log.Info("an edit by hand is not on the other machines yet; it is when the agent sleeps", "agent", id, "err", err)
			}
		}
	}
}

// lose stops the work on an agent that another machine has taken over.
func (s *System) lose(id string) {
	if e, ok := s.actors.awake(id); ok {
		s.actors.letGo(e)
	}
}

// met makes an agent known that was made or changed on another machine.
func (s *System) met(m address.Meta, ended bool) {
	added := s.index.Met(m)
	if e, ok := s.actors.awake(m.ID); !ok || !(ownership{e}).is() { // else it is known here, and newer
		s.index.SetEnded(m.ID, ended)
	}
	s.recent.look(m.ID)
	if added {
		s.events.Emit(event.Event{Type: event.AgentCreated, Agent: m.ID})
	}
}

// Hold keeps an agent on this machine until release is called, whether it is awake or not: its folder stays as it
// is, and no other machine writes to it. Errors: *message.Elsewhere, disk.ErrAway, message.ErrUnknownAgent.
func (s *System) Hold(id string) (release func(), err error) { return s.actors.hold(id) }

// introduce brings a new agent to the other machines. One that another machine has made at the
// same time, and has opened first, is that one's.
func (a *actors) introduce(id string) error {
	release, err := a.hold(id)
	if errors.As(err, new(*message.Elsewhere)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("introduce agent %s to the other machines: %w", id, err)
	}
	release()

	return nil
}

// Introduce brings the agents to the other machines that are only here, until ctx ends.
func (s *System) Introduce(ctx context.Context, ids []string) error {
	for _, id := range ids {
		if ctx.Err() != nil {
			break
		}
		if err := s.actors.introduce(id); err != nil {
			return err
		}
	}

	return nil
}

func (a *actors) hold(id string) (release func(), err error) {
	if a.peers == nil {
		return func() {}, nil
	}
	for {
		e, err := a.entry(id)
		if err != nil {
			return nil, err
		}
		if err = (ownership{e}).hold(); err == nil {
			return ownership{e}.letSleep, nil
		}
		if !errors.Is(err, errGone) {
			return nil, err
		}
	}
}

// An ownership is an entry as one of several machines has it.
type ownership struct{ *entry }

func (e ownership) hold() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.gone:
		return errGone
	case e.fenced:
		return fmt.Errorf("%w: %s", disk.ErrFenced, e.meta.Handle)
	}
	defer e.sleep() // if it is not owned
	if err := e.own(); err != nil {
		return err
	}
	e.users++

	return nil
}

func (e ownership) is() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.owned
}

// letSleep ends a hold.
func (e ownership) letSleep() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.users--
	e.sleep()
}

// own makes this machine the owner of the agent, and tells the others what it is now. The lock
// is held.
func (e ownership) own() error {
	p := e.actors.peers
	if p == nil || e.owned {
		return nil
	}
	if err := p.Acquire(e.meta.ID); err != nil {
		return err
	}
	e.owned = true
	// Its folder may be another one than before. What is wrong with it is told when it wakes.
	if _, err := e.actors.index.Reread(e.meta.ID, false); err != nil {
		e.actors.log.Warn("cannot read the descriptor of an agent", "agent", e.meta.ID, "err", err)
	}

	return e.announce()
}

// announce tells the other machines what the agent is now. The lock is held.
func (e ownership) announce() error {
	meta, known := e.actors.index.Get(e.meta.ID)
	if !known {
		return nil // it was removed
	}
	ended, known := e.actors.index.Ended(meta.ID)
	if !known {
		state, _, _ := record.CurrentState(e.actors.vol, e.dir) // what is wrong with it is told when it is opened
		ended = state.Ended != nil
	}

	return e.actors.peers.Announce(meta, ended)
}

// rest lets an agent sleep if nothing needs it any more: it was kept for what it sent, or waits for a place.
func (m *memory) rest(id string) {
	if e, ok := m.awake(id); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.sleep()
	}
}

// sends reports whether this machine sends what the agent promised: another one that owned it meanwhile
// would send it, too. The lock is held.
func (e ownership) sends() bool { return e.owned && !e.fenced && e.actors.senders.sending(e.meta.ID) }

// giveUp lets another machine be the owner of the agent, whose files are closed. The lock is
// held.
func (e ownership) giveUp() {
	if !e.owned {
		return
	}
	e.owned = false
	if !e.fenced {
		if err := e.announce(); err != nil {
			e.actors.log.Info("agent not announced; the next machine that opens it does", "agent", e.meta.ID, "err", err)
		}
	}
	e.actors.peers.Release(e.meta.ID, !e.fenced && !e.actors.settled(e.meta.ID))
}

// letGo ends the work on an agent that another machine has taken over. It accepts nothing
// more here until its files are closed.
func (a *actors) letGo(e *entry) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.owned {
		return // it sleeps
	}
	e.fenced = true
	if e.running {
		e.cancel(disk.ErrFenced)
	}
	closing{e}.shut()
	e.sleep()
}
