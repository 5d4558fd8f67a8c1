// Package message holds the words that people's messages are made of: where they
// come from, what they carry, what goes back. Connectors speak it on one side,
// the engine on the other.
package message

import (
	"context"
	"strconv"
	"strings"
	"time"

	"daycare/engine/fault"
)

// An Address is a place that messages come from and answers go to, in the ids of
// its connector.
type Address struct {
	Connector string `json:"connector"`          // the connector's id in settings
	ChannelID string `json:"channelId"`          // chat, channel, room, hook
	UserID    string `json:"userId,omitempty"`   // who; in groups the sender
	ThreadID  string `json:"threadId,omitempty"` // thread inside the channel
}

// A Context is what belongs to one message alone.
type Context struct {
	MessageID string `json:"messageId,omitempty"` // the platform's id of this message
	ReplyTo   string `json:"replyTo,omitempty"`   // the message it answers
	Sender    string `json:"sender,omitempty"`    // a name for people, verified by nobody
}

// A File is an attachment: a FileReference. Path is absolute; on disk it is relative if
// the file lies in the workspace.
type File struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	MimeType string `json:"mimeType"`
	Size     int64  `json:"size"` // bytes
	Path     string `json:"path"`
}

// A Kind says what an inbox item asks of its agent.
type Kind string

const (
	Text       Kind = "message"        // from a person or a service
	System     Kind = "system_message" // from another agent or the runtime
	Reset      Kind = "reset"          // forget the conversation, keep the id and the files
	Compact    Kind = "compact"        // shorten the context now
	Permission Kind = "permission"     // a decision on a request of the agent
	Rewind     Kind = "rewind"         // take what follows a record or a mark (Text; "": the newest turn) out of the context
	Mark       Kind = "mark"           // name the place where the conversation is now (Text)
)

// An Incoming is what a connector, a clock or a program hands to the engine. Its
// agent is the one that From maps to (made on first contact), unless Agent names
// one.
type Incoming struct {
	From    Address
	Agent   string // agent id; set: this agent, whoever From is
	Kind    Kind   // "" is Text
	ID      string // item id, if the sender already gave one (a letter); else ""
	Dedupe  string // "<connector id>:<platform key>": seen again within 7 days, it is dropped
	Context Context
	Route   *Address // answer here; nil: where the agent's descriptor says
	Text    string
	Files   []File

	Queue Queue // how an agent at work takes it; "": as the agent takes all

	Origin string // system_message: the agent id or "system" that speaks
	Silent bool   // system_message: part of the next context, no turn of its own

	Token, Decision, By, Tag, SHA256 string   // permission: see inbox.Item
	Scripts                          []Script // permission: see inbox.Item
	Hops                             int      // system_message: how many agents it has passed, 0 from a person or clock
	// Untrusted marks text that came from outside without a known person behind
	// it (a webhook's payload): the model is told so.
	Untrusted bool
	// Source says where text came from that does not speak for the owner: a hook, a mail, a
	// guest, an agent that read such text. What agents do in that turn is judged by it. "" is
	// the owner's own word.
	Source string
}

// A Script is a file that the words of a command name, with the hash of its content.
type Script struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // "unreadable": it could not be read whole
}

// maxRelayed bounds what is said of where a text came from, in characters.
const maxRelayed = 300

// Relayed is the Source of what an agent passes on that has read text from outside; "" if
// it has read none.
func Relayed(agent string, sources []string) string {
	if len(sources) == 0 {
		return ""
	}
	return bounded("agent " + agent + ", which read " + strings.Join(sources, ", "))
}

// A Queue is how an agent that is at work takes a message.
type Queue string

// What one message can ask for, whatever its agent's way is.
const (
	Steer    Queue = "steer"    // into the turn under way, before the model is called next
	Followup Queue = "followup" // in a turn of its own, when the one under way is over
)

// ToAgent is the Connector of an address that is another agent: its ChannelID is
// that agent's id. No connector in settings can have this id.
const ToAgent = "@agent"

// A Report is what an answer to another agent says beside its text.
type Report struct {
	From   string // id of the agent whose turn ended
	Failed bool
	Hops   int // how many agents it has passed
}

// An Outgoing is one answer, or one part of it, on its way to a chat.
type Outgoing struct {
	ID      string // of the promise in history; the same at every try
	To      Address
	ReplyTo string // the platform's id of the message that is answered
	Text    string // Markdown
	Files   []File
	Part    int     // from 0
	Parts   int     // how many the answer was split into
	Retry   bool    // it may have been delivered before: use the platform's idempotency
	Report  *Report // to another agent; nil to a chat
}

// A Promise is an answer that history promised to deliver. Done names the parts
// that are known to be delivered; Report is called once for every other part's
// result, and for every failed try that is worth telling.
type Promise struct {
	Outgoing
	Agent  string    // who promised it, for those who watch
	Since  time.Time // when it was promised: it is given up 24 h later
	Done   map[int]bool
	Report func(Result)
}

// A Result is the delivery result of one part of a promise. Without Final an Error is a
// failed try that will be repeated.
type Result struct {
	Out      string
	Part     int
	Parts    int
	RemoteID string
	Error    string
	Retry    bool // it was tried before
	Final    bool // given up
	Kept     bool // not tried further by this process: it stays promised
}

// Delivered reports whether the part arrived.
func (f Result) Delivered() bool { return f.Error == "" && !f.Kept }

// Key is the idempotency key of this part: the same at every try.
func (o Outgoing) Key() string {
	if o.Parts <= 1 {
		return o.ID
	}
	return o.ID + "." + strconv.Itoa(o.Part)
}

// A Receipt says that an item is durable.
type Receipt struct {
	Agent     string `json:"agent"`
	Item      string `json:"item"`
	Seq       int64  `json:"seq"`
	Duplicate bool   `json:"duplicate"` // accepted before under the same dedupe key; Item is that one
}

// Deliver hands an incoming message to the engine. It returns nil after the
// message is durable. inbox.ErrFull, disk.ErrFull and *TooFast ask to wait and offer
// it again; inbox.ErrTooLarge and ErrUnknownAgent to give it up and say so.
type Deliver func(ctx context.Context, in Incoming) (Receipt, error)

// ErrUnknownAgent: no agent has that id, or it has ended.
var ErrUnknownAgent = fault.UnknownAgent

// TooFast refuses a message because its sender writes more than may be written in a
// minute. It may be offered again after a while.
type TooFast struct{ After time.Duration }

func (e *TooFast) Error() string { return "too many messages from this sender" }

// Seconds is After as a Retry-After header has it.
func (e *TooFast) Seconds() int { return int(e.After.Round(time.Second)/time.Second) + 1 }

// NotSent says what to do about a part that was not delivered.
type NotSent struct {
	Final bool          // trying again is no use: the chat is gone, the bot is blocked
	After time.Duration // the platform asks to wait this long; 0: the engine's backoff
	Err   error
}

func (e *NotSent) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *NotSent) Unwrap() error { return e.Err }
