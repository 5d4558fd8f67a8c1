package telegram

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/connectors/telegram/telegramtest"
	"daycare/engine"
	"daycare/engine/freeport"
	"daycare/engine/message"
)

var (
	_ engine.Connector     = (*Connector)(nil)
	_ engine.Splitter      = (*Connector)(nil)
	_ engine.Interim       = (*Connector)(nil)
	_ engine.Reactor       = (*Connector)(nil)
	_ chat.Platform        = (*Connector)(nil)
	_ chat.TypingNotifier  = (*Connector)(nil)
	_ chat.CardSender      = (*Connector)(nil)
	_ chat.DirectMessenger = (*Connector)(nil)
)

const (
	token = "777:canary-token_of-the-bot"
	ada   = 5550001 // who may write
	bob   = 5550002 // and who may, too
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPolling(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness { return harness(t, false) })
}

func TestWebhook(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness { return harness(t, true) })
}

// bot is the fake with the suite's way of speaking to it.
type bot struct {
	*telegramtest.Server
	mu    sync.Mutex
	keys  map[string]int64 // the suite's key -> update
	fault connectortest.Fault
	// revoked: the token is accepted no more.
	revoked bool
}

func harness(t *testing.T, hook bool) connectortest.Harness {
	b := &bot{Server: telegramtest.New(token), keys: map[string]int64{}}
	b.BusyFor = connectortest.BusyFor
	b.Server.Fault = b.of
	t.Cleanup(b.Close)
	host := chat.Host{Waiting: &connectortest.Keeper{}}
	o := Options{Settings: chat.Settings{ID: "telegram", Allow: []string{"5550001", "5550002"}}, BaseURL: b.URL}
	if hook {
		o.Webhook = Webhook{Listen: freeport.Take(t)}
		o.Webhook.URL = "http://" + o.Webhook.Listen + "/telegram"
	}

	forge := func(ctx context.Context, m connectortest.Message) {
		id := b.Push(telegramtest.Text(666, m.Text))
		b.Wait(ctx, func() bool { return b.Confirmed(id) })
	}
	revoke := b.revoke
	if hook {
		revoke = nil // who is not posted to is not told
	}
	return connectortest.Harness{
		Revoke: revoke,
		New:    func(t *testing.T, log *slog.Logger) engine.Connector { return connector(t, o, host, log) },
		Offer:  b.offer,
		Other: func(ctx context.Context, m connectortest.Message) {
			id := b.Push(telegramtest.Text(bob, m.Text))
			b.Wait(ctx, func() bool { return b.Confirmed(id) })
		},
		Forge: forge,
		Strangers: &connectortest.Strangers{Host: &host, Write: forge, Told: func() (all []connectortest.Sent) {
			for _, m := range b.Server.Sent() {
				all = append(all, connectortest.Sent{Text: m.Text})
			}
			return all
		}},
		To:      []message.Address{{Connector: "telegram", ChannelID: "5550001"}, {Connector: "telegram", ChannelID: "-100200"}},
		Sent:    b.answers,
		Shown:   b.visible,
		Fault:   b.misbehave,
		Secrets: []string{token, strings.TrimPrefix(token, "777:")},
	}
}

// connector makes one that tries again, and gives up, within milliseconds.
func connector(t *testing.T, o Options, host chat.Host, log *slog.Logger) *Connector {
	t.Helper()
	c, err := New(o, token, host, log)
	if err != nil {
		t.Fatal(err)
	}
	c.pause, c.poller.pause, c.hook.ingress.Grace = time.Millisecond, time.Millisecond, 100*time.Millisecond
	return c
}

func (b *bot) offer(ctx context.Context, messages ...connectortest.Message) []bool {
	received := make([]bool, len(messages))
	ids := make([]int64, len(messages))
	b.mu.Lock()
	for i, m := range messages {
		body := telegramtest.Text(ada, m.Text)
		if id, again := b.keys[m.Key]; again {
			if ids[i] = id; b.Confirmed(id) {
				b.Repeat(id, body)
			}
			continue
		}
		ids[i] = b.Push(body)
		b.keys[m.Key] = ids[i]
	}

	b.mu.Unlock()
	for i, id := range ids {
		received[i] = b.Wait(ctx, func() bool { return b.Confirmed(id) })
	}
	return received
}

// answers are what was sent beside the notices to strangers.
func (b *bot) answers() []connectortest.Sent {
	var all []connectortest.Sent
	for _, m := range b.Server.Sent() {
		if m.Method == "sendMessage" && m.Chat != "666" && !strings.Contains(m.Text, "allow") {
			all = append(all, connectortest.Sent{Text: m.Text})
		}
	}
	return all
}

// visible are the texts that users see.
func (b *bot) visible() []string {
	var ids, all []string
	texts := map[string]string{}
	for _, m := range b.Server.Sent() {
		id := decimal(m.ID)
		if m.Edits != "" {
			id = m.Edits
		} else {
			ids = append(ids, id)
		}
		texts[id] = m.Text
	}
	for _, id := range ids {
		all = append(all, texts[id])
	}
	return all
}

func (b *bot) misbehave(f connectortest.Fault) {
	b.mu.Lock()
	b.fault = f
	b.mu.Unlock()
	if f != connectortest.Stall {
		b.Release()
	}
}

// revoke has the token accepted no more, or again. Who is asking for updates is answered first.
func (b *bot) revoke(revoked bool) {
	b.mu.Lock()
	b.revoked = revoked
	b.mu.Unlock()
	if revoked {
		b.Push(map[string]any{})
	}
}

func (b *bot) of(method string) telegramtest.Fault {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.revoked {
		return telegramtest.Revoked
	}
	if method != "sendMessage" && method != "editMessageText" {
		return telegramtest.OK
	}
	return map[connectortest.Fault]telegramtest.Fault{
		connectortest.Broken: telegramtest.Broken, connectortest.Busy: telegramtest.Busy, connectortest.Gone: telegramtest.Gone,
		connectortest.Stall: telegramtest.Stall, connectortest.Drop: telegramtest.Drop,
		connectortest.Forget: telegramtest.Forget,
	}[b.fault]
}
