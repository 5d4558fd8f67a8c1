// Package e2ee is the end-to-end encryption of Matrix: the keys of one device, the sessions with
// others, and the messages that are in them. It is in builds with the tag goolm only: without
// it the library, mautrix, wants libolm, which is C.
//
// ledger.go keeps keys durably and files.go is files, in every build; machine.go, store.go and
// sessions.go are the builds with the tag, and off.go is the others.
package e2ee
