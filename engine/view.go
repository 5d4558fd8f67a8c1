package engine

import (
	"cmp"
	"context"
	"strings"
	"sync/atomic"

	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// What users see is computed when they ask: from an agent in memory if it is
// awake, else from its files. So it works with nothing running, too.

// A directory says what there is to see of agents.
type directory struct {
	place
	actors  *actors
	asks    *permission.Queue
	answers func(address.Type, record.Model) (model string, window int) // nil: nothing is known
	budget  func(address.Descriptor, *record.Budget) float64            // nil: not known of any
	queue   func(string) string                                         // nil: not known of any

	stories  recall[record.Look, story]
	backlogs recall[beneath.Stamp, backlog]
}

// Agents lists all agents in the order of their handles.
func (dy *directory) Agents(context.Context) ([]event.Agent, error) {
	all := dy.index.All()
	list := make([]event.Agent, len(all))
	each(len(all), func(i int) { list[i] = dy.look(all[i]) })

	own := make(map[string]float64, len(all))
	at := make(map[string]int, len(list))
	for i, a := range list {
		own[a.ID], at[a.ID] = a.OwnCost, i
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
func (dy *directory) Family(_ context.Context, id string) ([]event.Agent, error) {
	meta, ok := dy.index.Get(id)
	if !ok {
		return nil, message.ErrUnknownAgent
	}
	seen := map[string]bool{id: true} // a hand edit can make a circle
	family := []address.Meta{meta}
	for i := 0; i < len(family); i++ {
		for _, child := range dy.index.Running(family[i].ID) {
			if !seen[child.ID] && !dy.actors.ended(child.ID) {
				seen[child.ID] = true
				family = append(family, child)
			}
		}
	}
	list := make([]event.Agent, len(family))
	for i, member := range family {
		list[i] = dy.look(member)
		list[i].Cost += dy.costBelow(member.ID, maxDepth)
	}

	return list, nil
}

// Agent is one agent by its id.
func (dy *directory) Agent(_ context.Context, id string) (event.Agent, error) {
	meta, ok := dy.index.Get(id)
	if !ok {
		return event.Agent{}, message.ErrUnknownAgent
	}
	a := dy.look(meta)
	a.Cost += dy.costBelow(id, maxDepth)
	return a, nil
}

// costBelow is what the agents that an agent started have cost, and theirs. It is
// summed from their own records, so that it is right however they ended.
func (dy *directory) costBelow(id string, depth int) (cost float64) {
	if depth == 0 {
		return 0
	}
	for _, child := range dy.index.Children(id) {
		own, _ := dy.actors.ownCost(child.ID) // it is logged
		cost += own + dy.costBelow(child.ID, depth-1)
	}

	return cost
}

// ownCost is what an agent's own calls of models cost. That of an agent that has ended is
// read once. With an error it is a part of it.
func (a *actors) ownCost(id string) (float64, error) {
	if cost, ok := a.spent.Load(id); ok {
		return cost.(float64), nil
	}
	cost, err := a.readCost(id)
	if err != nil {
		a.log.Warn("cannot read cost", "agent", id, "err", err)
		return cost, err
	}
	if ended, _ := a.index.Ended(id); ended {
		if _, awake := a.awake(id); !awake {
			a.spent.Store(id, cost)
		}
	}

	return cost, nil
}

// readCost reads what an agent's own calls cost: as state.json has counted it, and what
// came after.
func (a *actors) readCost(id string) (cost float64, err error) {
	dir := a.folder(id)
	state, _, _, err := record.ReadState(dir)
	if err != nil {
		return 0, err
	}
	a.index.SawEnded(id, state.Ended != nil)
	for _, models := range state.Stats {
		for _, u := range models {
			cost += u.Cost
		}
	}
	after, err := record.CostAfter(dir, state.Seq)

	return cost + after, err
}

func (dy *directory) look(meta address.Meta) event.Agent {
	a := event.Agent{ID: meta.ID, Handle: meta.Handle, Name: meta.Name, Type: string(meta.Descriptor.Type),
		Connector: meta.Descriptor.Connector,
		ChannelID: meta.Descriptor.ChannelID, ParentAgentID: meta.Descriptor.ParentAgentID, State: event.Idle}
	if dy.queue != nil {
		a.Queue = dy.queue(meta.Descriptor.Connector)
	}
	s := dy.story(meta.ID)
	a.Queue = cmp.Or(s.queue, a.Queue)
	if s.ended != nil {
		a.State, a.Detail = event.Ended, s.ended.Reason
	}
	a.OwnCost, a.Cost, a.Context = s.cost, s.cost, s.context
	if dy.budget != nil {
		a.Budget = dy.budget(meta.Descriptor, s.budget)
	}
	if a.Model = s.model.Model; dy.answers != nil {
		model, window := dy.answers(meta.Descriptor.Type, s.model)
		a.Model, a.Window = model, int64(window)
	}
	if !s.last.At.IsZero() {
		a.LastAt, a.Said, a.Failed = &s.last.At, s.last.Said, s.last.Failed
	}
	if b := dy.backlog(meta.ID); b.n > 0 {
		a.Queued, a.OldestAt = b.queued, &b.oldest
		if a.State == event.Idle {
			a.State = event.Queued
		}
	}
	if dy.asks != nil {
		dy.asking(&a)
	}
	if waits, err := dy.actors.waker.waits(meta.ID); waits && err != nil {
		a.State, a.Detail = event.Failing, err.Error()
	}
	if e, ok := dy.actors.awake(meta.ID); ok {
		e.mu.Lock()
		a.Running = e.running
		e.mu.Unlock()
		if act := e.activity.Load(); act != nil && act.state != event.Idle {
			a.State, a.Detail = act.state, act.detail
		}
	}

	return a
}

// mostSaid is how much of an answer a list shows, in characters.
const mostSaid = 160

// firstLine is the first line of a text; … says that there is more.
func firstLine(text string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	many := 0
	for i := range line {
		if many++; many > mostSaid {
			return line[:i] + " …"
		}
	}
	if line = strings.TrimSpace(line); rest != "" {
		line += " …"
	}

	return line
}

// asking shows that a request of an agent waits for an answer.
func (dy *directory) asking(a *event.Agent) {
	for _, p := range dy.asks.Of(a.ID) {
		if _, ok := permission.BudgetOf(p.Request.Tag); ok {
			a.State, a.Detail = event.Paused, p.Request.Reason
			return
		}
		a.State, a.Detail = event.WaitingPermission, "a request of this agent is waiting for approval"
	}
}

// waiting are the open items of an agent.
func (a *actors) waiting(id string) []inbox.Head {
	if heads, ok := a.opened(id); ok {
		return heads
	}
	heads, _ := a.survey(id) // it is logged
	return heads
}

// opened are the open items of an agent whose inbox is open.
func (a *actors) opened(id string) (heads []inbox.Head, ok bool) {
	e, ok := a.awake(id)
	if !ok {
		return nil, false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.box == nil {
		return nil, false
	}

	return e.box.Open(), true
}

// survey reads the open items of an agent from the file.
func (a *actors) survey(id string) ([]inbox.Head, error) {
	heads, err := inbox.Survey(a.folder(id))
	if err != nil {
		a.log.Warn("cannot read inbox", "agent", id, "err", err)
	}

	return heads, err
}

// Inbox lists what waits for an agent, first to be done first.
func (dy *directory) Inbox(_ context.Context, id string) ([]event.Waiting, error) {
	if _, ok := dy.index.Get(id); !ok {
		return nil, message.ErrUnknownAgent
	}
	bodies, err := inbox.ReadAll(dy.folder(id))
	if err != nil {
		return nil, err
	}
	items := make(map[string]inbox.Item, len(bodies))
	for _, it := range bodies {
		items[it.ID] = it
	}
	list := []event.Waiting{}
	for _, h := range dy.actors.waiting(id) {
		it := items[h.ID]
		w := event.Waiting{ID: h.ID, Seq: h.Seq, At: h.At, Type: string(h.Kind), Text: it.Text, Bytes: h.Bytes,
			State: "waiting", Queue: string(h.Queue),
			More: len(it.Files) > 0 || it.Untrusted || it.Source != "" || it.Origin != "" || it.Route != nil}
		if h.Taken {
			w.State = "taken"
		}
		list = append(list, w)
	}

	return list, nil
}

// History is a page of an agent's records, ending before the record with seq
// before (0: the end).
func (dy *directory) History(_ context.Context, id string, before int64, limit int) (event.Page, error) {
	if _, ok := dy.index.Get(id); !ok {
		return event.Page{}, message.ErrUnknownAgent
	}
	lines, next, err := record.Tail(dy.folder(id), before, limit)
	return event.Page{Records: lines, Before: next}, err
}

// Draft is the answer that an agent is streaming, as it stands on disk.
func (dy *directory) Draft(_ context.Context, id string) (event.Draft, error) {
	if _, ok := dy.index.Get(id); !ok {
		return event.Draft{}, message.ErrUnknownAgent
	}
	d, _, err := record.ReadDraft(dy.folder(id))
	return event.Draft{Turn: d.Turn, Text: d.Text, Thinking: d.Thinking}, err
}

// Counts are the agents in memory and the items that wait in all inboxes.
func (dy *directory) Counts() (agents, awake, queued int) {
	ids := dy.index.IDs()
	var running, waiting atomic.Int64
	each(len(ids), func(i int) {
		runs, waits := dy.countOf(ids[i])
		waiting.Add(int64(waits))
		if runs {
			running.Add(1)
		}
	})

	return len(ids), int(running.Load()), int(waiting.Load())
}

// countOf reports whether an agent is in memory, and how many items wait for it.
func (dy *directory) countOf(id string) (running bool, queued int) {
	if e, ok := dy.actors.awake(id); ok {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.box != nil {
			queued = e.box.Len()
		}
		return e.running, queued
	}
	if empty, _ := dy.emptyInbox(id); empty { // else it is read, and an error logged
		return false, 0
	}

	return false, len(dy.actors.waiting(id))
}
