package chat

import (
	"slices"
	"sync"

	"daycare/engine/message"
	"daycare/engine/permission"
)

// users knows who may do what, and who is reached where.
type people struct {
	o        Options
	host     Host
	platform Platform
	gate     *gate

	mu     sync.Mutex
	routes map[string]message.Address // agent -> where it was last written to, for agents that many chats share
}

// wrote keeps where an agent was last written to.
func (w *people) wrote(agent string, from message.Address) {
	if w.o.AgentID != "" {
		w.mu.Lock()
		w.routes[agent] = from
		w.mu.Unlock()
	}
}

// agent is the agent that a user talks to.
func (w *people) agent(from message.Address) (string, bool) {
	if w.o.AgentID != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		for id := range w.routes {
			return id, true // there is one: all messages go to it
		}
		return w.o.AgentID, true
	}
	if w.host.Directory == nil {
		return "", false
	}
	return w.host.Directory.Find(from)
}

// home is the chat of this connector in which an agent's person is reached.
func (w *people) home(agent string) (message.Address, bool) {
	w.mu.Lock()
	to, ok := w.routes[agent]
	w.mu.Unlock()
	if !ok && w.host.Directory != nil {
		to, ok = w.host.Directory.Home(agent)
	}
	return to, ok && to.Connector == w.o.ID
}

// mayAnswer reports whether a request is any of a user's business: its own agent's, or,
// for an owner, that of every agent of this connector. Who wrote last to an agent that
// many share is no owner by that.
func (w *people) mayAnswer(from message.Address, p permission.Pending) bool {
	if p.Owner.Connector == from.Connector && p.Owner.UserID == from.UserID {
		return true
	}
	_, here := w.home(p.Agent)
	return w.owns(from.UserID) && (here || p.Owner.Connector == w.o.ID)
}

// mayAllow reports whether a user may give what an answer gives: an owner all, others
// their own agent what the ceiling of the connector covers. Anybody may deny.
func (w *people) mayAllow(from message.Address, p permission.Pending, decision permission.Decision) bool {
	if w.owns(from.UserID) {
		return w.mayAnswer(from, p)
	}
	_, ceiling := w.owners()
	own := p.Owner.Connector == w.o.ID && p.Owner.UserID == from.UserID
	return own && (decision == permission.Deny || ceiling.Covers(p.Request, decision))
}

// owner is the private chat with the first owner.
func (w *people) owner() (message.Address, bool) {
	dir, ok := w.platform.(DirectMessenger)
	ids, _ := w.owners()
	if !ok || len(ids) == 0 {
		return message.Address{}, false
	}
	to, ok := dir.Direct(ids[0])
	to.Connector = w.o.ID
	return to, ok
}

// owners are the users of this connector who answer approvals, and what the others may
// allow their own agents.
func (w *people) owners() (ids []string, ceiling permission.Set) {
	if w.host.Owners == nil {
		return w.o.Allow[:min(1, len(w.o.Allow))], permission.Set{}
	}
	return w.host.Owners(w.o.ID)
}

// owns reports whether a user is an owner.
func (w *people) owns(user string) bool {
	ids, _ := w.owners()
	return slices.Contains(ids, user) && w.gate.allows(user)
}
