// Package whatsapp is the connector for a number of the WhatsApp Cloud API: Meta posts what
// users write, signed, and answers go through the Graph API.
//
// config.go has the settings, api.go calls the Graph API, posted.go takes what Meta posts,
// receive.go reads it, send.go answers, state.go remembers who may be written to. What is the
// same for all chats is in connectors/chat. docs/connectors/whatsapp.md is for users.
package whatsapp
