package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"daycare/engine/message"
)

const (
	callbackTimeout = 30 * time.Second
	maxRetryAfter   = 24 * time.Hour
)

// An answer is the body of a callback.
type answer struct {
	ID      string       `json:"id"` // the same at every try
	Hook    string       `json:"hook"`
	Text    string       `json:"text"` // Markdown
	ReplyTo string       `json:"replyTo,omitempty"`
	Part    int          `json:"part,omitempty"`  // from 0
	Parts   int          `json:"parts,omitempty"` // only where there are several
	Files   []attachment `json:"files,omitempty"`
}

// An attachment describes a file; its content is not sent.
type attachment struct {
	Name     string `json:"name"`
	MimeType string `json:"mimeType"`
	Size     int64  `json:"size"`
}

// newCaller makes the client of callbacks. It follows no redirect, which would
// carry an answer to where nobody configured it to go, and keeps no connection,
// so that nothing is left behind when the connector ends.
func newCaller() *http.Client {
	return &http.Client{
		Timeout:       callbackTimeout,
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Answers reports whether Send can reach an address: its hook has a callback.
// Where it is false no reply should be promised.
func (c *Connector) Answers(to message.Address) bool {
	h := c.hooks[to.ChannelID]
	return h != nil && h.Callback != ""
}

// Send posts one answer to the callback of its hook.
func (c *Connector) Send(ctx context.Context, out message.Outgoing) (remoteID string, err error) {
	h := c.hooks[out.To.ChannelID]
	if h == nil || h.Callback == "" {
		return "", &message.NotSent{Final: true, Err: fmt.Errorf("hook %q has no callback in settings", out.To.ChannelID)}
	}
	key := standardKey(c.secret(h.SecretEnv))
	if len(key) == 0 {
		return "", fmt.Errorf("sign answer of hook %s: no secret under %s", h.ID, h.SecretEnv)
	}

	req, err := h.request(ctx, key, out)
	if err != nil {
		return "", &message.NotSent{Final: true, Err: fmt.Errorf("make callback of hook %s: %w", h.ID, err)}
	}
	resp, err := c.caller.Do(req)
	if err != nil {
		return "", fmt.Errorf("call back for hook %s: %w", h.ID, withoutURL(err))
	}
	defer resp.Body.Close()
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // what it says is not of interest

	return "", judge(h.ID, resp, time.Now())
}

func (h *hook) request(ctx context.Context, key []byte, out message.Outgoing) (*http.Request, error) {
	a := answer{ID: out.Key(), Hook: h.ID, Text: out.Text, ReplyTo: out.ReplyTo}
	if out.Parts > 1 {
		a.Part, a.Parts = out.Part, out.Parts
	}
	for _, f := range out.Files {
		a.Files = append(a.Files, attachment{f.Name, f.MimeType, f.Size})
	}

	body, _ := json.Marshal(a) // of strings and numbers, which cannot fail
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.Callback, bytes.NewReader(body))
	if err != nil {
		return nil, withoutURL(err)
	}

	signed := claim{scheme: standard, id: a.ID, timestamp: strconv.FormatInt(time.Now().Unix(), 10)}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "daycare")
	req.Header.Set("Idempotency-Key", a.ID)
	req.Header.Set(standard.id, signed.id)
	req.Header.Set(standard.timestamp, signed.timestamp)
	req.Header.Set(standard.signature, "v1,"+base64.StdEncoding.EncodeToString(sum(key, signed.content(body))))

	return req, nil
}

// judge makes of a response what the engine is to do next.
func judge(hook string, resp *http.Response, now time.Time) error {
	status := resp.StatusCode
	err := fmt.Errorf("callback of hook %s answered %d %s", hook, status, http.StatusText(status))
	switch {
	case status >= 200 && status < 300:
		return nil
	case status >= 300 && status < 400:
		return fmt.Errorf("%w, and redirects are not followed: set the callback to where it leads", err)
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		return &message.NotSent{After: retryAfter(resp.Header.Get("Retry-After"), now), Err: err}
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status >= 500:
		return err
	}

	return &message.NotSent{Final: true, Err: err}
}

// retryAfter reads seconds or an HTTP date; 0: nothing that could be understood.
func retryAfter(header string, now time.Time) time.Duration {
	var after time.Duration
	if seconds, err := strconv.ParseInt(header, 10, 32); err == nil {
		after = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(header); err == nil {
		after = at.Sub(now)
	}

	return min(max(after, 0), maxRetryAfter)
}

// withoutURL takes the address, which may hold a token, out of a client's error.
func withoutURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}

	return err
}
