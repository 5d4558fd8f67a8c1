package providers

import (
	"context"
	"encoding/json"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Provider is one model service. Stream makes exactly one HTTP request, never
// retries, and yields events until Complete or Error, one of which is always the
// last. A stream that ends without the wire format's own end mark is an Error
// that may be retried, never a Complete. Leaving the loop or ending ctx closes
// the connection. It may be called from many goroutines at once.
type Provider interface {
	ID() string
	// Wire names the wire format: anthropic, openai, scripted.
	Wire() string
	// Stream's errors are a *Failure each, or the cause of ctx's end.
	Stream(ctx context.Context, req *Request) iter.Seq[Event]
}

// A Request is one call of a model. Everything in it is read-only for providers.
type Request struct {
	Model       string // "" takes the provider's own
	System      string
	Tools       []Tool
	Messages    []*Message
	MaxTokens   int      // of the answer; 0 takes the model's default
	Temperature *float64 // nil: the vendor's default
	Thinking    string   // "", low, medium, high: how much reasoning is asked for

	Agent      string // whose call it is, for fairness and for the log
	Session    string // stable inside a conversation: a cache key where a vendor has one
	Foreground bool   // a user waits: goes before background calls

	Known
}

// Known is what those who make the requests of one conversation know of them, so that less has to be done for each. The zero
// Known is nothing.
type Known struct {
	Plain    bool  // no message has a picture or a document
	Answered int   // Messages[:Answered] begin every later request of the conversation, too
	Kept     *Kept // of the conversation
}

// A Tool is a tool as it is described to the model.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// Role says who speaks in a Message.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
	Results   Role = "results" // the results of all tool calls of the Assistant message before it
)

// A Message is one entry of the conversation. It must not be changed once it is
// in a Request: its encoded form is kept, so that a long conversation is not
// encoded anew at every call.
type Message struct {
	Role  Role
	Parts []Part

	mu      sync.Mutex
	encoded encoding     // the first of them
	chars   atomic.Int64 // what Chars counted, plus one; 0: not counted yet
}

// Encoded returns what encode made of the message for key, making it on first
// use. key is the provider's wire name and id: reasoning goes back only to the
// provider that made it, so two providers of one wire may encode a message
// differently. The bytes must not be changed.
func (m *Message) Encoded(key string, encode func(*Message) []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := &m.encoded
	for e.key != "" && e.key != key {
		if e.next == nil {
			e.next = &encoding{}
		}
		e = e.next
	}
	if e.key == "" {
		e.key, e.bytes = key, encode(m)
	}

	return e.bytes
}

// forget gives up the first encoding, if it is of key: it is kept elsewhere.
func (m *Message) forget(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.encoded.key == key && m.encoded.next == nil {
		m.encoded = encoding{}
	}
}

// Signed is what stands behind mark in a signature that came from the same model of the same provider; "": in none.
func (m *Message) Signed(mark, provider, model string) string {
	for _, part := range m.Parts {
		r, ok := part.(Reasoning)
		if s, is := strings.CutPrefix(r.Signature, mark); ok && is && r.Of(provider, model) {
			return s
		}
	}

	return ""
}

// encoding is a message as one wire sends it; no key: as none does yet. There is one, rarely two, so the first is a part of
// the message.
type encoding struct {
	key   string
	bytes []byte
	next  *encoding
}

// A Part is one piece of a Message: Text, Reasoning, Call, Result, Image or
// Document.
type Part interface{ part() }

type (
	// Text is what was said.
	Text struct{ Text string }
	// Reasoning is a model's thinking, sent back only to the provider and model
	// that made it (see Of), and only with its signature. The signature is the
	// wire's own affair: it may stand for hidden thinking (Text empty), and it must
	// come back unchanged.
	Reasoning struct{ Text, Signature, Provider, Model string }
	// Call is a tool call of an Assistant message. ID is unique in the
	// conversation and fits every wire ([a-zA-Z0-9_-], at most 40 bytes).
	Call struct {
		ID        string
		Name      string
		Arguments json.RawMessage // a JSON object
	}
	// Result answers the Call of the same ID.
	Result struct {
		CallID  string
		Name    string
		Text    string
		IsError bool
		Images  []Image
		// Documents come with their text, for models that take none.
		Documents []Document
	}
	// Image is a picture for the model; Data is the file itself, not base64.
	Image struct {
		MimeType string
		Data     []byte
	}
	// Document is a file with pages for the model, a PDF; Data is the file itself.
	Document struct {
		Name     string
		MimeType string
		Data     []byte
		Text     string // what a model reads that takes no documents; "": nothing
	}
)

