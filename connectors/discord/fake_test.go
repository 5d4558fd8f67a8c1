package discord

import (
	"context"
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

const (
	token    = "canary-token.of.a-bot"
	me       = "100000000000000001"
	ada      = "200000000000000001"
	bob      = "200000000000000002"
	stranger = "200000000000000666"
	guild    = "300000000000000001"
	general  = "400000000000000001"
	thread   = "400000000000000002"
)

// private is the private chat with a user.
func private(user string) string { return "5" + user[1:] }

// A server is a fake of Discord, as its documentation has it: the gateway with sessions that
// can be resumed, and the REST API with its rate limits and idempotent messages.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	change  chan struct{} // closed at every change
	rooms   map[string]map[string]any
	written map[string][]map[string]any // messages by channel
	ids     map[string]string           // of messages by the key of a test
	newest  int64

	sessions []*live
	conn     *websocket.Conn // the newest

	posts     []posting // every message that was sent to it, also those sent twice
	to        []string  // their channels
	shown     []string  // ids of those that are there
	nonces    map[string]string
	calls     []string // method and path
	bodies    []string
	fault     connectortest.Fault
	calm      chan struct{}
	waiting   connectortest.Keeper
	intents   int
	refuse    int // close code for who identifies
	deaf      bool
	interval  int
	remaining int
	handed    int // messages handed out by fetches
	limited   int // how many of the next calls are refused with 429
	revoked   bool
	beats     []string          // what heartbeats said, as JSON
	texts     map[string]string // by the id of the message, as edits left them
}

// live is one session: what it was told, numbered from 1.
type live struct {
	id   string
	told []frame
	gone bool
	conn *websocket.Conn
}

func newServer(t *testing.T) *server {
	s := &server{change: make(chan struct{}), rooms: map[string]map[string]any{}, written: map[string][]map[string]any{},
		ids: map[string]string{}, nonces: map[string]string{}, texts: map[string]string{},
		calm: make(chan struct{}), interval: 60_000, remaining: 1000}
	s.rooms[general] = map[string]any{"id": general, "type": 0, "guild_id": guild}
	s.rooms[thread] = map[string]any{"id": thread, "type": 11, "guild_id": guild, "parent_id": general, "owner_id": me}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.misbehave(connectortest.None)
		s.cut()
		s.CloseClientConnections()
		s.Close()
	})

	return s
}

func (s *server) touch() {
	close(s.change)
	s.change = make(chan struct{})
}

func (s *server) misbehave(f connectortest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
	close(s.calm)
	s.calm = make(chan struct{})
}

// cut ends the connection without a word.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.CloseNow()
	}
}

// revoke has the token accepted no more, or again.
func (s *server) revoke(revoked bool) {
	s.with(func() { s.revoked = revoked })
	s.cut()
}

// with calls f with the lock held.
func (s *server) with(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// write has a user write a message under the key of a test, and returns its id. The same key
// again tells of the same message again.
func (s *server) write(key, channel, author, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ok := s.ids[key]; ok {
		for _, m := range s.written[channel] {
			if m["id"] == id {
				s.tell("MESSAGE_CREATE", m)
			}
		}
		return id
	}

	m := map[string]any{"channel_id": channel, "type": 0, "content": text, "author": map[string]any{"id": author, "username": "u" +
		author[15:]}}
	if room := s.rooms[channel]; room != nil {
		m["guild_id"] = room["guild_id"]
	}
	if strings.Contains(text, "<@"+me+">") {
		m["mentions"] = []any{map[string]any{"id": me, "username": "bot"}}
	}
	s.newest = max(s.newest+1, idAt(time.Now())+1)
	id := strconv.FormatInt(s.newest, 10)
	s.ids[key], m["id"] = id, id
	s.written[channel] = append(s.written[channel], m)
	s.tell("MESSAGE_CREATE", m)

	return id
}

// event tells of anything.
func (s *server) event(name string, data any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell(name, data)
}

// tell hands an event to all sessions. The lock is held.
func (s *server) tell(name string, data any) {
	for _, l := range s.sessions {
		if !l.gone {
			s.toSession(l, name, data)
		}
	}
}

func (s *server) toSession(l *live, name string, data any) {
	body, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	seq := int64(len(l.told) + 1)
	f := frame{Op: opDispatch, Name: name, Seq: &seq, Data: body}
	l.told = append(l.told, f)
	s.send(l.conn, f)
}

func (s *server) send(conn *websocket.Conn, f any) {
	body, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	if conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		conn.Write(ctx, websocket.MessageText, body)
	}
}

