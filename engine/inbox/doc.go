// Package inbox is an agent's durable mailbox: accepted items, in order, until they are
// done. The contract is Mailbox; File implements it with one inbox.jsonl, and inboxtest is
// the suite that every implementation passes.
//
// The order of an inbox is the order of acceptance. An item is accepted when it is behind
// a barrier (durable), and done when the record that closes it is behind a barrier in the
// agent's history. In between it is open, and open again after any crash.
package inbox
