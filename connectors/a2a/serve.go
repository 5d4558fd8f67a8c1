package a2a

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	sdklog "github.com/a2aproject/a2a-go/v2/log"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/fault"
)

const (
	// Prefix is where agents are: /a2a/AGENT is JSON-RPC, the paths below it are REST.
	Prefix = "/a2a/"
	// wellKnown is where clients look for a card, at the root and below each agent.
	wellKnown = a2asrv.WellKnownAgentCardPath

	maxBody     = 12 << 20         // bytes: a message of 1 MiB and 8 MB of files, as base64
	largeBody   = 1 << 20          // bytes: of more, few are read at once
	maxLarge    = 4                // large bodies at once
	maxRequests = 128              // requests at once, most of which wait for a turn
	writeTime   = 60 * time.Second // ends a stream whose reader takes nothing
	keepAlive   = 15 * time.Second // a comment in a stream in which nothing happens
)

// A Peer is who sent a request.
type Peer struct {
	Name string // as decisions are recorded: token:laptop
	// API is the control API with the peer's rights.
	API *control.Client
}

// A call is one request: whose it is, and which agent it is for.
type call struct {
	Peer
	agent event.Agent
}

type callKey struct{}

// callOf is the call of a request. Every operation runs behind Serve.
func callOf(ctx context.Context) call { return ctx.Value(callKey{}).(call) }

// routes are the two bindings of the protocol.
type routes struct{ rpc, rest http.Handler }

func (c *Connector) newRoutes() routes {
	o := []a2asrv.TransportOption{a2asrv.WithTransportKeepAlive(keepAlive), a2asrv.WithTransportPanicHandler(func(r any) error {
		c.log.Error("a request failed", "panic", fmt.Sprint(r))
		return sdk.ErrInternalError
	})}
	t := tasks{c}

	return routes{a2asrv.NewJSONRPCHandler(t, o...), a2asrv.NewRESTHandler(t, o...)}
}

// Serves reports whether a path is one of the connector's.
func Serves(path string) bool { return strings.HasPrefix(path, Prefix) || path == wellKnown }

// Serve answers a request for a path that it serves. The listeners have checked Host, Origin and
// the token before.
func (c *Connector) Serve(w http.ResponseWriter, r *http.Request, p Peer) {
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many requests are under way; try again later", http.StatusServiceUnavailable)
		return
	}

	ref, rest := split(r.URL)
	listed, agent, err := c.find(r.Context(), p, ref)
	if err != nil {
		fail(w, err)
		return
	}
	if rest == wellKnown {
		c.serveCard(w, r, listed, agent)
		return
	}
	if v := r.Header.Get(sdk.SvcParamVersion); v != "" && v != string(sdk.Version) {
		fail(w, &control.APIError{Status: http.StatusBadRequest, Code: fault.Invalid.Code,
			Message: fmt.Sprintf("A2A-Version is %.20q, this agent speaks %s", v, sdk.Version)})
		return
	}
	body, err := c.body(w, r)
	if err != nil {
		fail(w, err)
		return
	}

	ctx, cancel := ending(context.WithValue(r.Context(), callKey{}, call{p, agent}))
	defer cancel()
	ctx = sdklog.AttachLogger(ctx, slog.New(slog.DiscardHandler)) // the SDK logs what clients did wrong
	to := r.Clone(ctx)
	to.Body, to.URL.Path, to.URL.RawPath = io.NopCloser(bytes.NewReader(body)), rest, ""
	out := patient{w, http.NewResponseController(w)}
	if rest == "" || rest == "/" {
		c.routes().rpc.ServeHTTP(out, to)
		return
	}
	c.routes().rest.ServeHTTP(out, to)
}

// split takes a path apart: which agent, and what of it.
func split(u *url.URL) (ref, rest string) {
	ref, rest, _ = strings.Cut(strings.TrimPrefix(u.EscapedPath(), Prefix), "/")
	if u.Path == wellKnown {
		return "", wellKnown
	}
	for _, text := range []*string{&ref, &rest} {
		if plain, err := url.PathUnescape(*text); err == nil {
			*text = plain
		}
	}

	return ref, "/" + rest
}

