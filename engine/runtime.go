package engine

import (
	"context"
	"errors"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// A StartFunc runs one agent until it has nothing more to do (nil: it may go to
// sleep), its context ends, or it fails. The engine calls it when the agent has
// work, never twice at once for one agent.
type StartFunc func(ctx context.Context, rt Runtime) error

// ErrStopped is the cause of a turn's context when a user stopped the turn.
var ErrStopped = errors.New("stopped")

// A Runtime connects a running agent to the engine: its inbox, its folder, where its answers go. It is one word,
// because the stacks of all agents that wait have it.
type Runtime struct{ *runtimeParts }

// runtimeParts are what a Runtime has.
type runtimeParts struct {
	Meta    *address.Meta // as it was when the agent was woken; Identity is as it is now
	Dir     string        // the agent's folder
	Inbox   inbox.Mailbox
	Results *message.Results // delivery results of the agent's answers; they survive a run that fails

	entry *entry
}

// Identity returns the agent's descriptor with the user's latest edits. It reads the
// file, so that an edit applies even where files cannot be watched.
func (r Runtime) Identity() address.Meta {
	r.entry.actors.descriptors.reread(r.entry.meta.ID, false) // the watcher reports a broken one
	if meta, ok := r.entry.actors.index.Get(r.entry.meta.ID); ok {
		return meta
	}

	return r.entry.meta
}

// Edited receives when someone else changed files in the agent's folder.
func (r Runtime) Edited() <-chan struct{} { return r.entry.edited }

// Turn returns the context of a turn. It ends with ctx, or when someone stops the turn.
// Call the returned function at the end of the turn.
func (r Runtime) Turn(ctx context.Context) (context.Context, func()) { return r.entry.turn(ctx) }

// Show sets what user interfaces show the agent doing.
func (r Runtime) Show(state event.State, detail string) {
	r.entry.activity.Store(&activity{state, detail})
}

// Ended notes how a turn ended, for whoever waits for one of its items.
func (r Runtime) Ended(items []string, o record.Outcome) { r.entry.ending.Store(&ending{items, o}) }

// Leave receives when an idle agent should sleep, to make room for agents that wait to
// be woken. Its promised answers are still sent, and their results wake it again.
func (r Runtime) Leave() <-chan struct{} { return r.entry.actors.waker.leave }

// Send queues a promised answer with the sender of its chat and returns at once. The
// promise's Report is called with the results as long as the agent's Results exist.
func (r Runtime) Send(p message.Promise) { r.entry.send(p) }

// Answers reports whether answers to an address are promised at all. They are not where
// users read them from history (terminal, web, API).
func (r Runtime) Answers(to message.Address) bool { return r.entry.actors.connectors.answers(to) }

// Interim reports whether the chat also wants the text that accompanies tool calls.
func (r Runtime) Interim(to message.Address) bool {
	c, _ := r.entry.actors.connectors.get(to.Connector)
	i, ok := c.(Interim)
	return ok && i.Interim()
}

// An ending is how a turn ended that closed some items.
type ending struct {
	items []string
	record.Outcome
}

type activity struct {
	state  event.State
	detail string
}
