package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/engine/control"
)

const (
	// maxBody bounds one request, in bytes: a message of 1 MiB fits, however it is escaped.
	maxBody = 8 << 20
	// maxSessions bounds the sessions that are open at once. Each is a few goroutines and some KB. One token may have
	// half of them, so that it keeps no others away, also where its clients end none.
	maxSessions = 64
	// idle is how long a session without a request is kept: some clients never end theirs, and one
	// that comes back after this begins a new one.
	idle = 4 * time.Hour
	// sessionless is the first version of the protocol without sessions.
	sessionless = "2026-07-28"
	// sessionHeader names the session of a request, and that which an answer begins.
	sessionHeader = "Mcp-Session-Id"
)

// tokenPeer is where the peer of a request is among what is known of its token.
const tokenPeer = "peer"

// Handler serves /mcp. identify says who sent a request: the listeners have checked Host, Origin
// and the token before. A session is of whoever began it.
func (d *Door) Handler(identify func(*http.Request) Peer) http.Handler {
	return wire(d.server, d.o.Log, identify)
}

// wire puts a server behind HTTP: streamable HTTP with sessions, and without for clients that are
// new enough to need none.
func wire(server *sdk.Server, log *slog.Logger, identify func(*http.Request) Peer) http.Handler {
	get := func(*http.Request) *sdk.Server { return server }
	sessions := sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		Logger: log, SessionTimeout: idle, MaxRequestBodyBytes: maxBody})
	single := sdk.NewStreamableHTTPHandler(get, &sdk.StreamableHTTPOptions{
		Logger: log, MaxRequestBodyBytes: maxBody, Stateless: true, PropagateRequestCancellation: true})

	open := &roll{server: server, of: map[string]string{}, begun: map[string]int{}}

	chosen := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, end := ending(r)
		defer end()
		switch {
		case r.Header.Get("Mcp-Protocol-Version") >= sessionless:
			single.ServeHTTP(w, r)
		case r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "":
			who := auth.TokenInfoFromContext(r.Context()).UserID // known has put it there
			if !open.begin(who) {
				w.Header().Set("Retry-After", "60")
				http.Error(w, "too many sessions are open; end one (DELETE), or try again later", http.StatusServiceUnavailable)
				return
			}
			defer func() { open.add(who, w.Header().Get(sessionHeader)) }()
			sessions.ServeHTTP(w, r)
		default:
			sessions.ServeHTTP(w, r)
		}
	})

	return known(identify, chosen)
}

// known tells the SDK whose request it is, so that it keeps sessions apart.
func known(identify func(*http.Request) Peer, next http.Handler) http.Handler {
	verify := func(_ context.Context, _ string, r *http.Request) (*auth.TokenInfo, error) {
		p := identify(r)
		return &auth.TokenInfo{UserID: p.Name, Extra: map[string]any{tokenPeer: p}}, nil
	}
	guarded := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)

	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" { // the socket needs none
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer socket")
		}
		guarded.ServeHTTP(w, r)
	})
}

// ending is a request that ends when the server wants to: a client holds a GET open for as long
// as it lives. Calls end by themselves, with an answer that says why.
func ending(r *http.Request) (*http.Request, func()) {
	closing := control.Closing(r.Context())
	if r.Method != http.MethodGet || closing == nil {
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	go func() {
		select {
		case <-closing:
			cancel()
		case <-ctx.Done():
		}
	}()

	return r.WithContext(ctx), cancel
}

// A roll is whose the open sessions are.
type roll struct {
	server *sdk.Server
	mu     sync.Mutex
	of     map[string]string // who began a session, by its id
	begun  map[string]int    // how many are just beginning, by who begins them
}

// begin reports whether someone may begin another session; then add follows.
func (r *roll) begin(who string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	beginning, unknown, own, open := 0, 0, r.begun[who], map[string]string{}
	for _, n := range r.begun {
		beginning += n
	}
	for s := range r.server.Sessions() {
		by, ok := r.of[s.ID()]
		if !ok {
			unknown++
			continue
		}
		open[s.ID()] = by
		if by == who {
			own++
		}
	}
	r.of = open // the others have ended
	// A session is open a moment before it is known whose it is, when its client already has the answer.
	if len(open)+max(beginning, unknown) >= maxSessions || own >= maxSessions/2 {
		return false
	}

	r.begun[who]++

	return true
}

// add notes a session that has begun; without an id none has.
func (r *roll) add(who, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun[who]--; r.begun[who] == 0 {
		delete(r.begun, who)
	}
	if id != "" {
		r.of[id] = who
	}
}
