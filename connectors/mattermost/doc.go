// Package mattermost is the connector for a bot account on a Mattermost server, over its
// websocket and REST API. The official library is not used: it brings all of the server's types.
//
// config.go has the settings, api.go calls the REST API, socket.go is the connection over
// which the server tells what happens, rooms.go fetches what was missed, receive.go reads
// posts, send.go answers, buttons.go has approvals with buttons. What is the same for all
// chats is in connectors/chat. docs/connectors/mattermost.md is for users.
package mattermost
