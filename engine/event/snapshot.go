package event

import (
	"encoding/json"
	"time"
)

// The snapshots that a watcher begins from: how things stand now. Each is
// computed when asked for, from the files and from the agents that are awake;
// their JSON is that of the API and of --json.

// State is what an agent is doing, in one word.
type State string

const (
	Idle              State = "idle"
	Queued            State = "queued"
	Thinking          State = "thinking"
	UsingTool         State = "tool"
	WaitingPermission State = "waiting-permission"
	WaitingAgent      State = "waiting-agent"
	Retrying          State = "retrying"
	Paused            State = "paused"
	Failing           State = "error"
	Ended             State = "ended"
)

// An Agent is one agent as user interfaces show it.
type Agent struct {
	ID            string     `json:"id"`
	Handle        string     `json:"handle"`
	Name          string     `json:"name"`
	Type          string     `json:"type"`                // of the descriptor
	Connector     string     `json:"connector,omitempty"` // whose agent it is, of type user
	ChannelID     string     `json:"channelId,omitempty"`
	ParentAgentID string     `json:"parentAgentId,omitempty"`
	State         State      `json:"state"`
	Detail        string     `json:"detail,omitempty"` // the tool, the error, the countdown
	Queued        int        `json:"queued"`
	OldestAt      *time.Time `json:"oldestAt,omitempty"` // of what waits
	LastAt        *time.Time `json:"lastAt"`             // of the newest record; null: none yet
	Said          string     `json:"said,omitempty"`     // the first line of its newest answer, at most 160 characters
	Failed        string     `json:"failed,omitempty"`   // why its newest turn failed, until the next one or a reset
	Cost          float64    `json:"cost"`               // US dollars, over its life, with the agents that it started
	OwnCost       float64    `json:"ownCost,omitempty"`  // without them
	Budget        float64    `json:"budget,omitempty"`   // US dollars that Cost may come to; 0: no limit of its own
	Model         string     `json:"model"`
	// Context is about how many tokens the conversation has, 0 is not known; Window
	// is how many there is room for.
	Context int64 `json:"context,omitempty"`
	Window  int64 `json:"window,omitempty"`
	// Queue is how it takes what users write while it works: steer, followup, collect
	// or interrupt; "" is not known.
	Queue   string `json:"queue,omitempty"`
	Running bool   `json:"running"` // in memory now
}

// A Session is an agent's conversation since its start or its last reset, as its files
// have it.
type Session struct {
	Agent            string     `json:"agent"` // id
	State            State      `json:"state"`
	Queued           int        `json:"queued"`
	Title            string     `json:"title"`
	StartedAt        *time.Time `json:"startedAt,omitempty"`
	Messages         int        `json:"messages"` // of users and of the agent
	PromptTokens     int64      `json:"promptTokens"`
	CompletionTokens int64      `json:"completionTokens"`
	Context          int64      `json:"context,omitempty"` // tokens of the newest request
	Cost             float64    `json:"cost"`              // US dollars
}

// A Rewound is a file that an agent's tools wrote in turns that are rewound.
type Rewound struct {
	Path string `json:"path"` // from the workspace, or absolute
	// Standing is whether it can be taken back: ready, before (it is as it was), between and since (someone else changed
	// it), again (the agent wrote it again) or gone (what it held is not kept).
	Standing string   `json:"standing" allow:"ready|before|between|since|again|gone"`
	Turns    []string `json:"turns"` // that wrote it
}

// A TakenBack is the outcome of taking a file back.
type TakenBack struct {
	Path    string `json:"path"`
	Outcome string `json:"outcome" allow:"done|already|refused"`
	Why     string `json:"why,omitempty"`
}

// A Waiting is one item of an inbox.
type Waiting struct {
	ID    string    `json:"id"`
	Seq   int64     `json:"seq"`
	At    time.Time `json:"at"`
	Type  string    `json:"type"`
	Text  string    `json:"text"`
	Bytes int       `json:"bytes"`
	State string    `json:"state"`           // waiting, taken
	Queue string    `json:"queue,omitempty"` // steer, followup: how it asks to be taken
	// More: it has files, is from another sender than the owner, or is answered elsewhere. Its text alone is not the same
	// message.
	More bool `json:"more,omitempty"`
}

