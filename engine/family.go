package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// MaxHops is how many agents a message may have passed. What one agent tells
// another may make that one tell a third, and so on in a circle.
const MaxHops = 16

var (
	// ErrHops: the message has passed MaxHops agents.
	ErrHops = fmt.Errorf("this message has passed %d agents, which looks like a loop: do not answer agents that only answer you", MaxHops)
	// ErrNobody: there is no agent that a message without a target goes to.
	ErrNobody = errors.New("no user has written yet, so there is no default recipient: name an agent")
	// ErrStranger: the agent must not see or reach the other one.
	ErrStranger = errors.New("that agent belongs to another user")
)

// Limits bound the families of agents; 0 means no limit.
type Limits struct {
	Children int           // running, of one agent
	Running  int           // running, of all agents together
	Spawned  int           // not ended, started by /spawn
	TTL      time.Duration // a subagent without work for so long ends
}

// A Family is what agents may do to each other: write, start, look at, stop. Its
// methods may be called from many goroutines. The first argument after ctx, or the
// Origin of a message, is always the agent that acts.
type Family struct {
	place place
	*relations
	*chats
	*grants
	*children
	actors    *actors
	mailroom  *mailroom
	directory *directory
	lifecycle *lifecycle
	archive   *archive
	recent    *recent
}

// NewFamily makes the Family of a System; limits is asked at each start of an agent.
func NewFamily(s *System, limits func() Limits) *Family {
	k := &relations{place: s.place, recent: s.recent}
	return &Family{place: s.place, relations: k,
		chats:  &chats{relations: k, connectors: s.actors.connectors, senders: s.actors.senders},
		grants: &grants{place: s.place, relations: k, actors: s.actors, mailroom: s.mailroom},
		children: &children{place: s.place, asks: s.directory.asks, actors: s.actors, registrar: s.lifecycle.registrar,
			mailroom: s.mailroom, directory: s.directory, lifecycle: s.lifecycle, limits: limits, starting: map[string]string{}},
		actors: s.actors, mailroom: s.mailroom, directory: s.directory, lifecycle: s.lifecycle, archive: s.archive, recent: s.recent}
}

// Post puts a message of one agent into the inbox of another. When it returns nil
// the message is durable. in.Agent "" is the default target: the sender's parent if
// that is a user's agent, else the agent that a user wrote to last. Errors:
// ErrHops, ErrNobody, ErrStranger, message.ErrUnknownAgent, *address.Ambiguous, and
// those of Deliver.
func (f *Family) Post(ctx context.Context, in message.Incoming) (message.Receipt, error) {
	if in.Hops > MaxHops {
		return message.Receipt{}, ErrHops
	}
	to, err := f.Target(in.Origin, in.Agent)
	if err != nil {
		return message.Receipt{}, err
	}
	if !f.knows(in.Origin, to) {
		return message.Receipt{}, ErrStranger
	}
	if from, _ := f.place.index.Get(in.Origin); from.Descriptor.ParentAgentID != to {
		in.Route = nil // only reports to a parent are answered where the work was requested
	}

	in.Agent = to
	return f.mailroom.deliverSystem(ctx, in)
}

// Target is the agent that a message of an agent goes to; ref "" is the default.
func (f *Family) Target(from, ref string) (string, error) {
	if ref != "" {
		return f.place.index.Resolve(ref)
	}
	if meta, ok := f.place.index.Get(from); ok {
		parent, ok := f.place.index.Get(meta.Descriptor.ParentAgentID)
		if ok && parent.Descriptor.Type == address.User {
			return parent.ID, nil
		}
	}

	id, ok := f.recent.foreground()
	if !ok {
		return "", ErrNobody
	}

	return id, nil
}

// List is the agents that an agent may know of, in the order of their handles. What those say whose conversation it may not read
// is left out.
func (f *Family) List(ctx context.Context, asker string) ([]event.Agent, error) {
	all, _ := f.directory.Agents(ctx) // it never fails
	known := all[:0]
	for _, a := range all {
		if !f.knows(asker, a.ID) {
			continue
		}
		if !f.Reads(asker, a.ID) {
			a.Said, a.Failed = "", ""
		}
		known = append(known, a)
	}

	return known, nil
}

// History is the newest records of another agent.
func (f *Family) History(ctx context.Context, asker, ref string, limit int) (event.Page, error) {
	id, err := f.place.index.Resolve(ref)
	if err != nil {
		return event.Page{}, err
	}
	if !f.Reads(asker, id) {
		return event.Page{}, ErrStranger
	}

	return f.directory.History(ctx, id, 0, limit)
}

// Await waits for the end of an item, for another agent that is at work meanwhile.
func (f *Family) Await(ctx context.Context, agent, item string) (event.Outcome, error) {
	defer f.actors.waker.lend()()
	return f.mailroom.Await(ctx, agent, item)
}

// Stop ends an agent that descends from the asker, with its own children. One that
// has ended is not an error: the call may be a repetition.
func (f *Family) Stop(ctx context.Context, asker, ref string) (event.Agent, error) {
	id, err := f.place.index.Resolve(ref)
	if err != nil {
		return event.Agent{}, err
	}
	if !f.descends(id, asker) {
		return event.Agent{}, fmt.Errorf("%w: only agents that you started can be stopped", ErrStranger)
	}
	if f.actors.ended(id) {
		return f.directory.Agent(ctx, id)
	}
	if err := f.lifecycle.Kill(ctx, id); err != nil {
		return event.Agent{}, err
	}

	return f.directory.Agent(ctx, id)
}

// Cancel ends the turn of an agent that was started as a tool, because the call
// that started it was stopped. At shutdown it does nothing: the turn is suspended
// and the call finds it again.
func (f *Family) Cancel(ctx context.Context, id string) {
	if f.actors.ctx.Err() != nil {
		return
	}
	if _, err := f.lifecycle.Stop(ctx, id, ""); err != nil {
		f.place.log.Warn("cannot stop sub-agent", "agent", id, "err", err)
	}
}

// Asked is the request of an agent that waits for an answer, oldest first.
func (c *children) Asked(id string) (p permission.Pending, ok bool) {
	if all := c.asks.Of(id); len(all) > 0 {
		return all[0], true
	}
	return p, false
}

// AtWork reports whether an agent has work, or had any since a time, by its files.
func (f *Family) AtWork(id string, since time.Time) bool {
	if _, known := f.place.index.Get(id); !known {
		return false
	}
	at, err := record.LastAt(f.place.folder(id))
	return err == nil && at.After(since) || !f.place.settled(id)
}
