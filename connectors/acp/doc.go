// Package acp lets an editor talk to agents over the Agent Client Protocol, version 1: JSON-RPC on
// stdin and stdout. `daycare acp` runs it. Like every user interface it is a client of the
// control API; the daemon works on, whether an editor listens or not.
//
// A session is an agent whose connector is acp and whose channel is the id of the session. It is
// made by the first prompt. A prompt is a durable item of its inbox, posted under a key of its
// own, so that a second try after a crash is the same item.
//
// What an editor is shown is read from history, record by record; events only bring the text
// that streams earlier, and say when to read. So nothing depends on an event: after a kill of the
// daemon or of this process the records that were not shown yet follow.
//
// Where to look: door.go has the methods of the protocol, session.go a session and its prompt,
// follow.go the way to the daemon, teller.go what records and events become, calls.go tool calls
// and diffs, content.go what a prompt consists of, asks.go approvals, slash.go commands,
// wire.go the lines of JSON and their limits.
package acp
