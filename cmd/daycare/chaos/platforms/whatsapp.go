package platforms

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	whatsappUser   = "4915100000001"
	whatsappNumber = "106540352242922"
)

// A graph is the Graph API of WhatsApp for one number, and Meta that posts.
type graph struct {
	*site
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	posts  sync.WaitGroup

	mu      sync.Mutex
	listen  string // where daycare is posted to
	queue   []posting
	wake    chan struct{} // capacity 1
	said    []Said
	newest  int // number of a message of the user
	answers int
	posted  int
}

// A posting is one webhook; received is nil for those about what the bot sent.
type posting struct {
	body     []byte
	received func()
}

func newGraph(at *site) (Platform, http.Handler) {
	g := &graph{site: at, wake: make(chan struct{}, 1)}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.posts.Go(g.post)

	return g, g
}

func (g *graph) Settings(listen string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listen = listen
	return fmt.Sprintf("id: whatsapp, type: whatsapp, allow: [%q], tokenEnv: %s, secretEnv: %s, number: %q, listen: %q, baseURL: %q",
		whatsappUser, tokenEnv, secretEnv, whatsappNumber, listen, g.base)
}

// Once: Meta knows no keys, but says what it sent.
func (g *graph) Once() bool { return false }

func (g *graph) Write(text string, received func()) {
	g.write(received, map[string]any{"type": "text", "text": map[string]string{"body": text}})
}

func (g *graph) Press(card string, received func()) {
	g.write(received, map[string]any{"type": "interactive",
		"interactive": map[string]any{"button_reply": map[string]string{"id": card}}})
}

func (g *graph) write(received func(), m map[string]any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.newest++
	m["from"], m["id"], m["timestamp"] = whatsappUser, fmt.Sprint("wamid.in", g.newest), fmt.Sprint(time.Now().Unix())
	g.enqueue(received, map[string]any{"messages": []any{m},
		"contacts": []any{map[string]any{"wa_id": whatsappUser, "profile": map[string]string{"name": "Ada"}}}})
}

// enqueue adds a webhook. The lock is held.
func (g *graph) enqueue(received func(), value map[string]any) {
	value["metadata"] = map[string]string{"phone_number_id": whatsappNumber}
	body, err := json.Marshal(map[string]any{"object": "whatsapp_business_account",
		"entry": []any{map[string]any{"changes": []any{map[string]any{"field": "messages", "value": value}}}}})
	if err != nil {
		panic(err)
	}
	g.queue = append(g.queue, posting{body, received})
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// post posts webhooks in their order, each until it is answered with 200, and some of them
// once more.
func (g *graph) post() {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for g.ctx.Err() == nil {
		g.mu.Lock()
		var next posting
		if len(g.queue) > 0 {
			next = g.queue[0]
		}
		listen := g.listen
		g.mu.Unlock()
		switch {
		case next.body == nil:
			select {
			case <-g.wake:
			case <-g.ctx.Done():
			}
			continue
		case !g.accepted(client, listen, next.body):
			select {
			case <-time.After(5 * time.Millisecond):
			case <-g.ctx.Done():
			}
			continue
		}

		g.mu.Lock()
		g.queue, g.posted = g.queue[1:], g.posted+1
		again := g.posted%3 == 0
		g.mu.Unlock()
		if next.received != nil {
			next.received()
		}
		if again {
			g.accepted(client, listen, next.body)
		}
	}
}

// accepted posts once.
func (g *graph) accepted(client *http.Client, listen string, body []byte) bool {
	req, err := http.NewRequestWithContext(g.ctx, http.MethodPost, "http://"+listen+"/whatsapp", bytes.NewReader(body))
	if err != nil {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	resp.Body.Close()

	return resp.StatusCode == http.StatusOK
}

func (g *graph) Said() []Said {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Said(nil), g.said...)
}

func (g *graph) Close() {
	g.cancel()
	g.posts.Wait()
	g.site.Close()
}

func graphNo(w http.ResponseWriter, status, code int, text string) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": text, "code": code}}) // who died does not read
}

// ServeHTTP answers as the Graph API does.
func (g *graph) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		graphNo(w, http.StatusUnauthorized, 190, "Error validating access token")
	case r.URL.Path == "/"+whatsappNumber:
		fmt.Fprintf(w, `{"display_phone_number":"+49","verified_name":"Bot","id":%q}`, whatsappNumber)
	case r.URL.Path == "/"+whatsappNumber+"/messages":
		g.message(w, r)
	default:
		graphNo(w, http.StatusNotFound, 100, "Unsupported request")
	}
}

// shown is a message as the API takes it.
type shown struct {
	Status string
	Type   string
	Key    string `json:"biz_opaque_callback_data"`
	Text   struct {
		Body string
	}
	Interactive struct {
		Body   struct{ Text string }
		Action struct {
			Buttons []struct {
				Reply struct{ ID string }
			}
			Sections []struct {
				Rows []struct{ ID string }
			}
		}
	}
}

// said is a message as the user sees it.
func (m shown) said() Said {
	if m.Type != "interactive" {
		return Said{Text: m.Text.Body}
	}
	one := Said{Text: m.Interactive.Body.Text}
	for _, b := range m.Interactive.Action.Buttons[:min(1, len(m.Interactive.Action.Buttons))] {
		one.Card = b.Reply.ID
	}
	for _, s := range m.Interactive.Action.Sections[:min(1, len(m.Interactive.Action.Sections))] {
		one.Card = s.Rows[0].ID
	}

	return one
}

// message takes a message, and posts that it was sent.
func (g *graph) message(w http.ResponseWriter, r *http.Request) {
	var m shown
	if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
		graphNo(w, http.StatusBadRequest, 100, "Invalid parameter") // torn, because its sender died
		return
	}
	if m.Status == "read" {
		fmt.Fprint(w, `{"success":true}`)
		return
	}

	g.mu.Lock()
	f := fine
	if m.Key != "" && !strings.HasPrefix(m.Key, "request-") {
		g.answers++
		f = bad(g.answers)
	}
	id := ""
	if f == fine || f == dropped {
		g.said = append(g.said, m.said())
		id = fmt.Sprint("wamid.out", len(g.said))
		g.enqueue(nil, map[string]any{"statuses": []any{map[string]string{"id": id, "status": "sent", "recipient_id": whatsappUser,
			"biz_opaque_callback_data": m.Key}}})
	}
	g.mu.Unlock()

	switch f {
	case broken:
		http.Error(w, "bad gateway", http.StatusBadGateway)
	case busy:
		graphNo(w, http.StatusBadRequest, 130429, "Rate limit hit")
	case dropped:
		panic(http.ErrAbortHandler)
	default:
		fmt.Fprintf(w, `{"messages":[{"id":%q}]}`, id)
	}
}
