package engine

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
	"daycare/engine/record"
)

// A LimitError is a start that was refused. Nothing was made and nothing waits.
type LimitError struct {
	Setting string // agents.maxChildren, …
	Limit   int
	What    string // what there are that many of
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("not started: there are %d %s already, the limit of %s. Wait for a report, or stop one that is no longer needed", e.Limit, e.What, e.Setting)
}

// Unwrap returns the fault.
func (e *LimitError) Unwrap() error { return fault.AgentLimit }

// Create makes an agent for another one and posts its first message. A call that is
// repeated, because the process died in between, finds the agent that it made.
// Errors: *LimitError, message.ErrUnknownAgent, and those of Deliver.
func (f *Family) Create(ctx context.Context, d address.Descriptor, first message.Incoming) (event.Agent, error) {
	if first.Hops > MaxHops {
		return event.Agent{}, ErrHops
	}
	_, again := f.sys.index.Get(d.ID)
	if !again {
		if err := f.admit(d); err != nil {
			return event.Agent{}, err
		}
		defer f.admitted(d.ID)
	}
	meta, err := f.sys.create(d)
	if err != nil {
		return event.Agent{}, err
	}
	if first.Text != "" {
		first.Agent = meta.ID
		if _, err := f.sys.tell(ctx, first); err != nil {
			return event.Agent{}, err
		}
	}
	return f.sys.Agent(ctx, meta.ID)
}

// admit keeps a place for a child, or says which limit is reached.
func (f *Family) admit(d address.Descriptor) error {
	if d.Type != address.Subagent {
		return nil
	}
	parent, ok := f.sys.index.Get(d.ParentAgentID)
	switch {
	case !ok:
		return fmt.Errorf("%w: %s", message.ErrUnknownAgent, d.ParentAgentID)
	case parent.Descriptor.Type == address.Subagent:
		return fmt.Errorf("not started: agent %s is itself a subagent, and subagents start none", parent.Handle)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	own, all := f.running(d.ParentAgentID)
	switch l := f.limits(); {
	case l.Children > 0 && own >= l.Children:
		return &LimitError{"agents.maxChildren", l.Children, "running children of this agent"}
	case l.Running > 0 && all >= l.Running:
		return &LimitError{"agents.maxRunningChildren", l.Running, "running children of all agents"}
	}
	f.starting[d.ID] = d.ParentAgentID
	return nil
}

func (f *Family) admitted(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.starting, id)
}

// running counts the subagents at work: of one parent, and of all. One that sleeps
// has no work, so only those in memory are looked at: their number is limited. f.mu is held.
func (f *Family) running(parent string) (own, all int) {
	for id, p := range f.starting {
		if f.sys.busy(id) {
			continue // counted below
		}
		all++
		if p == parent {
			own++
		}
	}
	for _, e := range f.sys.awakeSubagents() {
		if !f.sys.busy(e.meta.ID) {
			continue
		}
		all++
		if e.meta.Descriptor.ParentAgentID == parent {
			own++
		}
	}
	return own, all
}

// Running is the children of an agent that are at work or wait for a person.
func (f *Family) Running(ctx context.Context, parent string) []event.Agent {
	var list []event.Agent
	for _, meta := range f.sys.index.Running(parent) {
		_, asked := f.Asked(meta.ID)
		if !asked && !f.sys.busy(meta.ID) {
			continue
		}
		if a, err := f.sys.Agent(ctx, meta.ID); err == nil {
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
		case f.sys.ended(m.ID) || !f.knows(asker, m.ID):
		case len(list) == most:
			more = true
		default:
			list = append(list, m)
		}
		return !more
	}
	if f.OfHouse(asker) {
		f.sys.index.Live(address.Colleagues, look)
		return list, more
	}
	f.sys.index.Colleagues(address.FamilyOf(f.root(asker)), look)
	if !more {
		f.sys.index.Colleagues(address.House, look)
	}
	return list, more
}

// Spawn is Create for an agent of the terminal that a person starts beside the one at
// hand, within the limit for those. Agents that are made otherwise are not counted.
func (f *Family) Spawn(ctx context.Context, d address.Descriptor) (event.Agent, error) {
	f.spawning.Lock()
	defer f.spawning.Unlock()
	if most := f.limits().Spawned; most > 0 {
		n := 0
		f.sys.index.Live(address.Spawn, func(m address.Meta) bool {
			if !f.sys.ended(m.ID) {
				n++
			}
			return n < most
		})
		if n >= most {
			return event.Agent{}, &LimitError{"agents.maxSpawned", most, "agents started by /spawn"}
		}
	}
	d.Spawned = true
	return f.sys.Create(ctx, d)
}

// busy reports whether an agent is at work or has work waiting.
func (s *System) busy(id string) bool {
	if waits, _ := s.waker.waits(id); waits {
		return true
	}
	e, ok := s.awake(id)
	if !ok {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended || e.box == nil {
		return false
	}
	act := e.activity.Load()
	return e.box.Len() > 0 || e.running && act != nil && act.state != event.Idle
}

func (s *System) awakeSubagents() []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Values(s.subagents))
}

// reapEvery is how often subagents without work are looked for.
const reapEvery = 5 * time.Minute

// Run ends subagents that have had no work for their time to live, until ctx ends.
func (f *Family) Run(ctx context.Context) error {
	tick := time.NewTicker(min(reapEvery, max(f.limits().TTL/2, time.Second)))
	defer tick.Stop()
	for {
		f.reap(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (f *Family) reap(ctx context.Context) {
	ttl := f.limits().TTL
	if ttl <= 0 {
		return
	}
	f.sys.index.Live(address.Subagents, func(meta address.Meta) bool {
		if f.sys.ended(meta.ID) || f.needed(meta.ID, ttl) {
			return ctx.Err() == nil
		}
		if err := f.sys.retire(ctx, meta.ID, fmt.Sprintf("no work for %s", ttl)); err != nil {
			f.sys.log.Warn("idle subagent not ended", "agent", meta.ID, "err", err)
		}
		return ctx.Err() == nil
	})
}

// needed reports whether a subagent has work, waits for a person, or had work
// lately.
func (f *Family) needed(id string, ttl time.Duration) bool {
	if _, asked := f.Asked(id); asked || f.sys.busy(id) || len(f.Running(context.Background(), id)) > 0 {
		return true
	}
	at, err := record.LastAt(f.sys.folder(id))
	if err == nil && at.IsZero() { // a death may have come before its first message, which is to come yet
		var folder os.FileInfo
		if folder, err = os.Stat(f.sys.folder(id)); err == nil {
			at = folder.ModTime()
		}
	}
	return err != nil || time.Since(at) < ttl || !f.sys.settled(id)
}
