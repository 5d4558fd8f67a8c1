package discord

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine/message"
)

// A mortal keeper saves nothing any more once its process is dead.
type mortal struct {
	*connectortest.Keeper
	dead *atomic.Bool
}

func (m mortal) Save(connector, name string, data []byte) error {
	if m.dead.Load() {
		return errors.New("the process is dead")
	}
	return m.Keeper.Save(connector, name, data)
}

// However often daycare is killed while messages come, each is taken once and in its order:
// what a process that died had taken and not noted is fetched again, and dropped by its key.
func TestKilled(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	const kills, each = 8, 60
	written := 0
	for kill := range kills {
		dead := &atomic.Bool{}
		c := testConnector(t, s, Options{}, chat.Host{Waiting: mortal{&s.waiting, dead}}, quiet())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		taken := 0
		go func() {
			done <- c.Run(ctx, func(ctx context.Context, in message.Incoming) (message.Receipt, error) {
				if taken++; taken > 20+5*kill && kill < kills-1 {
					dead.Store(true)
					if taken%2 == 0 {
						_, _ = e.Deliver(ctx, in) // it was durable, and nobody heard of it
					}
					cancel()
					return message.Receipt{}, context.Canceled
				}
				return e.Deliver(ctx, in)
			})
		}()
		for range each {
			s.write(fmt.Sprint(written), private(ada), ada, fmt.Sprint(written))
			written++
			if written%2 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		if kill == kills-1 {
			e.Until(t, kills*each)
			cancel()
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		cancel()
	}

	for i, text := range e.Texts() {
		if text != fmt.Sprint(i) {
			t.Fatalf("message %s came as number %d", text, i)
		}
	}
	if len(e.Taken) != kills*each {
		t.Errorf("%d messages, want %d", len(e.Taken), kills*each)
	}
}
