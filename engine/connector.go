package engine

import (
	"context"

	"daycare/engine/message"
)

// A Connector is one way in which users or services reach agents. Its settings
// are its own; everything that is the same for all (retry, order, splitting into
// promised parts, dedupe, restart after a failure) is the engine's.
//
// Requirements, checked by connectors/connectortest:
//   - Run receives until ctx ends. It calls deliver for each message and tells
//     its platform "received" only after deliver returned nil. It returns when
//     everything it started has ended. An error restarts it after a pause.
//   - Send works while Run does not, and from many goroutines at once (though
//     never twice at once for one chat).
//   - No error, log line or message holds a secret.
type Connector interface {
	// ID is the connector's id in settings, the Address.Connector of all it
	// receives.
	ID() string
	Run(ctx context.Context, deliver message.Deliver) error
	// Send delivers one part. An error that wraps *message.NotSent says when to
	// try again or that it is no use; any other error is tried again with backoff.
	Send(ctx context.Context, out message.Outgoing) (remoteID string, err error)
}

// A Splitter is a connector whose platform bounds a message: it cuts a Markdown
// text into the parts that Send is called with, each at most the platform's limit
// when rendered.
type Splitter interface {
	Split(text string) []string
}

// An Attacher is a Splitter whose platform takes files. An answer that is longer than three
// messages is sent as its beginning, with the whole as a file.
type Attacher interface {
	// Rest says, below the beginning, that the whole answer is in the file; "": no files can be
	// sent now.
	Rest() string
}

// An Answerer is a connector that cannot answer everywhere, such as a hook without
// a callback. Where it cannot, no answer is promised: history is its delivery.
type Answerer interface {
	Answers(to message.Address) bool
}

// A Reactor is a connector whose platform takes reactions: an emoji under a message.
type Reactor interface {
	// React puts emoji under the message with the platform's id messageID. The same
	// one again changes nothing, so a call whose answer was lost is made again. One
	// try; the error is for the model to read.
	React(ctx context.Context, to message.Address, messageID, emoji string) error
}

// An Interim connector delivers also the text that the model writes beside its
// tool calls.
type Interim interface {
	Interim() bool
}
