package slack

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"daycare/connectors/connectortest"
)

var canaries = Secrets{Bot: "xoxb-canary-bot", App: "xapp-canary-app", Signing: "canary-signing-secret"}

const (
	ada = "U024BE7LH"
	bob = "U024BE7LI"
)

// workspace is a fake of Slack: the Web API, Socket Mode and, towards a listener,
// posted events.
type workspace struct {
	*httptest.Server
	mu        sync.Mutex
	conn      *websocket.Conn // the newest socket
	acked     map[string]bool
	change    chan struct{}
	posts     []posting
	calls     map[string]int
	fault     connectortest.Fault
	calm      chan struct{}
	upload    string
	reactions []string // channel/message/name
	n         int
	waiting   connectortest.Keeper
	revoked   bool
	order     []string          // time stamps of messages
	texts     map[string]string // by time stamp, as edits left them
}

func newWorkspace(t *testing.T) *workspace {
	s := &workspace{acked: map[string]bool{}, texts: map[string]string{},
		change: make(chan struct{}), calls: map[string]int{}, calm: make(chan struct{})}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.misbehave(connectortest.None)
		s.mu.Lock()
		if s.conn != nil {
			s.conn.CloseNow()
		}
		s.mu.Unlock()
		s.CloseClientConnections()
		s.Close()
	})

	return s
}

func (s *workspace) touch() {
	close(s.change)
	s.change = make(chan struct{})
}

func (s *workspace) misbehave(f connectortest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
	close(s.calm)
	s.calm = make(chan struct{})
}

// revoke has the tokens accepted no more, or again.
func (s *workspace) revoke(revoked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = revoked
	if s.conn != nil {
		s.conn.CloseNow()
	}
}

func (s *workspace) sent() (all []connectortest.Sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.posts {
		if !strings.Contains(p.Text, "`allow`") {
			all = append(all, connectortest.Sent{Text: p.Text})
		}
	}

	return all
}

// visible are the texts that users see.
func (s *workspace) visible() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ts := range s.order {
		all = append(all, s.texts[ts])
	}
	return all
}

func (s *workspace) last() posting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posts[len(s.posts)-1]
}

// ServeHTTP answers as Slack does.
func (s *workspace) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	method := strings.TrimPrefix(r.URL.Path, "/")
	if method == "ws" {
		s.socket(w, r)
		return
	}
	answer := func(more map[string]any) {
		more["ok"] = true
		json.NewEncoder(w).Encode(more)
	}
	no := func(word string) { json.NewEncoder(w).Encode(map[string]any{"ok": false, "error": word}) }
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	s.calls[method]++
	fault, calm, revoked := s.fault, s.calm, s.revoked
	s.mu.Unlock()

	switch {
	case revoked:
		no("token_revoked")
	case method == "files/a.txt" && token == canaries.Bot:
		io.WriteString(w, "content")
	case method == "upload":
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.upload = string(body)
		s.mu.Unlock()
	case method == "apps.connections.open" && token == canaries.App:
		answer(map[string]any{"url": "ws" + strings.TrimPrefix(s.URL, "http") + "/ws?ticket=canary-ticket"})
	case token != canaries.Bot:
		no("invalid_auth")
	case method == "auth.test":
		answer(map[string]any{"user_id": "UBOT00001", "user": "bot", "team": "Test"})
	case method == "files.getUploadURLExternal":
		answer(map[string]any{"upload_url": s.URL + "/upload", "file_id": "F1"})
	case method == "reactions.add":
		s.react(r, answer, no)
	case method == "files.completeUploadExternal":
		answer(map[string]any{})
	default:
		s.chat(w, r, fault, calm, answer, no)
	}
}

func (s *workspace) react(r *http.Request, answer func(map[string]any), no func(string)) {
	var p struct{ Channel, Timestamp, Name string }
	err := json.NewDecoder(r.Body).Decode(&p)
	s.mu.Lock()
	defer s.mu.Unlock()
	key := p.Channel + "/" + p.Timestamp + "/" + p.Name
	switch {
	case err != nil || p.Name == "nope":
		no("invalid_name")
	case slices.Contains(s.reactions, key):
		no("already_reacted")
	default:
		s.reactions = append(s.reactions, key)
		answer(map[string]any{})
	}
}

