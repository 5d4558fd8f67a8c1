package agents

import (
	"context"
	"log/slog"
	"time"

	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/redact"
	"daycare/tools"
	"daycare/tools/hooks"
)

// Options are what an agent is run with: its place, and what it needs of its world.
type Options struct {
	Place
	Identity Identity
	Models   Models
	Costs    Costs
	Briefing Briefing
	Jobs     Jobs
	Outbox   Outbox
	Stage    Stage
	Deciders
	Reports Reports
	Sources prompt.Sources // of pictures and long outputs
}

// Deciders have a say in what the agent does, beside its rights.
type Deciders struct {
	Permits  Permits  // nil: no approval is requested
	Overseer Overseer // answers for a background agent; nil: its own user does
	Hooks    Hooks    // programs of the owner; nil: none
}

// A Place is where an agent lives: its id, its files, and where it reports.
type Place struct {
	ID     string
	Dir    string // the agent's folder
	Volume *disk.Volume
	Inbox  inbox.Mailbox
	Events *event.Stream
	Log    *slog.Logger
	Redact *redact.Redactor // of secrets, before anything is written; nil: none are known
	// Folders pins the folders of the agent's permissions; nil: they are not pinned.
	Folders *permission.Folders
	// Problems collects what is wrong with the agent's files; nil: problems are only logged.
	Problems *finding.Problems
	// Results has the delivery results of this run and of earlier failed ones; nil:
	// of this run alone.
	Results *message.Results
	// Leave receives when an idle agent should make room for others; may be nil.
	Leave <-chan struct{}
	// Edited receives a value after files in the folder were changed; may be nil.
	Edited <-chan struct{}
}

// An Identity is what the agent is, with what users changed meanwhile.
type Identity interface {
	// Meta returns the current descriptor.
	Meta() address.Meta
	// Settings returns the active settings. They are read before each piece of work.
	Settings() Settings
	// Tools returns what an agent of that profile can do. It is read at the beginning of each turn.
	Tools(permission.Profile) *tools.Set
}

// Models answer for an agent.
type Models interface {
	// Model returns the chain of models for an agent's choice.
	Model(choice record.Model) Model
	// Window returns the size of the choice's context window in tokens, 0 if it is unknown.
	Window(choice record.Model) int
}

// A Model answers requests: *providers.Caller.
type Model interface {
	Call(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error)
}

// Costs are what models cost, and the limits of it.
type Costs interface {
	// Price returns the cost of a call in US dollars.
	Price(provider, model string, u providers.Usage) float64
	// Cut counts an answer that a crash interrupted, with an estimate of its usage.
	Cut(provider, model string, u providers.Usage)
	// Raise raises a spending limit, once or permanently. Repeating it is harmless.
	Raise(ctx context.Context, b permission.Budget, d permission.Decision, token, by string) error
}

// A Briefing is what the model reads beside what was said.
type Briefing interface {
	// Definition returns the parts of the system prompt.
	Definition(meta address.Meta, state record.State) prompt.Definition
	// Preface returns text to put before a user's message, such as the agents at work; "" for none.
	Preface() string
	// Broken returns the current file problems to report to the model.
	Broken() []finding.Finding
}

// Jobs are what works for the agent outside of its turns.
type Jobs interface {
	// Running lists the jobs at work, for summaries.
	Running() []string
	// Narrowed ends the jobs that depend on a permission which is no longer in the set.
	Narrowed(now permission.Set)
}

// An Outbox is where answers go.
type Outbox interface {
	// Send queues a promised answer for its chat and returns at once.
	Send(p message.Promise)
	// Answers reports whether answers to an address are promised at all.
	Answers(to message.Address) bool
	// Interim reports whether a chat also gets the text that the model writes between tool calls.
	Interim(to message.Address) bool
}

// A Stage shows what an agent is doing, and lets users stop it.
type Stage interface {
	// Turn returns the context of a turn, which is canceled when a user stops the turn.
	Turn(ctx context.Context) (context.Context, func())
	// Show says what the agent is doing.
	Show(state event.State, detail string)
	// Ended notes how a turn ended that closes these items. It is called when that is durable, before they are closed.
	Ended(items []string, o record.Outcome)
}

// Permits asks a user for what a tool call needs: *permission.Queue.
type Permits interface {
	Ask(agent string, owner permission.Owner, r permission.Request) (p permission.Pending, fresh bool, err error)
	// Find is the request with that hash, if it waits.
	Find(agent, sha string) (p permission.Pending, ok bool)
	// Settle takes a request whose decision is recorded out of the queue. It is
	// called for every decision, because a crash may have come before whoever
	// answered could do it.
	Settle(token string, d permission.Decision, by string, at time.Time) (permission.Pending, error)
}

// Hooks run programs of the owner at moments of the agent's work.
type Hooks interface {
	// Any reports whether one would run; tool is "" where the moment is about none.
	Any(event hooks.Event, tool string) bool
	// Run runs those of a moment and returns when nothing of them is left. It may be called
	// from any goroutine.
	Run(ctx context.Context, m hooks.Moment) hooks.Verdict
}

// An Overseer is who answers for an agent in the background: the user of its
// nearest ancestor that speaks with one, else of whom a user wrote to last.
type Overseer interface {
	// Owner is who may answer in a chat.
	Owner() permission.Owner
	// Note tells that user's agent something that asks for no turn. key is the
	// same each time that the same is reported.
	Note(key, text string) error
}

// Settings are the settings of one agent; the zero value is not usable.
type Settings struct {
	Rounds     int                // of tool calls in one turn
	Parallel   int                // parallel-safe tools beside each other
	Queue      Queue              // how messages that wait are taken
	Queues     map[string]Queue   // the same for those of some connectors, by id
	Idle       time.Duration      // in memory without work before it sleeps
	Stuck      time.Duration      // a turn without progress is canceled after this
	ExecDenied bool               // what would ask is refused instead
	Profile    permission.Profile // of an agent whose own rights name none
	// StopAtLimit: at a budget's limit a turn ends, and no approval to raise it is requested.
	StopAtLimit bool
	// ContextLimit is how many tokens of context there may be, whatever the
	// model takes; 0 is the default.
	ContextLimit int
	Routes       Routes
	Zone         string // IANA name of the zone users are in
}

// Routes are the models that the settings choose; zero: none.
type Routes struct {
	Own     record.Model // of an agent whose state chooses none
	Summary record.Model // of summaries
}

// Reports say which agent is notified when a turn ends. The zero value notifies none:
// the agent of a user, whose answer goes to a chat.
type Reports struct {
	To string // id of the parent
	// Always: each turn is reported, also one in which the agent told its parent
	// something itself.
	Always bool
	// Awaited is the item whose turn is not reported, because a caller waits for
	// its outcome: the tool call that started the agent.
	Awaited string
	// Told reports whether a successful call already sent the parent a message.
	Told func(c record.ToolCall) bool
	// Waits reports whether the agent continues later by itself, because agents of
	// its own are at work.
	Waits func() bool
	// Settle is called before a turn that is done ends, to bring in what the agent did; nil: there is nothing to.
	Settle func(turn string)
}
