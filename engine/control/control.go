// Package control is the one API of daycare: HTTP and JSON over
// .daycare/daycare.sock, with server-sent events, as handler and as client. Every
// user interface is a client of it: the command line, the terminal, the web, other
// programs. There is no second way to do anything.
//
// Where to look: ops.go is the list of operations, table.go ties them to what does them, op.go
// makes requests and answers of them, api.go has the bodies of requests, errors.go what an error
// becomes on the wire and back, feed.go what a watcher is told, server.go, unix.go and tcp.go who
// may connect, client.go the other side, translate.go what serves clients of another API. Package
// openapi describes it all for other programs.
package control

import (
	"context"
	"io"

	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
)

// Agents is what the API needs of the engine. ref is what a person typed: an
// exact id, a handle, a name or a unique prefix of an id.
type Agents interface {
	Agents(ctx context.Context) ([]event.Agent, error)
	// Family is an agent and those below it that have not ended.
	Family(ctx context.Context, id string) ([]event.Agent, error)
	// Resolve turns a ref into an id. Errors: message.ErrUnknownAgent, *Ambiguous.
	Resolve(ref string) (id string, err error)
	Agent(ctx context.Context, id string) (event.Agent, error)
	Create(ctx context.Context, n NewAgent) (event.Agent, error)
	Deliver(ctx context.Context, in message.Incoming) (message.Receipt, error)
	// Await returns how the item ended, waiting for it.
	Await(ctx context.Context, id, item string) (event.Outcome, error)
	History(ctx context.Context, id string, before int64, limit int) (event.Page, error)
	Inbox(ctx context.Context, id string) ([]event.Waiting, error)
	Drop(ctx context.Context, id, item string) error
	Front(ctx context.Context, id, item string) error
	Draft(ctx context.Context, id string) (event.Draft, error)
	// Stop cancels the turn under way; false: there was none.
	Stop(ctx context.Context, id string) (bool, error)
	// Kill ends an agent that may be killed, with its children.
	Kill(ctx context.Context, id string) error
	// Remove moves an agent's folder to the trash; refused while it has work
	// unless force.
	Remove(ctx context.Context, id string, force bool) (trash string, err error)
}

// NewAgent is an agent made by hand.
type NewAgent struct {
	Type   string `json:"type"` // user (default), permanent, subagent
	Name   string `json:"name,omitempty"`
	Prompt string `json:"prompt,omitempty"` // its first message
	Parent string `json:"parent,omitempty"` // subagent: of whom
	// Spawned: a person starts it beside the agent at hand, by /spawn. Only such agents are
	// bounded in number (agents.maxSpawned). Of type user.
	Spawned bool `json:"spawned,omitempty"`
	// Connector and ChannelID are whose agent it is, both or neither; the agent that the address
	// has already is returned. Of type user. Without them it is one of the terminal.
	Connector string `json:"connector,omitempty"`
	ChannelID string `json:"channelId,omitempty"`
	// Description and SystemPrompt are of a permanent agent.
	Description  string `json:"description,omitempty"`
	SystemPrompt string `json:"systemPrompt,omitempty"`
	WorkspaceDir string `json:"workspaceDir,omitempty"`
}

// Permissions is the queue of requests.
type Permissions interface {
	Asks(ctx context.Context) ([]event.Ask, error)
	// Decide answers a request; by says who. Errors: *Decided if somebody was
	// first, ErrNoAsk if there is none.
	Decide(ctx context.Context, token, decision, by string) error
}

// Daemon is the process.
type Daemon interface {
	Status(ctx context.Context) (event.Status, error)
	// Reload reads the settings again. Findings of severity Error mean that the
	// last good ones stay in force.
	Reload(ctx context.Context) ([]finding.Finding, error)
	// Shutdown begins the orderly end and returns; it does not wait for it.
	Shutdown(ctx context.Context) error
	// Config is the configuration in force, secrets masked, as JSON-ready value.
	Config(ctx context.Context) (any, error)
	// Tools lists the tools agents can have.
	Tools(ctx context.Context) ([]ToolInfo, error)
}

// ToolInfo is one tool as `daycare tools ls` shows it.
type ToolInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Replay      string `json:"replay"`
	Tokens      int    `json:"tokens"` // about what telling a model of it costs, with every call
}

// Files keeps attachments; FileStore does it in .daycare/files.
type Files interface {
	// Put keeps what r gives under a name that a person chose. Errors:
	// ErrFileTooLarge, disk.ErrFull, disk.ErrFailed.
	Put(name string, r io.Reader) (message.File, error)
	// Adopt keeps a copy of the file at an absolute path.
	Adopt(path string) (message.File, error)
	// Get finds a kept file by its id, or gives ErrNoFile.
	Get(id string) (message.File, error)
}

// Backend is everything behind the handler. With the daemon down the command
// line serves the same handler to itself from the files; what would change
// something then returns ErrNotRunning.
type Backend struct {
	Agents      Agents
	Permissions Permissions
	Daemon      Daemon
	Files       Files     // nil: messages carry no files
	Folders     Folders   // nil: agents are not copied, restored or edited here
	Schedules   Schedules // nil: nothing runs by the clock
	Grants      Grants    // nil: rights are not shown here
	Pairings    Pairings  // nil: there is no pairing
	SubAgents   SubAgents // nil: none
	Hooks       Hooks     // nil: none
	Catalog     Catalog   // nil: there is nothing to choose from
	Costs       Costs     // nil: nothing is summed here
	Backups     Backups   // nil: nothing is backed up here
	// Translator serves clients of another API while it returns one; nil: none.
	Translator func() Translator
	Events     *event.Stream // nil: nothing happens here that could be watched
	Offline    bool          // there is no daemon: what needs it is ErrNotRunning
}
