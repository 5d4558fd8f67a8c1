package control

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"daycare/engine/apitoken"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// Options of a Handler.
type Options struct {
	Log     *slog.Logger // nil: says nothing
	Version string       // of the daemon, said in each answer; "": not said
	Lead    Lead         // nil: all agents are on this machine
}

// A Lead has a request about an agent served on the machine of a cluster that has the agent: here by serve, with the agent kept
// on this machine meanwhile, or by another machine, whose answer it passes on. That one reads the body of the request. After an
// error nothing was answered. Errors: disk.ErrAway, *message.Elsewhere, and those of an agent that cannot be opened.
type Lead func(w http.ResponseWriter, r *http.Request, agent string, serve func()) error

// A Caller is who sent a request, as far as the connection tells.
type Caller struct {
	// Name is recorded with decisions: "api", "web", the name of the machine's user.
	Name string
	// Local: the caller is the user that daycare runs as, on this machine. Only
	// such a caller may name paths and say on whose behalf it decides.
	Local bool
	// Rights are what the caller may do.
	Rights apitoken.Rights
	// Via is the connector of this process that speaks for the caller: it names the senders of
	// its messages itself. "": the caller uses the API directly.
	Via string
	// Session is the name of the session of a browser; "": the caller is none.
	Session string
}

type callerKey struct{}

// WithCaller sets the caller of the requests of ctx. Without it the caller is "api", not local, and
// has no rights. A user interface that serves the handler to browsers sets its own.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerOf returns the caller of a request, for other handlers behind the same listeners.
func CallerOf(ctx context.Context) Caller { return callerOf(ctx) }

func callerOf(ctx context.Context) Caller {
	if c, ok := ctx.Value(callerKey{}).(Caller); ok {
		return c
	}
	return Caller{Name: "api"}
}

type closingKey struct{}

// withClosing gives the requests of ctx a channel that is closed when the server
// wants to end: streams then end by themselves.
func withClosing(ctx context.Context, closing <-chan struct{}) context.Context {
	return context.WithValue(ctx, closingKey{}, closing)
}

// Closing returns a channel that is closed when the server of a request is about to end; nil: there
// is not a server.
func Closing(ctx context.Context) <-chan struct{} { return closingOf(ctx) }

// closingOf is nil, so never closed, where no server is behind the request.
func closingOf(ctx context.Context) <-chan struct{} {
	c, _ := ctx.Value(closingKey{}).(<-chan struct{})
	return c
}

// api is what every route needs: who {id} is, whether there is a daemon, where errors go.
type api struct {
	agents  Agents
	offline bool
	log     *slog.Logger
	lead    Lead
	open    *openStreams
}

// Handler serves version 1 of the API from a backend. What a caller can do depends on its rights;
// Serve and the listeners decide who it is.
func Handler(b Backend, o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &api{agents: b.Agents, offline: b.Offline, log: o.Log, lead: o.Lead, open: &openStreams{by: map[string]int{}}}
	return sayVersion(o.Version, a.serve(table(a, b)))
}

// knows reports whether an agent is one that the caller's rights are about.
func knows(ctx context.Context, id string) bool { return callerOf(ctx).Rights.Know(id) }

// resolve turns a ref into an id. Whose rights are about some agents only does not learn
// which others there are.
func (a *api) resolve(ctx context.Context, ref string) (string, error) {
	id, err := a.agents.Resolve(ref)
	if callerOf(ctx).Rights.Restricted() && (err != nil || !knows(ctx, id)) {
		return "", fmt.Errorf("%w: %q", message.ErrUnknownAgent, ref)
	}

	return id, err
}

// Unzips reports whether who asks takes an answer in gzip: it is named, or anything is, and not with a weight of zero.
func Unzips(r *http.Request) bool {
	named, others := -1.0, 0.0
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(part, ";")
		q := 1.0
		if text, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(weight)), "q="); ok {
			q, _ = strconv.ParseFloat(text, 64) // 0: not a number
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "gzip":
			named = q
		case "*":
			others = q
		}
	}

	return named > 0 || named < 0 && others > 0
}

func (a *api) send(w http.ResponseWriter, r *http.Request, status int, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		a.fail(w, r, err)
		return
	}

	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	data = append(data, '\n')
	if len(data) >= worthZipping && !callerOf(r.Context()).Local && Unzips(r) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Vary", "Accept-Encoding")
		data = zip(data)
	}
	w.WriteHeader(status)

	// An error here means that the client went away; there is nobody to tell.
	_, _ = w.Write(data)
}

// worthZipping is how large an answer is that goes over the network in less time compressed, in
// bytes: more than one packet.
const worthZipping = 1400

func zip(data []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	_, _ = z.Write(data) // into memory
	_ = z.Close()
	return b.Bytes()
}

// fail sends an error.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	e := Describe(err)
	quiet := errors.Is(err, ErrNotRunning) || errors.Is(err, context.Canceled) // the caller knows
	if e.Status >= http.StatusInternalServerError && !quiet {
		a.log.Warn("request failed", "method", r.Method, "route", r.Pattern, "code", e.Code, "err", err)
	}
	if errors.Is(err, inbox.ErrFull) || errors.Is(err, disk.ErrAway) {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	if wait, ok := errors.AsType[*Wait](err); ok {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.After.Seconds()))))
	}

	w.Header().Set("Content-Type", "application/json")
	if isForeign(r.URL.Path) {
		writeForeign(w, e)
		return
	}
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(map[string]*APIError{"error": e})
}

// retryAfter is what a client is asked to wait, in seconds, with a full inbox or while the
// other machines cannot be reached: about one turn, or one election.
const retryAfter = 5

// noRoute answers what no route matches, with a hint that helps.
func (a *api) noRoute(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		e := refuse(fault.NoRoute, "routes start with /v1/: "+strings.Join(beginnings(), ", "), "no route %s %s", r.Method, r.URL.Path)
		if allowed := otherMethods(mux, r); len(allowed) > 0 {
			e.Hint = "this path accepts " + strings.Join(allowed, ", ")
		} else if strings.HasPrefix(r.URL.Path, "/v1/agents/") && strings.Count(r.URL.EscapedPath(), "/") > 3 {
			e.Hint += "; in a path a handle is written with %2F: /v1/agents/0%2F1"
		}
		a.fail(w, r, e)
	}
}

// beginnings are the first words of paths behind /v1/.
func beginnings() (words []string) {
	for _, o := range Operations() {
		if rest, ok := strings.CutPrefix(o.Path, "/v1/"); ok {
			word, _, _ := strings.Cut(rest, "/")
			words = append(words, word)
		}
	}
	slices.Sort(words)

	return slices.Compact(words)
}

// otherMethods lists the methods that the path of r has a route for.
func otherMethods(mux *http.ServeMux, r *http.Request) []string {
	var allowed []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		other := *r
		other.Method = m
		if _, pattern := mux.Handler(&other); pattern != "/" {
			allowed = append(allowed, m)
		}
	}

	return allowed
}

// jsonName is the JSON word for a Go kind.
func jsonName(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "an object"
	default:
		return "a number"
	}
}
