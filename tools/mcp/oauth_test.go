package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/tools"
	"daycare/tools/mcp/mcptest"
)

// kept are logins in memory.
type kept struct {
	mu sync.Mutex
	by map[string]Login
	n  int // how often one was kept
}

func (k *kept) Login(s Server) (Login, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.by[s.ID], nil
}

func (k *kept) KeepLogin(s Server, l Login) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.by[s.ID] = l
	k.n++
	return nil
}

func (k *kept) Client(Server) (Client, error) { return Client{}, nil }

// logged is a world whose server a is a service behind an authorization server.
func logged(t *testing.T) (*world, *mcptest.Issuer, *kept) {
	s := sdk.NewServer(&sdk.Implementation{Name: "service", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "echo", Description: "Says it again", InputSchema: map[string]any{"type": "object"}},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
		})
	issuer := mcptest.NewIssuer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(issuer.Close)
	w := newWorld(t)
	logins := &kept{by: map[string]Login{}}
	w.options.Logins = logins
	w.options.Headers = func(Server) (http.Header, error) { return nil, nil }
	w.at(issuer.URL + "/mcp")
	return w, issuer, logins
}

// browse follows a login as a browser does, up to this machine.
func browse(ctx context.Context, address string) (*url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	res.Body.Close()
	return res.Location()
}

func asker() Asker { return Asker{Redirect: "http://127.0.0.1:1/callback", Ask: browse} }

func TestALoginAndItsTokens(t *testing.T) {
	w, issuer, logins := logged(t)
	if _, _, err := w.find("a").use(t.Context()); err == nil || !strings.Contains(err.Error(), "daycare mcp login a") {
		t.Errorf("without a login: %v", err)
	}
	list, err := w.Login(t.Context(), "a", asker())
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	l := logins.by["a"]
	if l.Access == "" || l.Refresh == "" || l.URL != issuer.URL+"/mcp" || l.Resource != l.URL || l.Client.ID == "" || l.At.IsZero() {
		t.Errorf("kept: %+v", l)
	}
	w.at(issuer.URL + "/mcp#again") // as the daemon does after a login: its stamp is another
	w.at(issuer.URL + "/mcp")
	echo := w.all()["mcp__a__echo"]
	if res := w.call(t.Context(), echo, `{"n":1}`, nil); res.Text != `{"n":1}` {
		t.Errorf("with a login: %+v", res)
	}
	if issuer.Count("refresh") != 0 {
		t.Error("a token that is good was replaced")
	}

	// The service ends the token before its time.
	issuer.Expire(false)
	if res := w.call(t.Context(), echo, `{"n":2}`, nil); res.Text != `{"n":2}` || issuer.Count("refresh") != 1 {
		t.Errorf("after its token was ended: %+v, %d refreshed", res, issuer.Count("refresh"))
	}
	if logins.by["a"].Refresh == l.Refresh {
		t.Error("the new refresh token is not kept")
	}

	// Its time is over: no request is made with it.
	logins.mu.Lock()
	old := logins.by["a"]
	old.Expiry = time.Now().Add(-time.Minute)
	logins.by["a"] = old
	logins.mu.Unlock()
	if res := w.call(t.Context(), echo, `{"n":3}`, nil); res.Text != `{"n":3}` || issuer.Count("refresh") != 2 {
		t.Errorf("after its time: %+v, %d refreshed", res, issuer.Count("refresh"))
	}

	// Everything is revoked: only the user can help, and nobody is asked again and again.
	issuer.Expire(true)
	for range 2 {
		if res := w.call(t.Context(), echo, `{}`, nil); res.Status != tools.Failed || !strings.Contains(res.Text, "daycare mcp login a") {
			t.Errorf("revoked: %+v", res)
		}
	}
	if issuer.Count("authorize") != 1 || issuer.Count("register") != 1 {
		t.Errorf("%d logins, %d registrations, want 1 of each", issuer.Count("authorize"), issuer.Count("register"))
	}
}

