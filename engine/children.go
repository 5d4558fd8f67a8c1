package engine

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// A LimitError is a start that was refused. Nothing was made and nothing waits.
type LimitError struct {
	Setting string // agents.maxChildren, …
	Limit   int
	What    string // what there are that many of
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("not started: there are %d %s already, the limit of %s. "+
		"Wait for a report, or stop one that is no longer needed", e.Limit, e.What, e.Setting)
}

// Unwrap returns the fault.
func (e *LimitError) Unwrap() error { return fault.AgentLimit }

// children are agents that others start.
type children struct {
	place     place
	asks      *permission.Queue
	actors    *actors
	registrar *registrar
	mailroom  *mailroom
	directory *directory
	lifecycle *lifecycle
	limits    func() Limits

	mu       sync.Mutex
	starting map[string]string // child -> parent: admitted, and its first message not yet accepted

	spawning sync.Mutex // held from the look at the limit until the agent is there
}

// Create makes an agent for another one and posts its first message. A call that is
// repeated, because the process died in between, finds the agent that it made.
// Errors: *LimitError, message.ErrUnknownAgent, and those of Deliver.
func (c *children) Create(ctx context.Context, d address.Descriptor, first message.Incoming) (event.Agent, error) {
	if first.Hops > MaxHops {
		return event.Agent{}, ErrHops
	}
	_, again := c.place.index.Get(d.ID)
	if !again {
		if err := c.admit(d); err != nil {
			return event.Agent{}, err
		}
		defer c.admitted(d.ID)
	}

	meta, err := c.registrar.create(d)
	if err != nil {
		return event.Agent{}, err
	}
	if first.Text != "" {
		first.Agent = meta.ID
		if _, err := c.mailroom.deliverSystem(ctx, first); err != nil {
			return event.Agent{}, err
		}
	}

	return c.directory.Agent(ctx, meta.ID)
}

// admit keeps a place for a child, or says which limit is reached.
func (c *children) admit(d address.Descriptor) error {
	if d.Type != address.Subagent {
		return nil
	}
	parent, ok := c.place.index.Get(d.ParentAgentID)
	switch {
	case !ok:
		return fmt.Errorf("%w: %s", message.ErrUnknownAgent, d.ParentAgentID)
	case parent.Descriptor.Type == address.Subagent:
		return fmt.Errorf("not started: agent %s is itself a subagent, and subagents start none", parent.Handle)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	own, all := c.running(d.ParentAgentID)
	switch l := c.limits(); {
	case l.Children > 0 && own >= l.Children:
		return &LimitError{"agents.maxChildren", l.Children, "running children of this agent"}
	case l.Running > 0 && all >= l.Running:
		return &LimitError{"agents.maxRunningChildren", l.Running, "running children of all agents"}
	}

	c.starting[d.ID] = d.ParentAgentID
	return nil
}

func (c *children) admitted(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.starting, id)
}

// running counts the subagents at work: of one parent, and of all. One that sleeps
// has no work, so only those in memory are looked at: their number is limited. f.mu is held.
func (c *children) running(parent string) (own, all int) {
	for id, p := range c.starting {
		if c.actors.busy(id) {
			continue // counted below
		}
		all++
		if p == parent {
			own++
		}
	}

	for _, e := range c.actors.awakeSubagents() {
		if !c.actors.busy(e.meta.ID) {
			continue
		}
		all++
		if e.meta.Descriptor.ParentAgentID == parent {
			own++
		}
	}

	return own, all
}

// Running is the children of an agent that are at work or wait for a user.
func (c *children) Running(ctx context.Context, parent string) []event.Agent {
	var list []event.Agent
	for _, meta := range c.place.index.Running(parent) {
		_, asked := c.Asked(meta.ID)
		if !asked && !c.actors.busy(meta.ID) {
			continue
		}
		if a, err := c.directory.Agent(ctx, meta.ID); err == nil {
			list = append(list, a)
		}
	}

	return list
}

// Colleagues is the permanent agents that an agent may know of, at most that many; more
// says that there are others. Those of the asker's own family come first, where it does
// not know all.
func (f *Family) Colleagues(asker string, most int) (list []address.Meta, more bool) {
	look := func(m address.Meta) bool {
		switch {
		case f.actors.ended(m.ID) || !f.knows(asker, m.ID):
		case len(list) == most:
			more = true
		default:
			list = append(list, m)
		}

		return !more
	}
	if f.OfHouse(asker) {
		f.place.index.Live(address.Colleagues, look)
		return list, more
	}

	f.place.index.Colleagues(address.FamilyOf(f.Root(asker)), look)
	if !more {
		f.place.index.Colleagues(address.House, look)
	}

	return list, more
}

// Spawn is Create for an agent of the terminal that a user starts beside the one at
// hand, within the limit for those. Agents that are made otherwise are not counted.
func (c *children) Spawn(ctx context.Context, d address.Descriptor) (event.Agent, error) {
	c.spawning.Lock()
	defer c.spawning.Unlock()
	if most := c.limits().Spawned; most > 0 {
		n := 0
		c.place.index.Live(address.Spawn, func(m address.Meta) bool {
			if !c.actors.ended(m.ID) {
				n++
			}
			return n < most
		})

		if n >= most {
			return event.Agent{}, &LimitError{"agents.maxSpawned", most, "agents started by /spawn"}
		}
	}

	d.Spawned = true
	return c.lifecycle.Create(ctx, d)
}

// reapEvery is how often subagents without work are looked for.
const reapEvery = 5 * time.Minute

// Run ends subagents that have had no work for their time to live, until ctx ends.
func (c *children) Run(ctx context.Context) error {
	tick := time.NewTicker(min(reapEvery, max(c.limits().TTL/2, time.Second)))
	defer tick.Stop()
	for {
		c.reap(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *children) reap(ctx context.Context) {
	ttl := c.limits().TTL
	if ttl <= 0 {
		return
	}
	c.place.index.Live(address.Subagents, func(meta address.Meta) bool {
		if c.actors.ended(meta.ID) || c.needed(meta.ID, ttl) {
			return ctx.Err() == nil
		}
		if err := c.lifecycle.retire(ctx, meta.ID, fmt.Sprintf("no work for %s", ttl)); err != nil {
			c.place.log.Warn("cannot end idle subagent", "agent", meta.ID, "err", err)
		}

		return ctx.Err() == nil
	})
}

// needed reports whether a subagent has work, waits for a user, or had work
// lately.
func (c *children) needed(id string, ttl time.Duration) bool {
	if _, asked := c.Asked(id); asked || c.actors.busy(id) || len(c.Running(context.Background(), id)) > 0 {
		return true
	}
	at, err := record.LastAt(c.place.folder(id))
	if err == nil && at.IsZero() { // a crash may have come before its first message, which is to come yet
		var folder os.FileInfo
		if folder, err = os.Stat(c.place.folder(id)); err == nil {
			at = folder.ModTime()
		}
	}

	return err != nil || time.Since(at) < ttl || !c.place.settled(id)
}
