// Package matrix is the connector for Matrix: rooms, threads, replies, reactions, files. It
// speaks the client-server API with net/http: what is used of it is small, and the place of
// the sync is moved on when everything before it is durable, not when a library has read it.
//
// config.go has the settings, api.go makes calls, sync.go reads what happened, receive.go
// makes posts of events, send.go answers, sealed.go is encrypted rooms. What is the same for all chats is in
// connectors/chat. docs/connectors/matrix.md is for users.
package matrix
