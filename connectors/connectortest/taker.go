package connectortest

import (
	"context"
	"sync"
	"testing"
	"time"

	"daycare/engine"
	"daycare/engine/message"
)

// A Taker is the engine in tests of one connector's own: it keeps what is delivered, each
// message once. The zero value works.
type Taker struct {
	mu     sync.Mutex
	keys   map[string]bool
	Taken  []message.Incoming // to be read while nothing is delivered
	Refuse error              // of every message; nil: all are taken
}

// Deliver takes a message.
func (e *Taker) Deliver(_ context.Context, in message.Incoming) (message.Receipt, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Refuse != nil {
		return message.Receipt{}, e.Refuse
	}
	if e.keys == nil {
		e.keys = map[string]bool{}
	}
	if !e.keys[in.Dedupe] {
		e.keys[in.Dedupe] = true
		e.Taken = append(e.Taken, in)
	}

	return message.Receipt{Agent: "agent"}, nil
}

// Texts returns the texts of what was taken, in order.
func (e *Taker) Texts() (all []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, in := range e.Taken {
		all = append(all, in.Text)
	}

	return all
}

// Until waits until n messages were taken, and returns the texts of all.
func (e *Taker) Until(t *testing.T, n int) []string {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		all := e.Texts()
		if len(all) >= n {
			return all
		}
		if time.Now().After(end) {
			t.Fatalf("%d messages were taken, want %d", len(all), n)
		}
	}
}

// Serve runs a connector until the function it returns is called, which returns what Run did,
// or until the test ends.
func Serve(t *testing.T, c engine.Connector, deliver message.Deliver) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, deliver) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { stop() })

	return stop
}

// OneByOne makes a Harness.Offer of a function that offers one message and reports whether it was
// received: what is behind one that was not waits.
func OneByOne(offer func(ctx context.Context, m Message) bool) func(context.Context, ...Message) []bool {
	return func(ctx context.Context, messages ...Message) []bool {
		received := make([]bool, len(messages))
		for i, m := range messages {
			if received[i] = offer(ctx, m); !received[i] {
				break
			}
		}
		return received
	}
}
