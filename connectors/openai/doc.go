// Package openai is the connector for clients of OpenAI's API: an unmodified client with the base
// URL http://HOST:PORT/v1 of control.listen lists agents as models and talks to them. It has no
// listener and no secrets: the control API serves its paths, and a token says who may use them.
//
// request.go reads what clients send, talk.go makes one message of it, serve.go posts that and
// follows its turn, chat.go and responses.go are the two forms of an answer. docs/openai.md is for
// those who set up a client.
package openai
