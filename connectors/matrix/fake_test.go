package matrix

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/connectors/connectortest"
)

const (
	bot     = "@bot:test.example"
	ada     = "@ada:test.example"
	bob     = "@bob:test.example"
	eve     = "@eve:test.example"
	adaRoom = "!ada:test.example"
)

// happened is one event of the fake, in its order.
type happened struct {
	room  string
	event map[string]any
}

// server is a fake of a homeserver, with faults that a real one would not have on demand.
type server struct {
	*httptest.Server
	token string

	mu      sync.Mutex
	wake    *sync.Cond
	events  []happened
	reached int // the newest place that a client has asked from
	begun   bool
	invites map[string]string // room: by whom
	joined  []string
	sent    []connectortest.Sent
	told    []connectortest.Sent
	puts    []string // content of all that was sent
	fault   connectortest.Fault
	members map[string]int
	ended   bool
	most    int // events of one room in an answer
	revoked bool

	encrypted bool              // all rooms
	order     []string          // ids of messages of the bot
	texts     map[string]string // by id, as edits left them
}

func newServer(t *testing.T, token string) *server {
	t.Helper()
	s := &server{token: token, texts: map[string]string{}, invites: map[string]string{}, members: map[string]int{}, most: 1000}
	s.wake = sync.NewCond(&s.mu)
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.mu.Lock()
		s.ended = true
		s.wake.Broadcast()
		s.mu.Unlock()
		s.CloseClientConnections()
		s.Close()
	})

	return s
}

func answer(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	revoked := s.revoked
	s.mu.Unlock()
	if revoked || r.Header.Get("Authorization") != "Bearer "+s.token {
		answer(w, http.StatusUnauthorized, map[string]string{"errcode": "M_UNKNOWN_TOKEN", "error": "Unknown token"})
		return
	}
	switch p := strings.TrimPrefix(r.URL.Path, client); {
	case p == "/account/whoami":
		answer(w, 200, map[string]string{"user_id": bot})
	case strings.HasPrefix(p, "/profile/"):
		answer(w, 200, map[string]string{"displayname": "Daybot"})
	case p == "/sync":
		s.sync(w, r)
	case strings.Contains(p, "/send/"):
		s.send(w, r, p)
	case strings.HasSuffix(p, "/messages"):
		s.page(w, r, strings.Split(p, "/")[2])
	case strings.HasSuffix(p, "/joined_members"):
		s.mu.Lock()
		n := max(2, s.members[strings.Split(p, "/")[2]])
		s.mu.Unlock()
		all := map[string]any{}
		for i := range n {
			all[fmt.Sprint(i)] = map[string]any{}
		}
		answer(w, 200, map[string]any{"joined": all})
	case strings.HasPrefix(p, "/join/"):
		s.mu.Lock()
		delete(s.invites, strings.TrimPrefix(p, "/join/"))
		s.joined = append(s.joined, strings.TrimPrefix(p, "/join/"))
		s.mu.Unlock()
		answer(w, 200, map[string]any{})
	case strings.HasSuffix(p, "/state/m.room.encryption"):
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.encrypted {
			answer(w, http.StatusNotFound, map[string]string{"errcode": "M_NOT_FOUND"})
			return
		}
		answer(w, 200, map[string]string{"algorithm": "m.megolm.v1.aes-sha2"})
	case p == "/createRoom":
		answer(w, 200, map[string]string{"room_id": "!own:test.example"})
	case strings.Contains(p, "/event/"):
		s.mu.Lock()
		defer s.mu.Unlock()
		answer(w, 200, map[string]any{"sender": bot, "content": map[string]string{"body": s.told[len(s.told)-1].Text}})
	case strings.HasSuffix(p, "/leave"), strings.HasSuffix(p, "/forget"):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.puts = append(s.puts, p)
		answer(w, 200, map[string]any{})
	case strings.HasSuffix(p, "/typing/"+bot):
		answer(w, 200, map[string]any{})
	default:
		answer(w, http.StatusNotFound, map[string]string{"errcode": "M_UNRECOGNIZED"})
	}
}

func (s *server) sync(w http.ResponseWriter, r *http.Request) {
	since, err := strconv.Atoi(r.URL.Query().Get("since"))
	hold := time.Now().Add(time.Second)
	stop := context.AfterFunc(r.Context(), s.wake.Broadcast)
	defer stop()
	tick := time.AfterFunc(time.Second, s.wake.Broadcast)
	defer tick.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.begun = true
		since = len(s.events)
	}
	s.reached = max(s.reached, since)
	s.wake.Broadcast()
	for err == nil && len(s.events) <= since && len(s.invites) == 0 && !s.ended && r.Context().Err() == nil && time.Now().Before(hold) {
		s.wake.Wait()
	}
	join := map[string]any{}
	byRoom := map[string][]any{}
	for _, h := range s.events[since:] {
		byRoom[h.room] = append(byRoom[h.room], h.event)
	}
	for room, all := range byRoom {
		limited := len(all) > s.most
		if limited {
			all = all[len(all)-s.most:]
		}
		join[room] = map[string]any{"timeline": map[string]any{"events": all, "limited": limited}}
	}
	invite := map[string]any{}
	for room, by := range s.invites {
		invite[room] = map[string]any{"invite_state": map[string]any{"events": []any{map[string]any{"type": "m.room.member",
			"sender": by, "state_key": bot, "content": map[string]any{"membership": "invite"}}}}}
	}
	answer(w, 200, map[string]any{"next_batch": strconv.Itoa(len(s.events)), "rooms": map[string]any{"join": join, "invite": invite}})
}

