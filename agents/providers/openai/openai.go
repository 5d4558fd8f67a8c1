// Package openai speaks Chat Completions, streaming: POST {base}/chat/completions.
// With a base URL it serves everything that speaks the format: Ollama
// (http://localhost:11434/v1), llama.cpp, vLLM, OpenRouter, Groq, Gemini
// (…/v1beta/openai) and others. The reading half is lenient, as the servers differ
// in much (decode.go); the writing half sends what all of them take.
//
// A message is encoded once and its bytes are sent again at every later call, see
// package anthropic for why.
//
// Options of the settings are added to the body as they are and win over the
// wire's own fields, null removes one: `stream_options: null` for a server that
// refuses it. max_tokens or max_completion_tokens as an option says what the
// answer's limit is called, and is its value where a request has none; without,
// it is max_completion_tokens at api.openai.com and max_tokens elsewhere.
//
// Reasoning is shown and recorded, and never sent back: the format has no place
// for it. The exception is Gemini, which wants the thought_signature of a call
// back: it travels as a Reasoning whose Signature begins with "google:".
//
// Source: platform.openai.com/docs/api-reference/chat, openrouter.ai/docs
// (streaming, errors), ai.google.dev/gemini-api/docs/openai.
package openai

import (
	"context"
	"iter"

	"daycare/agents/providers"
)

// Wire is the name of the format.
const Wire = "openai"

const (
	defaultBase = "https://api.openai.com/v1"
	geminiBase  = "https://generativelanguage.googleapis.com"
)

// Options are the settings of a service. BaseURL is up to and without
// /chat/completions; "" is OpenAI's own service.
type Options = providers.Service

// Provider is one model service. Its methods may be called from many goroutines.
type Provider struct {
	providers.Remote
	gemini bool   // the service is Google's
	limit  string // name of the field with the limit of the answer
}

// New checks the options; an error is the settings' fault.
func New(o Options) (*Provider, error) {
	remote, err := providers.NewRemote(Wire, o, defaultBase, "/chat/completions", "messages", "tools", "stream")
	if err != nil {
		return nil, err
	}
	p := &Provider{Remote: remote, limit: "max_tokens", gemini: providers.SameHost(remote.Service.BaseURL, geminiBase)}
	if p.Own {
		p.limit = "max_completion_tokens"
	}

	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if _, ok := p.Fields[name]; ok {
			p.limit = name
		}
	}

	return p, nil
}

func (p *Provider) url() string { return p.Service.BaseURL + "/chat/completions" }

// Stream makes one request; see providers.Provider.
func (p *Provider) Stream(ctx context.Context, req *providers.Request) iter.Seq[providers.Event] {
	return p.Remote.Stream(ctx, req, func() providers.Outgoing {
		return providers.Outgoing{
			URL: p.url(), Model: p.Model(req), Body: p.body(req),
			Sign: providers.Bearer, Decoder: newDecoder,
		}
	})
}
