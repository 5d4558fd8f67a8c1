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
