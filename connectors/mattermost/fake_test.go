package mattermost

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
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"daycare/connectors/connectortest"
)

// id is an id as Mattermost has them.
func id(name string) string { return (name + strings.Repeat("0", 26))[:26] }

var (
	token    = id("canarytoken")
	me       = id("bot")
	ada      = id("ada")
	bob      = id("bob")
	stranger = id("stranger")
	town     = id("town")
)

func private(user string) string { return id("d" + user[:8]) }

// A server is a fake of a Mattermost server: REST, of which posts since a time are the newest
// 1000 and no more, and a websocket that says each thing once.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	change  chan struct{}
	conn    *websocket.Conn
	written map[string][]post // by channel
	ids     map[string]post   // by the key of a test
	newest  int64
	kinds   map[string]string

	posts   []post // every one that was sent to it, also those sent twice
	shown   map[string]string
	calls   []string
	bodies  []string
	fault   connectortest.Fault
	calm    chan struct{}
	waiting connectortest.Keeper
	uploads []string
	handed  int
	refuse  int    // status of all calls
	only    string // of those of this path, if it is set
	revoked bool
	deaf    bool // to pings
	pinged  atomic.Int64
}

func newServer(t *testing.T) *server {
	s := &server{change: make(chan struct{}), written: map[string][]post{}, ids: map[string]post{}, shown: map[string]string{},
		calm:  make(chan struct{}),
		kinds: map[string]string{town: "O", private(ada): "D", private(bob): "D", private(stranger): "D"}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(func() {
		s.misbehave(connectortest.None)
		s.cut()
		s.CloseClientConnections()
		s.Close()
	})

	return s
}

func (s *server) misbehave(f connectortest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
	close(s.calm)
	s.calm = make(chan struct{})
}

// revoke has the token accepted no more, or again.
func (s *server) revoke(revoked bool) {
	s.mu.Lock()
	s.revoked = revoked
	s.mu.Unlock()
	s.cut()
}

func (s *server) touch() {
	close(s.change)
	s.change = make(chan struct{})
}

// cut ends the websocket without a word.
func (s *server) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.CloseNow()
		s.conn = nil
	}
}

// write has a user write a post under the key of a test. The same key again tells of the
// same post again.
func (s *server) write(key, channel, author, text string) post {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, again := s.ids[key]
	if !again {
		s.newest = max(s.newest+1, time.Now().UnixMilli()+1)
		p = post{ID: id(fmt.Sprint("p", len(s.ids), "x")), Channel: channel, User: author, Text: text, stamps: stamps{Created: s.newest}}
		s.ids[key] = p
		s.written[channel] = append(s.written[channel], p)
	}
	s.tell("posted", map[string]string{"channel_type": s.kinds[channel], "sender_name": "@" + strings.TrimRight(author, "0")}, p)

	return p
}

// tell sends an event. The lock is held.
func (s *server) tell(name string, data map[string]string, p any) {
	body, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	data["post"], data["reaction"] = string(body), string(body)
	s.frame(map[string]any{"event": name, "data": data, "broadcast": map[string]string{}, "seq": 1})
}

func (s *server) frame(f any) {
	body, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	if s.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.conn.Write(ctx, websocket.MessageText, body)
	}
}

func (s *server) socket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{OnPingReceived: func(context.Context, []byte) bool {
		s.pinged.Add(1)
		return !s.deaf
	}})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	for {
		_, data, err := conn.Read(r.Context())
		if err != nil {
			s.mu.Lock()
			if s.conn == conn {
				s.conn = nil
			}
			s.mu.Unlock()
			return
		}
		var f struct {
			Data struct{ Token string } `json:"data"`
		}
		json.Unmarshal(data, &f)
		s.mu.Lock()
		good := f.Data.Token == token && !s.revoked
		if good {
			s.conn = conn
			s.frame(map[string]any{"status": "OK", "seq_reply": 1})
			s.frame(map[string]any{"event": "hello", "data": map[string]string{}})
			s.touch()
		}
		s.mu.Unlock()
		if !good {
			conn.Write(r.Context(), websocket.MessageText,
				[]byte(`{"status":"FAIL","error":{"message":"bad `+token+`","status_code":401}}`))
		}
	}
}

func no(w http.ResponseWriter, status int, id, text string) {
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"id": id, "message": text, "status_code": status})
}

