package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"daycare/connectors/telegram/telegramtest"
)

// A bot is a user's chat with a Telegram bot.
type bot struct{ *telegramtest.Server }

const (
	botToken     = "1:chaos"
	botEnv       = "DAYCARE_CHAOS_TOKEN"
	botPerson    = 5550001
	botConnector = "telegram" // id of the connector
)

func newBot() *bot { return &bot{telegramtest.Handler(botToken)} }

// said are the messages that the bot sent; those that it changed later are not among them.
func (b *bot) said() []telegramtest.Sent {
	return slices.DeleteFunc(b.Sent(), func(m telegramtest.Sent) bool { return m.Method != "sendMessage" })
}

// came is how often a message was sent.
func (b *bot) came(text string) (n int) {
	for _, m := range b.said() {
		if m.Text == text {
			n++
		}
	}

	return n
}

// card is the first button of the newest message that has some.
func (b *bot) card() (data string, ok bool) {
	for _, m := range slices.Backward(b.said()) {
		if len(m.Buttons) > 0 {
			return m.Buttons[0], true
		}
	}

	return "", false
}

// chat writes a message to the bot and waits until it is confirmed.
func (u *user) chat(ctx context.Context, key, text string) error {
	s := u.offer(saying{key: key, hook: botConnector, kind: "user_message", texts: []string{key + " " + text}, sender: "Ada"})
	confirmed := make(chan struct{})
	said := telegramtest.Message(botPerson, key+" "+text)
	said["message_id"] = len(u.sayings())
	u.bot.PushTold(map[string]any{"message": said}, func() {
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
// disk that fails may not take the answer, so a user presses again.
func presses(key string) step {
	return func(ctx context.Context, u *user) error {
		data, ok := "", false
		if err := until(ctx, func() bool { data, ok = u.bot.card(); return ok }); err != nil {
			return err
		}

		for {
			before, confirmed := len(u.bot.said()), make(chan struct{})
			u.bot.PushTold(map[string]any{"callback_query": map[string]any{"id": "1", "data": data,
				"from": map[string]any{"id": botPerson, "first_name": "Ada"}}}, func() { close(confirmed) })
			if err := confirmation(ctx, confirmed); err != nil {
				return err
			}

			soon, cancel := context.WithTimeout(ctx, time.Second)
			err := until(soon, func() bool {
				all, err := u.done()
				return len(u.bot.said()) > before || err != nil || slices.ContainsFunc(all, func(e effect) bool { return e.key == key })
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
