package telegramtest

import (
	"context"
	"net/http/httptest"
	"sync"
	"time"
)

// A Fault is what goes wrong with one call.
type Fault string

const (
	OK       Fault = ""
	Broken   Fault = "500"         // takes nothing
	Busy     Fault = "429"         // takes nothing, asks to wait
	Gone     Fault = "403"         // accepts nothing, permanently
	Conflict Fault = "409"         // of getUpdates: somebody else asks, too
	Stall    Fault = "stall"       // takes nothing and never answers
	Drop     Fault = "drop"        // takes it, and the connection breaks before the answer
	Half     Fault = "half"        // takes it, and half of the answer arrives
	Again    Fault = "again"       // of getUpdates: the offset is not heeded
	Entities Fault = "can't parse" // takes nothing, does not like the HTML
	Revoked  Fault = "401"         // accepts the token no more
	Forget   Fault = "forget"      // takes nothing, and answers as if it had
)

// A Sent is one message that the platform took.
type Sent struct {
	Method  string
	ID      int64
	Chat    string
	Thread  string
	Text    string // as a user reads it
	Source  string // as it was sent
	Mode    string
	Reply   string // id of the message answered
	Edits   string // id of the message whose text it replaces
	Buttons []string
	File    string // name, of uploads
	At      time.Time
}

// A Server is one bot's side of the Bot API.
type Server struct {
	*httptest.Server
	Token string
	// Fault is asked about each call. It may be called from any goroutine.
	Fault func(method string) Fault
	// BusyFor is what a 429 asks for, in whole seconds.
	BusyFor time.Duration
	Files   map[string][]byte // by file id

	mu      sync.Mutex
	updates updates
	ids     int64 // message id
	polls   int   // counts getUpdates, so that a second one ends the first
	called
	posts
	calm chan struct{} // closed when stalled calls are to end
}

// called is what the bot called, and with what.
type called struct {
	sent      []Sent
	calls     map[string]int
	menu      []string
	answers   []string          // texts of answerCallbackQuery
	reactions map[string]string // of setMessageReaction: chat/message -> emoji
}

// posts are the updates that the server brings to a webhook.
type posts struct {
	hook    string
	secret  string
	stop    context.CancelFunc
	posting sync.WaitGroup
}

// updates are what users did that the bot has not confirmed, under the server's lock.
type updates struct {
	changed chan struct{} // closed and renewed when anything of the server changes
	waiting []*entry
	next    int64 // update id
}

// An entry is an update that the bot has not confirmed.
type entry struct {
	id     int64
	body   map[string]any
	handed bool
	told   func() // called once it is confirmed by a question for those after it
}

// New starts a fake for one bot, whose number is 777 and whose name is test_bot.
func New(token string) *Server {
	s := Handler(token)
	s.Server = httptest.NewServer(s)
	return s
}

// Handler makes a fake that does not listen itself: ServeHTTP answers for it.
func Handler(token string) *Server {
	return &Server{Token: token, BusyFor: time.Second, Files: map[string][]byte{},
		updates: updates{changed: make(chan struct{}), next: 1000},
		ids:     1, called: called{calls: map[string]int{}, reactions: map[string]string{}}, calm: make(chan struct{})}
}

// Close ends it.
func (s *Server) Close() {
	s.Release()
	s.Server.Close() // when it returns no call of setWebhook is under way
	if s.stop != nil {
		s.stop()
		s.posting.Wait()
	}
}

// Release ends calls that are stalled.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.calm)
	s.calm = make(chan struct{})
}

// touch wakes everybody who waits for a change. The lock is held.
func (u *updates) touch() {
	close(u.changed)
	u.changed = make(chan struct{})
}

// Push queues an update and returns its id. The body is without update_id.
func (s *Server) Push(body map[string]any) int64 { return s.PushTold(body, func() {}) }

// PushTold queues an update, and calls told when the bot confirms it by asking for those
// after it, before the bot is answered.
func (s *Server) PushTold(body map[string]any, told func()) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates.next++
	s.updates.add(s.updates.next, body, told)
	return s.updates.next
}

// Repeat queues an update under an id that it had before, or one that does not follow the newest, as
// after a week without updates.
func (s *Server) Repeat(id int64, body map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates.add(id, body, func() {})
}

func (u *updates) add(id int64, body map[string]any, told func()) {
	full := map[string]any{"update_id": id}
	for k, v := range body {
		full[k] = v
	}
	u.waiting = append(u.waiting, &entry{id: id, body: full, told: told})
	u.touch()
}

// Text is the body of an update with a private text message.
func Text(chat int64, text string) map[string]any {
	return map[string]any{"message": Message(chat, text)}
}

// Message is a private message; its number is that of its text, made up.
func Message(chat int64, text string) map[string]any {
	return map[string]any{
		"message_id": 5000 + len(text), "date": time.Now().Unix(), "text": text,
		"from": map[string]any{"id": chat, "is_bot": false, "first_name": "Ada"},
		"chat": map[string]any{"id": chat, "type": "private"},
	}
}

// Confirmed reports whether the bot has confirmed an update.
func (s *Server) Confirmed(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.updates.confirmed(id)
}

func (u *updates) confirmed(id int64) bool {
	for _, e := range u.waiting {
		if e.id == id {
			return false
		}
	}

	return true
}

// Wait waits until a condition holds, looked at after each change. It is called
// without the lock.
func (s *Server) Wait(ctx context.Context, holds func() bool) bool {
	for {
		s.mu.Lock()
		changed := s.updates.changed
		s.mu.Unlock()
		if holds() {
			return true
		}

		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// Backlog is how many updates are not confirmed.
func (s *Server) Backlog() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.updates.waiting)
}

// Sent is what was taken so far, oldest first.
func (s *Server) Sent() []Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Sent(nil), s.sent...)
}

// Calls is how often a method was called.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Menu is what setMyCommands was told, Hook what setWebhook was told, Answers what
// users read after pressing buttons.
func (s *Server) Menu() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.menu...)
}

// Hook is the webhook's address and secret.
func (s *Server) Hook() (url, secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hook, s.secret
}

// Reaction is the emoji that the bot has put under a message; "" for none.
func (s *Server) Reaction(chat, message string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reactions[chat+"/"+message]
}

// Answers are the texts that users read after pressing buttons.
func (s *Server) Answers() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.answers...)
}
