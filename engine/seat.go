package engine

import (
	"context"
	"errors"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// A StartFunc runs one agent until it has nothing more to do (nil: it may go to
// sleep), its context ends, or it fails. The engine calls it when the agent has
// work, never twice at once for one agent.
type StartFunc func(ctx context.Context, rt Runtime) error

// ErrStopped is the cause of a turn's context when a person stopped it.
var ErrStopped = errors.New("stopped")

// A Runtime is what the engine gives to a running agent.
type Runtime struct {
	Meta    address.Meta // as it was when the agent was woken; Identity is as it is now
	Dir     string       // the agent's folder
	Inbox   inbox.Mailbox
	Results *message.Results // what became of the agent's answers; it outlives a run that fails

	entry *entry
}

// Identity is the agent's descriptor with what a person edited in it meanwhile.
// It looks at the file, so an edit counts also where nothing can be watched.
func (s Runtime) Identity() address.Meta {
	s.entry.actors.descriptors.reread(s.entry.meta.ID, false) // a broken one is told by the watch
	if meta, ok := s.entry.actors.index.Get(s.entry.meta.ID); ok {
		return meta
	}
	return s.entry.meta
}

// Edited is sent to when files in the agent's folder were changed by somebody.
func (s Runtime) Edited() <-chan struct{} { return s.entry.edited }

// Turn makes the context of a turn: it ends with ctx, or when somebody stops the
// turn. The returned function must be called at the turn's end.
func (s Runtime) Turn(ctx context.Context) (context.Context, func()) { return s.entry.turn(ctx) }

// Show says what the agent is doing, for user interfaces.
func (s Runtime) Show(state event.State, detail string) {
	s.entry.activity.Store(&activity{state, detail})
}

// Leave receives when an idle agent should make room for others, which wait to be
// woken. What it has promised is sent all the same, and the results wake it again.
func (s Runtime) Leave() <-chan struct{} { return s.entry.actors.waker.leave }

// Send gives a promised answer to the sender of its chat. It returns at once. Report is
// called with the results as long as the agent's Results exist.
func (s Runtime) Send(p message.Promise) { s.entry.send(p) }

// Answers reports whether answers to an address are to be promised at all. Where
// people read from history (terminal, web, API) they are not.
func (s Runtime) Answers(to message.Address) bool { return s.entry.actors.connectors.answers(to) }

// Interim reports whether the chat wants the text beside tool calls too.
func (s Runtime) Interim(to message.Address) bool {
	c, _ := s.entry.actors.connectors.get(to.Connector)
	i, ok := c.(Interim)
	return ok && i.Interim()
}

type activity struct {
	state  event.State
	detail string
}