// Many calls at once replace an expired token once: the refresh token is good only once.
func TestATokenIsReplacedOnceForAllCalls(t *testing.T) {
	w, issuer, _ := logged(t)
	if _, err := w.Login(t.Context(), "a", asker()); err != nil {
		t.Fatal(err)
	}
	echo := w.all()["mcp__a__echo"]
	issuer.Expire(false)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if res := w.call(t.Context(), echo, `{}`, nil); res.Status != "" {
				t.Errorf("%+v", res)
			}
		})
	}
	all.Wait()
	if n := issuer.Count("refresh"); n != 1 {
		t.Errorf("replaced %d times", n)
	}
}

func TestALoginIsForOneAddress(t *testing.T) {
	var mu sync.Mutex
	var stolen []string
	server := service(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			stolen = append(stolen, r.Header.Get("Authorization"))
			mu.Unlock()
			next.ServeHTTP(w, r)
		})
	})
	w, issuer, _ := logged(t)
	if _, err := w.Login(t.Context(), "a", asker()); err != nil {
		t.Fatal(err)
	}
	w.at(server.URL)
	if _, _, err := w.find("a").use(t.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(stolen) == 0 || strings.Join(stolen, "") != "" {
		t.Errorf("the token of %s was sent to %s: %q", issuer.URL, server.URL, stolen)
	}
}

func TestALoginThatFailsKeepsNothing(t *testing.T) {
	w, _, logins := logged(t)
	for name, ask := range map[string]func(context.Context, string) (*url.URL, error){
		"nobody": func(context.Context, string) (*url.URL, error) { return nil, errors.New("nobody logged in") },
		"state":  func(context.Context, string) (*url.URL, error) { return url.Parse("http://x/?code=a&state=other") },
		"was refused": func(context.Context, string) (*url.URL, error) {
			return url.Parse("http://x/?error=access_denied&state=s")
		},
		"issuer": func(ctx context.Context, address string) (*url.URL, error) {
			answer, err := browse(ctx, address)
			if err == nil {
				answer.RawQuery = strings.ReplaceAll(answer.RawQuery, "iss=http", "iss=https")
			}
			return answer, err
		},
	} {
		_, err := w.Login(t.Context(), "a", Asker{Redirect: "http://127.0.0.1:1/callback", Ask: ask})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if logins.n != 0 {
		t.Errorf("%d logins kept", logins.n)
	}
	w.is("plain")
	if _, err := w.Login(t.Context(), "a", asker()); err == nil || !strings.Contains(err.Error(), "is a program") {
		t.Errorf("a program: %v", err)
	}
}

// A service of the world cannot send the login into the user's own network.
func TestALoginStaysOutsideTheOwnNetwork(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1": true, "10.1.2.3": true, "::ffff:192.168.1.1": true, "169.254.169.254": true,
		"::1": true, "fe80::1": true, "8.8.8.8": false, "2606:4700::1111": false} {
		if got := inside(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	reached := make(chan string, 10)
	server := service(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.URL.Path })
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := oauthClient("https://mcp.example.com/mcp").Do(req); err == nil || !strings.Contains(err.Error(), "own network") {
		t.Errorf("%v, %v", res, err)
	}
	if len(reached) > 0 {
		t.Error("it was reached")
	}
}

// A service on the Internet leads its login to other hosts there, and never into the user's own
// network, whatever name it uses for that: what counts is where the connection goes.
func TestALoginLeadsOutsideOnly(t *testing.T) {
	for address, want := range map[string]bool{"93.184.216.34:443": true, "[2606:2800:220:1::1]:443": true,
		"127.0.0.1:80": false, "10.1.2.3:443": false, "169.254.169.254:80": false, "[::1]:443": false, "[::ffff:192.168.0.1]:443": false,
		"[fd00::1]:443": false, "0.0.0.0:80": false, "no address": false} {
		if err := outside("tcp", address, nil); (err == nil) != want {
			t.Errorf("a connection to %s: %v, want it allowed: %v", address, err, want)
		}
	}
}