// Attached is the word for the files of r where a wire has them in a message of their
// own.
func Attached(r Result) string {
	if len(r.Documents) == 0 {
		return "Images"
	}
	return "Files"
}

// Object is the arguments of a call; where they are no object, of which its result told the model, it is empty.
func (c Call) Object() json.RawMessage {
	if IsObject(c.Arguments) {
		return c.Arguments
	}
	return json.RawMessage("{}")
}

// Output is the text of a result, for a wire that has no result without one.
func (r Result) Output() string {
	if strings.TrimSpace(r.Text) == "" {
		return "(no output)"
	}
	return r.Text
}

// InWords is the text of a result, for a wire that has no field for an error either.
func (r Result) InWords() string {
	s := r.Output()
	if r.IsError && !strings.HasPrefix(strings.ToLower(s), "error") {
		s = "Error: " + s
	}

	return s
}

func (Text) part()      {}
func (Reasoning) part() {}
func (Call) part()      {}
func (Result) part()    {}
func (Image) part()     {}
func (Document) part()  {}

// An Event is one step of a streaming answer: ContentDelta, ThinkingDelta,
// ToolUseStart, ToolUseDelta, ToolUseStop, Complete or Error; and Asking, Wasted and
// Retry, which only a Caller makes.
type Event interface{ event() }

type (
	// ContentDelta is more text of the answer.
	ContentDelta struct{ Text string }
	// ThinkingDelta is more reasoning. Signature comes with the end of a block
	// (Text may then be empty): the next ThinkingDelta begins a new block.
	ThinkingDelta struct{ Text, Signature string }
	// ToolUseStart begins a tool call; ID is the vendor's.
	ToolUseStart struct{ ID, Name string }
	// ToolUseDelta is more of the arguments of the call.
	ToolUseDelta struct{ ID, Arguments string }
	// ToolUseStop ends the call. Arguments is all of it, which may not be JSON.
	ToolUseStop struct{ ID, Arguments string }
	// Complete ends a whole answer.
	Complete struct {
		Finish Finish
		Usage  Usage
		Model  string // the model that answered, as the vendor names it
		Asked  string `json:"-"` // the model that was asked for, which may be an alias of it
		Sent   string `json:"-"` // SHA-256 of the body of the request, in hexadecimal; "" if nothing was sent
	}
	// Error ends a failed one.
	Error struct{ Err error }
	// Asking tells those who watch a Caller whom it asks now. Model is "" for the
	// provider's own.
	Asking struct{ Provider, Model string }
	// Wasted tells them that a request gave no answer and is paid for all the same:
	// its stream broke or was stopped, or the answer was empty.
	Wasted struct {
		Provider, Model string
		Usage           Usage
	}
	// Retry tells those who watch a Caller that a request failed and what comes
	// next: "retry 2/8 in 4 s: 429".
	Retry struct {
		N, Of    int           // how many requests failed so far, how many there may be
		In       time.Duration // until the next one
		Status   int           // HTTP status of the failed one; 0: there was none
		Reason   string        // the failure, one line
		Discard  bool          // what was shown of the answer so far is void
		Fallback string        // id of the provider that is asked from here on; "": the same
	}
)

func (ContentDelta) event()  {}
func (ThinkingDelta) event() {}
func (ToolUseStart) event()  {}
func (ToolUseDelta) event()  {}
func (ToolUseStop) event()   {}
func (Complete) event()      {}
func (Error) event()         {}
func (Asking) event()        {}
func (Wasted) event()        {}
func (Retry) event()         {}

// Finish is why the model stopped.
type Finish string

const (
	EndTurn   Finish = "end_turn"
	ToolUse   Finish = "tool_use"
	MaxTokens Finish = "max_tokens"
	Refusal   Finish = "refusal"
)

// Usage is what a call used, in tokens. Input excludes what was read from or
// written to the cache, on every wire: providers normalise it.
type Usage struct {
	Input, Output, CacheRead, CacheWrite int64
	// Reasoning is how much of Output the model thought; 0 also if the vendor does not say.
	Reasoning int64 `json:",omitempty"`
	Estimated bool  // the vendor said nothing; counted from characters
}
