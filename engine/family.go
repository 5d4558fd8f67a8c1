package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	ErrHops = fmt.Errorf("this message has passed %d agents, which looks like a circle: do not answer agents that only answer you", MaxHops)
	// ErrNobody: there is no agent that a message without a target goes to.
	ErrNobody = errors.New("no person has written yet, so there is nobody to tell: name an agent")
	// ErrStranger: the agent may not see or reach the other one.
	ErrStranger = errors.New("that agent belongs to somebody else")
)

// Limits bound the families of agents; 0 is no limit.
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
	sys    *System
	limits func() Limits

	mu       sync.Mutex
	starting map[string]string // child -> parent: admitted, and its first message not yet accepted

	spawning sync.Mutex // held from the look at the limit until the agent is there
}

// NewFamily makes the Family of a System; limits is asked at each start of an agent.
func NewFamily(s *System, limits func() Limits) *Family {
	return &Family{sys: s, limits: limits, starting: map[string]string{}}
}

// Post puts a message of one agent into the inbox of another. When it returns nil
// the message is durable. in.Agent "" is the default target: the sender's parent if
// that is a user's agent, else the agent that a person wrote to last. Errors:
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
	if from, _ := f.sys.index.Get(in.Origin); from.Descriptor.ParentAgentID != to {
		in.Route = nil // only what is told to a parent is answered where the work was asked for
	}
	in.Agent = to
	return f.sys.tell(ctx, in)
}

// sayLimit is how long Say waits until a chat has taken a message.
const sayLimit = time.Minute

// ErrNoChat: there is no chat that a message could be sent to.
var ErrNoChat = errors.New("people read this conversation where it is shown, so there is no chat to send to: just answer")

// Say sends a text of an agent, and files with it, to its own chat, at the address to, or to the chat
// of another agent of the same person. key is the same at every try, for the
// platforms that know such keys.
func (f *Family) Say(ctx context.Context, asker, ref string, to message.Address, key, text string, files ...message.File) error {
	if ref != "" {
		id, err := f.sys.index.Resolve(ref)
		if err != nil {
			return err
		}
		if !f.knows(asker, id) {
			return ErrStranger
		}
		meta, _ := f.sys.index.Get(id)
		d := meta.Descriptor
		to = message.Address{Connector: d.Connector, ChannelID: d.ChannelID, UserID: d.UserID}
	}
	if to.Connector == "" || !f.sys.answers(to) {
		return ErrNoChat
	}
	fates := make(chan message.Fate, 64)
	f.sys.senders.send(message.Promise{Agent: asker,
		Outgoing: message.Outgoing{ID: key, To: to, Text: text, Files: files}, Since: time.Now(),
		Report: func(fate message.Fate) {
			select {
			case fates <- fate:
			default: // nobody reads it any more
			}
		}})
	return delivered(ctx, fates)
}

// ErrNoReaction: the chat does not take reactions.
var ErrNoReaction = errors.New("this chat takes no reactions: say it in words")

// Speaks reports whether an agent can send a message to a chat at all: to its own, or,
// where any platform with chats is connected, to that of another agent of the same person.
func (f *Family) Speaks(d address.Descriptor) bool {
	own := message.Address{Connector: d.Connector, ChannelID: d.ChannelID, UserID: d.UserID}
	return f.sys.answers(own) || f.sys.links.any(func(c Connector) bool {
		_, partly := c.(Answerer) // a hook, which has no chats
		return !partly
	})
}

// Reacts reports whether a connector's platform takes reactions.
func (f *Family) Reacts(connector string) bool {
	c, _ := f.sys.links.get(connector)
	_, ok := c.(Reactor)
	return ok
}

// React puts an emoji under a message of a chat.
func (f *Family) React(ctx context.Context, to message.Address, messageID, emoji string) error {
	c, _ := f.sys.links.get(to.Connector)
	r, ok := c.(Reactor)
	if !ok {
		return ErrNoReaction
	}
	ctx, cancel := context.WithTimeout(ctx, sayLimit)
	defer cancel()
	return guard(func() error { return r.React(ctx, to, messageID, emoji) })
}

