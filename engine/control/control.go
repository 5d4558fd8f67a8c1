package control

import (
	"context"
	"io"

	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
)

// Agents is what the API needs from the engine. ref is what a user typed: an exact id, a handle, a
// name or a unique prefix of an id.
type Agents interface {
	Agents(ctx context.Context) ([]event.Agent, error)
	// Family returns an agent and its descendants that have not ended.
	Family(ctx context.Context, id string) ([]event.Agent, error)
	// Resolve turns a ref into an id. Errors: message.ErrUnknownAgent, *Ambiguous.
	Resolve(ref string) (id string, err error)
	Agent(ctx context.Context, id string) (event.Agent, error)
	Create(ctx context.Context, n NewAgent) (event.Agent, error)
	Deliver(ctx context.Context, in message.Incoming) (message.Receipt, error)
	// Await waits for the end of an item and returns its outcome.
	Await(ctx context.Context, id, item string) (event.Outcome, error)
	// Item is an item that the agent accepted. Errors: inbox.ErrUnknown.
	Item(ctx context.Context, id, item string) (event.Posted, error)
	History(ctx context.Context, id string, before int64, limit int) (event.Page, error)
	Inbox(ctx context.Context, id string) ([]event.Waiting, error)
	Drop(ctx context.Context, id, item string) error
	Front(ctx context.Context, id, item string) error
	Draft(ctx context.Context, id string) (event.Draft, error)
	// Stop cancels the current turn; false: there was none.
	Stop(ctx context.Context, id, item string) (bool, error)
	// Kill ends an agent and its children permanently. Errors: ErrProtected.
	Kill(ctx context.Context, id string) error
	// Remove moves an agent's folder to the trash and returns its new path. Errors: ErrBusy
	// if it has work, unless force.
	Remove(ctx context.Context, id string, force bool) (trash string, err error)
}

// NewAgent is the body of POST /v1/agents.
type NewAgent struct {
	Type   string `json:"type"` // user (default), permanent, subagent
	Name   string `json:"name,omitempty"`
	Prompt string `json:"prompt,omitempty"` // its first message
	Parent string `json:"parent,omitempty"` // subagent: id of its parent
	// Spawned: a user starts it next to the current agent, by /spawn. Only the number of such
	// agents is limited (agents.maxSpawned). Type user only.
	Spawned bool `json:"spawned,omitempty"`
	// Connector and ChannelID are the address of its user, both or neither; if the address
	// already has an agent, that is returned. Type user only. Without them: the terminal.
	Connector string `json:"connector,omitempty"`
	ChannelID string `json:"channelId,omitempty"`
	// Description and SystemPrompt are for permanent agents.
	Description  string `json:"description,omitempty"`
	SystemPrompt string `json:"systemPrompt,omitempty"`
	WorkspaceDir string `json:"workspaceDir,omitempty"`
}

// Permissions is what the API needs for approval requests.
type Permissions interface {
	Asks(ctx context.Context) ([]event.Ask, error)
	// Answered returns the newest answered requests, the newest first.
	Answered(ctx context.Context, limit int) ([]event.Ask, error)
	// Decide answers a request; by says who. Errors: *Decided if it was answered before,
	// ErrNoAsk if it does not exist.
	Decide(ctx context.Context, token, decision, by string) error
}

// Daemon is what the API needs from the process.
type Daemon interface {
	Status(ctx context.Context) (event.Status, error)
	// Reload reads the settings again. Findings of severity Error mean that the
	// last valid ones stay active.
	Reload(ctx context.Context) ([]finding.Finding, error)
	// Shutdown starts an orderly shutdown and returns; it does not wait for its end.
	Shutdown(ctx context.Context) error
	// Config returns the active configuration, with secrets masked, as a value for JSON.
	Config(ctx context.Context) (any, error)
	// Tools lists the tools agents can have.
	Tools(ctx context.Context) ([]ToolInfo, error)
}

// ToolInfo is one tool as `daycare tools ls` shows it.
type ToolInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Replay      string `json:"replay"`
	Tokens      int    `json:"tokens"` // estimated size of its definition, which is part of every call
	// Prompt is whose prompts have it: those of "all" agents or of a "user"; "search": models find
	// it with tool_search.
	Prompt string `json:"prompt"`
}

// Files stores attachments; FileStore does it in .daycare/files.
type Files interface {
	// Put stores the content of r under a name that a user chose. Errors:
	// ErrFileTooLarge, disk.ErrFull, disk.ErrFailed.
	Put(name string, r io.Reader) (message.File, error)
	// Adopt stores a copy of the file at an absolute path.
	Adopt(path string) (message.File, error)
	// Get returns a stored file by its id, Read its content. Errors: ErrNoFile.
	Get(id string) (message.File, error)
	Read(f message.File) ([]byte, error)
}

// Backend is everything behind the handler. Without a daemon the command line serves the same
// handler to itself from the files; operations that would change something then return
// ErrNotRunning.
type Backend struct {
	Agents      Agents
	Permissions Permissions
	Daemon      Daemon
	Files       Files     // nil: messages carry no files
	Folders     Folders   // nil: agents cannot be copied, restored or edited
	Schedules   Schedules // nil: no tasks
	Grants      Grants    // nil: permissions are not shown
	Pairings    Pairings  // nil: no pairing
	SubAgents   SubAgents // nil: none
	Hooks       Hooks     // nil: none
	Catalog     Catalog   // nil: nothing to choose from
	Costs       Costs     // nil: no costs
	Backups     Backups   // nil: no backups
	Browsers    Browsers  // nil: no page
	Inspector   Inspector // nil: no inspection of files
	// HTML renders Markdown as safe HTML; nil: records have none.
	HTML func(markdown string) string
	// Translator returns what serves clients of another API, nil while none does.
	Translator func() Translator
	Events     *event.Stream // nil: no events
	Offline    bool          // there is no daemon: operations that need it return ErrNotRunning
}
