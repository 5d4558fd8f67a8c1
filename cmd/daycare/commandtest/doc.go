// Package commandtest is what tests of commands share: a House, which is a backend of the
// control API without a daemon, a Shell, which is a command line without a terminal, and Start,
// which runs a real daemon for a test.
package commandtest
