// Package xmpp is the connector for XMPP: messages of users, and rooms. It speaks the
// protocol itself, because a stanza must be acknowledged when its message is durable, not
// when a library has read it, and libraries that acknowledge at all (XEP-0198) do that.
//
// config.go has the settings. stream.go is one connection up to its login, scram.go how a
// password is proved, session.go what is said over it, flow.go which stanzas either side has,
// marks.go what is durable, archive.go what was said while we were away, rooms.go who is in a
// room, receive.go makes posts of messages, send.go and upload.go answer. element.go and
// jid.go are XML and addresses. What is the same for all chats is in connectors/chat.
// docs/connectors/xmpp.md is for users.
package xmpp
