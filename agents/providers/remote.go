package providers

import (
	"cmp"
	"context"
	"iter"
	"net/http"
	"strings"
	"time"
)

// A Service is the settings of one model service behind HTTP; all but Model may be
// left out.
type Service struct {
	ID        string // "" takes the wire's name
	BaseURL   string // up to and without the path of the wire; "" is the vendor's own service
	Model     string
	Key       func() string     // asked at every request, so that a new key counts at once
	KeyEnv    string            // the variable that the key is looked for in, for users; "" if it is not known
	Headers   map[string]string // added to every request; win over the wire's own
	Options   map[string]any    // fields added to every request body; win over the wire's own
	HTTP      *http.Client      // nil makes one with NewTransport
	MaxTokens int               // of an answer, where the request has no limit; 0: the model's
	Idle      time.Duration     // longest silence of a stream; 0 takes IdleTimeout
}

// A Remote is what all wires over HTTP have in common; a wire embeds it and writes
// its own bodies. Its methods may be called from many goroutines.
type Remote struct {
	Service Service // with what was left out filled in
	Fields  Options // Service.Options, encoded
	Own     bool    // it is the vendor's own service, which nobody may use without a key
	wire    string
}

// NewRemote checks the settings of a service; an error is their fault. base is the
// vendor's own service; path is what users leave at the end of a base URL that the
// wire adds itself; reserved are fields of the body that settings may not replace.
func NewRemote(wire string, s Service, base, path string, reserved ...string) (Remote, error) {
	fields, err := EncodeOptions(s.Options, reserved...)
	if err != nil {
		return Remote{}, err
	}
	s.ID = cmp.Or(s.ID, wire)
	s.BaseURL = strings.TrimSuffix(strings.TrimRight(cmp.Or(s.BaseURL, base), "/"), path)
	if s.HTTP == nil {
		s.HTTP = &http.Client{Transport: NewTransport(0)}
	}
	if s.Key == nil {
		s.Key = func() string { return "" }
	}

	return Remote{Service: s, Fields: fields, Own: SameHost(s.BaseURL, base), wire: wire}, nil
}

// SameHost reports whether a base URL is of the same scheme and host as a vendor's.
func SameHost(baseURL, vendor string) bool {
	origin := func(s string) string {
		scheme, rest, _ := strings.Cut(s, "://")
		host, _, _ := strings.Cut(rest, "/")
		return scheme + "://" + host
	}

	return origin(baseURL) == origin(vendor)
}

// ID is the provider's id in the settings.
func (r *Remote) ID() string { return r.Service.ID }

// Wire is the name of the format.
func (r *Remote) Wire() string { return r.wire }

// Model is the one that a request asks for.
func (r *Remote) Model(req *Request) string { return cmp.Or(req.Model, r.Service.Model) }

// EncodingKey is under which messages keep their encoded bytes for a model: what a
// vendor has signed goes back only to where it came from.
func (r *Remote) EncodingKey(model string) string {
	return r.wire + ":" + r.Service.ID + ":" + model
}

// An Outgoing is one request as its wire wants it.
type Outgoing struct {
	URL   string
	Model string
	Body  *Body
	// Sign adds the key ("" if there is none) and what else the wire wants in the
	// header. The header has those of the settings already, which win: see SetDefault.
	Sign    func(h http.Header, key string)
	Decoder func(*Exchange) Decoder
}

// Stream makes one request; prepare is called when the stream is read, so that its
// costs are the reader's. See Provider.
func (r *Remote) Stream(ctx context.Context, req *Request, prepare func() Outgoing) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		if kept := rehearsed(ctx); kept != nil {
			out := prepare()
			if kept.out, kept.remote = &out, r; kept.answer == "" {
				yield(Error{Err: errRehearsed})
				return
			}
			x := &Exchange{Provider: r.Service.ID, Model: out.Model, Body: out.Body, Request: req}
			x.given(out.Decoder(x), kept.answer)(yield)
			return
		}
		key := strings.TrimSpace(r.Service.Key())
		if key == "" && r.Own && len(r.Service.Headers) == 0 {
			yield(Error{Err: &Failure{Kind: NoKey, Provider: r.Service.ID, Message: r.noKey()}})
			return
		}

		c := prepare()
		x := &Exchange{
			Provider: r.Service.ID, Client: r.Service.HTTP, URL: c.URL, Header: r.header(key, c.Sign), Model: c.Model,
			Body: c.Body, Request: req, Secrets: r.secrets(key), Idle: r.Service.Idle,
		}
		x.Events(ctx, c.Decoder(x))(yield)
	}
}

// noKey says how to give the service a key.
func (r *Remote) noKey() string {
	if r.Service.KeyEnv == "" {
		return "The key for " + r.Service.ID + " is missing. Set it with: daycare auth set " + r.Service.ID
	}
	return "The key for " + r.Service.ID + " is missing. Set " + r.Service.KeyEnv +
		" and restart daycare, or: daycare auth set " + r.Service.ID
}

func (r *Remote) header(key string, sign func(http.Header, string)) http.Header {
	h := http.Header{}
	for name, value := range r.Service.Headers {
		h.Set(name, value)
	}
	SetDefault(h, "Content-Type", "application/json")
	SetDefault(h, "Accept", "text/event-stream")
	SetDefault(h, "User-Agent", "daycare")
	sign(h, key)

	return h
}

// Bearer is the Sign of services that take the key as a bearer token.
func Bearer(h http.Header, key string) {
	if key != "" {
		SetDefault(h, "Authorization", "Bearer "+key)
	}
}

// SetDefault sets a header that is not there yet; "" sets nothing.
func SetDefault(h http.Header, name, value string) {
	if _, there := h[http.CanonicalHeaderKey(name)]; !there && value != "" {
		h.Set(name, value)
	}
}

// secrets are the values that no error may show: headers may carry keys as well.
func (r *Remote) secrets(key string) []string {
	s := []string{key}
	for _, value := range r.Service.Headers {
		s = append(s, value)
	}

	return s
}
