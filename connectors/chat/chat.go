package chat

import (
	"context"
	"io"
	"time"

	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
)

// A Platform is what the desk asks of its connector. What else a platform can do
// is in the interfaces below, each of them optional.
type Platform interface {
	// Say sends a short Markdown text that no history promises: the answer to a
	// command, a notice. One try; an error is only logged. replyTo may be "".
	Say(ctx context.Context, to message.Address, replyTo, text string) error
}

// A TypingNotifier shows that the agent is at work, for about typingEvery.
type TypingNotifier interface {
	Typing(ctx context.Context, to message.Address) error
}

// A CardSender shows questions with buttons. Each choice's Data comes back through
// Desk.Answer; it is at most 64 bytes, which is the least that a platform takes.
type CardSender interface {
	// Card shows a question under a key, as Poster.Post does.
	Card(ctx context.Context, to message.Address, key, text string, choices []Choice) (remoteID string, err error)
	// Settle replaces a card by a text without buttons.
	Settle(ctx context.Context, to message.Address, remoteID, text string) error
}

// A DirectMessenger finds the private chat with a user by their id.
type DirectMessenger interface {
	Direct(userID string) (to message.Address, ok bool)
}

// A Poster says things that can be referred to later: a request that users answer with a reaction.
type Poster interface {
	// Post is Say that returns the platform's id of the message. What was posted under the
	// same key before, perhaps by a process that died, is not posted again where the platform
	// can tell; "" is posted each time.
	Post(ctx context.Context, to message.Address, key, replyTo, text string) (id string, err error)
}

// An Editor can change what it said, so that an answer can be read while it is written.
type Editor interface {
	Poster
	// Edit replaces the text of a message of ours. The same text again changes nothing.
	Edit(ctx context.Context, to message.Address, id, text string) error
}

// A Choice is one button.
type Choice struct{ Label, Data string }

// A Host is the engine as chats see it, beside delivery. A nil member is an
// ability that is not there.
type Host struct {
	Directory Directory
	Agents    Agents
	Asks      Asks
	Events    Events
	Files     Files
	Hints     Keeper
	Waiting   Keeper // that keeps durably what is refused for now
	Session   func(agent string) (Session, error)
	// Owners are the users of a connector who answer for what agents ask, and the rights
	// that the others may give their own agents. nil: the first of Options.Allow, none.
	Owners func(connector string) (ids []string, ceiling permission.Set)
	Household
	// Switch changes the model of an agent and says what is active from its next
	// turn on. Its error is for users: it names what may have been meant.
	Switch func(ctx context.Context, agent, model string) (now string, err error)
	Own    Own
}

// Household is what the settings say about the people who chat, and what its machines remember
// together.
type Household struct {
	Admission Admission                   // nil: the allow list has the last word
	Talk      func(connector string) Talk // as the settings are now; nil: the defaults
	// Hear writes a voice message down. With ErrDeaf, or if it is nil, nothing does.
	Hear   func(ctx context.Context, v Voice) (text string, err error)
	Linked func(user message.Address) (agent string, ok bool) // the agent of a person who uses several connectors; nil: nobody does
	// Once is the value that a key was first given on any machine, in the last minutes. nil: there is
	// one machine.
	Once func(ctx context.Context, key, value string) (first string, err error)
}

// A Talk says how users and agents talk over a connector.
type Talk struct {
	Always    bool   // all messages of groups are for the agent
	Reactions bool   // a reaction is a message, which begins a turn
	Stream    bool   // answers are shown while they are written
	Language  string // of the fixed texts: "en", "de", "zh", "es"; "" is en
	AgentPer  string // "user", "chat" or "thread": who shares an agent in groups; "" is user
}

// Own are the commands that users of the workspace wrote as files.
type Own interface {
	Commands() []Command
	// Expand is the message that a command makes of what was typed behind its name; ok is
	// false if none has that name.
	Expand(name, arguments string) (text string, ok bool)
}

// A Directory knows whose agent is whose.
type Directory interface {
	// Find is the agent that an address maps to, if it was made already.
	Find(from message.Address) (agent string, ok bool)
	// Home is where the user is reached that an agent works for.
	Home(agent string) (to message.Address, ok bool)
}

// Agents is what chats ask about agents, and do to them.
type Agents interface {
	Agent(ctx context.Context, id string) (event.Agent, error)
	Agents(ctx context.Context) ([]event.Agent, error)
	// Known are the agents that an agent may know of.
	Known(ctx context.Context, asker string) ([]event.Agent, error)
	// Stop cancels the current turn; false: there is none.
	Stop(ctx context.Context, id string) (bool, error)
}

// An Amender is an Agents that edits or drops a queued message whose sender did so; false: it
// is not queued any more. Without one all amendments are notes.
type Amender interface {
	Amend(ctx context.Context, a message.Amendment) (done bool, err error)
}

// Asks is the queue of permission requests.
type Asks interface {
	List() []permission.Pending
	// Decide answers a request. earlier: someone was faster, and with what.
	// Errors: permission.ErrUnknown.
	Decide(ctx context.Context, token string, d permission.Decision, by string) (earlier *permission.Pending, err error)
}

// Events is the engine's stream. What it says is a hint: the desk looks for
// itself, too.
type Events interface {
	Subscribe(ctx context.Context) <-chan event.Event
}

// Files keeps what users send.
type Files interface {
	Put(name string, r io.Reader) (message.File, error)
}

// A Session is an agent's conversation since its start or last reset.
type Session struct {
	Title     string
	Since     time.Time
	Messages  int
	Context   int64 // tokens that the newest request had, 0 unknown
	Tokens    int64 // spent, in and out
	Cost      float64
	Providers []string // "id: model", in the order in which they are tried
}

// A Post is one message as its platform handed it over.
type Post struct {
	Key       string // the platform's own id of it, for the dedupe key
	From      message.Address
	Sender    string // a name for users
	MessageID string
	ReplyTo   string // id of the message that it answers
	Quote     string // the text of that message, if the platform says
	Text      string
	Files     []File
	Group     bool // others read along
	Addressed bool // in a group: it is meant for us
	// Note: it changes what was said before (an edit, a reaction). The agent hears
	// of it with its next message and begins no turn.
	Note bool
	Amended
}

// A Reaction is an emoji that a sender put under a message. The zero value is none.
type Reaction struct {
	To    string // the platform's id of the message
	Emoji string
}

// Amended is what a sender did to an earlier message of theirs. A queued one is edited, with its
// files, or dropped; of another one the agent hears as of a Note. A post without a user is of
// whoever wrote the message, if the desk knows: there are platforms that do not say.
type Amended struct {
	Amends  string // the id of the message that Text replaces, or that was deleted; "": none
	Deleted bool
	// Reaction is what a Note is about, if it is one.
	Reaction Reaction
}

// A File is an attachment that is still on the platform.
type File struct {
	Name string
	Size int64 // bytes, 0: not said
	Open func(ctx context.Context) (io.ReadCloser, error)
}
