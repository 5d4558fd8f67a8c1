package mcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"daycare/tools"
)

// service is a server at an address that wants the header of the tests.
func service(t *testing.T, wrap func(http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "service", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "echo", Description: "Says it again", InputSchema: map[string]any{"type": "object"}},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(r.Params.Arguments)}}}, nil
		})
	h := http.Handler(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	if wrap != nil {
		h = wrap(h)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

// at has the server a be at an address.
func (w *world) at(url string) {
	w.Configure([]Server{{ID: "a", Timeout: time.Minute, URL: url, Stamp: url}})
}

func TestAServiceAtAnAddressGetsItsHeaders(t *testing.T) {
	server := service(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer key" {
				http.Error(w, "who are you?", http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	w := newWorld(t)
	w.at(server.URL)
	if res := w.call(t.Context(), w.all()["mcp__a__echo"], `{"text":"hi"}`, nil); res.Status != "" || res.Text != `{"text":"hi"}` {
		t.Errorf("%+v", res)
	}
	if st := w.States(); st[0].State != "running" || st[0].URL != server.URL {
		t.Errorf("%+v", st)
	}
}

func TestSecretsOfAServiceStayAtItsHost(t *testing.T) {
	stolen := make(chan string, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { stolen <- r.Header.Get("Authorization") }))
	t.Cleanup(thief.Close)
	server := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	w := newWorld(t)
	w.at(server.URL)
	_, _, err := w.find("a").use(t.Context())
	if err == nil || !strings.Contains(err.Error(), "redirects to another address") {
		t.Errorf("%v", err)
	}
	select {
	case key := <-stolen:
		t.Errorf("the other host was asked, with %q", key)
	default:
	}
}

func TestAnAnswerOfAServiceIsBounded(t *testing.T) {
	flood := false
	server := service(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !flood || r.Method != http.MethodPost {
				next.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":"`))
			for range 100 {
				if _, err := w.Write([]byte(strings.Repeat("x", 1<<20))); err != nil {
					return
				}
			}
		})
	})
	w := newWorld(t)
	w.at(server.URL)
	echo := w.all()["mcp__a__echo"]
	flood = true
	if res := w.call(t.Context(), echo, `{}`, nil); res.Status != tools.Failed || len(res.Text) > 1000 {
		t.Errorf("status %s with %d bytes: %.200s", res.Status, len(res.Text), res.Text)
	}
}

func TestAServiceThatIsNotThereSaysSo(t *testing.T) {
	w := newWorld(t)
	w.at("http://127.0.0.1:1/mcp")
	if _, _, err := w.find("a").use(t.Context()); err == nil || !strings.Contains(err.Error(), "could not be started") {
		t.Errorf("%v", err)
	}
	if st := w.States(); st[0].State != "failed" || st[0].Error == "" {
		t.Errorf("%+v", st)
	}
}