// gateway is one connection.
func (s *server) gateway(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer conn.CloseNow()
	s.with(func() {
		s.conn = conn
		s.send(conn, map[string]any{"op": opHello, "d": map[string]int{"heartbeat_interval": s.interval}})
	})

	for {
		_, data, err := conn.Read(r.Context())
		if err != nil {
			s.ended(conn, err)
			return
		}
		var f struct {
			Op   int `json:"op"`
			Data struct {
				Token   string `json:"token"`
				Intents int    `json:"intents"`
				Session string `json:"session_id"`
				Seq     int    `json:"seq"`
			} `json:"d"`
		}
		json.Unmarshal(data, &f) // a heartbeat's is a number
		s.mu.Lock()
		bad := f.Data.Token != token || s.revoked
		s.mu.Unlock()
		if f.Op != opHeartbeat && bad {
			conn.Close(closeUnauthorized, "")
			return
		}
		s.mu.Lock()
		refuse := s.refuse
		switch {
		case f.Op == opHeartbeat && !s.deaf:
			s.beats = append(s.beats, string(data))
			s.send(conn, map[string]any{"op": opHeard})
		case f.Op == opIdentify && refuse == 0:
			s.intents = f.Data.Intents
			s.identified(conn)
		case f.Op == opResume:
			s.resumed(conn, f.Data.Session, f.Data.Seq)
		}
		s.touch()
		s.mu.Unlock()
		if f.Op == opIdentify && refuse != 0 {
			conn.Close(websocket.StatusCode(refuse), "")
			return
		}
	}
}

// identified begins a session. The lock is held.
func (s *server) identified(conn *websocket.Conn) {
	s.remaining--
	l := &live{id: fmt.Sprint("session", len(s.sessions)), conn: conn}
	for _, old := range s.sessions {
		old.gone = true
	}
	s.sessions = append(s.sessions, l)
	s.toSession(l, "READY", map[string]any{"user": map[string]string{"id": me, "username": "bot"}, "session_id": l.id,
		"resume_gateway_url": s.address(), "guilds": []map[string]any{{"id": guild, "unavailable": true}}})
	channels, threads := []any{}, []any{}
	for id, room := range s.rooms {
		if room["guild_id"] == guild {
			room["last_message_id"] = s.last(id)
			if room["type"] == 11 {
				threads = append(threads, room)
			} else {
				channels = append(channels, room)
			}
		}
	}
	s.toSession(l, "GUILD_CREATE", map[string]any{"id": guild, "channels": channels, "threads": threads,
		"roles": []any{map[string]any{"id": "600000000000000001", "tags": map[string]string{"bot_id": me}}}})
}

// resumed continues a session. The lock is held.
func (s *server) resumed(conn *websocket.Conn, id string, seq int) {
	for _, l := range s.sessions {
		if l.id == id && !l.gone {
			l.conn = conn
			for _, f := range l.told[seq:] {
				s.send(conn, f)
			}
			s.toSession(l, "RESUMED", map[string]any{})
			return
		}
	}
	s.send(conn, map[string]any{"op": opInvalid, "d": false})
}

// ended ends a connection; one that is closed as finished ends its session, too.
func (s *server) ended(conn *websocket.Conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.sessions {
		if l.conn == conn {
			l.conn = nil
			l.gone = l.gone || websocket.CloseStatus(err) == websocket.StatusNormalClosure
		}
	}
	s.touch()
}

func (s *server) last(channel string) string {
	if all := s.written[channel]; len(all) > 0 {
		return all[len(all)-1]["id"].(string)
	}
	return ""
}

func (s *server) address() string { return "ws" + strings.TrimPrefix(s.URL, "http") + "/gateway" }

// ServeHTTP answers as Discord does.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/gateway/") && r.URL.Path != "/gateway/bot" {
		s.gateway(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.calls, s.bodies = append(s.calls, r.Method+" "+r.URL.Path), append(s.bodies, string(body))
	limited, revoked := s.limited > 0, s.revoked
	if limited {
		s.limited--
	}
	s.touch()
	s.mu.Unlock()
	open := strings.HasPrefix(r.URL.Path, "/interactions/") || strings.HasPrefix(r.URL.Path, "/webhooks/") ||
		strings.HasPrefix(r.URL.Path, "/cdn/")
	switch {
	case !open && (revoked || r.Header.Get("Authorization") != "Bot "+token ||
		!strings.HasPrefix(r.Header.Get("User-Agent"), "DiscordBot (")):
		no(w, http.StatusUnauthorized, 0, "401: Unauthorized "+token)
	case limited:
		busy(w, 0.01, false)
	default:
		s.rest(w, r, body)
	}
}

func no(w http.ResponseWriter, status, code int, text string) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"code": code, "message": text})
}

func busy(w http.ResponseWriter, after float64, global bool) {
	w.Header().Set("Retry-After", strconv.Itoa(int(after)))
	w.WriteHeader(http.StatusTooManyRequests)
	json.NewEncoder(w).Encode(map[string]any{"message": "You are being rate limited.", "retry_after": after, "global": global})
}