// A Posted is one item that an agent accepted, and how it ended.
type Posted struct {
	Agent     string     `json:"agent"`
	Item      string     `json:"item"`
	Type      string     `json:"type"`
	State     string     `json:"state"` // waiting, taken, done
	At        time.Time  `json:"at"`    // when it was accepted; of one that is done, when the agent read it
	Text      string     `json:"text"`
	MessageID string     `json:"messageId,omitempty"` // what its platform calls it
	Route     *Route     `json:"route,omitempty"`     // where its answer goes, if not to the agent's own address
	EndedAt   *time.Time `json:"endedAt,omitempty"`
	Outcome   *Outcome   `json:"outcome,omitempty"` // done
}

// A Route is where an answer goes.
type Route struct {
	Connector string `json:"connector"`
	ChannelID string `json:"channelId"`
	UserID    string `json:"userId,omitempty"`
	ThreadID  string `json:"threadId,omitempty"`
}

// An Outcome is how an item ended.
type Outcome struct {
	Agent  string  `json:"agent"`
	Item   string  `json:"item"`
	Turn   string  `json:"turn,omitempty"`
	Reason string  `json:"reason"` // of the turn's end; "dropped", "reset", … for items without a turn
	Text   string  `json:"text"`   // the final answer
	Error  string  `json:"error,omitempty"`
	Cost   float64 `json:"cost"`
	// Finish is why the model ended the final answer: end_turn, max_tokens, …
	Finish string `json:"finish,omitempty"`
	// Work is what the turn took.
	Work Work `json:"work,omitzero"`
	// Untrusted is what the turn had read from outside.
	Untrusted []string `json:"untrusted,omitempty"`
}

// Work is what a turn took: calls of the model, calls of tools, tokens. Said is the
// newest text beside tool calls: all there is where a limit ended the turn.
type Work struct {
	Rounds    int    `json:"rounds"`
	ToolCalls int    `json:"toolCalls"`
	Input     int64  `json:"input"`               // tokens, cache included
	CacheRead int64  `json:"cacheRead,omitempty"` // of Input
	Output    int64  `json:"output"`
	Reasoning int64  `json:"reasoning,omitempty"` // of Output
	Said      string `json:"said,omitempty"`
}

// A Page is a piece of history, oldest first, each record as its line stands on
// disk. Before is what to ask for next; null at the beginning of the file.
type Page struct {
	Records []json.RawMessage `json:"records"`
	Before  *int64            `json:"before"`
}

// A Draft is the answer that is being streamed.
type Draft struct {
	Turn     string `json:"turn"`
	Text     string `json:"text"`
	Thinking string `json:"thinking,omitempty"`
}

// An Ask is a permission request that waits for its answer.
type Ask struct {
	Token   string `json:"token"`
	AgentID string `json:"agentId"`
	Tag     string `json:"permission"`
	Reason  string `json:"reason"`
	Request string `json:"request"` // the exact command, path, host or diff
	// What a user reads before answering, made in one place for all surfaces: Shown is
	// Request with every invisible character named, Facts is where and how it would run,
	// Card is both as text. Choices are the answers it takes.
	Shown   string   `json:"shown,omitempty"`
	Facts   []Fact   `json:"facts,omitempty"`
	Card    string   `json:"card,omitempty"`
	Choices []Choice `json:"choices,omitempty"`
	// Unseen is where Request has characters that cannot be seen, at most 100.
	Unseen []Unseen `json:"unseen,omitempty"`
	// Lineage are the handles of those whom the asker works for, the nearest first.
	Lineage []string `json:"lineage,omitempty"`
	// The same for programs.
	Kind      string   `json:"kind,omitempty"`   // what Request is: command, diff, path, host, call or budget
	SHA256    string   `json:"sha256,omitempty"` // what the answer is bound to
	Folder    string   `json:"folder,omitempty"`
	Sandbox   string   `json:"sandbox,omitempty"` // level that holds the command; "" is not a command
	Programs  []string `json:"programs,omitempty"`
	Prefix    string   `json:"prefix,omitempty"`    // what the answer prefix grants
	Untrusted []string `json:"untrusted,omitempty"` // what the turn read from outside

	AskedAt   time.Time `json:"askedAt"`
	ExpiresAt time.Time `json:"expiresAt"`

	// Of one that was answered.
	Decision  string     `json:"decision,omitempty"` // once, always, prefix, deny, expired or freed
	DecidedBy string     `json:"decidedBy,omitempty"`
	DecidedAt *time.Time `json:"decidedAt,omitempty"`
}

