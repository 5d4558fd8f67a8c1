// Package platforms has the chat platforms that chaos plays: fakes on loopback that live as
// long as a case, whatever becomes of daycare, with the faults that the real ones
// have on bad days.
//
// telegram.go is asked for updates and forgets those that were confirmed, matrix.go is asked
// for what happened since a place and takes a message once under its key, whatsapp.go posts.
package platforms
