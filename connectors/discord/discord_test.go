package discord

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine"
	"daycare/engine/message"
)

var (
	_ engine.Connector     = (*Connector)(nil)
	_ engine.Splitter      = (*Connector)(nil)
	_ engine.Reactor       = (*Connector)(nil)
	_ chat.Platform        = (*Connector)(nil)
	_ chat.TypingNotifier  = (*Connector)(nil)
	_ chat.CardSender      = (*Connector)(nil)
	_ chat.DirectMessenger = (*Connector)(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConnector(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness {
		s := newServer(t)
		host := chat.Host{Waiting: &s.waiting}
		var newest atomic.Pointer[Connector]
		write := func(ctx context.Context, m connectortest.Message, user string) bool {
			id := number(s.write(m.Key, private(user), user, m.Text))
			for ctx.Err() == nil {
				if newest.Load().backlog.Taken(private(user), id) {
					return true
				}
				time.Sleep(time.Millisecond)
			}
			return false
		}
		forge := func(ctx context.Context, m connectortest.Message) { write(ctx, m, stranger) }
		return connectortest.Harness{
			New: func(t *testing.T, log *slog.Logger) engine.Connector {
				newest.Store(testConnector(t, s, Options{}, host, log))
				return newest.Load()
			},
			Offer: connectortest.OneByOne(func(ctx context.Context, m connectortest.Message) bool {
				return write(ctx, m, ada)
			}),
			Other:     func(ctx context.Context, m connectortest.Message) { write(ctx, m, bob) },
			Forge:     forge,
			Strangers: &connectortest.Strangers{Host: &host, Write: forge, Told: s.sent},
			To: []message.Address{{Connector: "discord", ChannelID: private(ada)},
				{Connector: "discord", ChannelID: general, ThreadID: thread}},
			Sent:    s.sent,
			Fault:   s.misbehave,
			Revoke:  s.revoke,
			Shown:   s.visible,
			Secrets: []string{token},
		}
	})
}

func testConnector(t *testing.T, s *server, o Options, host chat.Host, log *slog.Logger) *Connector {
	t.Helper()
	o.ID, o.BaseURL, o.Allow = "discord", s.URL, []string{ada, bob}
	c, err := New(o, token, host, log)
	if err != nil {
		t.Fatal(err)
	}
	c.pause, c.gate.pause = time.Millisecond, time.Millisecond
	c.backlog = c.newBacklog(host.Waiting)

	return c
}

// keeps is an engine whose process outlives its connectors.
func keeps(s *server) chat.Host { return chat.Host{Waiting: &s.waiting} }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// connected waits until the bot has said who it is.
func (s *server) connected(t *testing.T) {
	t.Helper()
	s.until(t, "connected", func() bool { return len(s.sessions) > 0 && s.sessions[len(s.sessions)-1].conn != nil })
}

// After a night without daycare, 10,000 messages of two chats come in their order, each once,
// and are not held all at once.
func TestNight(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	stop := connectortest.Serve(t, testConnector(t, s, Options{}, keeps(s), quiet()), e.Deliver)
	s.connected(t)
	s.write("before", private(ada), ada, "before")
	e.Until(t, 1)
	if err := stop(); err != nil {
		t.Fatal(err)
	}

	const night = 10_000
	for i := range night / 2 {
		s.write(fmt.Sprint("a", i), private(ada), ada, fmt.Sprint("a ", i))
		s.write(fmt.Sprint("g", i), general, bob, fmt.Sprintf("<@%s> g %d", me, i))
	}
	var most atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- testConnector(t, s, Options{}, keeps(s), quiet()).Run(ctx, func(ctx context.Context,
			in message.Incoming) (message.Receipt, error) {
			s.mu.Lock()
			held := int64(s.handed - len(e.Taken))
			s.mu.Unlock()
			most.Store(max(most.Load(), held))
			return e.Deliver(ctx, in)
		})
	}()
	e.Until(t, night+1)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	next := map[string]int{}
	for _, text := range e.Texts()[1:] {
		chat, n, _ := strings.Cut(text, " ")
		if want := fmt.Sprint(next[chat]); n != want {
			t.Fatalf("message %s of chat %s came where %s was next", n, chat, want)
		}
		next[chat]++
	}
	if most.Load() > 2*maxPage {
		t.Errorf("%d messages were held at once, want at most two pages", most.Load())
	}
}

// Once it is known which chats there are, a message that arrives is taken as it came, and not fetched.
func TestWhatArrivesIsNotFetched(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	connectortest.Serve(t, testConnector(t, s, Options{}, keeps(s), quiet()), e.Deliver)
	s.connected(t)
	fetched := func() (n int) {
		s.with(func() {
			for _, call := range s.calls {
				if call == "GET /channels/"+private(ada)+"/messages" {
					n++
				}
			}
		})
		return n
	}
	for n, end := 1, time.Now().Add(10*time.Second); ; n++ {
		before := fetched()
		s.write(fmt.Sprint(n), private(ada), ada, fmt.Sprint(n))
		if e.Until(t, n); fetched() == before {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("each of %d messages was fetched", n)
		}
	}
}

// While messages come faster than they are accepted, they are fetched later, in their order.
func TestFlood(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	hold := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- testConnector(t, s, Options{}, keeps(s), quiet()).Run(ctx, func(ctx context.Context,
			in message.Incoming) (message.Receipt, error) {
			<-hold
			return e.Deliver(ctx, in)
		})
	}()
	s.connected(t)
	const flood = 1000
	for i := range flood {
		s.write(fmt.Sprint(i), private(ada), ada, fmt.Sprint(i))
	}
	close(hold)
	e.Until(t, flood)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for i, text := range e.Texts() {
		if text != fmt.Sprint(i) {
			t.Fatalf("message %s came as number %d", text, i)
		}
	}
}
