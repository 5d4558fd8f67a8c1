package engine

import (
	"cmp"
	"context"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// What people see is computed when they ask: from an agent in memory if it is
// awake, else from its files. So it works with nothing running, too.

// Agents lists all agents in the order of their handles.
func (s *System) Agents(context.Context) ([]event.Agent, error) {
	all := s.index.All()
	list := make([]event.Agent, 0, len(all))
	own := make(map[string]float64, len(all))
	for _, meta := range all {
		a := s.look(meta)
		own[a.ID] = a.OwnCost
		list = append(list, a)
	}
	at := make(map[string]int, len(list))
	for i, a := range list {
		at[a.ID] = i
	}
	for _, a := range list { // each to all of its ancestors
		up := a.ParentAgentID
		for range maxDepth {
			i, ok := at[up]
			if !ok {
				break
			}
			list[i].Cost += own[a.ID]
			up = list[i].ParentAgentID
		}
	}
	return list, nil
}

// Family is an agent and those below it that have not ended, it first.
func (s *System) Family(_ context.Context, id string) ([]event.Agent, error) {
	meta, ok := s.index.Get(id)
	if !ok {
		return nil, message.ErrUnknownAgent
	}
	seen := map[string]bool{id: true} // a hand edit can make a circle
	family := []address.Meta{meta}
	for i := 0; i < len(family); i++ {
		for _, child := range s.index.Running(family[i].ID) {
			if !seen[child.ID] && !s.ended(child.ID) {
				seen[child.ID] = true
				family = append(family, child)
			}
		}
	}
	list := make([]event.Agent, len(family))
	for i, member := range family {
		list[i] = s.look(member)
		list[i].Cost += s.costBelow(member.ID, maxDepth)
	}
	return list, nil
}

// Agent is one agent by its id.
func (s *System) Agent(_ context.Context, id string) (event.Agent, error) {
	meta, ok := s.index.Get(id)
	if !ok {
		return event.Agent{}, message.ErrUnknownAgent
	}
	a := s.look(meta)
	a.Cost += s.costBelow(id, maxDepth)
	return a, nil
}

// costBelow is what the agents that an agent started have cost, and theirs. It is
// summed from their own records, so that it is right however they ended.
func (s *System) costBelow(id string, depth int) (cost float64) {
	if depth == 0 {
		return 0
	}
	for _, child := range s.index.Children(id) {
		cost += s.ownCost(child.ID) + s.costBelow(child.ID, depth-1)
	}
	return cost
}

// ownCost is what an agent's own calls of models cost. That of an agent that has ended is
// read once.
func (s *System) ownCost(id string) float64 {
	if cost, ok := s.spent.Load(id); ok {
		return cost.(float64)
	}
	cost := s.readCost(id)
	if ended, _ := s.index.Ended(id); ended {
		if _, awake := s.awake(id); !awake {
			s.spent.Store(id, cost)
		}
	}
	return cost
}

// readCost reads what an agent's own calls cost: as state.json has counted it, and what
// came after.
func (s *System) readCost(id string) (cost float64) {
	dir := s.folder(id)
	state, _, _, err := record.ReadState(dir)
	if err != nil {
		return 0
	}
	s.index.SawEnded(id, state.Ended != nil)
	for _, models := range state.Stats {
		for _, u := range models {
			cost += u.Cost
		}
	}
	after, err := record.CostAfter(dir, state.Seq)
	if err != nil {
		s.log.Warn("cost cannot be read", "agent", id, "err", err)
	}
	return cost + after
}

func (s *System) look(meta address.Meta) event.Agent {
	dir := s.folder(meta.ID)
	a := event.Agent{ID: meta.ID, Handle: meta.Handle, Name: meta.Name, Type: string(meta.Descriptor.Type),
		ParentAgentID: meta.Descriptor.ParentAgentID, State: event.Idle, Model: s.model}
	if s.queue != nil {
		a.Queue = s.queue(meta.Descriptor.Connector)
	}
	state, _, _ := record.CurrentState(s.vol, dir) // what is wrong with the file is told apart
	s.index.SawEnded(meta.ID, state.Ended != nil)
	a.Queue = cmp.Or(state.Queue, a.Queue)
	if state.Provider.Model != "" {
		a.Model = state.Provider.Model
	}
	if state.Ended != nil {
		a.State, a.Detail = event.Ended, state.Ended.Reason
	}
	a.OwnCost = s.ownCost(meta.ID)
	a.Cost = a.OwnCost
	if n, err := record.InContext(dir); err == nil {
		a.Context = n
	}
	if s.window != nil {
		a.Window = int64(s.window(state.Provider))
	}
	if at, err := record.LastAt(dir); err == nil && !at.IsZero() {
		a.LastAt = &at
	}
	heads := s.waiting(meta.ID)
	for _, h := range heads {
		if !h.Taken {
			a.Queued++
		}
	}
	if len(heads) > 0 {
		at := heads[0].At
		a.OldestAt = &at
		if a.State == event.Idle {
			a.State = event.Queued
		}
	}
	if s.asks != nil {
		s.asking(&a)
	}
	if waits, err := s.waker.waits(meta.ID); waits && err != nil {
		a.State, a.Detail = event.Failing, err.Error()
	}
	if e, ok := s.awake(meta.ID); ok {
		e.mu.Lock()
		a.Running = e.running
		e.mu.Unlock()
		if act := e.activity.Load(); act != nil && act.state != event.Idle {
			a.State, a.Detail = act.state, act.detail
		}
	}
	return a
}

// asking shows that a request of an agent waits for an answer.
func (s *System) asking(a *event.Agent) {
	for _, p := range s.asks.Of(a.ID) {
		if _, ok := permission.BudgetOf(p.Request.Tag); ok {
			a.State, a.Detail = event.Paused, p.Request.Reason
			return
		}
		a.State, a.Detail = event.WaitingPermission, "a request of this agent waits for an answer"
	}
}

// waiting are the open items of an agent.
func (s *System) waiting(id string) []inbox.Head {
	if e, ok := s.awake(id); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.box != nil {
			return e.box.Open()
		}
	}
	heads, err := inbox.Survey(s.folder(id))
	if err != nil {
		s.log.Warn("inbox cannot be read", "agent", id, "err", err)
	}
	return heads
}

