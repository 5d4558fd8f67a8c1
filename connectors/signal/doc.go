// Package signal is the connector for Signal, by way of signal-cli's HTTP daemon:
// JSON-RPC to send, server-sent events to receive. There is no library for either
// that is shorter than this.
//
// config.go has the settings, rpc.go calls methods, events.go reads the stream,
// receive.go makes posts of envelopes, send.go answers, child.go starts the
// daemon. What is the same for all chats is in connectors/chat.
// docs/connectors/signal.md is for users.
package signal
