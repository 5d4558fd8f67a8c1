package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// A Login is what a user's login at a service gave, enough to get new tokens without the user.
type Login struct {
	At       time.Time `json:"at"`       // of the login, not of its last token
	URL      string    `json:"url"`      // of the service: a login is used for no other
	Resource string    `json:"resource"` // as the service calls itself (RFC 8707)
	Client   Client    `json:"client"`
	TokenURL string    `json:"tokenUrl"`
	Header   bool      `json:"header"` // the client names itself in a header, and not in the form
	Expiry   time.Time `json:"expiry"` // of Access; zero: not known
	Access   string    `json:"-"`
	Refresh  string    `json:"-"` // "": the user logs in again when Access has expired
}

// A Client is how daycare is registered at the authorization server of a service.
type Client struct {
	// ID is "" for one that is registered at each login (RFC 7591), or the https address of a
	// document that describes it.
	ID     string   `json:"id"`
	Secret string   `json:"secret,omitempty"`
	Scopes []string `json:"scopes,omitempty"` // asked for beside those that the service names
}

// Logins keep what users' logins gave. They are asked each time, because another process may
// have changed them.
type Logins interface {
	// Login is that of a server; the zero Login if none is kept.
	Login(s Server) (Login, error)
	// KeepLogin replaces it durably.
	KeepLogin(s Server, l Login) error
	// Client is what the settings say of the client.
	Client(s Server) (Client, error)
}

// expiryMargin is how long before its end a token is replaced.
const expiryMargin = 30 * time.Second

// longestToken bounds how long a token is believed to last, in seconds: ten years.
const longestToken = 10 * 365 * 24 * 60 * 60

// maxToken bounds the answer of an authorization server, in bytes.
const maxToken = 1 << 20

// An authorizer adds the token of a login to requests, and replaces it in time. It is the
// auth.OAuthHandler of a connection.
type authorizer struct {
	server *server
	client *http.Client
	asks   *auth.AuthorizationCodeHandler // asks the user; nil: nobody is there

	mu    sync.Mutex
	login Login
	dead  string // the refresh token that the authorization server refused
}

// newAuthorizer is that of a connection of the daemon, which asks nobody.
func newAuthorizer(s *server) *authorizer {
	return &authorizer{server: s, client: oauthClient(s.conf.URL)}
}

// TokenSource is the login, if there is one for this address.
func (a *authorizer) TokenSource(context.Context) (oauth2.TokenSource, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.asks == nil { // a login that is under way begins without the one before it
		if err := a.load(); err != nil {
			return nil, err
		}
	}
	if a.login.Access == "" {
		return nil, nil
	}

	return a, nil
}

// load has the login be the one that is kept; mu is held.
func (a *authorizer) load() error {
	logins := a.server.pool.options.Logins
	if logins == nil {
		return nil
	}
	l, err := logins.Login(a.server.conf)
	if err != nil {
		return fmt.Errorf("read the login at %s: %w", a.server.conf.ID, err)
	}
	if l.URL != a.server.conf.URL {
		l = Login{}
	}
	a.login = l
	return nil
}

// Token is a token that has not expired.
func (a *authorizer) Token() (*oauth2.Token, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.login.Expiry.IsZero() && time.Until(a.login.Expiry) < expiryMargin {
		if err := a.refresh(context.Background()); err != nil {
			return nil, err
		}
	}

	return &oauth2.Token{AccessToken: a.login.Access, TokenType: "Bearer", Expiry: a.login.Expiry}, nil
}

// Authorize is called when the service refused a request.
func (a *authorizer) Authorize(ctx context.Context, req *http.Request, resp *http.Response) error {
	if a.asks != nil {
		return a.asks.Authorize(ctx, req, resp) // which closes the body
	}
	defer resp.Body.Close()
	challenges, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	if err != nil {
		return fmt.Errorf("what it says of its login cannot be read: %w", err)
	}
	var why, scope string
	for _, c := range challenges {
		if c.Scheme == "bearer" {
			why, scope = c.Params["error"], c.Params["scope"]
		}
	}
	if resp.StatusCode == http.StatusForbidden && why != "insufficient_scope" {
		return nil // it is no matter of logins; the answer says what
	}
	if resp.StatusCode == http.StatusForbidden {
		return a.again(fmt.Sprintf("the login does not cover what was asked for (%.200q)", scope), scope)
	}
	sent := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.login.Access == "":
		return a.again("it wants a login", "")
	case a.login.Access != sent:
		return nil // it was replaced meanwhile
	}

	return a.refresh(ctx)
}