// An Unseen is a character that cannot be seen, by its place in a text.
type Unseen struct {
	Char   string `json:"char"` // U+202E; 0xFF for a byte that is not text
	Line   int    `json:"line"`
	Column int    `json:"column"` // in characters, from 1
}

// A Fact is one line beside a request: folder, sandbox, program, script, source.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Choice is one answer that a request takes, with what it means.
type Choice struct {
	Decision string `json:"decision"` // once, always, prefix, deny
	Text     string `json:"text"`
}

// A Service is the state of a connector or provider.
type Service struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	// State is one of those below of a connector, running or failing of a provider, and idle, starting,
	// running or failed of an MCP server.
	State     string `json:"state"`
	LastError string `json:"lastError,omitempty"`
	// Since is when a connector came into its state, NextTry when one that is degraded is started again.
	Since   *time.Time `json:"since,omitempty"`
	NextTry *time.Time `json:"nextTry,omitempty"`
	Model   string     `json:"model,omitempty"`  // providers
	Detail  string     `json:"detail,omitempty"` // where it listens, why it was chosen
	// Key says that a provider has a key, BaseURL where it is unless that is the vendor's own service.
	Key     bool   `json:"key,omitempty"`
	BaseURL string `json:"baseURL,omitempty"`
	// Differs is what a machine of a cluster has otherwise than this one, though all should have the same.
	Differs string `json:"differs,omitempty"`
}

// States of a connector.
const (
	Connecting = "connecting"
	Standby    = "standby" // another machine of the cluster runs it
	Running    = "running"
	Degraded   = "degraded" // its connection failed, and is tried again
	Stopped    = "stopped"  // it ends with the daemon, or was removed
	Off        = "off"      // nothing runs it
)

// A Status is the daemon as a whole.
type Status struct {
	Running    bool       `json:"running"`
	Version    string     `json:"version"`
	PID        int        `json:"pid,omitempty"`
	StartedAt  *time.Time `json:"startedAt,omitempty"`
	UptimeMS   int64      `json:"uptimeMs,omitempty"`
	Workspace  string     `json:"workspace"`
	Agents     int        `json:"agents"`
	Awake      int        `json:"awake"`  // in memory
	Queued     int        `json:"queued"` // items in all inboxes
	Asks       int        `json:"asks"`   // permission requests that wait
	DiskFull   bool       `json:"diskFull,omitempty"`
	Disk       *Disk      `json:"disk,omitempty"` // that of the workspace
	Connectors []Service  `json:"connectors"`
	Providers  []Service  `json:"providers"`
	MCP        []Service  `json:"mcp,omitempty"`
	Machines   []Service  `json:"machines,omitempty"` // of the cluster, as this one sees them
	// Problems are what is wrong with files that users edit, as far as they were read.
	Problems []File `json:"problems,omitempty"`
}

// Disk is the space on a disk, in bytes.
type Disk struct {
	Free int64 `json:"free"` // may still be written
	Size int64 `json:"size"`
}

// NoModel reports whether of these providers the built-in offline model answers because
// nothing else is set up.
func NoModel(providers []Service) bool {
	const offline = "scripted" // id and type of the provider that config.Choose falls back to
	return len(providers) > 0 && providers[0].ID == offline && providers[0].Type == offline
}

// A Trashed agent was removed and can be restored.
type Trashed struct {
	Name   string    `json:"name"` // of its folder in the trash
	ID     string    `json:"id"`
	Handle string    `json:"handle,omitempty"`
	Type   string    `json:"type,omitempty"`
	Title  string    `json:"title,omitempty"` // the name that users gave it
	At     time.Time `json:"at"`              // when it was removed
}
