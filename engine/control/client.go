package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/permission"
)

// A Client calls the API. An error of the server is an *APIError; errors.Is and errors.As find the
// error that it was made from. If there is no daemon, the error is ErrNotRunning, whenever that is
// noticed.
type Client struct {
	*wire
	agentCalls
	permissionCalls
	catalogCalls
	daemonCalls
}

// What a Client can do, by what it is about.
type (
	agentCalls      struct{ *wire }
	permissionCalls struct{ *wire }
	catalogCalls    struct{ *wire }
	daemonCalls     struct{ *wire }
)

// A wire is how a Client reaches the server.
type wire struct {
	http    *http.Client
	version string              // "": not said
	differs func(theirs string) // may be nil
	silent  func()              // called when an answer takes long; nil: not reported
}

// silence is how long a GET may take before the daemon counts as silent: a healthy one begins
// to answer at once, event streams with a comment.
const silence = 5 * time.Second

// dialTimeout bounds connecting to the socket. A daemon that lives accepts at once, on a machine that is not overloaded.
const dialTimeout = 10 * time.Second

// Dial connects to the daemon of a .daycare directory. The error is ErrNotRunning if no daemon
// listens.
func Dial(root string) (*Client, error) {
	path := filepath.Join(root, SocketName)
	conn, err := dialUnix(path)
	if err != nil {
		return nil, err
	}

	conn.Close()
	return Redial(root), nil
}

// Redial is Dial for a program that outlives daemons: it connects anew for each request, so that a
// request without a daemon fails with ErrNotRunning and a later one can succeed.
func Redial(root string) *Client {
	path := filepath.Join(root, SocketName)
	return NewClient(&http.Transport{
		DialContext:         func(context.Context, string, string) (net.Conn, error) { return dialUnix(path) },
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     30 * time.Second,
		DisableCompression:  true, // a socket carries more than a processor compresses
	})
}

// NewClient returns a client over any transport: Local, or one for a TCP listener.
func NewClient(rt http.RoundTripper) *Client {
	w := &wire{http: &http.Client{Transport: rt}}
	return &Client{w, agentCalls{w}, permissionCalls{w}, catalogCalls{w}, daemonCalls{w}}
}

// Close closes idle connections.
func (c *wire) Close() { c.http.CloseIdleConnections() }

// segment escapes one element of a path, also the ones that would be taken for
// steps ("", ".", ".."): the server shall say that there is no such agent.
func segment(s string) string {
	switch s {
	case "":
		return "%20"
	case ".", "..":
		return strings.ReplaceAll(s, ".", "%2E")
	}

	return url.PathEscape(s)
}

// OnSilence sets a function that is called, in its own goroutine, if a GET has no response after 5
// s: a suspended or hanging process still accepts connections. Call it before the client is used.
func (c *wire) OnSilence(silent func()) { c.silent = silent }

func (c *wire) roundTrip(req *http.Request) (*http.Response, error) {
	if c.version != "" {
		req.Header.Set(versionHeader, c.version)
	}
	if c.silent != nil && req.Method == http.MethodGet {
		defer time.AfterFunc(silence, c.silent).Stop()
	}

	resp, err := c.http.Do(req)
	if err != nil {
		return nil, gone(err)
	}
	c.meet(resp)
	if resp.StatusCode < 400 {
		return resp, nil
	}
	defer resp.Body.Close()

	return nil, c.unknownTo(resp, readError(resp))
}

// readError is the error in an answer, or the best that can be said of one
// which is not from daycare.
func readError(resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("read error of %s: %w", resp.Request.URL.Path, gone(err))
	}
	var body ErrorBody
	if json.Unmarshal(data, &body) != nil || body.Error == nil {
		text := strings.TrimSpace(string(data[:min(len(data), 200)]))
		return &APIError{Status: resp.StatusCode, Code: fault.Internal, Message: resp.Status + ": " + text}
	}

	body.Error.Status = resp.StatusCode

	return body.Error
}

// gone makes ErrNotRunning of the errors by which a missing daemon shows.
func gone(err error) error {
	if errors.Is(err, ErrNotRunning) {
		return fmt.Errorf("call daemon: %w", ErrNotRunning)
	}
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return fmt.Errorf("call daemon: %w: %w", ErrNotRunning, err)
	}

	return err
}

// Status returns the state of the daemon as a whole.
func (c daemonCalls) Status(ctx context.Context) (event.Status, error) {
	return status.call(ctx, c.wire, nothing{})
}

// Config returns the active configuration as JSON, with secrets masked.
func (c daemonCalls) Config(ctx context.Context) (json.RawMessage, error) {
	return settings.call(ctx, c.wire, nothing{})
}

// Tools lists the tools agents can have.
func (c catalogCalls) Tools(ctx context.Context) ([]ToolInfo, error) {
	b, err := tools.call(ctx, c.wire, nothing{})
	return b.Tools, err
}

// Reload makes the daemon read its settings again. Findings are also returned with the error that
// says that the last valid settings stay active.
func (c daemonCalls) Reload(ctx context.Context) ([]finding.Finding, error) {
	b, err := reload.call(ctx, c.wire, nothing{})
	if api, ok := errors.AsType[*APIError](err); ok {
		return api.Findings, err
	}

	return b.Findings, err
}

// Shutdown starts an orderly shutdown; it does not wait for its end.
func (c daemonCalls) Shutdown(ctx context.Context) error {
	_, err := shutDown.call(ctx, c.wire, nothing{})
	return err
}

// Metrics returns the text of GET /metrics.
func (c daemonCalls) Metrics(ctx context.Context) (string, error) {
	resp, err := metric.send(ctx, c.wire, nothing{}, "")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)

	return string(data), err
}

// Permissions lists the pending approval requests.
func (c permissionCalls) Permissions(ctx context.Context) ([]event.Ask, error) {
	b, err := asks.call(ctx, c.wire, asksIn{})
	for i, a := range b.Permissions {
		if a.Card != "" {
			continue
		}

		// A daemon of an earlier version: what it says is made into a card here.
		b.Permissions[i] = permission.Pending{Token: a.Token, Agent: a.AgentID, AskedAt: a.AskedAt, ExpiresAt: a.ExpiresAt,
			Request: permission.Request{Tag: a.Tag, Reason: a.Reason, Detail: permission.Detail{Command: a.Request}}}.Ask()
	}

	return b.Permissions, err
}

// Decide answers an approval request: once, always, prefix or deny. by says who decided; "": the
// caller.
func (c permissionCalls) Decide(ctx context.Context, token, decision, by string) error {
	_, err := decide.call(ctx, c.wire, decideIn{token, Answer{decision, by}})
	return err
}

// History returns a page of records before a seq; 0: the newest. limit 0: 100.
func (c agentCalls) History(ctx context.Context, ref string, before int64, limit int) (event.Page, error) {
	return history.call(ctx, c.wire, historyIn{ID: ref, Before: max(before, 0), Limit: int64(max(limit, 0))})
}

// Reset starts a new conversation with an empty context.
func (c agentCalls) Reset(ctx context.Context, ref string) (message.Receipt, error) {
	return reset.call(ctx, c.wire, anAgent{ref})
}

// Compact makes the agent compact its context.
func (c agentCalls) Compact(ctx context.Context, ref string) (message.Receipt, error) {
	return compact.call(ctx, c.wire, anAgent{ref})
}
