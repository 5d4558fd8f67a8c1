package message

import (
	"context"
	"strconv"
	"strings"
	"time"

	"daycare/engine/fault"
)

// An Address is where a message came from and where its answer goes. All ids but
// Connector are those of the platform.
type Address struct {
	Connector string `json:"connector"`          // the connector's id in settings
	ChannelID string `json:"channelId"`          // chat, channel, room, hook
	UserID    string `json:"userId,omitempty"`   // the user; in groups the sender
	ThreadID  string `json:"threadId,omitempty"` // thread in the channel
}

// A Context describes one message on its platform.
type Context struct {
	MessageID string `json:"messageId,omitempty"` // the platform's id of this message
	ReplyTo   string `json:"replyTo,omitempty"`   // the message it answers
	Sender    string `json:"sender,omitempty"`    // display name, unverified
}

// A File is an attachment. Path is absolute; in files of daycare it is stored relative to
// the workspace if the file is in it.
type File struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	MimeType string `json:"mimeType"`
	Size     int64  `json:"size"` // bytes
	Path     string `json:"path"`
}

// A Kind says what an inbox item asks its agent to do.
type Kind string

const (
	Text       Kind = "message"        // from a user or a service
	System     Kind = "system_message" // from another agent or the runtime
	Reset      Kind = "reset"          // start a new conversation; id and files stay
	Compact    Kind = "compact"        // compact the context now
	Permission Kind = "permission"     // the decision on an approval request of the agent
	Rewind     Kind = "rewind"         // rewind to a record or checkpoint (Text); "": undo the newest turn
	Mark       Kind = "mark"           // set a checkpoint with the name in Text
)

// An Incoming is a message from a connector, a clock or a program to the engine. It is for
// the agent that From maps to, which is created on first contact, unless Agent is set.
type Incoming struct {
	From    Address
	Agent   string   // agent id; if set, From does not matter
	For     *Address // whose agent it is for, such as the one that a group shares; nil: From's
	Kind    Kind     // "" is Text
	ID      string   // item id, if the sender already chose one (a dropped message)
	Dedupe  string   // "<connector id>:<platform key>"; a repetition within 7 days is dropped
	Context Context
	Route   *Address // where the answer goes; nil: the address in the agent's descriptor
	Text    string
	Files   []File

	Queue Queue // how a busy agent handles it; "": as the agent is set

	Origin string // system_message: the agent id of the sender, or "system"
	Silent bool   // system_message: it starts no turn, but is in the next context
	Long   bool   // system_message: the agent gets the beginning, and the name of a file with all of it

	Token, Decision, By, Tag, SHA256 string   // permission: see inbox.Item
	Scripts                          []Script // permission: see inbox.Item
	Hops                             int      // system_message: number of agents it passed through; 0 from a user or the clock
	// Untrusted marks text from outside without a known user (a webhook's payload). The
	// model sees the mark.
	Untrusted bool
	// Source names the origin of text that is not from the owner: a hook, a mail, a guest,
	// an agent that read such text. In its turn, permissions apply as in an untrusted turn.
	// It is empty for the owner's own messages.
	Source string
}

// A Script is a file named in a command, with the hash of its content.
type Script struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // in hex, or "unreadable"
}

// maxRelayed limits a Source, in characters.
const maxRelayed = 300

// Relayed returns the Source of a message from an agent that has read text of these sources,
// or "" if there are none.
func Relayed(agent string, sources []string) string {
	if len(sources) == 0 {
		return ""
	}
	return bounded("agent " + agent + ", which read " + strings.Join(sources, ", "))
}

// A Queue says how a busy agent handles a message.
type Queue string

// The values that a message can set.
const (
	Steer    Queue = "steer"    // join the current turn before its next model call
	Followup Queue = "followup" // wait for a separate turn
)

// ToAgent is the Connector of the address of another agent, whose id is the ChannelID. No
// connector in the settings can have this id.
const ToAgent = "@agent"

// A Report accompanies an answer to another agent.
type Report struct {
	From   string // id of the agent whose turn ended
	Failed bool
	Hops   int // number of agents it passed through
}

// An Outgoing is one answer, or one part of it, on its way to a chat.
type Outgoing struct {
	ID      string // of the promise in history; the same on every attempt
	To      Address
	ReplyTo string // the platform's id of the answered message
	Text    string // Markdown
	Files   []File
	Part    int     // from 0
	Parts   int     // number of parts of the answer
	Agent   string  // that answers
	Retry   bool    // it may already be delivered: use the platform's idempotency
	Report  *Report // to another agent; nil to a chat
}

// A Promise is an answer that is recorded in history and has to be delivered. Done are the
// parts that are already delivered. Report is called with the final result of every other
// part, and with failed attempts worth recording.
type Promise struct {
	Outgoing
	Agent  string    // the agent that answers, for events
	Since  time.Time // when it was recorded; delivery is given up 24 h later
	Done   map[int]bool
	Urgent bool // it does not wait for the end of quiet hours
	Report func(Result)
}

// A Result is the delivery result of one part of a promise. With an Error but without
// Final, delivery is tried again.
type Result struct {
	Out      string
	Part     int
	Parts    int
	RemoteID string
	Error    string
	Retry    bool // not the first attempt
	Final    bool // given up
	Kept     bool // this process stops trying; the next one continues
}

// Delivered reports whether the part arrived.
func (f Result) Delivered() bool { return f.Error == "" && !f.Kept }

// Key returns the idempotency key of this part, the same on every attempt.
func (o Outgoing) Key() string {
	if o.Parts <= 1 {
		return o.ID
	}
	return o.ID + "." + strconv.Itoa(o.Part)
}

// An Amendment is what the sender of a message did to it afterwards on the platform: they
// edited or deleted it.
type Amendment struct {
	From      Address  // of the sender, who can only amend their own messages
	Agent     string   // as in Incoming
	For       *Address // as in Incoming
	MessageID string   // the platform's id of the message
	Text      string   // what it reads now
	Deleted   bool
}

// A Receipt confirms that an item is durable.
type Receipt struct {
	Agent     string `json:"agent"`
	Item      string `json:"item"`
	Seq       int64  `json:"seq"`
	Duplicate bool   `json:"duplicate"` // accepted before with the same dedupe key, as Item
}

// Deliver passes a message to the engine and returns when it is durable. After
// inbox.ErrFull, disk.ErrFull and *TooFast the caller waits and tries again; after
// inbox.ErrTooLarge and ErrUnknownAgent it gives up and reports that.
type Deliver func(ctx context.Context, in Incoming) (Receipt, error)

// ErrUnknownAgent means that no agent has the id, or that the agent has ended.
var ErrUnknownAgent = fault.UnknownAgent

// TooFast refuses a message because its sender exceeds the rate limit. The caller can try
// again after that time.
type TooFast struct{ After time.Duration }

func (e *TooFast) Error() string { return "too many messages from this sender" }

// Seconds returns After as the value of a Retry-After header.
func (e *TooFast) Seconds() int { return int(e.After.Round(time.Second)/time.Second) + 1 }

// NotSent is the error of Connector.Send: a part was not delivered.
type NotSent struct {
	Final bool          // a retry is useless: the chat is gone, the bot is blocked
	After time.Duration // how long the platform asks to wait; 0: use the engine's backoff
	Err   error
}

func (e *NotSent) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NotSent) Unwrap() error { return e.Err }

// Elsewhere means that the agent is owned by another machine.
type Elsewhere struct{ Node string }

func (e *Elsewhere) Error() string { return "the agent is on machine " + e.Node }
