// Package transcript is one agent's conversation as a user reads it: the records
// of history, and behind them what streams in before it is recorded. History is the
// truth; events only show early what a record will say, and give way to it.
//
// A Transcript is fed with pages of history and events of one agent, in any order
// and as often as wanted: both are idempotent. It sets only the lines that are
// looked at, and keeps what it set.
package transcript
