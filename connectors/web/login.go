package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"daycare/engine/apitoken"
	"daycare/engine/control"
	"daycare/engine/crash"
	"daycare/engine/fault"
)

const (
	// tokenLife is how long a login token can be used.
	tokenLife = 5 * time.Minute
	// mostTokens is how many of them wait to be used; the oldest is forgotten first.
	mostTokens = 20
	// freeTries is how many wrong tokens are answered at once; then each costs a pause, from
	// firstPause doubling to longestPause.
	freeTries    = 5
	firstPause   = time.Second
	longestPause = time.Minute
)

// Options of a Door.
type Options struct {
	Root   string          // the .daycare directory
	Tokens *apitoken.Store // of that directory
	// Open serves the page, if it is not served, and returns its address: http://127.0.0.1:7331.
	Open func(ctx context.Context) (address string, err error)
}

// A Door lets browsers in and serves them the page. It starts nothing: until someone asks for the
// page, it is memory of a few bytes.
type Door struct {
	o  Options
	on atomic.Bool

	mu     sync.Mutex
	tokens []invited // the oldest first
	wrong  int       // in a row
	until  time.Time // no login before
}

// invited is a login token that was not used yet.
type invited struct {
	sum     [sha256.Size]byte
	expires time.Time
}

var (
	_ control.Page     = (*Door)(nil)
	_ control.Browsers = (*Door)(nil)
)

// New makes the door of a workspace.
func New(o Options) *Door { return &Door{o: o} }

// On reports whether the page is served.
func (d *Door) On() bool { return d.on.Load() }

// Serve switches the page on.
func (d *Door) Serve() { d.on.Store(true) }

// Has reports whether a request is for the page.
func (d *Door) Has(r *http.Request) bool { return isOurs(r) }

// Invite serves the page from now on and makes a login token for it.
func (d *Door) Invite(ctx context.Context) (control.Invitation, error) {
	address, err := d.o.Open(ctx)
	if err != nil {
		return control.Invitation{}, err
	}
	d.Serve()
	random := make([]byte, 32)
	rand.Read(random) // it never fails
	token := base64.RawURLEncoding.EncodeToString(random)
	until := crash.Now().Add(tokenLife)

	d.mu.Lock()
	defer d.mu.Unlock()
	d.forget()
	if len(d.tokens) >= mostTokens {
		d.tokens = d.tokens[1:]
	}
	d.tokens = append(d.tokens, invited{sha256.Sum256([]byte(token)), until})
	return control.Invitation{URL: address + "/#token=" + token, Address: address + "/", ExpiresAt: until.UTC()}, nil
}

// forget drops the tokens that have expired. The lock is held.
func (d *Door) forget() {
	now := crash.Now()
	d.tokens = slices.DeleteFunc(d.tokens, func(i invited) bool { return !now.Before(i.expires) })
}

// Login makes a session of a login token.
func (d *Door) Login(_ context.Context, token, browser string) (control.Session, string, error) {
	if err := d.use(token); err != nil {
		return control.Session{}, "", err
	}
	secret, name, made, err := apitoken.CreateSession(d.o.Root, browserName(browser))
	if err != nil {
		return control.Session{}, "", fmt.Errorf("log in: %w", err)
	}

	return session(name, made, time.Time{}), secret, nil
}

// use takes a token away, or says why it is none. A token is found by its hash, so how long that
// takes says nothing about it.
func (d *Door) use(token string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if left := d.until.Sub(crash.Now()); left > 0 {
		return &control.Wait{Err: fault.LoginLater, After: left}
	}
	d.forget()
	sum := sha256.Sum256([]byte(token))
	i := slices.IndexFunc(d.tokens, func(t invited) bool { return t.sum == sum })
	if i >= 0 {
		d.tokens, d.wrong = slices.Delete(d.tokens, i, i+1), 0
		return nil
	}

	if d.wrong++; d.wrong >= freeTries {
		pause := min(firstPause<<min(d.wrong-freeTries, 10), longestPause)
		d.until = crash.Now().Add(pause)
	}

	return fault.WrongLogin
}

// Sessions are the browsers that are logged in, the newest first.
func (d *Door) Sessions(context.Context) ([]control.Session, error) {
	tokens, err := apitoken.List(d.o.Root)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	used := apitoken.Used(d.o.Root)
	var list []control.Session
	for name, t := range tokens {
		if t.IsSession() && !t.Expired(crash.Now()) {
			list = append(list, session(name, t, used[name]))
		}
	}

	slices.SortFunc(list, func(a, b control.Session) int { return b.CreatedAt.Compare(*a.CreatedAt) })
	return list, nil
}

// End ends a session, and what its browser has open.
func (d *Door) End(_ context.Context, name string) error {
	tokens, err := apitoken.List(d.o.Root)
	if err != nil {
		return fmt.Errorf("end session: %w", err)
	}
	if !tokens[name].IsSession() {
		return fmt.Errorf("%w: %q", fault.NoSession, name)
	}
	if err := apitoken.Revoke(d.o.Root, name); err != nil && !errors.Is(err, apitoken.ErrUnknown) {
		return err
	}

	d.o.Tokens.Refresh()
	return nil
}

// session is a token of a browser as the API shows it.
func session(name string, t apitoken.Token, used time.Time) control.Session {
	s := control.Session{Caller: "web:" + name, Name: name, CreatedAt: &t.Created.Time, ExpiresAt: t.Expires}
	if !used.Before(t.Created.Time) { // not of an earlier one with this name
		s.LastAt = &used
	}

	return s
}

// browserName is the part of a session's name that tells its owner which browser it is. What a
// browser says of itself is never a part of a name.
func browserName(userAgent string) string {
	// The first that fits: Edge says Chrome, and Chrome says Safari.
	for _, b := range []struct{ says, name string }{{"Edg", "edge"}, {"Firefox", "firefox"}, {"Chrom", "chrome"}, {"Safari", "safari"}} {
		if strings.Contains(userAgent, b.says) {
			return b.name
		}
	}

	return "browser"
}
