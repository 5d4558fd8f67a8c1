package gemini

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"daycare/agents/providers"
	"daycare/engine/lazyregexp"
)

// Wire is the name of the format.
const Wire = "gemini"

const defaultBase = "https://generativelanguage.googleapis.com"

// Options are the settings of a service. BaseURL is up to and without /models/…; ""
// is the vendor's own service.
type Options = providers.Service

// Provider is one model service. Its methods may be called from many goroutines.
type Provider struct {
	providers.Remote
	base string
}

// versioned matches a base URL that names the version of the API.
var versioned = lazyregexp.New(`/v\d+(alpha|beta)?\d*$`)

// New checks the options; an error is the settings' fault.
func New(o Options) (*Provider, error) {
	remote, err := providers.NewRemote(Wire, o, defaultBase, "", "contents", "systemInstruction", "tools")
	if err != nil {
		return nil, err
	}
	p := &Provider{remote, remote.Service.BaseURL}
	if !versioned.MatchString(p.base) {
		p.base += "/v1beta"
	}

	return p, nil
}

// Stream makes one request; see providers.Provider.
func (p *Provider) Stream(ctx context.Context, req *providers.Request) iter.Seq[providers.Event] {
	return p.Remote.Stream(ctx, req, func() providers.Outgoing {
		return providers.Outgoing{URL: p.url(req), Model: p.Model(req), Body: p.body(req), Sign: sign, Decoder: newDecoder}
	})
}

// Model is the one that a request asks for.
func (p *Provider) Model(req *providers.Request) string {
	return strings.TrimPrefix(p.Remote.Model(req), "models/")
}

func (p *Provider) url(req *providers.Request) string {
	return p.base + "/models/" + url.PathEscape(p.Model(req)) + ":streamGenerateContent?alt=sse"
}

func sign(h http.Header, key string) { providers.SetDefault(h, "X-Goog-Api-Key", key) }