// find is the published agent that a path names by id, handle or name; "": the first one. An
// agent that is not published, or not for this peer, does not exist.
func (c *Connector) find(ctx context.Context, p Peer, ref string) (Published, event.Agent, error) {
	var published []string
	for _, listed := range c.o.Agents {
		a, err := p.API.Agent(ctx, listed.Agent)
		switch {
		case errors.Is(err, fault.UnknownAgent) || errors.Is(err, fault.Ambiguous):
			continue
		case err != nil:
			return listed, a, err
		}
		published = append(published, a.ID)
		if ref == "" || slices.Contains([]string{a.ID, a.Name, trimmed(a.Handle)}, trimmed(ref)) {
			return listed, a, nil
		}
	}

	e := &control.APIError{Code: fault.UnknownAgent.Code, Status: http.StatusNotFound,
		Message: fmt.Sprintf("no agent %.80q is published here", ref)}
	if len(published) == 0 {
		e.Message = "no agent is published here"
	}

	return Published{}, event.Agent{}, e
}

// body reads the body of a request. Few large ones are read at once.
func (c *Connector) body(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength < 0 || r.ContentLength > largeBody {
		select {
		case c.large <- struct{}{}:
			defer func() { <-c.large }()
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	var data []byte
	err := control.InTime(w, func() (err error) {
		data, err = io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		return err
	})
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &control.APIError{Status: http.StatusRequestEntityTooLarge, Code: fault.TooLarge.Code,
			Message: fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit)}
	}
	if err != nil {
		return nil, &control.APIError{Status: http.StatusBadRequest, Code: fault.Invalid.Code, Message: "the body could not be read"}
	}

	return data, nil
}

// fail sends an error of what is around the protocol, in the form of the API.
func fail(w http.ResponseWriter, err error) {
	e := control.Describe(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(control.ErrorBody{Error: e}) // the client is gone; nobody is left to tell
}

// ending is a context that ends also when the server wants to: a client waits as long as a turn
// takes.
func ending(ctx context.Context) (context.Context, context.CancelFunc) {
	closing := control.Closing(ctx)
	if closing == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := make(chan struct{})
	go func() {
		select {
		case <-closing:
			cancel(control.ErrCut)
		case <-stop:
		}
	}()

	return ctx, func() { close(stop); cancel(nil) }
}

// A patient writer gives each piece its own time, so that a reader who takes nothing ends a
// stream and a slow one does not.
type patient struct {
	http.ResponseWriter
	rc *http.ResponseController
}

func (w patient) Write(data []byte) (int, error) {
	_ = w.rc.SetWriteDeadline(time.Now().Add(writeTime))
	return w.ResponseWriter.Write(data)
}

// Flush makes it a stream for the SDK.
func (w patient) Flush() { _ = w.rc.Flush() }

// said is an error of the API as one of the protocol.
func said(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*sdk.Error](err); ok {
		return err
	}
	e := control.Describe(err)
	text := e.Message
	if e.Hint != "" {
		text += "; " + e.Hint
	}

	switch {
	case errors.Is(err, fault.UnknownItem):
		return sdk.NewError(sdk.ErrTaskNotFound, "there is no such task")
	case errors.Is(err, context.Canceled), errors.Is(err, control.ErrCut):
		return sdk.NewError(sdk.ErrServerError,
			"daycare is shutting down; the task is safe: get it, or send the message again with its messageId")
	case errors.Is(err, fault.Scope):
		return sdk.NewError(sdk.ErrUnauthorized, text)
	case e.Status < http.StatusInternalServerError && e.Status != http.StatusTooManyRequests:
		return sdk.NewError(sdk.ErrInvalidParams, text)
	}

	return sdk.NewError(sdk.ErrServerError, text)
}