func (s *server) rest(w http.ResponseWriter, r *http.Request, body []byte) {
	answer := func(v any) { json.NewEncoder(w).Encode(v) }
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch what := r.Method + " " + parts[0] + "/" + parts[len(parts)-1]; {
	case r.URL.Path == "/applications/@me":
		answer(map[string]any{"id": me, "flags": 0, "bot": map[string]string{"id": me, "username": "bot"}})
	case what == "GET gateway/bot":
		s.with(func() {
			answer(map[string]any{"url": s.address(), "session_start_limit": map[string]int{"total": 1000, "remaining": s.remaining,
				"reset_after": 3_600_000}})
		})
	case what == "GET users/guilds":
		answer([]any{map[string]string{"id": guild}})
	case what == "POST users/channels":
		var p struct {
			To string `json:"recipient_id"`
		}
		json.Unmarshal(body, &p)
		s.with(func() {
			answer(map[string]any{"id": private(p.To), "type": 1, "last_message_id": s.last(private(p.To))})
		})
	case what == "POST channels/messages":
		s.posted(w, r, parts[1], body)
	case what == "GET channels/messages":
		s.page(w, r, parts[1])
	case r.Method == http.MethodGet && parts[0] == "channels" && strings.HasPrefix(parts[1], "5"):
		answer(map[string]any{"id": parts[1], "type": privateChat})
	case r.Method == http.MethodGet && parts[0] == "channels":
		s.mu.Lock()
		defer s.mu.Unlock()
		if room := s.rooms[parts[1]]; room != nil {
			answer(room)
			return
		}
		no(w, http.StatusNotFound, unknownChannel, "Unknown Channel")
	case r.Method == http.MethodPatch && parts[0] == "channels":
		s.edited(w, parts[3], body)
	case what == "POST channels/threads":
		s.with(func() {
			s.rooms[parts[3]] = map[string]any{"id": parts[3], "type": 11, "guild_id": guild, "parent_id": parts[1], "owner_id": me}
		})
		answer(map[string]string{"id": parts[3]})
	case parts[0] == "cdn":
		io.WriteString(w, "content")
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// page hands out messages after one, newest first, as Discord does.
func (s *server) page(w http.ResponseWriter, r *http.Request, channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	page := []map[string]any{}
	for _, m := range s.written[channel] {
		if number(m["id"].(string)) > after && len(page) < limit {
			found := map[string]any{}
			for k, v := range m {
				if k != "guild_id" { // only the gateway says it
					found[k] = v
				}
			}
			page = append(page, found)
		}
	}
	s.handed += len(page)
	slices.Reverse(page)
	json.NewEncoder(w).Encode(page)
}

// failing answers as the fault of the moment does, if that has nothing taken.
func (s *server) failing(w http.ResponseWriter) (fault connectortest.Fault, done bool) {
	s.mu.Lock()
	fault, calm := s.fault, s.calm
	s.mu.Unlock()
	switch fault {
	case connectortest.Broken:
		http.Error(w, token, http.StatusBadGateway)
	case connectortest.Busy:
		busy(w, connectortest.BusyFor.Seconds(), false)
	case connectortest.Gone:
		no(w, http.StatusNotFound, unknownChannel, "Unknown Channel")
	case connectortest.Forget:
		io.WriteString(w, "{}")
	case connectortest.Stall:
		<-calm
	default:
		return fault, false
	}
	return fault, true
}

// edited changes a message.
func (s *server) edited(w http.ResponseWriter, id string, body []byte) {
	fault, done := s.failing(w)
	if done {
		return
	}
	var p posting
	json.Unmarshal(body, &p)
	s.with(func() { s.texts[id] = p.Content })
	if fault == connectortest.Drop {
		panic(http.ErrAbortHandler)
	}
	json.NewEncoder(w).Encode(map[string]string{"id": id})
}

// posted takes a message.
func (s *server) posted(w http.ResponseWriter, r *http.Request, channel string, body []byte) {
	fault, done := s.failing(w)
	if done {
		return
	}
	s.mu.Lock()
	unknown := s.rooms[channel] == nil && !strings.HasPrefix(channel, "5")
	s.mu.Unlock()
	if unknown {
		no(w, http.StatusNotFound, unknownChannel, "Unknown Channel")
		return
	}
	var p posting
	data := string(body)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		_, data, _ = strings.Cut(data, "name=\"payload_json\"\r\n\r\n")
		data, _, _ = strings.Cut(data, "\r\n--")
	}
	if err := json.Unmarshal([]byte(data), &p); err != nil {
		no(w, http.StatusBadRequest, 50109, "The request body contains invalid JSON.")
		return
	}

	s.mu.Lock()
	s.posts, s.to = append(s.posts, p), append(s.to, channel)
	id := s.nonces[channel+p.Nonce]
	if id == "" || !p.Enforce {
		id = strconv.FormatInt(idAt(time.Now())+int64(len(s.posts)), 10)
		s.shown, s.texts[id] = append(s.shown, id), p.Content
		s.nonces[channel+p.Nonce] = id
	}
	s.touch()
	s.mu.Unlock()
	if fault == connectortest.Drop {
		panic(http.ErrAbortHandler)
	}
	json.NewEncoder(w).Encode(map[string]string{"id": id})
}

func (s *server) sent() (all []connectortest.Sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.posts {
		if p.Nonce != "" || !strings.Contains(p.Content, "`allow`") {
			all = append(all, connectortest.Sent{Key: p.Nonce, Text: p.Content})
		}
	}

	return all
}

// visible are the texts that users see.
func (s *server) visible() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.shown {
		all = append(all, s.texts[id])
	}
	return all
}

// until waits until something is so.
func (s *server) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		s.mu.Lock()
		ok, change := so(), s.change
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-change:
		case <-late:
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}