// ServeHTTP answers as a Mattermost server does.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, "/api/v4")
	if path == "/websocket" {
		s.socket(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.calls, s.bodies = append(s.calls, r.Method+" "+path), append(s.bodies, string(body))
	refuse, revoked := s.refuse, s.revoked
	if s.only != "" && s.only != path {
		refuse = 0
	}
	s.touch()
	s.mu.Unlock()
	switch {
	case revoked, r.Header.Get("Authorization") != "Bearer "+token:
		no(w, http.StatusUnauthorized, "api.context.session_expired.app_error", "Invalid or expired session "+token)
	case refuse != 0:
		no(w, refuse, "", "refused")
	default:
		s.rest(w, r, path, body)
	}
}

func (s *server) rest(w http.ResponseWriter, r *http.Request, path string, body []byte) {
	answer := func(v any) { json.NewEncoder(w).Encode(v) }
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/users/me":
		answer(map[string]any{"id": me, "username": "bot", "is_bot": true})
	case path == "/users/me/channels":
		s.mu.Lock()
		defer s.mu.Unlock()
		all := []room{}
		for channel, kind := range s.kinds {
			one := room{ID: channel, Type: kind}
			if posts := s.written[channel]; len(posts) > 0 {
				one.Last = posts[len(posts)-1].Created
			}
			all = append(all, one)
		}
		answer(all)
	case path == "/channels/direct":
		var users []string
		json.Unmarshal(body, &users)
		answer(room{ID: private(users[1]), Type: "D"})
	case path == "/posts":
		s.posted(w, body)
	case parts[0] == "posts" && len(parts) == 2 && r.Method == http.MethodGet:
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, all := range s.written {
			if i := slices.IndexFunc(all, func(p post) bool { return p.ID == parts[1] }); i >= 0 {
				answer(all[i])
			}
		}
	case parts[0] == "posts" && r.Method == http.MethodPut:
		s.edited(w, parts[1], body)
	case path == "/files" && r.Method == http.MethodPost:
		s.mu.Lock()
		s.uploads = append(s.uploads, string(body))
		s.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
		answer(map[string]any{"file_infos": []file{{ID: id("f"), Name: r.URL.Query().Get("filename")}}})
	case parts[0] == "files":
		io.WriteString(w, "content")
	case parts[0] == "channels" && len(parts) == 3:
		s.page(w, r, parts[1])
	default:
		answer(map[string]any{})
	}
}

// page hands out posts, the newest first.
func (s *server) page(w http.ResponseWriter, r *http.Request, channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, q := s.written[channel], r.URL.Query()
	most, _ := strconv.Atoi(q.Get("per_page"))
	at := func(id string) int { return slices.IndexFunc(all, func(p post) bool { return p.ID == id }) }
	switch {
	case q.Get("since") != "":
		since, _ := strconv.ParseInt(q.Get("since"), 10, 64)
		first := slices.IndexFunc(all, func(p post) bool { return p.Created > since })
		if first < 0 {
			first = len(all)
		}
		all = all[max(first, len(all)-maxSince):]
	case q.Get("before") != "":
		all = all[:at(q.Get("before"))]
		all = all[max(0, len(all)-most):]
	case q.Get("after") != "":
		all = all[at(q.Get("after"))+1:]
		all = all[:min(most, len(all))]
	default:
		all = all[max(0, len(all)-most):]
	}
	l := list{Order: []string{}, Posts: map[string]post{}}
	for _, p := range slices.Backward(all) {
		l.Order = append(l.Order, p.ID)
		l.Posts[p.ID] = p
	}
	s.handed += len(all)
	json.NewEncoder(w).Encode(l)
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
		w.Header().Set("X-Ratelimit-Reset", strconv.Itoa(int(connectortest.BusyFor/time.Second)))
		w.WriteHeader(http.StatusTooManyRequests)
	case connectortest.Gone:
		no(w, http.StatusForbidden, "api.context.permissions.app_error", "You do not have the appropriate permissions.")
	case connectortest.Forget:
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, "{}")
	case connectortest.Stall:
		<-calm
	default:
		return fault, false
	}
	return fault, true
}

// edited changes a post.
func (s *server) edited(w http.ResponseWriter, id string, body []byte) {
	fault, done := s.failing(w)
	if done {
		return
	}
	var edit post
	json.Unmarshal(body, &edit)
	s.mu.Lock()
	for _, all := range s.written {
		if i := slices.IndexFunc(all, func(p post) bool { return p.ID == id }); i >= 0 {
			all[i].Text = edit.Text
		}
	}
	s.mu.Unlock()
	if fault == connectortest.Drop {
		panic(http.ErrAbortHandler)
	}
	io.WriteString(w, "{}")
}

// posted takes a post.
func (s *server) posted(w http.ResponseWriter, body []byte) {
	fault, done := s.failing(w)
	if done {
		return
	}
	var p post
	if err := json.Unmarshal(body, &p); err != nil {
		no(w, http.StatusBadRequest, "", "invalid")
		return
	}
	s.mu.Lock()
	s.posts = append(s.posts, p)
	made := s.shown[p.Pending]
	if made == "" || p.Pending == "" {
		made = id(fmt.Sprint("q", len(s.posts), "x"))
		s.newest = max(s.newest+1, time.Now().UnixMilli()+1)
		p.ID, p.User, p.Created = made, me, s.newest
		s.written[p.Channel] = append(s.written[p.Channel], p)
		s.shown[p.Pending] = made
	}
	s.mu.Unlock()
	if fault == connectortest.Drop {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(http.StatusCreated)
	json.NewEncoder(w).Encode(post{ID: made})
}

// visible are the texts of the bot that users see in their private chat with it.
func (s *server) visible() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.written[private(ada)] {
		if p.User == me {
			all = append(all, p.Text)
		}
	}
	return all
}

func (s *server) sent() (all []connectortest.Sent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.posts {
		if p.Pending != "" || !strings.Contains(p.Text, "`allow`") {
			all = append(all, connectortest.Sent{Key: p.Pending, Text: p.Text})
		}
	}

	return all
}

// connected waits until the bot has said who it is.
func (s *server) connected(t *testing.T) {
	t.Helper()
	late := time.After(30 * time.Second)
	for {
		s.mu.Lock()
		ok, change := s.conn != nil, s.change
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-change:
		case <-late:
			t.Fatal("not connected within 30 s")
		}
	}
}
