package mcp

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// transport is the way to a server. a has the login at a service; nil: nobody is asked for one.
func (s *server) transport(a *authorizer) (sdk.Transport, error) {
	if s.conf.URL == "" {
		program, err := s.pool.options.Start(s.conf, s.log)
		if err != nil {
			return nil, err
		}
		return &sdk.IOTransport{Reader: program, Writer: program, MaxLineLength: maxMessage}, nil
	}
	headers, err := s.pool.options.Headers(s.conf)
	if err != nil {
		return nil, err
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.ResponseHeaderTimeout = s.conf.Timeout
	client := &http.Client{Transport: &visitor{base, headers}, CheckRedirect: sameHost}
	if a == nil {
		a = newAuthorizer(s)
	}
	return &sdk.StreamableClientTransport{Endpoint: s.conf.URL, HTTPClient: client, MaxRetries: 2,
		MaxEventSize: maxMessage, OAuthHandler: a}, nil
}

// sameHost keeps the headers of the settings, which are often secrets, at the host they are for.
func sameHost(r *http.Request, before []*http.Request) error {
	if first := before[0].URL; r.URL.Host != first.Host || r.URL.Scheme != first.Scheme {
		return fmt.Errorf("it redirects to another address, %s://%s; set that as its url", r.URL.Scheme, r.URL.Host)
	}
	if len(before) >= 5 {
		return errors.New("it redirects too often")
	}

	return nil
}

// A visitor sends the headers of a server with each request, and bounds each answer.
type visitor struct {
	base    *http.Transport
	headers http.Header
}

// RoundTrip sends one request.
func (v *visitor) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range v.headers {
		r.Header[name] = values
	}
	res, err := v.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")); kind != "text/event-stream" { // each event has a bound
		res.Body = &bounded{res.Body, maxMessage}
	}

	return res, nil
}

// CloseIdleConnections closes unused connections.
func (v *visitor) CloseIdleConnections() { v.base.CloseIdleConnections() }

// A bounded answer is an error where it is longer than left.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("the answer is over %d bytes", maxMessage)
	}

	return n, err
}
