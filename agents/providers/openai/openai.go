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
	"cmp"
	"context"
	"iter"
	"net/http"
	"strings"
	"time"

	"daycare/agents/providers"
)

// Wire is the name of the format.
const Wire = "openai"

const defaultBase = "https://api.openai.com/v1"

// Options are what New needs; all but Model may be left out.
type Options struct {
	ID        string // "" takes the wire's name
	BaseURL   string // up to and without /chat/completions; "" is OpenAI's own service
	Model     string
	Key       func() string     // asked at every request, so that a new key counts at once
	Headers   map[string]string // added to every request; win over the wire's own
	Options   map[string]any    // fields added to every request body; win over the wire's own
	HTTP      *http.Client      // nil makes one with providers.NewTransport
	MaxTokens int               // of an answer, where the request has no limit; 0: the model's
	Idle      time.Duration     // longest silence of a stream; 0 takes providers.IdleTimeout
}

// Provider is one model service. Its methods may be called from many goroutines.
type Provider struct {
	o       Options
	url     string
	own     bool // the service is OpenAI's
	gemini  bool // it is Google's
	options providers.Options
	limit   string // name of the field with the limit of the answer
	key     string // of the kept encodings
}

// New checks the options; an error is the settings' fault.
func New(o Options) (*Provider, error) {
	fields, err := providers.EncodeOptions(o.Options, "messages", "tools", "stream")
	if err != nil {
		return nil, err
	}
	o.ID = cmp.Or(o.ID, Wire)
	o.BaseURL = strings.TrimSuffix(strings.TrimRight(cmp.Or(o.BaseURL, defaultBase), "/"), "/chat/completions")
	if o.HTTP == nil {
		o.HTTP = &http.Client{Transport: providers.NewTransport(0)}
	}
	if o.Key == nil {
		o.Key = func() string { return "" }
	}
	p := &Provider{
		o: o, url: o.BaseURL + "/chat/completions", own: strings.HasPrefix(o.BaseURL, "https://api.openai.com/"),
		options: fields, limit: "max_tokens", key: Wire + ":" + o.ID,
	}
	p.gemini = strings.HasPrefix(o.BaseURL, "https://generativelanguage.googleapis.com/")
	if p.own {
		p.limit = "max_completion_tokens"
	}
	for _, name := range []string{"max_tokens", "max_completion_tokens"} {
		if _, ok := fields[name]; ok {
			p.limit = name
		}
	}
	return p, nil
}

// ID is the provider's id in the settings.
func (p *Provider) ID() string { return p.o.ID }

// Wire is the name of the format.
func (p *Provider) Wire() string { return Wire }

// Stream makes one request; see providers.Provider.
func (p *Provider) Stream(ctx context.Context, req *providers.Request) iter.Seq[providers.Event] {
	return func(yield func(providers.Event) bool) {
		key := strings.TrimSpace(p.o.Key())
		if key == "" && p.own && len(p.o.Headers) == 0 {
			yield(providers.Error{Err: &providers.Failure{
				Kind: providers.Auth, Provider: p.o.ID, Message: "there is no API key",
			}})
			return
		}
		x := &providers.Exchange{
			Provider: p.o.ID, Client: p.o.HTTP, URL: p.url, Header: p.header(key), Model: p.model(req),
			Body: p.body(req), Request: req, Secrets: p.secrets(key), Idle: p.o.Idle,
		}
		x.Events(ctx, newDecoder(x))(yield)
	}
}

func (p *Provider) model(req *providers.Request) string { return cmp.Or(req.Model, p.o.Model) }

func (p *Provider) header(key string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream")
	h.Set("User-Agent", "daycare")
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	for name, value := range p.o.Headers {
		h.Set(name, value)
	}
	return h
}

// secrets are the values that no error may show: headers may carry keys as well.
func (p *Provider) secrets(key string) []string {
	s := []string{key}
	for _, value := range p.o.Headers {
		s = append(s, value)
	}
	return s
}
