// Package event defines the events that user interfaces watch, and the Stream that
// hands them out. Events can be lost: no message waits for one, and nothing is decided by
// one.
package event