// delivered waits until all parts of a message are delivered or one is given up.
func delivered(ctx context.Context, fates <-chan message.Fate) error {
	ctx, cancel := context.WithTimeout(ctx, sayLimit)
	defer cancel()
	last := "no answer from the chat yet"
	for parts := 0; ; {
		select {
		case fate := <-fates:
			switch {
			case fate.Delivered():
				if parts++; parts >= fate.Parts {
					return nil
				}
			case fate.Final:
				return errors.New(fate.Error)
			case fate.Error != "":
				last = fate.Error
			}
		case <-ctx.Done():
			return fmt.Errorf("not delivered yet, and tried further: %s", last)
		}
	}
}

// Target is the agent that a message of an agent goes to; ref "" is the default.
func (f *Family) Target(from, ref string) (string, error) {
	if ref != "" {
		return f.sys.index.Resolve(ref)
	}
	if meta, ok := f.sys.index.Get(from); ok {
		parent, ok := f.sys.index.Get(meta.Descriptor.ParentAgentID)
		if ok && parent.Descriptor.Type == address.User {
			return parent.ID, nil
		}
	}
	id, ok := f.sys.Foreground()
	if !ok {
		return "", ErrNobody
	}
	return id, nil
}

// knows reports whether an agent may see and reach another. The agents of the
// machine's own user and those that work for the house know all; those of other
// people, who come in through a chat, know their own family and the colleagues of the
// house. What an agent made (a task, a colleague) belongs to its family.
func (f *Family) knows(from, to string) bool {
	return f.Reads(from, to) || f.root(to).Descriptor.Type == address.Permanent
}

// Reads reports whether an agent may read the conversation of another: what people say
// to a colleague of the house is not for all who may write to it.
func (f *Family) Reads(from, to string) bool {
	root, top := f.root(from), f.root(to)
	mine, theirs := root.Descriptor, top.Descriptor
	switch {
	case root.ID == top.ID || f.OfHouse(from):
		return true
	case mine.Type != address.User || theirs.Type != address.User:
		return false
	}
	return mine.Connector == theirs.Connector && mine.UserID == theirs.UserID && mine.UserID != ""
}

// OfHouse reports whether an agent works for the machine's own user or for nobody in
// particular, as clocks and colleagues do that no agent of a chat made.
func (f *Family) OfHouse(id string) bool {
	d := f.root(id).Descriptor
	return d.Type != address.User || d.Connector == Terminal().Connector
}

// Kin reports whether two agents work for one person.
func (f *Family) Kin(asker, ref string) bool {
	id, err := f.sys.index.Resolve(ref)
	if err != nil {
		return false
	}
	mine, top := f.root(asker), f.root(id)
	a, b := mine.Descriptor, top.Descriptor
	return mine.ID == top.ID || a.Type == address.User && b.Type == address.User && a.Connector == b.Connector &&
		a.UserID == b.UserID && a.UserID != ""
}

// Stranger is the id of the agent that ref names, if it works for somebody who is neither
// the asker's person nor an owner.
func (f *Family) Stranger(asker, ref string) (id string, ok bool) {
	id, err := f.sys.index.Resolve(ref)
	if err != nil {
		return "", false
	}
	d := f.root(id).Descriptor
	owner := d.Type != address.User || d.Connector == Terminal().Connector || f.sys.owns != nil && f.sys.owns(d)
	return id, !owner && !f.Kin(asker, id)
}

// Root is the agent at the head of an agent's family: the one that speaks with a person,
// or the agent of the house that made all others.
func (f *Family) Root(id string) address.Meta { return f.root(id) }

// root follows who started or made an agent. What was made by an agent that is gone
// still is of that family, and of nobody's that is left.
func (f *Family) root(id string) address.Meta {
	for range maxDepth {
		meta, ok := f.sys.index.Get(id)
		if !ok {
			break
		}
		by := meta.Maker()
		if by == "" {
			return meta
		}
		id = by
	}
	return address.Meta{ID: id, Descriptor: address.Descriptor{Type: address.User}}
}

