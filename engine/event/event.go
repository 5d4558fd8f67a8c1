// Package event is what user interfaces watch: typed events and the Broker that
// carries them. Events are lossy and read-only: nothing on a message's way waits
// for one, and no decision is built on one.
package event

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"
)

// Type is the word in an event's "type".
type Type string

const (
	AgentCreated   Type = "agent.created"
	AgentWoke      Type = "agent.woke"
	AgentSlept     Type = "agent.slept"
	AgentReset     Type = "agent.reset"
	AgentCompacted Type = "agent.compacted"
	AgentEnded     Type = "agent.ended"

	ItemQueued  Type = "item.queued"
	ItemTaken   Type = "item.taken"
	ItemDone    Type = "item.done"
	ItemDropped Type = "item.dropped"

	TurnStarted  Type = "turn.started"
	TurnFinished Type = "turn.finished"

	MessageDelta    Type = "message.delta"
	MessageThinking Type = "message.thinking"

	ToolStarted  Type = "tool.started"
	ToolFinished Type = "tool.finished"
	// ToolProgress carries output of a tool while it runs. Like a delta it is not
	// kept for those who come back.
	ToolProgress Type = "tool.progress"

	SubAgentStart    Type = "sub_agent_start"
	SubAgentProgress Type = "sub_agent_progress"
	SubAgentEnd      Type = "sub_agent_end"

	Retry Type = "retry"

	PermissionRequested Type = "permission.requested"
	PermissionDecided   Type = "permission.decided"
	PermissionGranted   Type = "permission.granted"
	PermissionRevoked   Type = "permission.revoked"

	OutboxSent   Type = "outbox.sent"
	OutboxFailed Type = "outbox.failed"

	CronFired   Type = "cron.fired"
	CronSkipped Type = "cron.skipped"

	ConfigReloaded Type = "config.reloaded"
	ConfigInvalid  Type = "config.invalid"

	FileEdited  Type = "file.edited"
	FileInvalid Type = "file.invalid"

	BudgetReached Type = "budget.reached"

	// SandboxRefused: the sandbox kept a command from something, where daycare notices.
	SandboxRefused Type = "sandbox.refused"
)

// Types are all of them.
var Types = []Type{
	AgentCreated, AgentWoke, AgentSlept, AgentReset, AgentCompacted, AgentEnded,
	ItemQueued, ItemTaken, ItemDone, ItemDropped, TurnStarted, TurnFinished, MessageDelta, MessageThinking,
	ToolStarted, ToolFinished, ToolProgress, SubAgentStart, SubAgentProgress, SubAgentEnd, Retry,
	PermissionRequested, PermissionDecided, PermissionGranted, PermissionRevoked, OutboxSent, OutboxFailed,
	CronFired, CronSkipped, ConfigReloaded, ConfigInvalid, FileEdited, FileInvalid, BudgetReached, SandboxRefused,
}

// An Event is one thing that happened. Body, one of the structs below or nil,
// adds its members to the head's in JSON.
type Event struct {
	ID    string // boot.number; "" for deltas, which cannot be replayed
	Type  Type
	At    time.Time
	Agent string
	Turn  string
	Body  Body

	encoded *encoded // shared by all copies of an emitted event; nil: encode it each time
}

// encoded is the JSON of an event, made once for all who watch.
type encoded struct {
	once sync.Once
	json []byte
	err  error
}

// WithBody is the event with another body.
func (e Event) WithBody(b Body) Event {
	e.Body, e.encoded = b, nil
	return e
}

// A Body is the part of an event that belongs to its type.
type Body interface{ body() }

