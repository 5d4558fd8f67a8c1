package chat

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"daycare/engine/message"
)

// The HTTP API of a platform, as all connectors call it.

const (
	callTime    = 30 * time.Second
	maxResponse = 64 << 20 // bytes of an answer; Signal's attachments come in one
)

// A Client calls the HTTP API of a platform. Neither its secrets nor an address, which may
// have one in it, are in an error that it returns.
type Client struct {
	Base string // without a slash at its end
	HTTP *http.Client

	secrets []string
}

// NewClient makes the client of the API at base.
func NewClient(base string, secrets ...string) *Client {
	// A redirect would carry the token to someone else.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{Base: strings.TrimRight(base, "/"), secrets: secrets,
		HTTP: &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone(), CheckRedirect: stay}}
}

// A Call is one request to an API.
type Call struct {
	Name   string // for errors
	Method string // "": POST
	Path   string // behind Base
	Bearer string // "": no such header
	Header http.Header
	Media  string // of Body
	Body   io.Reader
	Within time.Duration // 0: half a minute
}

// With returns the call with JSON parameters; nil: none.
func (c Call) With(params any) (Call, error) {
	c.Media = "application/json"
	if params == nil {
		return c, nil
	}
	data, err := json.Marshal(params)
	if err != nil {
		return c, fmt.Errorf("encode %s: %w", c.Name, err)
	}
	c.Body = bytes.NewReader(data)

	return c, nil
}

// An Answer is what an API said, whatever its status.
type Answer struct {
	Status     int
	RetryAfter time.Duration // as the header says; 0: it does not
	Header     http.Header
	Body       []byte
}

// Read reads the result of the call with this name, if one is wanted.
func (a Answer) Read(name string, result any) error {
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(a.Body, result); err != nil {
		return fmt.Errorf("read result of %s: %w", name, err)
	}

	return nil
}

// Judge says what the engine is to do about an error that is an answer with this status.
func Judge(err error, status int, after time.Duration) error {
	switch status {
	case http.StatusTooManyRequests:
		return &message.NotSent{After: after, Err: err}
	case http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound, http.StatusRequestEntityTooLarge:
		return &message.NotSent{Final: true, Err: err} // no such channel, no right to write, blocked
	}

	return err // 401: the token may be mended within the day; 5xx: later
}

// Do makes a call.
func (c *Client) Do(ctx context.Context, call Call) (Answer, error) {
	if call.Within == 0 {
		call.Within = callTime
	}
	ctx, cancel := context.WithTimeout(ctx, call.Within)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, cmp.Or(call.Method, http.MethodPost), c.Base+call.Path, call.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("call %s: %w", call.Name, c.Clean(err))
	}

	maps.Copy(req.Header, call.Header)
	if call.Media != "" {
		req.Header.Set("Content-Type", call.Media)
	}
	if call.Bearer != "" {
		req.Header.Set("Authorization", "Bearer "+call.Bearer)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("call %s: %w", call.Name, c.Clean(err))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse))
	if err != nil {
		return Answer{}, fmt.Errorf("read answer of %s: %w", call.Name, c.Clean(err))
	}

	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // what is not a number is ignored
	return Answer{resp.StatusCode, time.Duration(seconds) * time.Second, resp.Header, body}, nil
}

// Owns reports whether an address is the API's own, or https:// below one of the domains of its platform, each with a dot before
// it: a token goes nowhere else, whatever address a message names.
func (c *Client) Owns(address string, domains ...string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	base, _ := url.Parse(c.Base)
	below := func(domain string) bool { return strings.HasSuffix(u.Hostname(), domain) }

	return u.Scheme == "https" && slices.ContainsFunc(domains, below) || u.Scheme == base.Scheme && u.Host == base.Host
}

// Download opens what is at an address.
func (c *Client) Download(ctx context.Context, address, bearer string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("download file: %w", c.Clean(err))
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}

	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("download file: %w", c.Clean(err))
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("download file: %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}

	return resp.Body, nil
}

// Clean returns err without the address and the secrets in it.
func (c *Client) Clean(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		err = e.Err
	}
	if text := c.Redact(err.Error()); text != err.Error() {
		return errors.New(text)
	}

	return err
}

// Redact takes the secrets out of what someone else wrote.
func (c *Client) Redact(text string) string {
	for _, secret := range c.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}

	return text
}
