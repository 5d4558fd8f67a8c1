package record

import (
	"encoding/json"
	"slices"
	"time"

	"daycare/engine/disk"
	"daycare/engine/message"
)

// Type is the value of "type" in a line.
type Type string

const (
	TypeStart      Type = "start"
	TypeReset      Type = "reset"
	TypeMark       Type = "mark"
	TypeRewind     Type = "rewind"
	TypePermission Type = "permission"
	TypeTurnBegin  Type = "turn_begin"
	TypeUser       Type = "user_message"
	TypeAssistant  Type = "assistant_message"
	TypeToolStart  Type = "tool_started"
	TypeToolResult Type = "tool_result"
	TypeDelivery   Type = "delivery"
	TypeTurnEnd    Type = "turn_end"
	TypeSummary    Type = "summary"
	TypeNote       Type = "note"
)

// Version is the format version in start and reset records.
const Version = 1

// A Record is one of the fourteen record structs below, always as a pointer.
type Record interface{ Type() Type }

// An Entry is one line of history. It never changes, so a pointer to it can be kept and used as a
// key.
type Entry struct {
	Seq    int64
	At     time.Time
	Rec    Record
	ByHand bool // its crc is missing or wrong: a user wrote the line
}

type (
	// Start opens a history; its session begins with it. After a rotation it opens
	// the new file (Continues names the old one) and the session continues.
	Start struct {
		Session    string      `json:"session"`
		V          int         `json:"v"`
		Outs       []Out       `json:"outs,omitempty"` // carried over a rotation
		OwedFrom   int64       `json:"owedFrom,omitempty"`
		Once       []OnceGrant `json:"once,omitempty"`    // carried over a rotation
		Sources    []Source    `json:"sources,omitempty"` // carried over a rotation
		ForkedFrom *Fork       `json:"forkedFrom,omitempty"`
		Continues  string      `json:"continues,omitempty"` // "history/000001.jsonl"
	}
	// Reset ends the session and starts the next one, with an empty context.
	Reset struct {
		Session string `json:"session"`
		V       int    `json:"v"`
		Outs    []Out  `json:"outs,omitempty"` // set by Append
		// OwedFrom is the lowest seq of an owed answer that is not in Outs, which lists at most
		// maxListed; 0: Outs lists all. Set by Append.
		OwedFrom int64       `json:"owedFrom,omitempty"`
		Once     []OnceGrant `json:"once,omitempty"` // set by Append
		Item     string      `json:"item,omitempty"`
		Reason   string      `json:"reason" allow:"user|emergency|api"`
		Message  string      `json:"message,omitempty"`
	}
	// Mark names a checkpoint: a place to rewind to.
	Mark struct {
		Name string `json:"name"`
		Item string `json:"item,omitempty"`
	}
	// Rewind removes the records after number To from the context, not from the file.
	Rewind struct {
		To   int64  `json:"to"`
		Item string `json:"item,omitempty"`
	}
	// Permission is a step in the life of an approval request or a permission.
	Permission struct {
		Token string `json:"token"`
		Item  string `json:"item,omitempty"`
		Event string `json:"event" allow:"asked|once|always|prefix|deny|expired|freed|used|revoked|profile|changed-by-hand"`
		Tag   string `json:"tag"`
		By    string `json:"by,omitempty"`
		// SHA256 is the hash of the exact request that was decided.
		SHA256 string `json:"sha256,omitempty"`
		// Request is the request as users read it: the command, the path.
		Request string `json:"request,omitempty"`
		// Silent: the model is not notified, because it did not make the request.
		Silent bool `json:"silent,omitempty"`
	}
	// TurnBegin opens a turn, or reopens it after a crash (Attempt > 1).
	TurnBegin struct {
		Turn    string   `json:"turn"`
		Items   []string `json:"items"`
		Attempt int      `json:"attempt"`
		Model   string   `json:"model,omitempty"`
	}
	// User is an item as it was added to the conversation.
	User struct {
		Item      string           `json:"item"`
		Text      string           `json:"text"`
		Files     []message.File   `json:"files,omitempty"`
		Context   *message.Context `json:"context,omitempty"`
		Route     *message.Address `json:"route,omitempty"`
		Zone      string           `json:"zone"`              // IANA name of the time zone when it was recorded
		Preface   string           `json:"preface,omitempty"` // the changing part of the prompt (time, running children), rendered once
		Origin    string           `json:"origin,omitempty"`  // id of the agent that sent it; set: it is a system message
		Silent    bool             `json:"silent,omitempty"`
		Hops      int              `json:"hops,omitempty"`
		Untrusted bool             `json:"untrusted,omitempty"`
		Source    string           `json:"source,omitempty"` // who sent it, if they do not speak for the owner
		// Joins: it was sent at most 2 s after the previous message of the same sender; the
		// model reads the two as one.
		Joins bool `json:"joins,omitempty"`
	}
	// Assistant is one answer of the model, or the short error message that the user got instead
	// (Finish error).
	Assistant struct {
		Turn      string     `json:"turn"`
		Text      string     `json:"text"`
		Thinking  []Thinking `json:"thinking,omitempty"`
		ToolCalls []ToolCall `json:"toolCalls,omitempty"`
		Finish    Finish     `json:"finish" allow:"end_turn|tool_use|max_tokens|canceled|interrupted|error"`
		Provider  string     `json:"provider,omitempty"`
		Model     string     `json:"model,omitempty"`
		// Asked is the requested model, if Model spells it differently and there is thinking
		// that only the requested one can read
		Asked  string  `json:"asked,omitempty"`
		Tokens Tokens  `json:"tokens"`
		Cost   float64 `json:"cost"` // US dollars
		Exchange
		Out *Out `json:"out,omitempty"`
	}
	// Exchange is how an answer was got from its model: how long that took with all attempts, how
	// long until the first piece of the text came (milliseconds), and what was sent.
	Exchange struct {
		MS      int64 `json:"ms,omitempty"`
		FirstMS int64 `json:"firstMs,omitempty"`
		Sent    *Sent `json:"sent,omitempty"`
	}
	// ToolStart is written before a tool runs that must not run twice.
	ToolStart struct {
		ToolCallID string `json:"toolCallId"`
		Name       string `json:"name"`
		Grant      string `json:"grant,omitempty"` // token of the once approval that this start uses up
	}
	// ToolResult is the result of a call.
	ToolResult struct {
		ToolCallID string         `json:"toolCallId"`
		Name       string         `json:"name"`
		Status     Status         `json:"status" allow:"ok|error|canceled|interrupted|denied|timeout"`
		Output     Output         `json:"output"`
		Files      []message.File `json:"files,omitempty"`
		Source     string         `json:"source,omitempty"` // text from outside that it brought into the conversation
		MS         int64          `json:"ms"`
	}
	// Delivery is the result of one part of a promised reply.
	Delivery struct {
		Out      string `json:"out"`
		Part     int    `json:"part"`
		Parts    int    `json:"parts"`
		RemoteID string `json:"remoteId,omitempty"`
		Error    string `json:"error,omitempty"`
		Retry    bool   `json:"retry,omitempty"`
		Final    bool   `json:"final,omitempty"` // no further attempts
	}
	// TurnEnd closes a turn and every item in it. It lists all that is still owed at that moment,
	// so that recovery reads no further back; if that is very much, the newest part and the number
	// to read the rest from.
	TurnEnd struct {
		Turn  string   `json:"turn"`
		Items []string `json:"items"` // nil: set by Append to the items whose user_message is in the turn
		// Outs are the promised answers that are not delivered yet; written even if empty.
		// Append sets Outs, OwedFrom, Once and Session.
		Outs     []Out       `json:"outs"`
		OwedFrom int64       `json:"owedFrom,omitempty"`
		Once     []OnceGrant `json:"once,omitempty"`
		Session  string      `json:"session,omitempty"`
		// Sources are what was read from outside since an owner's message started a turn; turns
		// that follow from a decision are marked with them, too. Set by Append.
		Sources []Source `json:"sources,omitempty"`
		Reason  string   `json:"reason" allow:"done|waiting|canceled|limit|loop|budget|error|poison"`
		Error   string   `json:"error,omitempty"` // for readers of the file; the user got Assistant.Text
	}
	// Summary replaces the records From up to KeptFrom (exclusive) in the context.
	Summary struct {
		Text     string  `json:"text"`
		From     int64   `json:"from"`
		KeptFrom int64   `json:"keptFrom"`
		SHA256   string  `json:"sha256"`
		Provider string  `json:"provider,omitempty"`
		Model    string  `json:"model,omitempty"`
		Item     string  `json:"item,omitempty"`
		Tokens   Tokens  `json:"tokens"`
		Cost     float64 `json:"cost"`
	}
	// Note is for users who read the file; the model never sees it.
	Note struct {
		Text string `json:"text"`
		Item string `json:"item,omitempty"`
		// Refused: what Item asked for cannot be done; Text says why.
		Refused bool `json:"refused,omitempty"`
		// Suspended is the id of the turn that an orderly stop left open: reopening it does
		// not count as another attempt.
		Suspended string `json:"suspended,omitempty"`
	}
)

