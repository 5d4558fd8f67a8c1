package prompt

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"daycare/agents/providers"
	"daycare/engine/message"
	"daycare/engine/record"
)

// ErrNothingNew: the conversation is empty or ends with the model's own answer,
// so there is nothing to ask. Only a hand edit leads here.
var ErrNothingNew = errors.New("nothing new since the model's last answer")

// Sources is how a Builder reaches what history only names. A nil member can
// give nothing; what it should have given is then named instead of shown.
type Sources struct {
	File func(f message.File) ([]byte, error) // an attachment
	Dir  string                               // the agent's folder, with its long outputs in blobs/
}

// Options are the parts of a request that do not come from the conversation.
type Options struct {
	Model       string
	MaxTokens   int
	Temperature *float64
	Thinking    string
	Agent       string
	Foreground  bool
}

// A Builder makes the requests of one agent. It keeps the messages it made, with
// what providers encoded of them, so that a call costs what is new since the one
// before, however long the conversation is. It belongs to the agent's goroutine.
type Builder struct {
	src Sources

	seen     record.Place
	summary  *record.Entry // that the context begins with; nil: none
	kept     *providers.Kept
	messages []*providers.Message // answered ones, then those of open
	answered int                  // messages[:answered] never change again
	open     group
	media    int64 // bytes of pictures and documents in the conversation
	shown    int   // how many there are

	size estimate
}

// NewBuilder makes a Builder that has read nothing yet.
func NewBuilder(src Sources) *Builder { return &Builder{src: src} }

// Build makes the request for the next call of the model. It reads the entries
// that were added since the last Build, or all of them when the context was made
// anew. Earlier requests stay valid and unchanged.
func (b *Builder) Build(ctx *record.Context, sys string, tools []providers.Tool, opt Options) (*providers.Request, error) {
	entries, anew := b.seen.Read(ctx)
	if anew {
		b.restart(ctx)
	}
	for _, e := range entries {
		b.add(e)
	}

	b.flush()
	b.size.fixed(sys, tools)
	if len(b.messages) == b.answered {
		return nil, ErrNothingNew
	}

	return &providers.Request{
		Model:       opt.Model,
		System:      sys,
		Tools:       tools,
		Messages:    slices.Clip(b.messages),
		MaxTokens:   opt.MaxTokens,
		Temperature: opt.Temperature,
		Thinking:    opt.Thinking,
		Agent:       opt.Agent,
		Session:     ctx.Session,
		Foreground:  opt.Foreground,
		Known:       providers.Known{Plain: b.shown == 0, Answered: b.answered, Kept: b.kept},
	}, nil
}

// Tokens estimates the size of the last built request: characters / 4, but at
// least what the vendor counted for the newest answer plus what came after it.
func (b *Builder) Tokens() int { return b.size.tokens() }

// Fixed is what system prompt and tools take of it.
func (b *Builder) Fixed() int { return b.size.static / 4 }

// Counted is the characters / 4 alone.
func (b *Builder) Counted() int { return b.size.counted() }

// restart forgets everything and begins with the context's summary.
func (b *Builder) restart(ctx *record.Context) {
	*b = Builder{src: b.src, seen: b.seen, summary: ctx.Summary, kept: &providers.Kept{}}
	if ctx.Summary == nil {
		return
	}
	if s, ok := ctx.Summary.Rec.(*record.Summary); ok {
		b.open.say(alone(summaryText(ctx.Summary.At, s)), false)
	}
}

// add takes one record into the conversation. Those that are only the runtime's
// journal are passed over.
func (b *Builder) add(e *record.Entry) {
	switch r := e.Rec.(type) {
	case *record.User:
		b.open.say(b.user(e, r), r.Joins)
	case *record.Permission:
		if text := permissionText(e.At, r); text != "" {
			b.open.say(alone(text), false)
		}
	case *record.ToolResult:
		if b.open.waitsFor(r.ToolCallID) {
			b.open.answer(b.result(r))
		}
	case *record.TurnEnd:
		b.open.end(r)
	case *record.Assistant:
		b.assistant(e, r)
	}
}

// assistant closes the open group with the model's answer to it. An answer that
// the model need not see (cut off by a crash, an error told to the user,
// nothing at all) leaves it open.
func (b *Builder) assistant(e *record.Entry, a *record.Assistant) {
	if a.Finish == record.FinishInterrupted || a.Finish == record.FinishError {
		return
	}
	text := clean(a.Text)
	spoken := strings.TrimSpace(text) != "" // some vendors refuse a blank text
	if !spoken && len(a.ToolCalls) == 0 {
		return
	}

	m := &providers.Message{Role: providers.Assistant}
	for _, t := range a.Thinking {
		if t.Signature != "" {
			m.Parts = append(m.Parts, providers.Reasoning{Text: clean(t.Text), Signature: t.Signature,
				Provider: a.Provider, Model: cmp.Or(a.Asked, a.Model)})
		}
	}

	if spoken {
		m.Parts = append(m.Parts, providers.Text{Text: text})
	}
	for _, c := range a.ToolCalls {
		c.Arguments = arguments(c.Arguments)
		name, args := c.Written()
		m.Parts = append(m.Parts, providers.Call{ID: c.ID, Name: name, Arguments: args})
	}

	if b.open.empty() {
		b.open.say(alone(gapText), false)
	}
	b.flush()
	b.messages = append(b.messages, m)
	b.answered = len(b.messages)
	b.open = group{calls: a.ToolCalls, canceled: a.Finish == record.FinishCanceled}
	b.size.seal(m)
	if b.summary == nil || e.Seq > b.summary.Seq { // an older count is of the longer context
		b.size.report(a.Tokens)
	}
}

// gapText stands where a hand edit left the model's words without a question.
const gapText = `<system_message origin="system">Messages that were here are no longer part of this conversation.</system_message>`

// flush puts the messages of the open group at the end of b.messages. When they
// were sent before and are to be replaced, the slice is copied, because the
// earlier request still has it.
func (b *Builder) flush() {
	if b.open.made {
		return
	}
	if len(b.messages) > b.answered {
		b.messages = slices.Clone(b.messages[:b.answered])
	}
	b.messages = append(b.messages, b.open.messages()...)
	b.size.tail(b.messages[b.answered:])
}
