package chat

import (
	"context"
	"log/slog"
	"time"

	"daycare/engine/message"
)

// A voice sends notices that are not promised: each is tried once.
type voice struct {
	platform Platform
	log      *slog.Logger
}

const sayTime = 20 * time.Second

// say answers a message with an unpromised text.
func (v voice) say(ctx context.Context, p Post, text string) {
	v.sayTo(ctx, p.From, p.MessageID, text)
}

func (v voice) sayTo(ctx context.Context, to message.Address, replyTo, text string) {
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	if err := v.platform.Say(ctx, to, replyTo, text); err != nil {
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