// again is the error that only the user can mend.
func (a *authorizer) again(why, scope string) error {
	command := "daycare mcp login " + a.server.conf.ID
	if scope != "" && !strings.ContainsFunc(scope, func(r rune) bool { return r < ' ' || r > '~' || r == '\'' }) {
		command += " --scope '" + scope + "'"
	}

	return &loginError{why + "\nlog in with: " + command}
}

// A loginError is mended by the user alone: nothing was sent.
type loginError struct{ text string }

func (e *loginError) Error() string { return e.text }

// refresh gets a new access token (RFC 6749, 6) and keeps it before it is used; mu is held. The
// parameter resource is that of RFC 8707.
func (a *authorizer) refresh(ctx context.Context) error {
	was := a.login.Access
	if err := a.load(); err != nil {
		return err
	}
	if a.login.Access != "" && a.login.Access != was {
		return nil // another process did
	}
	l := a.login
	if l.Refresh == "" || l.Refresh == a.dead {
		return a.again("its login has expired", "")
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {l.Refresh}}
	if l.Resource != "" {
		form.Set("resource", l.Resource)
	}
	fresh, err := a.ask(ctx, l, form)
	if err != nil {
		return err
	}
	l.Access, l.Expiry = fresh.Access, time.Time{}
	if fresh.Seconds > 0 {
		l.Expiry = time.Now().Add(time.Duration(min(fresh.Seconds, longestToken)) * time.Second)
	}
	if fresh.Refresh != "" {
		l.Refresh = fresh.Refresh
	}
	a.login = l
	if err := a.server.pool.options.Logins.KeepLogin(a.server.conf, l); err != nil {
		return fmt.Errorf("keep the new token of %s: %w", a.server.conf.ID, err)
	}

	return nil
}

// A fresh token is the answer of an authorization server (RFC 6749, 5).
type freshToken struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Type    string `json:"token_type"`
	Seconds int64  `json:"expires_in"`
	Error   string `json:"error"`
}

// ask sends a form to the token endpoint of a login.
func (a *authorizer) ask(ctx context.Context, l Login, form url.Values) (fresh freshToken, err error) {
	if !l.Header {
		form.Set("client_id", l.Client.ID)
		if l.Client.Secret != "" {
			form.Set("client_secret", l.Client.Secret)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startIn)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return fresh, fmt.Errorf("get a new token: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if l.Header {
		req.SetBasicAuth(url.QueryEscape(l.Client.ID), url.QueryEscape(l.Client.Secret))
	}
	res, err := a.client.Do(req)
	if err != nil {
		return fresh, fmt.Errorf("get a new token: %w", err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxToken))
	if err == nil && json.Unmarshal(data, &fresh) != nil {
		err = errors.New("the answer is not JSON")
	}
	switch {
	case fresh.Error == "invalid_grant" || fresh.Error == "invalid_client":
		a.dead = l.Refresh
		return fresh, a.again("its login has expired or was revoked", "")
	case res.StatusCode != http.StatusOK:
		return fresh, fmt.Errorf("get a new token: the authorization server answers %s %.100q", res.Status, fresh.Error)
	case err != nil:
		return fresh, fmt.Errorf("get a new token: %w", err)
	case fresh.Access == "" || !strings.EqualFold(fresh.Type, "bearer"):
		return fresh, fmt.Errorf("get a new token: the authorization server gave no bearer token")
	}

	return fresh, nil
}

// oauthClient makes requests whose addresses the service named. Unless the service itself is in
// the user's own network, none of them leads there; a redirect stays at its host, because what
// is sent are secrets.
func oauthClient(service string) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if u, err := url.Parse(service); err != nil || !localHost(u.Hostname()) {
		dialer := &net.Dialer{Timeout: 30 * time.Second, Control: outside}
		transport.DialContext, transport.Proxy = dialer.DialContext, nil
	}

	return &http.Client{Transport: transport, CheckRedirect: sameHost, Timeout: startIn}
}

// localHost reports whether a host is written as one of the user's own network.
func localHost(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return inside(ip)
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || !strings.Contains(host, ".")
}

func inside(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsUnspecified()
}

// outside refuses connections into the user's own network.
func outside(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err == nil && inside(at.Addr()) {
		return fmt.Errorf("the service sends its login to %s, in your own network; refused", at.Addr())
	}

	return err
}
