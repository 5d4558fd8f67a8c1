package inbox

import (
	"context"
	"time"

	"daycare/engine/fault"
	"daycare/engine/message"
)

// An Item is one entry of an inbox: a message, a decision, a reset and so on.
type Item struct {
	Seq       int64            `json:"seq"` // from 1 in each file; a label only: the order is that of the lines
	At        time.Time        `json:"at"`
	Kind      message.Kind     `json:"type"`
	ID        string           `json:"id"` // cuid2, or the id in a dropped message
	Dedupe    string           `json:"dedupe,omitempty"`
	Context   message.Context  `json:"context,omitzero"`
	Route     *message.Address `json:"route,omitempty"`
	Text      string           `json:"text,omitempty"`
	Files     []message.File   `json:"files,omitempty"`
	Queue     message.Queue    `json:"queue,omitempty" allow:"steer|followup"`
	Origin    string           `json:"origin,omitempty"`
	Silent    bool             `json:"silent,omitempty"`
	Hops      int              `json:"hops,omitempty"`
	Untrusted bool             `json:"untrusted,omitempty"`
	// see message.Incoming
	Source string `json:"source,omitempty"`
	// permission: the token of the request
	Token    string `json:"token,omitempty"`
	Decision string `json:"decision,omitempty" allow:"once|always|prefix|deny|expired|freed|revoked|profile"` // permission
	// permission: who decided
	By string `json:"by,omitempty"`
	// permission: the permission asked for; Text is the exact request
	Tag string `json:"tag,omitempty"`
	// permission: the hash of the request
	SHA256 string `json:"sha256,omitempty"`
	// permission: the scripts that the granted rule is limited to
	Scripts []message.Script `json:"scripts,omitempty"`
	// see Mailbox.Reached; set by the mailbox
	After int64 `json:"after,omitempty"`
	// the line replaces an earlier one with the same id; set by Mailbox.Edit
	Edited bool `json:"edited,omitempty"`
	// Long: the text is to be in a file where the agent is. It is on the way only.
	Long bool `json:"-"`
}

// A Head is the part of an open item that is kept in memory; the rest stays on disk.
type Head struct {
	ID     string
	Seq    int64
	At     time.Time
	Kind   message.Kind
	Sender string // to join adjacent messages of one sender
	// Connector is the connector it came from, or another prefix of its dedupe key.
	Connector string
	Silent    bool
	Queue     message.Queue
	// After is less than the sequence number of the record that closes the item in the
	// agent's history; 0 means unknown.
	After int64
	Bytes int  // length of its line, without newline
	Taken bool // in a turn now; it can no longer be dropped
	// Fresh means that this mailbox accepted the item under an id that it created, and that
	// the item was not read since: no record can refer to it. False is always correct;
	// after a start it is false for all items.
	Fresh bool
}

var (
	// ErrFull means that the agent's inbox, or all inboxes together, are full. Nothing was
	// accepted; the caller can try again later.
	ErrFull = fault.InboxFull
	// ErrTooLarge means that the item exceeds MaxItemBytes; a retry is useless.
	ErrTooLarge = fault.TooLarge
	// ErrUnknown means that no open item has the id.
	ErrUnknown = fault.UnknownItem
	// ErrTaken means that the item is in a turn now.
	ErrTaken = fault.ItemTaken
	// ErrClosed means that the mailbox is closed.
	ErrClosed = fault.ShuttingDown
)

// Limits, so that memory stays bounded under a flood of messages.
const (
	MaxItemBytes  = 1 << 20  // text of one item, bytes
	MaxItems      = 1000     // open items of one agent
	MaxBytes      = 8 << 20  // open items of one agent, bytes on disk
	MaxBytesTotal = 64 << 20 // open items of all loaded agents, bytes on disk
	// DedupeWindow is how long a dedupe key is remembered.
	DedupeWindow = 7 * 24 * time.Hour
	// MaxKeys limits the dedupe keys that are kept when the file is rotated.
	MaxKeys = 20_000
)

// A Mailbox is one agent's inbox. Call Accept from any goroutine, Take and Done only from
// the agent's own.
//
// An implementation must follow these rules, which inboxtest checks:
//   - Accept returns when the item is durable. Concurrent calls share barriers.
//   - Two Accepts with the same dedupe key create one item. The second returns the id of
//     the first with Duplicate set, but not before the first is durable and open.
//   - A failed Accept can be repeated: whatever was written counts once, and is open as
//     soon as one of the calls succeeds.
//   - An id is unique: accepting it again, with any key, is a Duplicate, even after the
//     item was closed.
//   - Open lists open items in the order to work on them: the order of acceptance, but an
//     item that was moved to the front comes first.
//   - An accepted item that is neither done nor dropped is open again after any crash. An
//     item passed to Done is never open again once a later Accept has returned.
type Mailbox interface {
	// Accept adds an item and returns when it is durable. It sets Seq, and ID and At if they
	// are empty. Errors: ErrFull, ErrTooLarge, disk.ErrFull, disk.ErrFailed, disk.ErrAway, disk.ErrFenced.
	Accept(ctx context.Context, item Item) (message.Receipt, error)
	// Open returns the heads of all open items.
	Open() []Head
	// Len returns the number of open items.
	Len() int
	// Read returns an open item. Errors: ErrUnknown.
	Read(id string) (Item, error)
	// Take marks open items as being worked on and returns them. The mark is not stored: a
	// crash removes it. Errors: ErrUnknown.
	Take(ids ...string) ([]Item, error)
	// Untake undoes Take for items that were not worked on.
	Untake(ids ...string)
	// Done closes items whose closing record is durable in history. It does not wait for a
	// barrier: the barrier of the next Accept includes it.
	Done(ids ...string) error
	// Drop removes an open item for a user. Errors: ErrUnknown, ErrTaken.
	Drop(id string) error
	// Edit replaces the text of an open item, which keeps its place, and returns when that
	// is durable. Errors: ErrUnknown, ErrTaken, ErrTooLarge, ErrFull, disk.ErrFull,
	// disk.ErrFailed.
	Edit(id, text string) error
	// Front moves an open item before all others. Errors: ErrUnknown, ErrTaken.
	Front(id string) error
	// Reached reports that the agent's history has reached record seq: items accepted from
	// now on are closed by later records. Each item stores that, so that recovery does not
	// have to search the whole history for its closing record.
	Reached(seq int64)
	// Arrived receives (capacity 1) after items became open, as a hint to call Open.
	Arrived() <-chan struct{}
	// Wait returns when the item is not open: done, dropped or unknown.
	Wait(ctx context.Context, id string) error
	// Close closes the mailbox; open items stay on disk. Pending Waits return ErrClosed.
	Close() error
}
