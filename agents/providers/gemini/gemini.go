// Package gemini speaks the native API of Google's Gemini models, streaming: POST
// {base}/v1beta/models/{model}:streamGenerateContent?alt=sse. (The same service
// also answers Chat Completions, which package openai speaks.)
//
// A message is encoded once and its bytes are sent again at every later call, see
// package anthropic for why. The service caches equal prefixes by itself.
//
// Thought signatures: the models sign what they thought and insist on the
// signature of a call when its result comes back. It stands at the first of the
// calls of an answer, or at its text. It travels as a Reasoning whose Signature
// begins with "call:<place>:" or "text:", and goes back at the same place. Calls
// of other models carry the word that the service documents for them. The
// thoughts themselves are shown and recorded, never sent back.
//
// Thinking: Request.Thinking low, medium, high is the thinkingLevel; models of
// generation 2, which only know a token budget, get one. The option
// "generationConfig" of the settings replaces all of it.
//
// Source: ai.google.dev/gemini-api/docs, generateContent, Thought signatures,
// Function calling, Thinking; ai.google.dev/api, GenerateContentResponse.
package gemini

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"daycare/agents/providers"
)

// Wire is the name of the format.
const Wire = "gemini"

const defaultBase = "https://generativelanguage.googleapis.com"

// Options are what New needs; all but Model may be left out.
type Options struct {
	ID        string // "" takes the wire's name
	BaseURL   string // up to and without /models/…; "" is the vendor's own service
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
	base    string
	own     bool // the service is Google's
	options providers.Options
	key     string // of the kept encodings
}

// versioned matches a base URL that names the version of the API.
var versioned = regexp.MustCompile(`/v\d+(alpha|beta)?\d*$`)

// New checks the options; an error is the settings' fault.
func New(o Options) (*Provider, error) {
	fields, err := providers.EncodeOptions(o.Options, "contents", "systemInstruction", "tools")
	if err != nil {
		return nil, err
	}
	o.ID = cmp.Or(o.ID, Wire)
	base := strings.TrimRight(cmp.Or(o.BaseURL, defaultBase), "/")
	if !versioned.MatchString(base) {
		base += "/v1beta"
	}
	if o.HTTP == nil {
		o.HTTP = &http.Client{Transport: providers.NewTransport(0)}
	}
	if o.Key == nil {
		o.Key = func() string { return "" }
	}
	return &Provider{o: o, base: base, own: strings.HasPrefix(base, defaultBase+"/"), options: fields, key: Wire + ":" + o.ID}, nil
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
			Provider: p.o.ID, Client: p.o.HTTP, URL: p.url(req), Header: p.header(key), Model: p.model(req),
			Body: p.body(req), Request: req, Secrets: p.secrets(key), Idle: p.o.Idle,
		}
		x.Events(ctx, newDecoder(x))(yield)
	}
}

// model is the one that a request asks for.
func (p *Provider) model(req *providers.Request) string {
	return strings.TrimPrefix(cmp.Or(req.Model, p.o.Model), "models/")
}

func (p *Provider) url(req *providers.Request) string {
	return p.base + "/models/" + url.PathEscape(p.model(req)) + ":streamGenerateContent?alt=sse"
}

func (p *Provider) header(key string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream")
	h.Set("User-Agent", "daycare")
	if key != "" {
		h.Set("X-Goog-Api-Key", key)
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