func (s *workspace) chat(w http.ResponseWriter, r *http.Request, fault connectortest.Fault, calm chan struct{},
	answer func(map[string]any), no func(string)) {
	switch fault {
	case connectortest.Broken:
		http.Error(w, canaries.Bot, http.StatusBadGateway)
		return
	case connectortest.Busy:
		w.Header().Set("Retry-After", strconv.Itoa(int(connectortest.BusyFor/time.Second)))
		w.WriteHeader(http.StatusTooManyRequests)
		return
	case connectortest.Gone:
		no("channel_not_found")
		return
	case connectortest.Forget:
		answer(map[string]any{})
		return
	case connectortest.Stall:
		<-calm
		return
	}

	var p posting
	if err := json.NewDecoder(r.Body).Decode(&p); err != nil {
		no("invalid_json")
		return
	}
	s.mu.Lock()
	s.posts = append(s.posts, p)
	s.n++
	ts := p.TS
	if ts == "" {
		ts = fmt.Sprintf("1700000000.%06d", s.n)
		s.order = append(s.order, ts)
	}
	s.texts[ts] = p.Text
	s.touch()
	s.mu.Unlock()
	if fault == connectortest.Drop {
		panic(http.ErrAbortHandler)
	}

	answer(map[string]any{"ts": ts})
}

func (s *workspace) socket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	ctx := r.Context()
	conn.Write(ctx, websocket.MessageText, []byte(`{"type":"hello"}`))
	s.mu.Lock()
	s.conn = conn
	s.touch()
	s.mu.Unlock()

	for {
		_, data, err := conn.Read(ctx)
		if err != nil {
			s.mu.Lock()
			if s.conn == conn {
				s.conn = nil
			}
			s.mu.Unlock()
			return
		}

		var ack struct {
			Envelope string `json:"envelope_id"`
		}
		json.Unmarshal(data, &ack)
		s.mu.Lock()
		s.acked[ack.Envelope] = true
		s.touch()
		s.mu.Unlock()
	}
}

// envelope sends one through the newest socket until it is acknowledged; a real
// Slack takes minutes between tries.
func (s *workspace) envelope(ctx context.Context, kind string, payload any) bool {
	s.mu.Lock()
	s.n++
	id := fmt.Sprintf("envelope%d", s.n)
	s.mu.Unlock()
	body, err := json.Marshal(map[string]any{"type": kind, "envelope_id": id, "payload": payload})
	if err != nil {
		panic(err)
	}

	for ctx.Err() == nil {
		s.mu.Lock()
		conn := s.conn
		s.mu.Unlock()
		if conn != nil {
			conn.Write(ctx, websocket.MessageText, body)
		}

		again := time.After(50 * time.Millisecond)
	wait:
		for {
			s.mu.Lock()
			done, change := s.acked[id], s.change
			s.mu.Unlock()
			if done {
				return true
			}

			select {
			case <-change:
			case <-again:
				break wait
			case <-ctx.Done():
				return false
			}
		}
	}

	return false
}

// said is an event of a direct message.
func said(ts, user, text string) map[string]any {
	return map[string]any{"type": "event_callback",
		"event": map[string]any{"type": "message", "channel_type": "im", "channel": "D1", "user": user, "text": text, "ts": ts}}
}

// signed makes a request as Slack posts it.
func signed(address, media string, body []byte, at time.Time, secret string) *http.Request {
	r, err := http.NewRequest(http.MethodPost, "http://"+address+"/slack", strings.NewReader(string(body)))
	if err != nil {
		panic(err)
	}
	stamp := strconv.FormatInt(at.Unix(), 10)
	r.Header.Set("Content-Type", media)
	r.Header.Set("X-Slack-Request-Timestamp", stamp)
	r.Header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(sign(secret, stamp, body)))

	return r
}

func do(r *http.Request) (status int, body string) {
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data)
}
