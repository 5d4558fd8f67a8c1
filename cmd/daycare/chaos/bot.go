package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"daycare/cmd/daycare/chaos/platforms"
)

// came is how often the user of a platform was sent a message.
func came(p platforms.Platform, text string) (n int) {
	for _, m := range p.Said() {
		if m.Text == text {
			n++
		}
	}

	return n
}

// newestCard is the newest question that is answered by pressing.
func newestCard(p platforms.Platform) (card string, ok bool) {
	for _, m := range slices.Backward(p.Said()) {
		if m.Card != "" {
			return m.Card, true
		}
	}

	return "", false
}

// writes has the user write over the chat platform, and waits until that is confirmed.
func (u *user) writes(ctx context.Context, key, text string) error {
	s := u.offer(saying{key: key, hook: u.chat.Name(), kind: "user_message", texts: []string{key + " " + text},
		sender: u.chat.Sender()})
	confirmed := make(chan struct{})
	u.chat.Write(key+" "+text, func() {
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
	return func(ctx context.Context, u *user) error { return u.writes(ctx, key, text) }
}

// presses waits for a card and answers it with its first choice, until the command has had
// its effect, or the bot says something: a command that a death interrupted may have none. A
// disk that fails may not take the answer, so a user presses again.
func presses(key string) step {
	return func(ctx context.Context, u *user) error {
		card, ok := "", false
		if err := until(ctx, func() bool { card, ok = newestCard(u.chat); return ok }); err != nil {
			return err
		}

		for {
			before, confirmed := len(u.chat.Said()), make(chan struct{})
			u.chat.Press(card, func() { close(confirmed) })
			if err := confirmation(ctx, confirmed); err != nil {
				return err
			}

			soon, cancel := context.WithTimeout(ctx, time.Second)
			err := until(soon, func() bool {
				all, err := u.done()
				return len(u.chat.Said()) > before || err != nil || slices.ContainsFunc(all, func(e effect) bool { return e.key == key })
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
		return until(ctx, func() bool { return came(u.chat, text) > 0 })
	}
}

// onceEach: an answer comes at least once. It comes again only where the platform knows no
// keys, and a death, or a disk that failed, left it open whether it had come.
func onceEach(texts ...string) func(u *user, v view) error {
	return func(u *user, _ view) error {
		var wrong []string
		most := 1
		if !u.chat.Once() {
			most += u.livesLost()
			if u.broken {
				most++
			}
		}

		for _, text := range texts {
			if n := came(u.chat, text); n < 1 || n > most {
				wrong = append(wrong, fmt.Sprintf("%q came %d times in %d deaths", text, n, u.livesLost()))
			}
		}

		if len(wrong) > 0 {
			return fmt.Errorf("the bot's answers: %s", strings.Join(wrong, ", "))
		}

		return nil
	}
}
