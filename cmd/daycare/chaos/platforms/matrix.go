package platforms

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	matrixUser = "@ada:chaos.example"
	matrixBot  = "@bot:chaos.example"
	matrixRoom = "!ada:chaos.example"
	matrixAPI  = "/_matrix/client/v3"

	atOnce = 2               // events in an answer: what is before them has to be asked for
	holds  = 2 * time.Second // how long a question is held
)

// A homeserver is one of Matrix, with a single room. A place of its sync is how many events
// there were.
type homeserver struct {
	*site
	mu      sync.Mutex
	change  chan struct{} // closed at every change
	begun   bool          // someone has a place
	events  []map[string]any
	told    []waiting // ascending by at
	keys    map[string]string
	answers int // that were handed to it
	asked   int // how often what happened was asked for
}

// waiting is what to call when someone asks for what is behind the first at events.
type waiting struct {
	at       int
	received func()
}

func newHomeserver(at *site) (Platform, http.Handler) {
	h := &homeserver{site: at, change: make(chan struct{}), keys: map[string]string{}}
	return h, h
}

func (h *homeserver) Settings(string) string {
	return fmt.Sprintf("id: matrix, type: matrix, allow: [%q], tokenEnv: %s, homeserver: %q", matrixUser, tokenEnv, h.base)
}

// Sender: a message says the id of who wrote it.
func (h *homeserver) Sender() string { return matrixUser }

// Once: the key of a message is the id of its transaction.
func (h *homeserver) Once() bool { return true }

func (h *homeserver) Write(text string, received func()) {
	h.happen(received, "m.room.message", map[string]any{"msgtype": "m.text", "body": text})
}

func (h *homeserver) Press(card string, received func()) {
	h.happen(received, "m.reaction",
		map[string]any{"m.relates_to": map[string]any{"rel_type": "m.annotation", "event_id": card, "key": "👍"}})
}

// happen adds what the user does. What happens before daycare has a place is not for it, so
// that waits.
func (h *homeserver) happen(received func(), kind string, content map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.begun {
		change := h.change
		h.mu.Unlock()
		<-change
		h.mu.Lock()
	}
	h.add(matrixUser, kind, content)
	h.told = append(h.told, waiting{len(h.events), received})
}

// add adds an event and returns its id. The lock is held.
func (h *homeserver) add(sender, kind string, content map[string]any) string {
	id := fmt.Sprint("$", len(h.events))
	h.events = append(h.events, map[string]any{"event_id": id, "type": kind, "sender": sender, "content": content})
	h.touch()

	return id
}

func (h *homeserver) touch() {
	close(h.change)
	h.change = make(chan struct{})
}

func (h *homeserver) Said() (all []Said) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		content := e["content"].(map[string]any)
		if e["sender"] != matrixBot || e["type"] != "m.room.message" || content["m.new_content"] != nil {
			continue
		}
		one := Said{}
		one.Text, _ = content["body"].(string)
		if key, _ := content["daycare.key"].(string); strings.HasPrefix(key, "request-") {
			one.Card = e["event_id"].(string)
		}
		all = append(all, one)
	}

	return all
}

// Close lets go of who waits for daycare to begin.
func (h *homeserver) Close() {
	h.mu.Lock()
	h.begun = true
	h.touch()
	h.mu.Unlock()
	h.site.Close()
}

func matrixAnswer(w http.ResponseWriter, status int, v any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // who died does not read
}

func matrixNo(w http.ResponseWriter, status int, code string) {
	matrixAnswer(w, status, map[string]any{"errcode": code, "error": code, "retry_after_ms": 20})
}

// ServeHTTP answers as a homeserver does.
func (h *homeserver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+token {
		matrixNo(w, http.StatusUnauthorized, "M_UNKNOWN_TOKEN")
		return
	}
	switch p := strings.TrimPrefix(r.URL.Path, matrixAPI); {
	case p == "/account/whoami":
		matrixAnswer(w, http.StatusOK, map[string]string{"user_id": matrixBot})
	case strings.HasPrefix(p, "/profile/"):
		matrixAnswer(w, http.StatusOK, map[string]string{"displayname": "Bot"})
	case p == "/sync":
		h.sync(w, r)
	case strings.HasSuffix(p, "/messages"):
		h.page(w, r)
	case strings.HasSuffix(p, "/joined_members"):
		matrixAnswer(w, http.StatusOK, map[string]any{"joined": map[string]any{matrixBot: struct{}{}, matrixUser: struct{}{}}})
	case strings.HasSuffix(p, "/state/m.room.encryption"): // what is sent is compared, so no room is encrypted
		matrixNo(w, http.StatusNotFound, "M_NOT_FOUND")
	case strings.Contains(p, "/send/"):
		h.send(w, r, strings.Split(p, "/"))
	default: // typing
		matrixAnswer(w, http.StatusOK, struct{}{})
	}
}

