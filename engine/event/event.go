package event

import (
	"bytes"
	"encoding/json"
	"sync"
	"time"
)

// Type is the value of "type" in an event.
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
	// ItemEdited: the sender of a queued message edited it; text is the new one.
	ItemEdited Type = "item.edited"
	// ItemMoved: a queued item was moved to the front.
	ItemMoved Type = "item.moved"

	TurnStarted  Type = "turn.started"
	TurnFinished Type = "turn.finished"

	MessageDelta    Type = "message.delta"
	MessageThinking Type = "message.thinking"

	ToolStarted  Type = "tool.started"
	ToolFinished Type = "tool.finished"
	// ToolProgress has output of a running tool. Like a delta it cannot be replayed.
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

	// ConnectorState reports that a connector is connecting, running, degraded or stopped; its body is
	// a Service.
	ConnectorState Type = "connector.state"

	// HookSaid is a message of a hook to the owner: what it said, or that it failed.
	HookSaid Type = "hook.said"

	// SandboxRefused reports that the sandbox blocked a command, if daycare can detect it.
	SandboxRefused Type = "sandbox.refused"
)

// Types are all types of events.
var Types = []Type{
	AgentCreated, AgentWoke, AgentSlept, AgentReset, AgentCompacted, AgentEnded,
	ItemQueued, ItemTaken, ItemDone, ItemDropped, ItemEdited, ItemMoved, TurnStarted, TurnFinished, MessageDelta, MessageThinking,
	ToolStarted, ToolFinished, ToolProgress, SubAgentStart, SubAgentProgress, SubAgentEnd, Retry,
	PermissionRequested, PermissionDecided, PermissionGranted, PermissionRevoked, OutboxSent, OutboxFailed,
	CronFired, CronSkipped, ConfigReloaded, ConfigInvalid, FileEdited, FileInvalid, BudgetReached, ConnectorState, HookSaid,
	SandboxRefused,
}

// An Event reports one thing that happened. In JSON, the fields of Body, one of the structs
// below or nil, follow those of the event.
type Event struct {
	ID    string // boot.number; "" for deltas, which cannot be replayed
	Type  Type
	At    time.Time
	Agent string
	Turn  string
	Body  Body

	encoded *encoded // shared by all copies of an emitted event; nil: not emitted
}

// encoded is the JSON of an event, encoded once for all watchers.
type encoded struct {
	once sync.Once
	json []byte
	err  error
}

// WithBody returns the event with another body.
func (e Event) WithBody(b Body) Event {
	e.Body, e.encoded = b, nil
	return e
}

// A Body is the part of an event that belongs to its type.
type Body interface{ body() }

type (
	// Item is the body of item.*.
	Item struct {
		Item string `json:"item"`
		Kind string `json:"kind,omitempty"`
		Text string `json:"text,omitempty"` // the beginning
		// Seq and Duplicate are the receipt, in the item.queued event that starts the
		// stream of a posted message.
		Seq       int64 `json:"seq,omitempty"`
		Duplicate bool  `json:"duplicate,omitempty"`
	}
	// Delta is the body of message.delta and message.thinking. Offset is the start of
	// Text in the current answer, in bytes, which shows gaps.
	Delta struct {
		Offset int    `json:"offset"`
		Text   string `json:"text"`
	}
	// Tool is the body of tool.*.
	Tool struct {
		Call      string          `json:"toolCallId"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments,omitempty"`
		Status    string          `json:"status,omitempty"` // finished
		Output    string          `json:"output,omitempty"` // the beginning
		MS        int64           `json:"ms,omitempty"`
	}
	// Progress is the body of tool.progress.
	Progress struct {
		Call string `json:"toolCallId"`
		Text string `json:"text"`
	}
	// Attempt is the body of retry. Discard means to drop the deltas of this answer.
	Attempt struct {
		N        int    `json:"n"`
		Of       int    `json:"of"`
		InMS     int64  `json:"inMs"`
		Status   int    `json:"status,omitempty"`
		Reason   string `json:"reason"`
		Discard  bool   `json:"discard"`
		Fallback string `json:"fallback,omitempty"` // the provider tried next
	}
	// Finished is the body of turn.finished.
	Finished struct {
		Reason string   `json:"reason"`
		Error  string   `json:"error,omitempty"`
		Text   string   `json:"text"` // the whole final answer
		Items  []string `json:"items"`
		Cost   float64  `json:"cost,omitempty"` // US dollars, of the turn
	}
	// Started is the body of turn.started.
	Started struct {
		Items   []string `json:"items"`
		Attempt int      `json:"attempt"`
		Model   string   `json:"model,omitempty"`
	}
	// Asked is the body of permission.*.
	Asked struct {
		Token    string `json:"token"`
		Tag      string `json:"permission"`
		Reason   string `json:"reason,omitempty"`
		Request  string `json:"request,omitempty"` // the command, path, host or diff
		Decision string `json:"decision,omitempty"`
		By       string `json:"by,omitempty"`
	}
	// Sent is the body of outbox.*.
	Sent struct {
		Out       string `json:"out"`
		Connector string `json:"connector"`
		Channel   string `json:"channelId"`
		Part      int    `json:"part"`
		Parts     int    `json:"parts"`
		Error     string `json:"error,omitempty"`
	}
	// SubAgent is the body of sub_agent_*: Input at the start, Event while it works, Result
	// at the end.
	SubAgent struct {
		Name   string          `json:"subAgentName"`
		Call   string          `json:"toolCallId"`
		Agent  string          `json:"subAgentId"`
		Input  json.RawMessage `json:"input,omitempty"`
		Event  *Event          `json:"event,omitempty"`
		Result json.RawMessage `json:"result,omitempty"`
	}
	// File is the body of file.* and config.*. Events of the settings have no agent.
	File struct {
		File   string `json:"file"`
		Line   int    `json:"line,omitempty"`
		Column int    `json:"column,omitempty"`
		Text   string `json:"text"` // what changed, or what is wrong
	}
	// Refused is the body of sandbox.refused.
	Refused struct {
		Text string `json:"text"` // what was blocked, and the result
	}
	// Compacted is the body of agent.compacted: Before is the approximate
	// number of context tokens before, Gone the number of summarized records, Kept the rest.
	Compacted struct {
		Before int `json:"before"`
		Gone   int `json:"gone"`
		Kept   int `json:"kept"`
		// RequestCut is how many bytes of the latest request the summary leaves out,
		// because all of it would not fit the model's context.
		RequestCut int `json:"requestCut,omitempty"`
		// Failed is why a requested compaction did not shorten the context.
		Failed string `json:"failed,omitempty"`
	}
	// Reason is the body of agent.reset, agent.ended and others that need one word.
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
func (Service) body()   {}

// Replayable is false for deltas: they are not kept, because a record has the text.
func (e Event) Replayable() bool {
	switch e.Type {
	case MessageDelta, MessageThinking, ToolProgress:
		return false
	}

	return true
}

// MarshalJSON returns the event and its body as one flat object. The bytes are shared and
// must not be modified.
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
