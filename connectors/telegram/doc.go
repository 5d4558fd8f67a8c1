// Package telegram is the connector for a Telegram bot. It speaks the Bot API
// with net/http and a few structs of its own: the libraries run the polling loop
// themselves and move the offset on before a message is durable, which would lose
// messages in a crash, and their errors quote the address that holds the token.
//
// config.go has the settings, api.go calls methods, poll.go and webhook.go are
// the two ways in, receive.go reads updates, send.go answers. What is the same
// for all chats is in connectors/chat. docs/connectors/telegram.md is for users.
package telegram
