package matrix

import (
	"context"
	"log/slog"
	"strings"
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
	_ chat.DirectMessenger = (*Connector)(nil)
)

const canary = "canary_token+of/the=account"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConnector(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness {
		s := newServer(t, canary)
		host := chat.Host{Waiting: &connectortest.Keeper{}, Hints: &connectortest.Keeper{}}
		return connectortest.Harness{
			New: func(t *testing.T, log *slog.Logger) engine.Connector {
				return testConnector(t, s, Options{}, host, log)
			},
			Offer: func(ctx context.Context, messages ...connectortest.Message) []bool {
				var all []happened
				for _, m := range messages {
					all = append(all, speech(adaRoom, ada, m.Key, m.Text))
				}
				return s.tell(ctx, all...)
			},
			Other: func(ctx context.Context, m connectortest.Message) {
				s.tell(ctx, speech("!bob:test.example", bob, m.Key, m.Text))
			},
			Forge: func(ctx context.Context, m connectortest.Message) {
				s.tell(ctx, speech("!eve:test.example", eve, m.Key, m.Text), speech(adaRoom, strings.ToUpper(ada), m.Key+"2", m.Text))
			},
			Strangers: &connectortest.Strangers{Host: &host, Told: s.heard, Write: func(ctx context.Context, m connectortest.Message) {
				s.tell(ctx, speech("!eve:test.example", eve, m.Key, m.Text))
			}},
			To: []message.Address{{Connector: "matrix", ChannelID: adaRoom, UserID: ada},
				{Connector: "matrix", ChannelID: "!bob:test.example", UserID: bob}},
			Sent:    s.received,
			Fault:   s.misbehave,
			Revoke:  s.revoke,
			Shown:   s.visible,
			Secrets: []string{canary},
		}
	})
}

func testConnector(t *testing.T, s *server, o Options, host chat.Host, log *slog.Logger) *Connector {
	t.Helper()
	o.ID, o.Homeserver = "matrix", s.URL
	if o.Allow == nil {
		o.Allow = []string{ada, bob}
	}
	c, err := New(o, canary, host, log)
	if err != nil {
		t.Fatal(err)
	}
	c.pause = time.Millisecond

	return c
}
