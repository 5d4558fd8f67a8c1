package telegram

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"daycare/engine/message"
)

const (
	pollTime  = 50 * time.Second // how long Telegram holds a question for updates
	pollSlack = 15 * time.Second // for the way there and back
	pollMost  = 100              // updates an answer
	// maxStrikes is how often an update may break its handler before it is
	// passed over: one message must not stop all that follow.
	maxStrikes = 3
)

// poll asks for updates until ctx ends. Asking with an offset tells Telegram that
// everything before it was received, so the offset moves past an update only when
// it is durable.
func (c *Connector) poll(ctx context.Context, deliver message.Deliver) error {
	// Telegram does not answer the question while a webhook is set.
	err := c.persist(ctx, func(ctx context.Context) error {
		return c.api.call(ctx, "deleteWebhook", map[string]any{"drop_pending_updates": false}, nil)
	})
	if err != nil {
		return err
	}
	var offset int64
	for failures := 0; ctx.Err() == nil; {
		updates, err := c.updates(ctx, offset)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			failures++
			if err := c.hopeless(err, failures); err != nil {
				return err
			}
			c.rest(ctx, err, failures)
			continue
		}
		taken, err := c.takeAll(ctx, deliver, updates)
		if taken > 0 {
			offset = max(offset, updates[taken-1].ID+1)
		}
		if err == nil || taken > 0 {
			failures = 0
		}
		if err != nil && ctx.Err() == nil {
			failures++
			c.log.Warn("a message was not accepted and is fetched again", "update", updates[taken].ID, "err", err)
			c.rest(ctx, err, failures)
		}
	}
	return nil
}

func (c *Connector) updates(ctx context.Context, offset int64) ([]update, error) {
	ctx, cancel := context.WithTimeout(ctx, pollTime+pollSlack)
	defer cancel()
	var updates []update
	err := c.api.call(ctx, "getUpdates", map[string]any{"offset": offset, "limit": pollMost,
		"timeout": int(pollTime / time.Second), "allowed_updates": allowedUpdates}, &updates)
	return updates, err
}

// takeAll takes updates in order and returns how many, up to the first that
// failed.
func (c *Connector) takeAll(ctx context.Context, deliver message.Deliver, updates []update) (int, error) {
	for i, u := range updates {
		if err := c.take(ctx, deliver, u); err != nil {
			return i, err
		}
	}
	return len(updates), nil
}

// take takes one update. A panic in it is an error, until it has happened too
// often.
func (c *Connector) take(ctx context.Context, deliver message.Deliver, u update) (err error) {
	defer func() {
		p := recover()
		c.mu.Lock()
		defer c.mu.Unlock()
		if p == nil {
			delete(c.strikes, u.ID)
			return
		}
		c.strikes[u.ID]++
		c.log.Error("an update broke its handler", "update", u.ID, "err", p, "stack", string(debug.Stack()))
		if err = fmt.Errorf("update %d: panic: %v", u.ID, p); c.strikes[u.ID] >= maxStrikes {
			delete(c.strikes, u.ID)
			err = nil
		}
	}()
	if u.CallbackQuery != nil {
		c.pressed(ctx, u.CallbackQuery)
		return nil
	}
	if p, ok := c.read(u); ok {
		return c.desk.Take(ctx, deliver, p)
	}
	return nil
}
