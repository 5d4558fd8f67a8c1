package chaos

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A server takes the callbacks of all cases, POST /<id of the world>/<hook>/<life>.
type server struct {
	address string
	http    *http.Server

	mu     sync.Mutex
	worlds map[string]*world
}

func newServer() (*server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{address: l.Addr().String(), worlds: map[string]*world{}}
	s.http = &http.Server{Handler: s}
	go s.http.Serve(l)

	return s, nil
}

func (s *server) close() error { return s.http.Close() }

func (s *server) add(w *world) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worlds[w.id] = w
}

func (s *server) remove(w *world) {
	s.mu.Lock()
	delete(s.worlds, w.id)
	s.mu.Unlock()
	w.close()
}

// ServeHTTP notes an answer before it says that it came. An answer that arrives
// torn, because its sender died, was not delivered.
func (s *server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	id, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	w := s.worlds[id]
	s.mu.Unlock()
	if w == nil {
		rw.WriteHeader(http.StatusNotFound)
		return
	}

	var answer struct{ ID, Hook, Text string }
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}

	chat, number, _ := strings.Cut(rest, "/")
	life, err := strconv.Atoi(number)
	if err != nil {
		rw.WriteHeader(http.StatusNotFound)
		return
	}
	if answer.Hook != chat { // it came to a place that it was not for
		chat += " (for " + answer.Hook + ")"
	}
	if !w.arrive(reply{out: answer.ID, chat: chat, text: answer.Text, life: life}) {
		rw.WriteHeader(http.StatusBadGateway)
	}
}

// arrive takes a callback; false: the platform answers as if it had not, and sometimes it
// has not.
func (w *world) arrive(r reply) bool {
	w.mu.Lock()
	refused, took := w.platform.refuse > 0, true
	if refused {
		w.platform.refuse--
	} else if w.platform.fails != nil {
		refused, took = w.platform.fails(r.out)
	}
	if refused && !took {
		w.mu.Unlock()
		return false
	}

	n := len(w.replies)
	r.at = time.Now()
	w.replies = append(w.replies, r)
	w.note("reply", []string{r.out, r.chat, r.text})
	w.mu.Unlock()
	w.hang(r.chat)
	if refused {
		return false
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	w.replies[n].told = time.Now()
	return true
}

// hang takes the time that the platform of a chat takes to answer.
func (w *world) hang(chat string) {
	w.mu.Lock()
	hangs, over := w.platform.hangs[chat], w.platform.hangsUntil
	w.mu.Unlock()
	if hangs == 0 || over == nil {
		time.Sleep(hangs)
		return
	}

	began := time.Now()
	_ = until(context.Background(), func() bool {
		now := time.Now()
		return now.Sub(began) >= hangs+w.stalls.between(began, now) || over(w)
	})
}

// reached is when an answer has come to each of these chats.
func reached(chats ...string) func(w *world) bool {
	return func(w *world) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return !slices.ContainsFunc(chats, func(chat string) bool {
			return !slices.ContainsFunc(w.replies, func(r reply) bool { return r.chat == chat })
		})
	}
}

// effected is when a call of this message has had its effect.
func effected(key string) func(w *world) bool {
	return func(w *world) bool {
		all, err := w.done()
		return err == nil && slices.ContainsFunc(all, func(e effect) bool { return e.key == key })
	}
}
