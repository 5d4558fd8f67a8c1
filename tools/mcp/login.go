package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// An Asker has a user log in with a browser.
type Asker struct {
	// Redirect is where the authorization server sends the browser at the end.
	Redirect string
	// Scopes are asked for beside those of the settings.
	Scopes []string
	// Ask shows an address to the user, and returns the address that the browser was sent to.
	Ask func(ctx context.Context, address string) (answer *url.URL, err error)
}

// Login has a user log in at a service, keeps what that gave, and returns the tools that the
// service has for it. PKCE (RFC 7636), discovery (RFC 9728, RFC 8414), registration (RFC 7591)
// and the check of state and issuer (RFC 9207) are those of the official SDK.
func (p *Pool) Login(ctx context.Context, id string, asker Asker) (list []Definition, err error) {
	s := p.find(id)
	switch {
	case s == nil:
		return nil, fmt.Errorf("there is no MCP server %q in the settings", id)
	case s.conf.URL == "":
		return nil, fmt.Errorf("the MCP server %s is a program: it has no login; give it its secrets by env", id)
	case p.options.Logins == nil:
		return nil, errors.New("logins cannot be kept here")
	}
	flow := &flow{server: s, asker: asker}
	a, err := flow.authorizer()
	if err != nil {
		return nil, err
	}
	got, err := s.dial(ctx, a)
	if err != nil {
		return nil, err
	}
	defer got.Close()
	if list, err = s.ask(ctx, got); err != nil {
		return nil, err
	}
	if !flow.kept {
		return list, errors.New("the service did not ask for a login: nothing was saved")
	}

	return list, nil
}

// A flow is one login under way.
type flow struct {
	server *server
	asker  Asker

	mu       sync.Mutex
	resource string
	kept     bool
}

// authorizer is that of a connection that asks the user.
func (f *flow) authorizer() (*authorizer, error) {
	s := f.server
	client, err := s.pool.options.Logins.Client(s.conf)
	if err != nil {
		return nil, err
	}
	a := newAuthorizer(s)
	c := &auth.AuthorizationCodeHandlerConfig{RedirectURL: f.asker.Redirect, AuthorizationCodeFetcher: f.fetch, Client: a.client,
		RequestRefreshToken: true, AcceptUnadvertisedIss: true, NewTokenSource: f.keep(a),
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "daycare", SoftwareID: "daycare", SoftwareVersion: s.pool.options.Version,
			RedirectURIs: []string{f.asker.Redirect}, GrantTypes: []string{"authorization_code", "refresh_token"},
			ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none"}},
	}
	if more := slices.Concat(client.Scopes, f.asker.Scopes); len(more) > 0 {
		c.ScopeFilter = func(found []string) []string {
			all := slices.Concat(found, more)
			slices.Sort(all)
			return slices.Compact(all)
		}
	}
	if u, err := url.Parse(client.ID); err == nil && u.Scheme == "https" {
		c.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: client.ID}
	} else if client.ID != "" {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: client.ID}
		if client.Secret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: client.Secret}
		}
	}
	if a.asks, err = auth.NewAuthorizationCodeHandler(c); err != nil {
		return nil, fmt.Errorf("prepare the login at %s: %w", s.conf.ID, err)
	}

	return a, nil
}

// fetch has the user log in.
func (f *flow) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	asked, err := url.Parse(args.URL)
	if err != nil {
		return nil, fmt.Errorf("the address of the login: %w", err)
	}
	f.mu.Lock()
	f.resource = asked.Query().Get("resource")
	f.mu.Unlock()
	answer, err := f.asker.Ask(ctx, args.URL)
	if err != nil {
		return nil, err
	}
	q := answer.Query()
	if why := q.Get("error"); why != "" {
		return nil, fmt.Errorf("the login was refused: %.200q %.500q", why, q.Get("error_description"))
	}

	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

// keep keeps the token that a login gave; from then on the connection uses it.
func (f *flow) keep(a *authorizer) func(context.Context, *oauth2.Config, *oauth2.Token) (oauth2.TokenSource, error) {
	return func(_ context.Context, c *oauth2.Config, t *oauth2.Token) (oauth2.TokenSource, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		l := Login{At: time.Now().UTC().Truncate(time.Second), URL: f.server.conf.URL, Resource: f.resource, TokenURL: c.Endpoint.TokenURL,
			Client: Client{ID: c.ClientID, Secret: c.ClientSecret},
			Header: c.Endpoint.AuthStyle == oauth2.AuthStyleInHeader && c.ClientSecret != "",
			Expiry: t.Expiry, Access: t.AccessToken, Refresh: t.RefreshToken}
		if err := f.server.pool.options.Logins.KeepLogin(f.server.conf, l); err != nil {
			return nil, fmt.Errorf("keep the login: %w", err)
		}
		f.kept = true
		a.mu.Lock()
		defer a.mu.Unlock()
		a.login = l
		return a, nil
	}
}