// Line is the ancestors of an agent, the oldest last.
func (f *Family) Line(id string) (line []string) {
	for range maxDepth {
		meta, ok := f.sys.index.Get(id)
		if !ok || meta.Descriptor.ParentAgentID == "" {
			break
		}
		id = meta.Descriptor.ParentAgentID
		line = append(line, id)
	}
	return line
}

// maxDepth ends a walk up a family that a hand edit made a circle of.
const maxDepth = 64

// List is the agents that an agent may know of, in the order of their handles.
func (f *Family) List(ctx context.Context, asker string) ([]event.Agent, error) {
	all, err := f.sys.Agents(ctx)
	if err != nil {
		return nil, err
	}
	known := all[:0]
	for _, a := range all {
		if f.knows(asker, a.ID) {
			known = append(known, a)
		}
	}
	return known, nil
}

// History is the newest records of another agent.
func (f *Family) History(ctx context.Context, asker, ref string, limit int) (event.Page, error) {
	id, err := f.sys.index.Resolve(ref)
	if err != nil {
		return event.Page{}, err
	}
	if !f.Reads(asker, id) {
		return event.Page{}, ErrStranger
	}
	return f.sys.History(ctx, id, 0, limit)
}

// Await waits for the end of an item, for another agent that is at work meanwhile.
func (f *Family) Await(ctx context.Context, agent, item string) (event.Outcome, error) {
	defer f.sys.waker.lend()()
	return f.sys.Await(ctx, agent, item)
}

// Stop ends an agent that descends from the asker, with its own children. One that
// has ended is no error: the call may be a repetition.
func (f *Family) Stop(ctx context.Context, asker, ref string) (event.Agent, error) {
	id, err := f.sys.index.Resolve(ref)
	if err != nil {
		return event.Agent{}, err
	}
	if !f.descends(id, asker) {
		return event.Agent{}, fmt.Errorf("%w: only agents that you started can be stopped", ErrStranger)
	}
	if f.sys.ended(id) {
		return f.sys.Agent(ctx, id)
	}
	if err := f.sys.Kill(ctx, id); err != nil {
		return event.Agent{}, err
	}
	return f.sys.Agent(ctx, id)
}

// Cancel ends the turn of an agent that was started as a tool, because the call
// that started it was stopped. At shutdown it does nothing: the turn is suspended
// and the call finds it again.
func (f *Family) Cancel(ctx context.Context, id string) {
	if f.sys.actors.Err() != nil {
		return
	}
	if _, err := f.sys.Stop(ctx, id); err != nil {
		f.sys.log.Warn("sub-agent not stopped", "agent", id, "err", err)
	}
}

func (f *Family) descends(id, from string) bool {
	for range maxDepth {
		meta, ok := f.sys.index.Get(id)
		if !ok || meta.Descriptor.ParentAgentID == "" {
			return false
		}
		if id = meta.Descriptor.ParentAgentID; id == from {
			return true
		}
	}
	return false
}

// Asked is the request of an agent that waits for an answer, oldest first.
func (f *Family) Asked(id string) (p permission.Pending, ok bool) {
	if all := f.sys.asks.Of(id); len(all) > 0 {
		return all[0], true
	}
	return p, false
}

// AtWork reports whether an agent has work, or had any since a time, by its files.
func (f *Family) AtWork(id string, since time.Time) bool {
	if _, known := f.sys.index.Get(id); !known {
		return false
	}
	at, err := record.LastAt(f.sys.folder(id))
	return err == nil && at.After(since) || !f.sys.settled(id)
}

// ended reports whether an agent was ended, by this process or an earlier one. Its files
// are read once: from then on the index knows.
func (s *System) ended(id string) bool {
	if e, ok := s.awake(id); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.ended {
			return true
		}
	}
	if ended, known := s.index.Ended(id); known {
		return ended
	}
	state, _, _ := record.CurrentState(s.vol, s.folder(id)) // what cannot be read is told by the agent
	s.index.SawEnded(id, state.Ended != nil)
	return state.Ended != nil
}
