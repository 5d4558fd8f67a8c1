package anthropic

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"strings"

	"daycare/agents/providers"
)

// Wire is the name of the format.
const Wire = "anthropic"

const (
	defaultBase   = "https://api.anthropic.com"
	version       = "2023-06-01"
	defaultTokens = 16000 // the API insists on a limit; every current model takes this one
)

// Options are the settings of a service. BaseURL is without /v1; "" is the vendor's
// own service.
type Options = providers.Service

// Provider is one model service. Its methods may be called from many goroutines.
type Provider struct{ providers.Remote }

// New checks the options; an error is the settings' fault.
func New(o Options) (*Provider, error) {
	o.MaxTokens = cmp.Or(o.MaxTokens, defaultTokens)
	remote, err := providers.NewRemote(Wire, o, defaultBase, "/v1", "messages", "system", "tools", "stream")
	if err != nil {
		return nil, err
	}

	return &Provider{remote}, nil
}

// Stream makes one request; see providers.Provider.
func (p *Provider) Stream(ctx context.Context, req *providers.Request) iter.Seq[providers.Event] {
	return p.Remote.Stream(ctx, req, func() providers.Outgoing {
		model := p.Model(req)
		return providers.Outgoing{
			URL: p.Service.BaseURL + "/v1/messages", Model: model, Body: p.body(req),
			Sign:    func(h http.Header, key string) { sign(h, key, model) },
			Decoder: newDecoder,
		}
	})
}

func sign(h http.Header, key, model string) {
	providers.SetDefault(h, "Anthropic-Version", version)
	providers.SetDefault(h, "X-Api-Key", key)
	if bound(model) {
		h.Set("Anthropic-Beta", strings.TrimPrefix(h.Get("Anthropic-Beta")+","+boundBeta, ","))
	}
}
