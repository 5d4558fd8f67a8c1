package responses

import (
	"context"
	"iter"

	"daycare/agents/providers"
	"daycare/engine/lazyregexp"
)

// Wire is the name of the format.
const Wire = "responses"

const defaultBase = "https://api.openai.com/v1"

// Options are the settings of a service. BaseURL is up to and without /responses; ""
// is OpenAI's own service.
type Options = providers.Service

// Provider is one model service. Its methods may be called from many goroutines.
type Provider struct{ providers.Remote }

// New checks the options; an error is the settings' fault.
func New(o Options) (*Provider, error) {
	remote, err := providers.NewRemote(Wire, o, defaultBase, "/responses",
		"input", "instructions", "tools", "stream", "store", "previous_response_id", "conversation")
	if err != nil {
		return nil, err
	}

	return &Provider{remote}, nil
}

// Own reports whether a base URL is OpenAI's own service; "" is.
func Own(baseURL string) bool { return baseURL == "" || providers.SameHost(baseURL, defaultBase) }

func (p *Provider) url() string { return p.Service.BaseURL + "/responses" }

// Stream makes one request; see providers.Provider.
func (p *Provider) Stream(ctx context.Context, req *providers.Request) iter.Seq[providers.Event] {
	return p.Remote.Stream(ctx, req, func() providers.Outgoing {
		return providers.Outgoing{
			URL: p.url(), Model: p.Model(req), Body: p.body(req),
			Sign: providers.Bearer, Decoder: newDecoder,
		}
	})
}

// plainModel matches OpenAI's models that do not reason: they take a temperature
// and refuse to be asked for encrypted reasoning. A closed list, as every later
// one reasons.
var plainModel = lazyregexp.New(`^(ft:)?(gpt-(3|4)|chatgpt-|gpt-5[^/]*-chat)`)
