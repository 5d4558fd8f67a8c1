package chat

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"daycare/engine/message"
)

// A voice sends notices that are not promised: each is tried once.
type voice struct {
	platform Platform
	log      *slog.Logger
	language func() string // as in Talk
}

// t is a fixed text in the language of the connector, filled in.
func (v voice) t(text string, args ...any) string {
	if text = Translated(v.language(), text); len(args) > 0 {
		return fmt.Sprintf(text, args...)
	}
	return text
}

const sayTime = 20 * time.Second

// say answers a message with an unpromised text. A fixed text is translated.
func (v voice) say(ctx context.Context, p Post, text string) {
	v.sayTo(ctx, p.From, p.MessageID, text)
}

func (v voice) sayTo(ctx context.Context, to message.Address, replyTo, text string) {
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	if err := v.platform.Say(ctx, to, replyTo, v.t(text)); err != nil {
		v.log.Warn("notice not delivered", "channel", to.ChannelID, "err", err)
	}
}

// atWork shows "typing" once.
func (v voice) atWork(ctx context.Context, to message.Address) {
	t, ok := v.platform.(TypingNotifier)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, typingTime)
	defer cancel()
	if err := t.Typing(ctx, to); err != nil {
		v.log.Debug("typing not shown", "err", err)
	}
}
