// Package backup copies a workspace's .daycare folder, as it is at one moment, and puts such
// a copy in place again.
//
// A backup is a gzipped tar. Its first file says what it is (Head), its last one has the
// SHA-256 of every other in the format of sha256sum, so an archive without it is not whole.
//
// The moment: crash.Hold makes all durable steps of the process wait, so the files are what
// a kill between two steps would leave, and what starts from a copy of them recovers as it
// does after a kill. Short files and inboxes are copied while the steps wait. Long files that
// only grow or never change (histories, ledgers, outputs, attachments) are copied afterwards,
// up to the size that they had. Without a daemon the caller holds the workspace's lock.
package backup
