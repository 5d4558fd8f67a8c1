// Package telegramtest is a fake of Telegram's Bot API on loopback, for tests:
// written from the documented behaviour of the methods that the connector calls,
// with faults that the real one has on bad days.
package telegramtest
