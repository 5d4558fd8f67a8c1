package telegram

import (
	"context"
	"log/slog"
	"time"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

const (
	pollTime  = 50 * time.Second // how long Telegram holds a question for updates
	pollSlack = 15 * time.Second // for the way there and back
	pollMost  = 100              // updates an answer
	callTime  = pollTime + pollSlack
)

// take makes one update durable.
type take func(ctx context.Context, deliver message.Deliver, u update) error

// A poller asks for updates.
type poller struct {
	api   *api
	log   *slog.Logger
	pause time.Duration // after the first failure
	take  take
}

// poll asks for updates until ctx ends. Asking with an offset tells Telegram that
// everything before it was received, so the offset moves past an update only when
// it is durable. It follows the newest one wherever that is: after a week without
// updates the next one has a random number, and an offset beyond it confirms nothing.
func (p *poller) poll(ctx context.Context, deliver message.Deliver) error {
	// Telegram does not answer the question while a webhook is set.
	if err := p.api.call(ctx, "deleteWebhook", map[string]any{"drop_pending_updates": false}, nil); err != nil {
		return err
	}
	message.Up(ctx)
	var offset int64
	for failures := 0; ctx.Err() == nil; {
		updates, err := p.updates(ctx, offset)
		if err != nil {
			return err
		}
		taken, err := p.takeAll(ctx, deliver, updates)
		if taken > 0 {
			offset, failures = updates[taken-1].ID+1, 0
		}
		if err != nil && ctx.Err() == nil {
			p.log.Warn("message not accepted; fetching it again", "update", updates[taken].ID, "err", err)
			chat.Rest(ctx, p.pause, failures)
			failures++
		}
	}

	return nil
}

func (p *poller) updates(ctx context.Context, offset int64) ([]update, error) {
	var updates []update
	err := p.api.call(ctx, "getUpdates", map[string]any{"offset": offset, "limit": pollMost,
		"timeout": int(pollTime / time.Second), "allowed_updates": allowedUpdates}, &updates)
	return updates, err
}

// takeAll takes updates in order and returns how many, up to the first that
// failed.
func (p *poller) takeAll(ctx context.Context, deliver message.Deliver, updates []update) (int, error) {
	for i, u := range updates {
		if err := p.take(ctx, deliver, u); err != nil {
			return i, err
		}
	}

	return len(updates), nil
}

// take takes one update.
func (c *Connector) take(ctx context.Context, deliver message.Deliver, u update) error {
	return c.strikes.Guard(decimal(u.ID), func() error {
		if u.CallbackQuery != nil {
			c.pressed(ctx, u.CallbackQuery)
			return nil
		}
		if p, ok := c.reader.read(u); ok {
			return c.desk.Take(ctx, deliver, p)
		}

		return nil
	})
}
