package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"daycare/engine/apitoken"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
)

// unused is what nobody asks for.
type unused interface{ control.Agents }

// agents are Ann, who is published, and Ben, who is not.
type agents struct{ unused }

func (agents) Resolve(ref string) (string, error) {
	known := map[string][]string{someone.agent.ID: {someone.agent.ID, "0/", "Ann"}, "benbenbenbenbenbenbenben": {"1/", "Ben"}}
	for id, names := range known {
		if slices.Contains(names, ref) {
			return id, nil
		}
	}
	return "", fmt.Errorf("%w: %q", message.ErrUnknownAgent, ref)
}

func (agents) Agent(_ context.Context, id string) (event.Agent, error) {
	if id == someone.agent.ID {
		return someone.agent, nil
	}
	return event.Agent{ID: id, Handle: "1/", Name: "Ben"}, nil
}

// ask sends one request as a caller with these rights.
func ask(t *testing.T, c *Connector, rights apitoken.Rights, method, path, body string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	api := control.Handler(control.Backend{Agents: agents{}}, control.Options{})
	r := httptest.NewRequestWithContext(t.Context(), method, "http://here:1"+path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	caller := control.Caller{Name: "token:x", Rights: rights, Via: "a2a"}
	c.Serve(w, r, Peer{Name: "token:x", API: control.NewClient(control.LocalAs(api, caller))})

	return w
}

var talker = apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Chat}}

// The card of an agent is at its address, and that of the first one at the root. An agent that is
// not published, or not for this token, does not exist.
func TestCards(t *testing.T) {
	c := newConnector(t)
	for _, path := range []string{"/.well-known/agent-card.json", "/a2a/Ann/.well-known/agent-card.json",
		"/a2a/0/.well-known/agent-card.json", "/a2a/" + someone.agent.ID + "/.well-known/agent-card.json"} {
		w := ask(t, c, talker, "GET", path, "")
		var card struct {
			Name, Description   string
			SupportedInterfaces []struct{ URL, ProtocolBinding, ProtocolVersion string }
			Skills              []struct{ Tags []string }
		}
		if err := json.Unmarshal(w.Body.Bytes(), &card); err != nil || w.Code != http.StatusOK ||
			card.Name != "Ann" || card.Description != "Knows" ||
			len(card.SupportedInterfaces) != 2 || card.SupportedInterfaces[0].URL != "http://here:1/a2a/"+someone.agent.ID ||
			len(card.Skills) != 1 || card.Skills[0].Tags == nil || !Serves(path) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}

	other := apitoken.Rights{Scopes: []apitoken.Scope{apitoken.Chat}, Agents: []string{"benbenbenbenbenbenbenben"}}
	for _, tt := range []struct {
		rights apitoken.Rights
		method string
		path   string
		status int
	}{
		{talker, "GET", "/a2a/Ben/.well-known/agent-card.json", http.StatusNotFound},
		{talker, "GET", "/a2a/nobody/.well-known/agent-card.json", http.StatusNotFound},
		{talker, "POST", "/a2a/Ben", http.StatusNotFound},
		{other, "GET", "/a2a/Ann/.well-known/agent-card.json", http.StatusNotFound},
		{other, "GET", "/.well-known/agent-card.json", http.StatusNotFound},
		{talker, "POST", "/a2a/Ann/.well-known/agent-card.json", http.StatusMethodNotAllowed},
	} {
		if w := ask(t, c, tt.rights, tt.method, tt.path, ""); w.Code != tt.status {
			t.Errorf("%s %s: %d %s, want %d", tt.method, tt.path, w.Code, w.Body, tt.status)
		}
	}
	// One that is published and gone keeps nobody from the others, and a name can have any letters.
	c.o.Agents = []Published{{Agent: "Gone", Description: "Went"}, {Agent: "Ann", Description: "Knows"}}
	for _, path := range []string{"/.well-known/agent-card.json", "/a2a/Ann/.well-known/agent-card.json",
		"/a2a/%41nn/.well-known/agent-card.json", "/a2a/0%2F/.well-known/agent-card.json"} {
		if w := ask(t, c, talker, "GET", path, ""); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "Knows") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if Serves("/v1/agents") || Serves("/a2a") {
		t.Error("a path of the API is one of A2A")
	}
}

// What is not a request of the protocol is refused, and bounded.
func TestRequestsThatCannotBeUsed(t *testing.T) {
	c := newConnector(t)
	for name, tt := range map[string]struct {
		method, path, body, version, want string
		status                            int
	}{
		"no JSON":        {"POST", "/a2a/Ann", "{", "", "-32700", 200},
		"no method":      {"POST", "/a2a/Ann", `{"jsonrpc":"2.0","id":1}`, "", "-32600", 200},
		"unknown method": {"POST", "/a2a/Ann/", `{"jsonrpc":"2.0","id":1,"method":"Dance"}`, "1.0", "-32601", 200},
		"empty message": {"POST", "/a2a/Ann", `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{}}`, "",
			"message is missing", 200},
		"REST":            {"POST", "/a2a/Ann/message:send", `{}`, "", "message is missing", 400},
		"another version": {"POST", "/a2a/Ann/message:send", `{}`, "0.3", "A2A-Version", 400},
		"too large":       {"POST", "/a2a/Ann", strings.Repeat("x", maxBody+1), "", "too_large", 413},
		"no such path":    {"GET", "/a2a/Ann/nothing", "", "", "", 404},
	} {
		w := ask(t, c, talker, tt.method, tt.path, tt.body, "A2A-Version", tt.version)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s: %d %.300s, want %d and %q", name, w.Code, w.Body, tt.status, tt.want)
		}
	}

	for range maxRequests {
		c.busy <- struct{}{}
	}
	if w := ask(t, c, talker, "POST", "/a2a/Ann", "{}"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d", w.Code)
	}
}

// Few large bodies, and bodies of unknown size, are read at once; small ones do not wait for them.
func TestLargeBodies(t *testing.T) {
	c := newConnector(t)
	for range maxLarge {
		c.large <- struct{}{}
	}
	for size, waits := range map[int64]bool{-1: true, 0: false, largeBody: false, largeBody + 1: true} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader("{}"))
		r.ContentLength = size
		body, err := c.body(httptest.NewRecorder(), r)
		if waited := errors.Is(err, context.Canceled); waited != waits || !waits && string(body) != "{}" {
			t.Errorf("%d bytes: %q, %v", size, body, err)
		}
	}
}

// Settings that publish nothing, or lead nowhere, are refused.
func TestSettings(t *testing.T) {
	ann := []Published{{Agent: "Ann", Description: "Knows"}}
	for want, o := range map[string]Options{
		"without an id": {Agents: ann}, "no agent has a card": {ID: "a"},
		"description is missing": {ID: "a", Agents: []Published{{Agent: "Ann"}}},
		"want HOST:PORT":         {ID: "a", Agents: ann, Notify: []string{"nas.home"}},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
	if _, err := New(Options{}, nil, &drawer{}, nil); err == nil {
		t.Error("a connector without settings is made")
	}
}