// page is some of what happened in a room: forwards from a place.
func (s *server) page(w http.ResponseWriter, r *http.Request, room string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chunk, end := []any{}, ""
	if r.URL.Query().Get("dir") == "f" {
		from, _ := strconv.Atoi(r.URL.Query().Get("from"))
		most, _ := strconv.Atoi(r.URL.Query().Get("limit"))
		at := from
		for ; at < len(s.events) && len(chunk) < most; at++ {
			if s.events[at].room == room {
				chunk = append(chunk, s.events[at].event)
			}
		}
		if at < len(s.events) {
			end = strconv.Itoa(at)
		}
	}
	answer(w, 200, map[string]any{"chunk": chunk, "end": end})
}

func (s *server) send(w http.ResponseWriter, r *http.Request, p string) {
	parts := strings.Split(p, "/")
	room, kind, key := parts[2], parts[4], parts[5]
	raw := map[string]any{}
	_ = json.NewDecoder(r.Body).Decode(&raw)
	body, _ := raw["body"].(string)
	s.mu.Lock()
	fault := s.fault
	if text, err := json.Marshal(raw); err == nil {
		s.puts = append(s.puts, string(text))
	}
	if fault == connectortest.None || fault == connectortest.Drop {
		if fresh, ok := raw["m.new_content"].(map[string]any); ok {
			s.texts[raw["m.relates_to"].(map[string]any)["event_id"].(string)], _ = fresh["body"].(string)
		} else if _, again := s.texts["$"+key]; !again && kind == "m.room.message" {
			s.order = append(s.order, "$"+key)
			s.texts["$"+key] = body
		}
		if kind == "m.room.message" {
			s.told = append(s.told, connectortest.Sent{Key: key, Text: body})
			if !strings.HasPrefix(key, "notice-") {
				s.sent = append(s.sent, connectortest.Sent{Key: key, Text: body})
			}
		}
	}
	s.mu.Unlock()
	_ = room

	switch fault {
	case connectortest.Broken:
		answer(w, http.StatusInternalServerError, map[string]string{"errcode": "M_UNKNOWN", "error": "broken, with " + s.token})
	case connectortest.Busy:
		answer(w, http.StatusTooManyRequests, map[string]any{"errcode": "M_LIMIT_EXCEEDED", "retry_after_ms": 7000})
	case connectortest.Gone:
		answer(w, http.StatusForbidden, map[string]string{"errcode": "M_FORBIDDEN", "error": "not in the room"})
	case connectortest.Forget:
		answer(w, 200, map[string]string{})
	case connectortest.Stall:
		<-r.Context().Done()
	case connectortest.Drop:
		panic(http.ErrAbortHandler)
	default:
		answer(w, 200, map[string]string{"event_id": "$" + key})
	}
}

// revoke has the token accepted no more, or again.
func (s *server) revoke(revoked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revoked = revoked
	s.wake.Broadcast()
}

func (s *server) misbehave(f connectortest.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// visible are the texts that users see.
func (s *server) visible() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.order {
		all = append(all, s.texts[id])
	}
	return all
}

func (s *server) received() []connectortest.Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]connectortest.Sent(nil), s.sent...)
}

func (s *server) heard() []connectortest.Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]connectortest.Sent(nil), s.told...)
}

// speech is a message as an event.
func speech(room, from, id, text string) happened {
	return happened{room, map[string]any{"type": "m.room.message", "event_id": "$" + id, "sender": from,
		"content": map[string]any{"msgtype": "m.text", "body": text}}}
}

// tell has things happen and tells of each whether a client asked for what is behind it.
func (s *server) tell(ctx context.Context, events ...happened) []bool {
	stop := context.AfterFunc(ctx, func() { s.mu.Lock(); s.wake.Broadcast(); s.mu.Unlock() })
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.begun && ctx.Err() == nil {
		s.wake.Wait()
	}
	s.events = append(s.events, events...)
	end := len(s.events)
	s.wake.Broadcast()
	for s.reached < end && ctx.Err() == nil {
		s.wake.Wait()
	}
	received := make([]bool, len(events))
	for i := range received {
		received[i] = s.reached >= end
	}

	return received
}
