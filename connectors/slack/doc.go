// Package slack is the connector for a Slack app, over Socket Mode or posted
// events. It speaks the Web API with net/http and Socket Mode with a websocket:
// what is used of both is small, and an event must be acknowledged after it is
// durable, not when a library has read it.
//
// config.go has the settings, api.go calls methods, socket.go and posted.go are
// the two ways in, receive.go reads events, send.go answers. What is the same for
// all chats is in connectors/chat. docs/connectors/slack.md is for users.
package slack
