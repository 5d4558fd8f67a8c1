// Package pairing stores the requests of unknown users for access to a connector. Each request
// has a code that an owner approves within an hour.
//
// One small file limits everything: a user gets a code, and thereby an answer, at most once an
// hour, and at most ten users of a connector get one. Their messages are not stored. The file
// is read on each use, so that requests survive a restart and edits by hand apply.
package pairing
