// Package inbox is an agent's durable mailbox: what was accepted, in order, until
// it is done. The contract is Mailbox; File is the implementation on one
// inbox.jsonl, inboxtest the suite that every implementation passes.
//
// The order of an inbox is the order of acceptance. "Accepted" is said only when
// the item is behind a barrier; "done" only when the record that closes the item
// is behind a barrier in the agent's history. In between an item is open, and a
// start after any crash finds it open again.
package inbox

import (
	"context"
	"time"

	"daycare/engine/fault"
	"daycare/engine/message"
)

// An Item is one thing for an agent to do.
type Item struct {
	Seq       int64            `json:"seq"` // from 1 in each file; a label, order is line order
	At        time.Time        `json:"at"`
	Kind      message.Kind     `json:"type"`
	ID        string           `json:"id"` // cuid2; for letters the letter's own
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
	// where it came from, if that does not speak for the owner
	Source string `json:"source,omitempty"`
	// permission: of the request
	Token    string `json:"token,omitempty"`
	Decision string `json:"decision,omitempty" allow:"once|always|prefix|deny|expired|freed|revoked|profile"` // permission
	// permission: who decided
	By string `json:"by,omitempty"`
	// permission: what was asked for; Text is the exact request
	Tag string `json:"tag,omitempty"`
	// permission: of the request that was decided
	SHA256 string `json:"sha256,omitempty"`
	// permission: what the rule that is given is bound to
	Scripts []message.Script `json:"scripts,omitempty"`
	// see Mailbox.Reached; set by the mailbox
	After int64 `json:"after,omitempty"`
}

// A Head is what is kept in memory of an open item; the body stays on disk.
type Head struct {
	ID     string
	Seq    int64
	At     time.Time
	Kind   message.Kind
	Sender string // who it is from, for joining adjacent messages of one sender
	// Connector is the one it came by, or whatever else its dedupe key begins with.
	Connector string
	Silent    bool
	Queue     message.Queue
	// After: the record that closes the item has a higher number in the agent's
	// history; 0: nothing is known.
	After int64
	Bytes int  // length of its line, without newline
	Taken bool // in a turn now; such an item can no longer be dropped
	// Fresh: the mailbox itself accepted it under an id that it made, and nobody has
	// looked at it since. No record anywhere can speak of such an item. False is
	// always allowed; after a start it is false for all.
	Fresh bool
}

var (
	// ErrFull: the agent's inbox or all inboxes together hold as much as they
	// may. Nothing was accepted; it may be offered again later.
	ErrFull = fault.InboxFull
	// ErrTooLarge: the item is over MaxItemBytes; offering it again is no use.
	ErrTooLarge = fault.TooLarge
	// ErrUnknown: no open item has that id.
	ErrUnknown = fault.UnknownItem
	// ErrTaken: the item is in a turn now.
	ErrTaken = fault.ItemTaken
	// ErrClosed: the mailbox is closed.
	ErrClosed = fault.ShuttingDown
)

// Limits, of guarantee G6: bounded memory under flood.
const (
	MaxItemBytes  = 1 << 20  // text of one item, bytes
	MaxItems      = 1000     // open items of one agent
	MaxBytes      = 8 << 20  // open items of one agent, bytes on disk
	MaxBytesTotal = 64 << 20 // open items of all loaded agents, bytes on disk
	// DedupeWindow is how long a dedupe key is remembered.
	DedupeWindow = 7 * 24 * time.Hour
	// MaxKeys bounds the keys carried over when the file is rotated.
	MaxKeys = 20_000
)

// A Mailbox is one agent's inbox. Accept may be called from any goroutine; Take
// and Done only from the agent's own.
//
// An implementation must keep these rules; inboxtest checks them:
//   - Accept returns after the item is durable. Concurrent calls share barriers.
//   - Two Accepts with one dedupe key give one item; the second returns the
//     first's id with Duplicate set, and not before the first is durable and open.
//   - An Accept that failed may be made again: what it had written by then counts
//     once, and is open as soon as one of them returns without an error.
//   - An id names one item: accepting it again, with whatever key, is a Duplicate,
//     also after the item was closed.
//   - Open lists open items in the order they are to be worked on: order of
//     acceptance, except that an item moved to the front comes before the rest.
//   - What is accepted and neither done nor dropped is open again after any
//     crash; what Done named is never open again, once a later Accept returned.
type Mailbox interface {
	// Accept takes an item. ID and At are set by the mailbox where empty; Seq
	// always. Errors: ErrFull, ErrTooLarge, disk.ErrFull, disk.ErrFailed.
	Accept(ctx context.Context, item Item) (message.Receipt, error)
	// Open lists the heads of all open items.
	Open() []Head
	// Len is the number of open items.
	Len() int
	// Read returns the body of an open item.
	Read(id string) (Item, error)
	// Take marks open items as being worked on and returns their bodies. The
	// mark is not kept on disk: a crash opens them again.
	Take(ids ...string) ([]Item, error)
	// Untake gives taken items back unworked.
	Untake(ids ...string)
	// Done closes items whose closing record is durable in history. It needs no
	// barrier of its own: the next Accept's carries it.
	Done(ids ...string) error
	// Drop removes an open item that is not taken: a person changed their mind.
	Drop(id string) error
	// Front moves an open item that is not taken before all others.
	Front(id string) error
	// Reached says that the agent's history has come to record seq: what is accepted
	// from now on is closed by a later one. An item notes that, so that after a crash
	// nobody has to look for its closing record in the whole past.
	Reached(seq int64)
	// Arrived receives (capacity 1) after items became open: a hint to look.
	Arrived() <-chan struct{}
	// Wait returns when the item is no longer open: done, dropped or never known.
	Wait(ctx context.Context, id string) error
	// Close ends the mailbox; what is open stays on disk. Open Waits return ErrClosed.
	Close() error
}
