package chat

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// What connectors do again: after a pause, at most so often, and where they left off.

const longPause = 30 * time.Second

// Rest waits after the nth failure in a row (from 0), longer after each, or until ctx ends.
func Rest(ctx context.Context, first time.Duration, n int) {
	select {
	case <-time.After(min(first<<min(n, 10), longPause)):
	case <-ctx.Done():
	}
}

// maxStrikes is how often a message may break its handler before it is passed
// over: one message must not stop all that follow.
const maxStrikes = 3

// Strikes count how often messages broke their handlers.
type Strikes struct {
	Log *slog.Logger

	mu  sync.Mutex
	all map[string]int
}

// Guard calls f, which handles the message with this key. A panic in it is an error, until
// it has happened too often.
func (s *Strikes) Guard(key string, f func() error) (err error) {
	defer func() {
		p := recover()
		s.mu.Lock()
		defer s.mu.Unlock()
		if p == nil {
			delete(s.all, key)
			return
		}
		if s.all == nil {
			s.all = map[string]int{}
		}
		s.all[key]++
		s.Log.Error("the handler of a message panicked", "message", key, "err", p, "stack", string(debug.Stack()))
		if err = fmt.Errorf("message %s: panic: %v", key, p); s.all[key] >= maxStrikes {
			delete(s.all, key)
			err = nil
		}
	}()

	return f()
}

// Progress remembers how many messages of a part were sent, so that a second try continues
// there, for platforms that know no idempotency key.
type Progress struct {
	mu   sync.Mutex
	sent map[string]int
}

// Send sends the messages of the part with this key that were not sent, in order.
func (p *Progress) Send(key string, steps []func() error) error {
	p.mu.Lock()
	done := p.sent[key]
	p.mu.Unlock()
	for i := done; i < len(steps); i++ {
		if err := steps[i](); err != nil {
			return err
		}
		p.set(key, i+1)
	}

	p.set(key, 0)

	return nil
}

// set notes how many were sent; 0 forgets the part.
func (p *Progress) set(key string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n == 0 {
		delete(p.sent, key)
		return
	}
	if p.sent == nil {
		p.sent = map[string]int{}
	}

	p.sent[key] = n
}