type (
	// Item is of item.*.
	Item struct {
		Item string `json:"item"`
		Kind string `json:"kind,omitempty"`
		Text string `json:"text,omitempty"` // the beginning
		// Seq and Duplicate are of the item.queued that begins the stream of a
		// posted message: its receipt.
		Seq       int64 `json:"seq,omitempty"`
		Duplicate bool  `json:"duplicate,omitempty"`
	}
	// Delta is of message.delta and message.thinking. Offset is where Text
	// begins in the answer under way, in bytes, so that a hole is seen.
	Delta struct {
		Offset int    `json:"offset"`
		Text   string `json:"text"`
	}
	// Tool is of tool.*.
	Tool struct {
		Call      string          `json:"toolCallId"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Status    string          `json:"status,omitempty"` // finished
		Output    string          `json:"output,omitempty"` // the beginning
		MS        int64           `json:"ms,omitempty"`
	}
	// Progress is of tool.progress.
	Progress struct {
		Call string `json:"toolCallId"`
		Text string `json:"text"`
	}
	// Attempt is of retry. Discard: forget the deltas of this answer so far.
	Attempt struct {
		N        int    `json:"n"`
		Of       int    `json:"of"`
		InMS     int64  `json:"inMs"`
		Status   int    `json:"status,omitempty"`
		Reason   string `json:"reason"`
		Discard  bool   `json:"discard"`
		Fallback string `json:"fallback,omitempty"` // the provider tried next
	}
	// Finished is of turn.finished.
	Finished struct {
		Reason string   `json:"reason"`
		Error  string   `json:"error,omitempty"`
		Text   string   `json:"text"` // the whole final answer
		Items  []string `json:"items"`
		Cost   float64  `json:"cost,omitempty"` // US dollars, of the turn
	}
	// Started is of turn.started.
	Started struct {
		Items   []string `json:"items"`
		Attempt int      `json:"attempt"`
		Model   string   `json:"model,omitempty"`
	}
	// Asked is of permission.*.
	Asked struct {
		Token    string `json:"token"`
		Tag      string `json:"permission"`
		Reason   string `json:"reason,omitempty"`
		Request  string `json:"request,omitempty"` // the command, path, host or diff
		Decision string `json:"decision,omitempty"`
		By       string `json:"by,omitempty"`
	}
	// Sent is of outbox.*.
	Sent struct {
		Out       string `json:"out"`
		Connector string `json:"connector"`
		Channel   string `json:"channelId"`
		Part      int    `json:"part"`
		Parts     int    `json:"parts"`
		Error     string `json:"error,omitempty"`
	}
	// SubAgent is of sub_agent_*: Input at the start, Event while it works, Result
	// at the end.
	SubAgent struct {
		Name   string          `json:"subAgentName"`
		Call   string          `json:"toolCallId"`
		Agent  string          `json:"subAgentId"`
		Input  json.RawMessage `json:"input,omitempty"`
		Event  *Event          `json:"event,omitempty"`
		Result json.RawMessage `json:"result,omitempty"`
	}
	// File is of file.* and config.*. An event of the settings is no agent's and names none.
	File struct {
		File   string `json:"file"`
		Line   int    `json:"line,omitempty"`
		Column int    `json:"column,omitempty"`
		Text   string `json:"text"` // what changed, or what is wrong
	}
	// Refused is of sandbox.refused.
	Refused struct {
		Text string `json:"text"` // what, and what became of it
	}
	// Compacted is of agent.compacted: about how many tokens of context there
	// were, and how many records a summary stands for and how many stay.
	Compacted struct {
		Before int `json:"before"`
		Gone   int `json:"gone"`
		Kept   int `json:"kept"`
		// RequestCut is how many bytes of the latest request the summary leaves out,
		// because all of it would not fit the model's context.
		RequestCut int `json:"requestCut,omitempty"`
		// Failed says why a compaction that somebody asked for shortened nothing.
		Failed string `json:"failed,omitempty"`
	}
	// Reason is of agent.reset, agent.ended and others that need one word.
	Reason struct {
		Reason string `json:"reason"`
	}
)

func (Compacted) body() {}
func (Item) body()      {}
func (Delta) body()     {}
func (Tool) body()      {}
func (Attempt) body()   {}
func (Progress) body()  {}
func (Finished) body()  {}
func (Started) body()   {}
func (Asked) body()     {}
func (Sent) body()      {}
func (SubAgent) body()  {}
func (File) body()      {}
func (Reason) body()    {}
func (Refused) body()   {}

// Replayable is false for deltas: they are not kept, the record has the text.
func (e Event) Replayable() bool {
	switch e.Type {
	case MessageDelta, MessageThinking, ToolProgress:
		return false
	}
	return true
}

// MarshalJSON writes head and body as one flat object. The bytes are shared: they must
// not be changed.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.encoded == nil {
		return e.encode()
	}
	e.encoded.once.Do(func() { e.encoded.json, e.encoded.err = e.encode() })
	return e.encoded.json, e.encoded.err
}

func (e Event) encode() ([]byte, error) {
	head, err := json.Marshal(struct {
		ID    string    `json:"id,omitempty"`
		Type  Type      `json:"type"`
		At    time.Time `json:"at"`
		Agent string    `json:"agent,omitempty"`
		Turn  string    `json:"turn,omitempty"`
	}{e.ID, e.Type, e.At.UTC().Truncate(time.Millisecond), e.Agent, e.Turn})
	if err != nil || e.Body == nil {
		return head, err
	}

	body, err := json.Marshal(e.Body)
	if err != nil || bytes.Equal(body, []byte("{}")) {
		return head, err
	}
	head[len(head)-1] = ','

	return append(head, body[1:]...), nil
}
