// Package discord is the connector for a Discord bot, over the gateway and the REST API. It
// speaks both with net/http and a websocket: what is used of them is small, a library would
// add a cache of whole servers, and what was missed has to be fetched by ourselves anyway.
//
// config.go has the settings, api.go calls the REST API, gateway.go is the connection over
// which Discord tells what happens, rooms.go knows the channels, receive.go reads messages,
// interact.go buttons and slash commands, send.go answers. What is the same for all chats is
// in connectors/chat. docs/connectors/discord.md is for users.
package discord