// Inbox lists what waits for an agent, first to be done first.
func (s *System) Inbox(_ context.Context, id string) ([]event.Waiting, error) {
	if _, ok := s.index.Get(id); !ok {
		return nil, message.ErrUnknownAgent
	}
	bodies, err := inbox.ReadAll(s.folder(id))
	if err != nil {
		return nil, err
	}
	text := make(map[string]string, len(bodies))
	for _, it := range bodies {
		text[it.ID] = it.Text
	}
	list := []event.Waiting{}
	for _, h := range s.waiting(id) {
		w := event.Waiting{ID: h.ID, Seq: h.Seq, At: h.At, Type: string(h.Kind), Text: text[h.ID], Bytes: h.Bytes,
			State: "waiting", Queue: string(h.Queue)}
		if h.Taken {
			w.State = "taken"
		}
		list = append(list, w)
	}
	return list, nil
}

// History is a page of an agent's records, ending before the record with seq
// before (0: the end).
func (s *System) History(_ context.Context, id string, before int64, limit int) (event.Page, error) {
	if _, ok := s.index.Get(id); !ok {
		return event.Page{}, message.ErrUnknownAgent
	}
	lines, next, err := record.Tail(s.folder(id), before, limit)
	return event.Page{Records: lines, Before: next}, err
}

// Draft is the answer that an agent is streaming, as it stands on disk.
func (s *System) Draft(_ context.Context, id string) (event.Draft, error) {
	if _, ok := s.index.Get(id); !ok {
		return event.Draft{}, message.ErrUnknownAgent
	}
	d, _, err := record.ReadDraft(s.folder(id))
	return event.Draft{Turn: d.Turn, Text: d.Text, Thinking: d.Thinking}, err
}

// Counts are the agents in memory and the items that wait in all inboxes.
func (s *System) Counts() (agents, awake, queued int) {
	for _, meta := range s.index.All() {
		agents++
		if e, ok := s.awake(meta.ID); ok {
			e.mu.Lock()
			if e.running {
				awake++
			}
			if e.box != nil {
				queued += e.box.Len()
			}
			e.mu.Unlock()
			continue
		}
		if settled, err := inbox.Settled(s.folder(meta.ID)); err == nil && !settled {
			queued += len(s.waiting(meta.ID))
		}
	}
	return agents, awake, queued
}