func (*Start) Type() Type      { return TypeStart }
func (*Reset) Type() Type      { return TypeReset }
func (*Mark) Type() Type       { return TypeMark }
func (*Rewind) Type() Type     { return TypeRewind }
func (*Permission) Type() Type { return TypePermission }
func (*TurnBegin) Type() Type  { return TypeTurnBegin }
func (*User) Type() Type       { return TypeUser }
func (*Assistant) Type() Type  { return TypeAssistant }
func (*ToolStart) Type() Type  { return TypeToolStart }
func (*ToolResult) Type() Type { return TypeToolResult }
func (*Delivery) Type() Type   { return TypeDelivery }
func (*TurnEnd) Type() Type    { return TypeTurnEnd }
func (*Summary) Type() Type    { return TypeSummary }
func (*Note) Type() Type       { return TypeNote }

// Fork says which history a new one was copied from, and up to which record.
type Fork struct {
	Agent string `json:"agent"`
	Seq   int64  `json:"seq"`
}

// Thinking is one block of a model's reasoning, with the signature that its vendor needs back.
type Thinking struct {
	Text      string `json:"text"`
	Signature string `json:"signature,omitempty"`
}

// A ToolCall is a call that the model made. ID is daycare's own and unique across all agents;
// RemoteID is the vendor's.
type ToolCall struct {
	ID       string `json:"id"`
	RemoteID string `json:"remoteId,omitempty"`
	Name     string `json:"name"`
	// Arguments is the JSON that the model wrote. Where that was not JSON it is
	// a JSON string of the raw text, and the call's result says so.
	Arguments json.RawMessage `json:"arguments"`
	// Via is the tool that the model called to call this one; "": it called this one.
	Via string `json:"via,omitempty"`
}

