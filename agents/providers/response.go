package providers

import (
	"cmp"
	"crypto/sha256"
	hexa "encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// A Response is a whole answer of a model.
type Response struct {
	Text     string
	Thinking []Reasoning // Provider is set; in the order of the answer
	Calls    []ResponseCall
	Finish   Finish
	Usage    Usage
	Provider string // id of the provider that answered
	Model    string // as the vendor names it; may be empty
	Asked    string // as it was asked for; may be an alias, or empty
	// Took is how long the answer took, with all attempts, and First how long until the first piece of its
	// text came; the agent measures both.
	Took, First time.Duration
	Sent        Sent // what the request was; zero if nothing was sent
}

// Sent identifies a request, so that it can be proved later what was sent.
type Sent struct {
	Body   string // SHA-256 of the body, in hexadecimal
	System string // the beginning of that of the system prompt
	Tools  string // and of the tools
}

// sentOf identifies the request of an answer.
func sentOf(req *Request, body string) Sent {
	if body == "" {
		return Sent{}
	}
	kept := req.Kept
	if kept == nil {
		kept = &Kept{}
	}
	sent := kept.fixedSums(req)
	sent.Body = body

	return sent
}

// sumLength is how much of a sum identifies a part of a request: it has only to differ from those
// before it.
const sumLength = 16

// SystemSum identifies a system prompt.
func SystemSum(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hexa.EncodeToString(sum[:])[:sumLength]
}

// ToolsSum identifies the definitions of tools.
func ToolsSum(tools []Tool) string {
	h := sha256.New()
	for _, t := range tools {
		fmt.Fprintf(h, "%d %s%d %s%d %s", len(t.Name), t.Name, len(t.Description), t.Description, len(t.Schema), t.Schema)
	}

	return hexa.EncodeToString(h.Sum(nil))[:sumLength]
}

// A ResponseCall is a tool call of an answer.
type ResponseCall struct {
	RemoteID  string // the vendor's; unique in this answer only
	Name      string
	Arguments json.RawMessage // as the model wrote them; "{}" where it wrote nothing
	Valid     bool            // Arguments is a JSON object; else it may be any text
}

// Empty reports an answer without anything in it that ended as if it were whole.
func (r *Response) Empty() bool {
	return r.Finish == EndTurn && len(r.Calls) == 0 && strings.TrimSpace(r.Text) == ""
}

// A collector puts the events of one stream together.
type collector struct {
	text     strings.Builder
	thinking []Reasoning
	thought  strings.Builder // text of the last of thinking
	inBlock  bool            // that is still growing
	calls    []ResponseCall
	index    map[string]int // RemoteID -> place in calls
	shown    bool           // something of the answer reached those who watch
}

// add takes every event but Complete and Error.
func (c *collector) add(ev Event) {
	c.shown = true
	switch ev := ev.(type) {
	case ContentDelta:
		c.text.WriteString(ev.Text)
	case ThinkingDelta:
		if !c.inBlock {
			c.thinking = append(c.thinking, Reasoning{})
			c.inBlock = true
		}
		c.thought.WriteString(ev.Text)
		if ev.Signature != "" {
			c.endBlock(ev.Signature)
		}
	case ToolUseStart:
		c.call(ev.ID).Name = ev.Name
	case ToolUseDelta:
		call := c.call(ev.ID)
		call.Arguments = append(call.Arguments, ev.Arguments...)
	case ToolUseStop:
		c.call(ev.ID).Arguments = json.RawMessage(ev.Arguments)
	}
}

// endBlock ends the block of thinking that is still growing, if one is.
func (c *collector) endBlock(signature string) {
	if c.inBlock {
		c.thinking[len(c.thinking)-1] = Reasoning{Text: strings.Clone(c.thought.String()), Signature: signature}
		c.thought.Reset()
		c.inBlock = false
	}
}

func (c *collector) call(id string) *ResponseCall {
	i, ok := c.index[id]
	if !ok {
		if c.index == nil {
			c.index = make(map[string]int)
		}
		i = len(c.calls)
		c.index[id] = i
		c.calls = append(c.calls, ResponseCall{RemoteID: id})
	}

	return &c.calls[i]
}

// response is the answer of provider p to req.
func (c *collector) response(p string, req *Request, end Complete) *Response {
	c.endBlock("")
	r := &Response{
		// A copy, because the agent keeps it and the builder has room for more.
		Text: strings.Clone(c.text.String()), Thinking: c.thinking, Calls: c.calls,
		Finish: end.Finish, Usage: end.Usage, Provider: p, Model: end.Model, Asked: end.Asked, Sent: sentOf(req, end.Sent),
	}
	for i := range r.Thinking {
		r.Thinking[i].Provider, r.Thinking[i].Model = p, cmp.Or(end.Asked, end.Model)
	}

	for i := range r.Calls {
		call := &r.Calls[i]
		if len(strings.TrimSpace(string(call.Arguments))) == 0 {
			call.Arguments = json.RawMessage("{}")
		}
		call.Valid = IsObject(call.Arguments)
	}

	if r.Usage == (Usage{}) {
		r.Usage = EstimateUsage(req, c.chars())
	}

	return r
}

func (c *collector) chars() int {
	n := utf8.RuneCountInString(c.text.String()) + utf8.RuneCountInString(c.thought.String())
	for _, t := range c.thinking {
		n += utf8.RuneCountInString(t.Text)
	}
	for _, call := range c.calls {
		n += len(call.Name) + len(call.Arguments)
	}

	return n
}

// shallow is how long JSON is whose levels fit on the stack, however many it has: gjson goes down into each, and some million
// would end the process. encoding/json takes ten thousand levels, and a few times as long.
const shallow = 64 << 10

// Valid reports whether text is one JSON value.
func Valid(text string) bool {
	if len(text) <= shallow {
		return gjson.Valid(text)
	}
	return json.Valid([]byte(text))
}

// IsObject reports whether b is exactly one JSON object.
func IsObject(b []byte) bool {
	return Valid(string(b)) && gjson.ParseBytes(b).IsObject()
}
