// Package anthropic speaks the Messages API of Anthropic, streaming: POST
// {base}/v1/messages, answers as server-sent events. It also serves what speaks
// the same format behind another base URL.
//
// Requests are written by hand and not by the vendor's SDK, because a message is
// encoded once and its bytes are sent again at every later call: that keeps turn
// 1,000 as cheap as turn 10, and the prefix equal byte for byte, on which the
// vendor's prompt cache depends. Up to four cache markers are set: the last tool,
// the system prompt, the last message, and the message that was last at the
// previous call. The markers of messages move, so they are put into the kept bytes
// on the way out (encode.go).
//
// Thinking: Request.Thinking low, medium, high asks for adaptive thinking with
// that effort; models up to Claude 4.5, which only know a token budget, get one.
// The option "thinking" in the settings replaces either; "output_config" likewise.
// While thinking is on, the temperature is not sent: the API refuses it.
// A thinking block goes back with its signature, a redacted one as a Reasoning
// whose Signature begins with "redacted:". Blocks go back in the order thinking,
// text, calls, which is the order of every answer without server-side tools.
//
// Version 2023-06-01 of the API is spoken; the header anthropic-version can be set
// in the settings like any other.
//
// Source: platform.claude.com/docs, Streaming messages, Thinking, Prompt caching,
// Errors.
package anthropic

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
const Wire = "anthropic"

const (
	defaultBase   = "https://api.anthropic.com"
	version       = "2023-06-01"
	defaultTokens = 16000 // the API insists on a limit; every current model takes this one
)

// Options are what New needs; all but Model may be left out.
type Options struct {
	ID        string // "" takes the wire's name
	BaseURL   string // "" is the vendor's own service
	Model     string
	Key       func() string     // asked at every request, so that a new key counts at once
	Headers   map[string]string // added to every request; win over the wire's own
	Options   map[string]any    // fields added to every request body; win over the wire's own
	HTTP      *http.Client      // nil makes one with providers.NewTransport
	MaxTokens int               // of an answer, where the request has no limit
	Idle      time.Duration     // longest silence of a stream; 0 takes providers.IdleTimeout
}

// Provider is one model service. Its methods may be called from many goroutines.
type Provider struct {
	o       Options
	url     string
	options providers.Options
	key     string // of the kept encodings
}

// New checks the options; an error is the settings' fault.
func New(o Options) (*Provider, error) {
	fields, err := providers.EncodeOptions(o.Options, "messages", "system", "tools", "stream")
	if err != nil {
		return nil, err
	}
	o.ID = cmp.Or(o.ID, Wire)
	o.BaseURL = strings.TrimSuffix(strings.TrimRight(cmp.Or(o.BaseURL, defaultBase), "/"), "/v1")
	o.MaxTokens = cmp.Or(o.MaxTokens, defaultTokens)
	if o.HTTP == nil {
		o.HTTP = &http.Client{Transport: providers.NewTransport(0)}
	}
	if o.Key == nil {
		o.Key = func() string { return "" }
	}
	return &Provider{o: o, url: o.BaseURL + "/v1/messages", options: fields, key: Wire + ":" + o.ID}, nil
}

// ID is the provider's id in the settings.
func (p *Provider) ID() string { return p.o.ID }

// Wire is the name of the format.
func (p *Provider) Wire() string { return Wire }

// Stream makes one request; see providers.Provider.
func (p *Provider) Stream(ctx context.Context, req *providers.Request) iter.Seq[providers.Event] {
	return func(yield func(providers.Event) bool) {
		key := strings.TrimSpace(p.o.Key())
		if key == "" && p.o.BaseURL == defaultBase && len(p.o.Headers) == 0 {
			yield(providers.Error{Err: &providers.Failure{
				Kind: providers.Auth, Provider: p.o.ID, Message: "there is no API key",
			}})
			return
		}
		x := &providers.Exchange{
			Provider: p.o.ID, Client: p.o.HTTP, URL: p.url, Header: p.header(key, p.model(req)), Model: p.model(req),
			Body: p.body(req), Request: req, Secrets: p.secrets(key), Idle: p.o.Idle,
		}
		x.Events(ctx, newDecoder(x))(yield)
	}
}

func (p *Provider) model(req *providers.Request) string { return cmp.Or(req.Model, p.o.Model) }

func (p *Provider) header(key, model string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream")
	h.Set("User-Agent", "daycare")
	h.Set("Anthropic-Version", version)
	if key != "" {
		h.Set("X-Api-Key", key)
	}
	for name, value := range p.o.Headers {
		h.Set(name, value)
	}
	if bound(model) {
		h.Set("Anthropic-Beta", strings.TrimPrefix(h.Get("Anthropic-Beta")+","+boundBeta, ","))
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
