// Package inboxtest is the contract of inbox.Mailbox as a test. Every
// implementation calls Run from its own tests.
package inboxtest
