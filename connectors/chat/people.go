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
	written  written

	mu     sync.Mutex
	routes map[string]message.Address // agent -> where it was last written to, for agents of several chats
}

// wrote keeps where an agent that the settings name was last written to.
func (w *people) wrote(agent string, from message.Address) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.routes[agent] = from
}

// talk is how users and agents talk here, as the settings are now.
func (w *people) talk() Talk {
	if w.host.Talk == nil {
		return Talk{}
	}
	return w.host.Talk(w.o.ID)
}

// reached is which agent a message is for: the one that the settings name, or else the one of an
// address, which is nil for the sender's own.
func (w *people) reached(p Post) (agent string, of *message.Address) {
	if w.o.AgentID != "" {
		return w.o.AgentID, nil
	}
	if !p.Group {
		return w.linked(p.From), nil
	}
	shared := message.Address{Connector: p.From.Connector, ChannelID: p.From.ChannelID}
	switch w.talk().AgentPer {
	case "chat":
		return "", &shared
	case "thread":
		shared.ThreadID = p.From.ThreadID
		return "", &shared
	}

	return "", nil
}

// incoming is a message without what it says.
func (w *people) incoming(p Post) message.Incoming {
	in := message.Incoming{From: p.From, Dedupe: w.o.ID + ":" + p.Key}
	in.Agent, in.For = w.reached(p)
	return in
}

// linked is the agent of a user whom the settings know on several connectors; "": they do not.
func (w *people) linked(user message.Address) (agent string) {
	if w.host.Linked == nil {
		return ""
	}
	if named, ok := w.host.Linked(user); ok {
		agent = named
	}

	return agent
}

// agent is the agent that a user talks to.
func (w *people) agent(p Post) (string, bool) {
	named, of := w.reached(p)
	if named != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		for id, to := range w.routes {
			if w.o.AgentID != "" || to.UserID == p.From.UserID {
				return id, true // there is one: all messages go to it
			}
		}
		return named, true
	}
	if w.host.Directory == nil {
		return "", false
	}
	if of == nil {
		own := p.From
		of, own.ThreadID = &own, ""
	}

	return w.host.Directory.Find(*of)
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
// many share is not an owner by that.
func (w *people) mayAnswer(from message.Address, p permission.Pending) bool {
	if w.own(from, p) {
		return true
	}
	_, here := w.home(p.Agent)
	return w.owns(from.UserID) && (here || p.Owner.Connector == w.o.ID)
}

// own reports whether a request is of a user's own agent.
func (w *people) own(from message.Address, p permission.Pending) bool {
	if from.UserID != "" && p.Owner.Connector == w.o.ID && p.Owner.UserID == from.UserID {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	to, ok := w.routes[p.Agent]

	return ok && w.o.AgentID == "" && to.UserID == from.UserID // their agent, which another connector made
}

// mayAllow reports whether a user may give what an answer gives: an owner all, others
// their own agent what the ceiling of the connector covers. Anybody may deny.
func (w *people) mayAllow(from message.Address, p permission.Pending, decision permission.Decision) bool {
	if w.owns(from.UserID) {
		return w.mayAnswer(from, p)
	}
	_, ceiling := w.owners()
	return w.own(from, p) && (decision == permission.Deny || ceiling.Covers(p.Request, decision))
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
