package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A world is what is outside of daycare in one case: what was offered to it, what
// it said it had accepted, what its tools did, what it answered. It lives in this
// process, which does not die.
type world struct {
	id      string // names it in callbacks
	effects string // file to which tools append, one line for each effect
	bot     *bot
	broken  bool // its disk fails once

	mu      sync.Mutex
	log     io.Writer
	said    []*saying
	byKey   map[string]*saying
	replies []reply
	deaths  int
	refuse  int // so many callbacks still fail, after they were noted
}

// A saying is one message, known by the first word of its text.
type saying struct {
	key      string
	hook     string // ordered among those of one hook; "": came by another door
	kind     string // of its record in history
	item     string // as the daemon named it, when it accepted it
	accepted bool
	removed  bool // a person took its turn out of the file
}

// A reply is one callback as it arrived.
type reply struct {
	out  string
	life int // deaths before it
}

func newWorld(dir, id string) (*world, error) {
	log, err := os.OpenFile(filepath.Join(dir, "world.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &world{id: id, effects: filepath.Join(dir, "effects"), bot: newBot(), log: log, byKey: map[string]*saying{}}, nil
}

// note writes one line of the world's own log, for people who look at a failure.
// One write a line, so that it does not tear.
func (w *world) note(what string, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		data = []byte(`"?"`)
	}
	fmt.Fprintf(w.log, "{\"at\":%q,%q:%s}\n", time.Now().Format("15:04:05.000000"), what, data)
}

// offer notes that a message is about to be offered.
func (w *world) offer(key, hook, kind string) *saying {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.byKey[key]; s != nil {
		return s
	}
	s := &saying{key: key, hook: hook, kind: kind}
	w.said, w.byKey[key] = append(w.said, s), s
	w.note("offered", key)
	return s
}

func (w *world) accept(s *saying, item string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.accepted, s.item = true, item
	w.note("accepted", s.key)
}

// acceptances is how many messages were accepted so far.
func (w *world) acceptances() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.said {
		if s.accepted {
			n++
		}
	}
	return n
}

func (w *world) died() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deaths++
	w.note("died", w.deaths)
}

// sayings are a copy of what was offered.
func (w *world) sayings() []saying {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]saying, len(w.said))
	for i, s := range w.said {
		all[i] = *s
	}
	return all
}

func (w *world) received() []reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]reply(nil), w.replies...)
}

// An effect is one thing that a tool did outside.
type effect struct{ call, key string }

func (w *world) done() ([]effect, error) {
	data, err := os.ReadFile(w.effects)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []effect
	for line := range strings.Lines(string(data)) {
		call, key, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			return nil, fmt.Errorf("effect %q is not a call and a key", line)
		}
		all = append(all, effect{call, key})
	}
	return all, nil
}

// arrive takes a callback; false: the platform answers as if it had not.
func (w *world) arrive(out string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replies = append(w.replies, reply{out, w.deaths})
	w.note("reply", out)
	if w.refuse > 0 {
		w.refuse--
		return false
	}
	return true
}

// A server takes the callbacks of all cases, POST /<id of the world>, and is the Bot API of
// their bots, POST /<id of the world>/bot<token>/<method>.
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
	defer s.mu.Unlock()
	delete(s.worlds, w.id)
}

// ServeHTTP notes an answer before it says that it came. An answer that arrives
// torn, because its sender died, was not delivered.
func (s *server) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	id, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	w := s.worlds[id]
	s.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	if err != nil || w == nil {
		rw.WriteHeader(http.StatusNotFound)
		return
	}
	if method, ok := strings.CutPrefix(rest, "bot"+botToken+"/"); ok {
		w.bot.answer(rw, r, method, body)
		return
	}
	var answer struct {
		ID string `json:"id"`
	}
	if err := json.NewDecoder(bytes.NewReader(body)).Decode(&answer); err != nil {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	if !w.arrive(answer.ID) {
		rw.WriteHeader(http.StatusBadGateway)
	}
}

// poll is how soon something that only files or attempts show is looked for again; after
// a while that comes to nothing, four times as long.
const poll = 2 * time.Millisecond

// until waits for a condition.
func until(ctx context.Context, ok func() bool) error {
	for wait := poll; !ok(); wait = min(wait+poll/4, 4*poll) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
	return nil
}