// Written is the call as the model wrote it: one through another tool names this one in its
// arguments, {"tool":NAME,"arguments":{…}}.
func (c ToolCall) Written() (name string, arguments json.RawMessage) {
	if c.Via == "" {
		return c.Name, c.Arguments
	}
	return c.Via, slices.Concat([]byte(`{"tool":`), encoded(c.Name), []byte(`,"arguments":`), c.Arguments, []byte(`}`))
}

// Finish is why the model stopped.
type Finish string

const (
	FinishEndTurn     Finish = "end_turn"
	FinishToolUse     Finish = "tool_use"
	FinishMaxTokens   Finish = "max_tokens"
	FinishCanceled    Finish = "canceled"
	FinishInterrupted Finish = "interrupted" // cut off by a crash, or discarded; users see it, the model does not
	FinishError       Finish = "error"       // no answer; Text is the short error message for the user
)

// Tokens is the usage of a model call. Input does not include tokens read from or written to the
// cache.
type Tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Reasoning  int64 `json:"reasoning,omitempty"` // of Output
	Estimated  bool  `json:"estimated,omitempty"`
}

// Sent identifies the request that was answered, so that one that is made again of the files can
// be compared with it. A model that needs no network has none.
type Sent struct {
	Model  string `json:"model,omitempty"` // that was asked for
	SHA256 string `json:"sha256"`          // of the body of the HTTP request
	System string `json:"system"`          // the first 16 digits of the SHA-256 of the system prompt
	Tools  string `json:"tools"`           // and of the definitions of tools
}

// An Out is a promise to deliver an answer.
type Out struct {
	ID      string          `json:"id"`
	To      message.Address `json:"to"`
	ReplyTo string          `json:"replyTo,omitempty"`
	Hops    int             `json:"hops,omitempty"` // to another agent: how many agents it has passed
	// Parts and Delivered say, in a list of what is still owed, how far it got:
	// without them a restart would send delivered parts again.
	Parts     int   `json:"parts,omitempty"`
	Delivered []int `json:"delivered,omitempty"`
}

// A OnceGrant is an approval for exactly one call that was not used yet.
type OnceGrant struct {
	Token  string `json:"token"`
	SHA256 string `json:"sha256,omitempty"`
}

// A Source is text from outside that a conversation has read.
type Source struct {
	Source string     `json:"source"` // "https://example.com/", "the guest Bob"
	At     disk.Stamp `json:"at"`     // when it was read last
}

// Status is how a tool call ended.
type Status string

const (
	StatusOK          Status = "ok"
	StatusError       Status = "error"
	StatusCanceled    Status = "canceled"
	StatusInterrupted Status = "interrupted"
	StatusDenied      Status = "denied"
	StatusTimeout     Status = "timeout"
)

// NotDone begins the result of a call that a dry run recorded instead of making it.
const NotDone = "[dry run: recorded, not done]"

// Output is the result of a tool: text for the model, further blocks, or the hash of a file in
// blobs/ with a text that is too long for a line.
type Output struct {
	Text   string  `json:"text"`
	Blocks []Block `json:"blocks,omitempty"`
	Blob   string  `json:"blob,omitempty"`
}

// A Block is a part of a tool's output that is not plain text: a reference to an image or document,
// or a diff for user interfaces.
type Block struct {
	Type string        `json:"type" allow:"image|document|diff"`
	File *message.File `json:"file,omitempty"`
	Text string        `json:"text,omitempty"`
}

// Reasons of a turn's end.
const (
	ReasonDone     = "done"
	ReasonWaiting  = "waiting" // for a permission or for children
	ReasonCanceled = "canceled"
	ReasonLimit    = "limit"
	ReasonLoop     = "loop"
	ReasonBudget   = "budget"
	ReasonError    = "error"
	ReasonPoison   = "poison"
)

// failed reports whether a turn that ended for a reason did not do what it was asked.
func failed(reason string) bool {
	switch reason {
	case ReasonError, ReasonPoison, ReasonLimit, ReasonLoop, ReasonBudget:
		return true
	}

	return false
}
