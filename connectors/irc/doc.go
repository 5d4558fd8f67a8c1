// Package irc is the connector for Internet Relay Chat: private messages, and
// channels where someone says its name. It takes the line format from irc-go and
// keeps the connection itself, because one connection has to serve both Run and a
// Send that comes while Run does not, and has to end with the last of them.
//
// config.go has the settings, session.go is one connection, greet.go how it begins,
// text.go makes lines.
// What is the same for all chats is in connectors/chat. docs/connectors/irc.md is
// for users.
package irc