// sync says what happened since a place, and confirms what is before it. Now and then the
// answer is torn, or none.
func (h *homeserver) sync(w http.ResponseWriter, r *http.Request) {
	since, err := strconv.Atoi(r.URL.Query().Get("since"))
	h.mu.Lock()
	h.asked++
	fail := h.asked%16 == 3 || h.asked%16 == 9
	if err != nil {
		since = len(h.events)
	} else if !h.begun {
		h.begun = true
		h.touch()
	}
	since = min(since, len(h.events))
	for len(h.told) > 0 && h.told[0].at <= since {
		go h.told[0].received()
		h.told = h.told[1:]
	}
	for late := time.After(holds); err == nil && len(h.events) == since; {
		change := h.change
		h.mu.Unlock()
		select {
		case <-change:
			h.mu.Lock()
			continue
		case <-late:
		case <-r.Context().Done():
		}
		h.mu.Lock()
		break
	}
	news, next := slices.Clone(h.events[since:]), strconv.Itoa(len(h.events))
	h.mu.Unlock()
	switch {
	case fail && len(news) == 0:
		matrixNo(w, http.StatusBadGateway, "M_UNKNOWN")
		return
	case fail:
		w.Header().Set("Content-Length", "1000")
		fmt.Fprintf(w, `{"next_batch":%q,"rooms":`, next)
		panic(http.ErrAbortHandler)
	}

	join := map[string]any{}
	if len(news) > 0 {
		join[matrixRoom] = map[string]any{"timeline": map[string]any{"events": news[max(0, len(news)-atOnce):],
			"limited": len(news) > atOnce}}
	}
	matrixAnswer(w, http.StatusOK, map[string]any{"next_batch": next, "rooms": map[string]any{"join": join}})
}

// page is some of what happened: forwards from a place, or backwards from the end.
func (h *homeserver) page(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if r.URL.Query().Get("dir") == "b" {
		chunk := slices.Clone(h.events[max(0, len(h.events)-limit):])
		slices.Reverse(chunk)
		matrixAnswer(w, http.StatusOK, map[string]any{"chunk": chunk})
		return
	}
	from, _ := strconv.Atoi(r.URL.Query().Get("from"))
	from = min(from, len(h.events))
	end := min(from+limit, len(h.events))
	page := map[string]any{"chunk": h.events[from:end]}
	if end < len(h.events) {
		page["end"] = strconv.Itoa(end)
	}
	matrixAnswer(w, http.StatusOK, page)
}

// send takes a message once under the id of its transaction: /rooms/ROOM/send/TYPE/KEY.
func (h *homeserver) send(w http.ResponseWriter, r *http.Request, parts []string) {
	content := map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&content); err != nil || len(parts) != 6 {
		matrixNo(w, http.StatusBadRequest, "M_BAD_JSON") // torn, because its sender died
		return
	}
	kind, key := parts[4], parts[5]
	h.mu.Lock()
	f := fine
	if content["daycare.key"] != nil && !strings.HasPrefix(key, "request-") {
		h.answers++
		f = bad(h.answers)
	}
	id := h.keys[key]
	if id == "" && (f == fine || f == dropped) {
		id = h.add(matrixBot, kind, content)
		h.keys[key] = id
	}
	h.mu.Unlock()

	switch f {
	case broken:
		matrixNo(w, http.StatusBadGateway, "M_UNKNOWN")
	case busy:
		matrixNo(w, http.StatusTooManyRequests, "M_LIMIT_EXCEEDED")
	case dropped:
		panic(http.ErrAbortHandler)
	default:
		matrixAnswer(w, http.StatusOK, map[string]string{"event_id": id})
	}
}
