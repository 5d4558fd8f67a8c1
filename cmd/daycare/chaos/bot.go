package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A bot is a person's chat with a Telegram bot, as the Bot API shows it: what the person
// writes waits until the bot asks for what comes after it, and comes again until then.
// See https://core.telegram.org/bots/api.
type bot struct {
	mu      sync.Mutex
	changed chan struct{} // closed and made anew when an update is added
	next    int64         // update_id
	waiting []pending
	sent    []botMessage
}

// A pending update was not confirmed yet.
type pending struct {
	id   int64
	body map[string]any
	told func() // of its confirmation
}

// A botMessage is one that the bot sent.
type botMessage struct {
	text   string
	choice []string // data of the buttons under it
}

const (
	botToken     = "1:chaos"
	botEnv       = "DAYCARE_CHAOS_TOKEN"
	botPerson    = 5550001
	botConnector = "telegram" // id of the connector
)

func newBot() *bot { return &bot{changed: make(chan struct{}), next: 1} }

// push adds an update; told is called once, when it is confirmed.
func (b *bot) push(body map[string]any, told func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	body["update_id"] = b.next
	b.waiting = append(b.waiting, pending{b.next, body, told})
	b.next++
	close(b.changed)
	b.changed = make(chan struct{})
}

// answer plays a method of the Bot API.
func (b *bot) answer(w http.ResponseWriter, r *http.Request, method string, body []byte) {
	var result any = true
	switch method {
	case "getMe":
		result = map[string]any{"id": 1, "is_bot": true, "first_name": "chaos", "username": "chaos_bot"}
	case "getUpdates":
		var question struct{ Offset, Timeout int64 }
		if err := json.Unmarshal(body, &question); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		result = b.updates(r.Context(), question.Offset, time.Duration(question.Timeout)*time.Second)
	case "sendMessage":
		id, err := b.take(body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		result = map[string]any{"message_id": id, "date": 0, "chat": map[string]any{"id": botPerson, "type": "private"}}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"ok": true, "result": result}) // who is gone asks again
}

// updates confirms what comes before offset and waits for what is at it or after.
func (b *bot) updates(ctx context.Context, offset int64, patience time.Duration) []map[string]any {
	late := time.After(patience)
	for {
		b.mu.Lock()
		confirmed := slices.IndexFunc(b.waiting, func(p pending) bool { return p.id >= offset })
		if confirmed < 0 {
			confirmed = len(b.waiting)
		}
		done := b.waiting[:confirmed]
		b.waiting = slices.Clone(b.waiting[confirmed:])
		bodies := []map[string]any{}
		for _, p := range b.waiting {
			bodies = append(bodies, p.body)
		}
		changed := b.changed
		b.mu.Unlock()
		for _, p := range done {
			p.told()
		}
		if len(bodies) > 0 {
			return bodies
		}
		select {
		case <-changed:
		case <-late:
			return bodies
		case <-ctx.Done(): // the bot died
			return bodies
		}
	}
}

func (b *bot) take(body []byte) (id int, err error) {
	var m struct {
		Text   string `json:"text"`
		Markup struct {
			Rows [][]struct {
				Data string `json:"callback_data"`
			} `json:"inline_keyboard"`
		} `json:"reply_markup"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return 0, err
	}
	taken := botMessage{text: m.Text}
	for _, row := range m.Markup.Rows {
		for _, button := range row {
			taken.choice = append(taken.choice, button.Data)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, taken)
	return len(b.sent), nil
}

// count is how many messages were sent.
func (b *bot) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.sent)
}

// came is how often a message was sent.
func (b *bot) came(text string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.sent {
		if m.text == text {
			n++
		}
	}
	return n
}

// card is the first button of the newest message that has some.
func (b *bot) card() (data string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range slices.Backward(b.sent) {
		if len(m.choice) > 0 {
			return m.choice[0], true
		}
	}
	return "", false
}

// chat writes a message to the bot and waits until it is confirmed.
func (u *user) chat(ctx context.Context, key, text string) error {
	s := u.offer(saying{key: key, hook: botConnector, kind: "user_message", texts: []string{key + " " + text}, sender: "Person"})
	confirmed := make(chan struct{})
	u.bot.push(map[string]any{"message": map[string]any{
		"message_id": len(u.sayings()), "date": time.Now().Unix(), "text": key + " " + text,
		"from": map[string]any{"id": botPerson, "first_name": "Person"}, "chat": map[string]any{"id": botPerson, "type": "private"},
	}}, func() {
		u.accept(s, "")
		close(confirmed)
	})
	return confirmation(ctx, confirmed)
}

func confirmation(ctx context.Context, confirmed <-chan struct{}) error {
	select {
	case <-confirmed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func chats(key, text string) step {
	return func(ctx context.Context, u *user) error { return u.chat(ctx, key, text) }
}

// presses waits for a card and presses its first button, until the command has had its
// effect, or the bot says something: a command that a death interrupted may have none. A
// disk that fails may not take the answer, so a person presses again.
func presses(key string) step {
	return func(ctx context.Context, u *user) error {
		data, ok := "", false
		if err := until(ctx, func() bool { data, ok = u.bot.card(); return ok }); err != nil {
			return err
		}
		for {
			before, confirmed := u.bot.count(), make(chan struct{})
			u.bot.push(map[string]any{"callback_query": map[string]any{"id": "1", "data": data,
				"from": map[string]any{"id": botPerson, "first_name": "Person"}}}, func() { close(confirmed) })
			if err := confirmation(ctx, confirmed); err != nil {
				return err
			}
			soon, cancel := context.WithTimeout(ctx, time.Second)
			err := until(soon, func() bool {
				all, err := u.done()
				return u.bot.count() > before || err != nil || slices.ContainsFunc(all, func(e effect) bool { return e.key == key })
			})
			cancel()
			if err == nil || ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
	}
}

// heard waits until the bot said something.
func heard(text string) step {
	return func(ctx context.Context, u *user) error {
		return until(ctx, func() bool { return u.bot.came(text) > 0 })
	}
}

// onceEach: an answer comes at least once, and again only where a death, or a disk that
// failed, left it open whether it had.
func onceEach(texts ...string) func(u *user, v view) error {
	return func(u *user, _ view) error {
		var wrong []string
		most := 1 + u.livesLost()
		if u.broken {
			most++
		}
		for _, text := range texts {
			if n := u.bot.came(text); n < 1 || n > most {
				wrong = append(wrong, fmt.Sprintf("%q came %d times in %d deaths", text, n, u.livesLost()))
			}
		}
		if len(wrong) > 0 {
			return fmt.Errorf("the bot's answers: %s", strings.Join(wrong, ", "))
		}
		return nil
	}
}
