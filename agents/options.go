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
	Permits  Permits  // nil: nobody is asked
	Overseer Overseer // of an agent in the background; nil: its own user answers
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
	// Folders pins the folders of the agent's rights; nil: nobody does.
	Folders *permission.Folders
	// Problems collects what is wrong with the agent's files; nil: problems are only logged.
	Problems *finding.Problems
	// Results is what became of answers, of this run and of earlier ones that failed; nil:
	// of this run alone.
	Results *message.Results
	// Leave receives when an idle agent should make room for others; may be nil.
	Leave <-chan struct{}
	// Edited is sent to when somebody changed files in the folder; may be nil.
	Edited <-chan struct{}
}

// An Identity is what the agent is, with what users changed meanwhile.
type Identity interface {
	// Meta is the descriptor as it is now.
	Meta() address.Meta
	// Settings are those in force. They are taken before each piece of work.
	Settings() Settings
	// Tools are what the agent can do. They are taken at the beginning of each turn.
	Tools() *tools.Set
}

// Models answer for an agent.
type Models interface {
	// Model is the chain for an agent's choice.
	Model(choice record.Model) Model
	// Window is how many tokens of context the choice takes; 0: not known.
	Window(choice record.Model) int
}

// A Model answers requests: *providers.Caller.
type Model interface {
	Call(ctx context.Context, req *providers.Request, watch func(providers.Event)) (*providers.Response, error)
}

// Costs are what models cost, and the limits of it.
type Costs interface {
	// Price is what a call cost, in US dollars.
	Price(provider, model string, u providers.Usage) float64
	// Cut counts an answer that a crash cut, with about what it used.
	Cut(provider, model string, u providers.Usage)
	// Raise raises a spending limit, once or permanently. Repeating it is harmless.
	Raise(ctx context.Context, b permission.Budget, d permission.Decision, token, by string) error
}

// A Briefing is what the model reads beside what was said.
type Briefing interface {
	// Definition is what the system prompt is made of.
	Definition(meta address.Meta, state record.State) prompt.Definition
	// Preface stands before a user's message: agents at work; "": nothing.
	Preface() string
	// Broken is what is wrong with files now that the model should know of.
	Broken() []finding.Finding
}

// Jobs are what works for the agent outside of its turns.
type Jobs interface {
	// Running are the jobs at work, for summaries.
	Running() []string
	// Narrowed ends those that run by a right which is not in the set any more.
	Narrowed(now permission.Set)
}

// An Outbox is where answers go.
type Outbox interface {
	// Send gives a promised answer to the sender of its chat and returns at once.
	Send(p message.Promise)
	// Answers reports whether answers to an address are promised at all.
	Answers(to message.Address) bool
	// Interim reports whether a chat wants the text beside tool calls too.
	Interim(to message.Address) bool
}

// A Stage is where an agent is seen and stopped.
type Stage interface {
	// Turn makes the context of a turn, which ends when somebody stops the turn.
	Turn(ctx context.Context) (context.Context, func())
	// Show says what the agent is doing.
	Show(state event.State, detail string)
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
	// StopAtLimit: at the limit of a budget a turn ends, and nobody is asked to raise it.
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

// Reports say whom an agent tells how its turns ended. The zero value is nobody:
// the agent of a user, whose answer goes to a chat.
type Reports struct {
	To string // id of the parent
	// Always: each turn is reported, also one in which the agent told its parent
	// something itself.
	Always bool
	// Awaited is the item whose turn is not reported, because somebody waits for
	// its outcome: the tool call that started the agent.
	Awaited string
	// Told reports whether a call, which succeeded, told the parent something.
	Told func(c record.ToolCall) bool
	// Waits reports whether the agent continues later by itself, because agents of
	// its own are at work.
	Waits func() bool
}
