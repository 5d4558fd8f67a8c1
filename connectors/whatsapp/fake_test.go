package whatsapp

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
)

const (
	token    = "EAAcanarytoken"
	secret   = "canary-app-secret"
	numberID = "106540352242922"
	ada      = "4915100000001"
	bob      = "4915100000002"
	stranger = "4915100000666"
)

// A graph is a fake of Meta's Graph API for one number.
type graph struct {
	*httptest.Server
	mu      sync.Mutex
	sent    []map[string]any // messages it took
	reads   []map[string]any
	uploads []string
	fault   connectortest.Fault
	calm    chan struct{}
	refuse  string // the error of every message
	waiting connectortest.Keeper
	newest  atomic.Pointer[Connector]
}

func newGraph(t *testing.T) *graph {
	g := &graph{calm: make(chan struct{})}
	g.Server = httptest.NewServer(g)
	t.Cleanup(func() {
		g.misbehave(connectortest.None)
		g.CloseClientConnections()
		g.Close()
	})

	return g
}

func (g *graph) misbehave(f connectortest.Fault) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = f
	close(g.calm)
	g.calm = make(chan struct{})
}

// revoke has the token accepted no more, or again.
func (g *graph) revoke(revoked bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuse = ""; revoked {
		g.refuse = "190"
	}
}

func no(w http.ResponseWriter, status, code int, text string) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": text, "type": "OAuthException", "code": code}})
}

// ServeHTTP answers as Meta does.
func (g *graph) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	content, _ := io.ReadAll(r.Body)
	g.mu.Lock()
	fault, calm, refuse := g.fault, g.calm, g.refuse
	g.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token, refuse == "190":
		no(w, http.StatusUnauthorized, badToken, "Error validating access token "+token)
	case r.URL.Path == "/"+numberID:
		io.WriteString(w, `{"display_phone_number":"+49 151 1","verified_name":"Test","id":"`+numberID+`"}`)
	case r.URL.Path == "/777777":
		fmt.Fprintf(w, `{"url":%q,"mime_type":"image/jpeg"}`, g.URL+"/lookaside")
	case r.URL.Path == "/888888":
		io.WriteString(w, `{"url":"https://evil.example/x"}`)
	case r.URL.Path == "/lookaside":
		io.WriteString(w, "content")
	case r.URL.Path == "/"+numberID+"/media":
		g.mu.Lock()
		g.uploads = append(g.uploads, string(content))
		g.mu.Unlock()
		io.WriteString(w, `{"id":"999999"}`)
	case r.URL.Path == "/"+numberID+"/messages":
		var m map[string]any
		json.Unmarshal(content, &m)
		if m["status"] == "read" {
			g.mu.Lock()
			g.reads = append(g.reads, m)
			g.mu.Unlock()
			io.WriteString(w, `{"success":true}`)
			return
		}
		if code, err := strconv.Atoi(refuse); err == nil && m["type"] != "template" {
			no(w, http.StatusBadRequest, code, "refused")
			return
		}
		g.message(w, m, fault, calm)
	default:
		no(w, http.StatusNotFound, badParameter, "Unsupported request")
	}
}

func (g *graph) message(w http.ResponseWriter, m map[string]any, fault connectortest.Fault, calm chan struct{}) {
	switch fault {
	case connectortest.Broken:
		http.Error(w, token, http.StatusBadGateway)
		return
	case connectortest.Busy:
		w.Header().Set("Retry-After", strconv.Itoa(int(connectortest.BusyFor/time.Second)))
		no(w, http.StatusBadRequest, numberLimit, "Rate limit hit")
		return
	case connectortest.Gone:
		no(w, http.StatusBadRequest, undeliverable, "Message undeliverable")
		return
	case connectortest.Forget:
		io.WriteString(w, `{"messages":[]}`)
		return
	case connectortest.Stall:
		<-calm
		return
	}
	g.mu.Lock()
	g.sent = append(g.sent, m)
	id := fmt.Sprint("wamid.out", len(g.sent))
	g.mu.Unlock()
	if fault == connectortest.Drop {
		panic(http.ErrAbortHandler)
	}
	json.NewEncoder(w).Encode(map[string]any{"messages": []map[string]string{{"id": id}}})
}

// all are the messages that the fake took.
func (g *graph) all() []map[string]any {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]map[string]any(nil), g.sent...)
}

func textOf(m map[string]any) string {
	text, _ := m["text"].(map[string]any)
	shown, _ := text["body"].(string)
	return shown
}

func (g *graph) answers() (all []connectortest.Sent) {
	for _, m := range g.all() {
		key, _ := m["biz_opaque_callback_data"].(string)
		if key != "" || !strings.Contains(textOf(m), "`allow`") {
			all = append(all, connectortest.Sent{Key: key, Text: textOf(m)})
		}
	}
	return all
}

// written is a webhook about one message.
func written(from, id string, at time.Time, more map[string]any) []byte {
	m := map[string]any{"from": from, "id": "wamid." + id, "timestamp": fmt.Sprint(at.Unix())}
	for k, v := range more {
		m[k] = v
	}
	return event(map[string]any{"contacts": []any{map[string]any{"wa_id": from, "profile": map[string]string{"name": "Ada"}}},
		"messages": []any{m}})
}

func text(body string) map[string]any {
	return map[string]any{"type": "text", "text": map[string]string{"body": body}}
}

func event(value map[string]any) []byte {
	value["metadata"] = map[string]string{"phone_number_id": numberID}
	body, err := json.Marshal(map[string]any{"object": "whatsapp_business_account",
		"entry": []any{map[string]any{"changes": []any{map[string]any{"field": "messages", "value": value}}}}})
	if err != nil {
		panic(err)
	}
	return body
}

// signed makes a request as Meta posts it.
func signed(address string, content []byte, secret string) *http.Request {
	r, err := http.NewRequest(http.MethodPost, "http://"+address+"/whatsapp", strings.NewReader(string(content)))
	if err != nil {
		panic(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(sign(secret, content)))

	return r
}

func do(r *http.Request) (status int, said string) {
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data)
}

// post has Meta post something to the newest connector.
func (g *graph) post(ctx context.Context, content []byte, secret string) int {
	for g.newest.Load().Address() == "" && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	status, _ := do(signed(g.newest.Load().Address(), content, secret).WithContext(ctx))
	return status
}

func (g *graph) connector(t *testing.T, o Options, host chat.Host, log *slog.Logger) *Connector {
	t.Helper()
	o.ID, o.Number, o.Listen, o.BaseURL, o.Allow = "whatsapp", numberID, "127.0.0.1:0", g.URL, []string{ada, bob}
	c, err := New(o, token, secret, host, log)
	if err != nil {
		t.Fatal(err)
	}
	c.pause, c.hook.ingress.Grace = time.Millisecond, 100*time.Millisecond
	g.newest.Store(c)

	return c
}
