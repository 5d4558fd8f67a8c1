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
