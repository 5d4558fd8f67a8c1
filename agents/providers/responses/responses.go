// Package responses speaks OpenAI's Responses API, streaming: POST {base}/responses.
// It is what api.openai.com is spoken to with: its models since GPT-5.6 refuse tools
// on Chat Completions ("Function tools with reasoning_effort are not supported … use
// /v1/responses"), and only here a model's reasoning can be given back to it.
// Elsewhere the setting `options: {wire: responses}` chooses it.
//
// Nothing is kept by the service (store: false). Its reasoning comes encrypted and
// goes back as it came, to the model that made it; the conversation's name is the
// key of the prompt cache. A message is encoded once and its bytes are sent again at
// every later call, see package anthropic for why.
//
// Options of the settings are added to the body as they are and win over the wire's
// own fields, null removes one.
//
// Source: developers.openai.com/api/reference/resources/responses (create,
// streaming events), and the guides Reasoning models, Conversation state and
// Function calling.
package responses

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"regexp"
	"strings"
	"time"

	"daycare/agents/providers"
)

// Wire is the name of the format.
const Wire = "responses"

const defaultBase = "https://api.openai.com/v1"

// Options are what New needs; all but Model may be left out.
type Options struct {
	ID        string // "" takes the wire's name
	BaseURL   string // up to and without /responses; "" is OpenAI's own service
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
	options providers.Options
	key     string // of the kept encodings
}

// New checks the options; an error is the settings' fault.
func New(o Options) (*Provider, error) {
	fields, err := providers.EncodeOptions(o.Options, "input", "instructions", "tools", "stream", "store", "previous_response_id", "conversation")
	if err != nil {
		return nil, err
	}
	o.ID = cmp.Or(o.ID, Wire)
	o.BaseURL = strings.TrimSuffix(strings.TrimRight(cmp.Or(o.BaseURL, defaultBase), "/"), "/responses")
	if o.HTTP == nil {
		o.HTTP = &http.Client{Transport: providers.NewTransport(0)}
	}
	if o.Key == nil {
		o.Key = func() string { return "" }
	}
	return &Provider{
		o: o, url: o.BaseURL + "/responses", own: Own(o.BaseURL), options: fields, key: Wire + ":" + o.ID,
	}, nil
}

// Own reports whether a base URL is OpenAI's own service; "" is.
func Own(baseURL string) bool {
	return baseURL == "" || strings.HasPrefix(baseURL, "https://api.openai.com/")
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

// plainModel matches OpenAI's models that do not reason: they take a temperature
// and refuse to be asked for encrypted reasoning. A closed list, as every later
// one reasons.
var plainModel = regexp.MustCompile(`^(ft:)?(gpt-(3|4)|chatgpt-|gpt-5[^/]*-chat)`)
