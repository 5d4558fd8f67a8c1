package signal

import (
	"context"
	"encoding/base64"
	"hash/fnv"
	"io"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
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
	_ chat.DirectMessenger = (*Connector)(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConnector(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness {
		p := &platform{daemon: newDaemon(t), done: map[string]chan struct{}{}}
		host := chat.Host{Waiting: &p.waiting}
		forge := func(ctx context.Context, m connectortest.Message) {
			e := envelopeOf(m.Key, m.Text)
			e["sourceUuid"] = "00000000-0000-4000-8000-000000000666"
			p.push(e)
			<-p.await(e["sourceUuid"].(string) + "/" + strconv.FormatInt(stamp(m.Key), 10))
		}

		return connectortest.Harness{
			New: func(t *testing.T, log *slog.Logger) engine.Connector {
				c := testConnector(t, p.daemon, host, log)
				// The suite gives each connector a new memory of dedupe keys, which would
				// otherwise drop what the daemon repeats to a new one.
				c.last = "run-" + strconv.Itoa(int(p.finished.Load()))
				c.arrived = chat.NewQueue(c.desk, time.Millisecond, func(post chat.Post) {
					p.finished.Add(1)
					p.await(post.MessageID) <- struct{}{}
				})

				return c
			},
			Offer: p.offer,
			Other: func(ctx context.Context, m connectortest.Message) {
				e := envelopeOf(m.Key, m.Text)
				e["sourceUuid"], e["sourceNumber"] = bob, "+49152222"
				p.push(e)
				select {
				case <-p.await(bob + "/" + strconv.FormatInt(stamp(m.Key), 10)):
				case <-ctx.Done():
				}
			},
			Forge:     forge,
			Strangers: &connectortest.Strangers{Host: &host, Write: forge, Told: p.received},
			To:        []message.Address{{Connector: "signal", ChannelID: ada}, {Connector: "signal", ChannelID: "group:abc="}},
			Sent:      p.received,
			Fault:     p.misbehave,
		}
	})
}

func testConnector(t *testing.T, d *daemon, host chat.Host, log *slog.Logger) *Connector {
	t.Helper()
	c, err := New(Options{Settings: chat.Settings{ID: "signal", Allow: []string{ada, bob}}, Account: account, URL: d.URL}, host, log)
	if err != nil {
		t.Fatal(err)
	}
	c.pause = time.Millisecond
	return c
}

// platform tells when the connector is done with a message: signal-cli has no word
// for it, so the connector says it to its test.
type platform struct {
	*daemon
	finished atomic.Int32
	at       sync.Mutex
	done     map[string]chan struct{}
}

func (p *platform) await(id string) chan struct{} {
	p.at.Lock()
	defer p.at.Unlock()
	if p.done[id] == nil {
		p.done[id] = make(chan struct{}, 100)
	}
	return p.done[id]
}

func (p *platform) offer(ctx context.Context, messages ...connectortest.Message) []bool {
	received := make([]bool, len(messages))
	for _, m := range messages {
		p.push(envelopeOf(m.Key, m.Text))
	}

	for i, m := range messages {
		select {
		case <-p.await(ada + "/" + strconv.FormatInt(stamp(m.Key), 10)):
			received[i] = true
		case <-ctx.Done():
			return received
		}
	}

	return received
}

var today = time.Now().UnixMilli()

// stamp is the time of a message: with its sender the id that Signal gives it.
func stamp(key string) int64 {
	h := fnv.New32()
	io.WriteString(h, key)
	return today - int64(h.Sum32()%86_400_000)
}

func envelopeOf(key, text string) map[string]any {
	return map[string]any{"sourceUuid": ada, "sourceNumber": "+49151111", "sourceName": "Ada", "timestamp": stamp(key),
		"dataMessage": map[string]any{"timestamp": stamp(key), "message": text}}
}

func post(t *testing.T, c *Connector, more map[string]any) (chat.Post, bool) {
	t.Helper()
	d := newDaemon(t)
	e := envelopeOf("x", "")
	for k, v := range more {
		e[k] = v
	}

	d.push(e)
	c.arrived = chat.NewQueue(c.desk, 0, nil)
	got := make(chan chat.Post, 1)
	c.arrived = chat.NewQueue(c.desk, 0, func(p chat.Post) { got <- p })
	if !c.event(t.Context(), d.events[0]) {
		t.Fatal("the event was not taken")
	}

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c.arrived.Run(ctx, func(context.Context, message.Incoming) (message.Receipt, error) { return message.Receipt{}, nil })
	select {
	case p := <-got:
		return p, true
	default:
		return chat.Post{}, false
	}
}

func TestEnvelopes(t *testing.T) {
	d := newDaemon(t)
	c := testConnector(t, d, chat.Host{Waiting: &d.waiting}, slog.New(slog.DiscardHandler))
	group := map[string]any{"groupId": "abc=", "type": "DELIVER"}
	mention := []any{map[string]any{"name": "Bot", "number": account, "uuid": "b", "start": 0, "length": 1},
		map[string]any{"name": "Eve", "uuid": "e", "start": 5, "length": 1}}
	p, _ := post(t, c, map[string]any{"dataMessage": map[string]any{"message": "\uFFFC 😀 \uFFFC!", "mentions": mention, "groupInfo": group,
		"quote": map[string]any{"id": 5, "authorUuid": "b", "text": "earlier"}}})
	if p.Text != "😀 @Eve!" || !p.Addressed || p.From.ChannelID != "group:abc=" || p.From.UserID != ada ||
		p.Quote != "earlier" || p.ReplyTo != "b/5" {
		t.Errorf("a group message is %+v", p)
	}
	if p, _ := post(t, c, map[string]any{"dataMessage": map[string]any{"message": "all", "groupInfo": group}}); p.Addressed {
		t.Errorf("a message that is not for us is %+v", p)
	}
	if p, _ := post(t, c, map[string]any{"dataMessage": nil,
		"editMessage": map[string]any{"targetSentTimestamp": 7,
			"dataMessage": map[string]any{"message": "better"}}}); !strings.HasSuffix(p.Amends, "/7") || p.Text != "better" {
		t.Errorf("an edit is %+v", p)
	}
	if p, _ := post(t, c, map[string]any{"dataMessage": map[string]any{"reaction": map[string]any{"emoji": "❤",
		"targetSentTimestamp": 7}}}); !p.Note || p.Text != "The person reacted to message 7 with ❤" {
		t.Errorf("a reaction is %+v", p)
	}

	for name, more := range map[string]map[string]any{
		"a receipt": {"dataMessage": nil, "receiptMessage": map[string]any{}}, "our own": {"sourceNumber": account},
		"old": {"timestamp": time.Now().Add(-7 * 24 * time.Hour).UnixMilli()},
	} {
		if p, ok := post(t, c, more); ok {
			t.Errorf("%s is taken as %+v", name, p)
		}
	}

	d.says["getAttachment"] = `"result":{"data":"` + base64.StdEncoding.EncodeToString([]byte("content")) + `"}`
	p, _ = post(t, c, map[string]any{"dataMessage": map[string]any{"message": "x",
		"attachments": []any{map[string]any{"id": "f1", "filename": "a.txt", "size": 7}}}})
	body, err := p.Files[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(body); string(got) != "content" {
		t.Errorf("attachment %q", got)
	}
	if k, _ := d.called("getAttachment"); k.Params["id"] != "f1" || k.Params["recipient"] != ada {
		t.Errorf("it was asked for with %v", k.Params)
	}
	for says, want := range map[string]string{`"result":{}`: "sent nothing", `"error":{"code":-1,"message":"gone"}`: "gone (-1)"} {
		d.says["getAttachment"] = says
		if _, err := p.Files[0].Open(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("an attachment that is answered with %s: %v, want %q", says, err, want)
		}
	}
}

func TestProbe(t *testing.T) {
	d := newDaemon(t)
	c := testConnector(t, d, chat.Host{Waiting: &d.waiting}, slog.New(slog.DiscardHandler))
	if verdict, err := c.Probe(t.Context()); err != nil || verdict != "the daemon serves "+account {
		t.Errorf("Probe = %q, %v", verdict, err)
	}
	c.o.Account = "+49152"
	if _, err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "link it") {
		t.Errorf("Probe = %v, want what to do", err)
	}

	d.says["listAccounts"] = `"error":{"code":-32601,"message":"Method not implemented"}`
	if verdict, err := c.Probe(t.Context()); err != nil || !strings.Contains(verdict, "serves a single account") {
		t.Errorf("a daemon of one account: %q, %v", verdict, err)
	}
	for says, want := range map[string]string{`"error":{"code":-3,"message":"locked"}`: "locked",
		"502":  "the daemon answers 502 Bad Gateway",
		"none": "read answer of listAccounts", `"result":7`: "read result of listAccounts"} {
		d.says["listAccounts"] = says
		if _, err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a daemon that answers %s: %v, want %q", says, err, want)
		}
	}
}

func TestValidate(t *testing.T) {
	good := Options{Settings: chat.Settings{ID: "signal", Allow: []string{ada, "+49151234"}}, Account: account, URL: "http://127.0.0.1:1"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}

	for _, change := range []func(*Options){
		func(o *Options) { o.ID = "" }, func(o *Options) { o.Account = "0151" }, func(o *Options) { o.URL = "127.0.0.1:1" },
		func(o *Options) { o.URL = "http://u:p@x" }, func(o *Options) { o.URL = "http:///x" },
		func(o *Options) { o.URL = "ftp://x" }, func(o *Options) { o.URL = "http://x:%" }, func(o *Options) { o.Allow = []string{"ada"} },
	} {
		o := good
		change(&o)
		if o.Validate() == nil {
			t.Errorf("%+v is valid, want an error", o)
		}
		if _, err := New(o, chat.Host{}, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%+v makes a connector", o)
		}
	}

	for _, tt := range []struct{ uuid, number, want string }{
		{ada, "+49151234", "+49151234"}, {ada, "+49151235", ada}, {ada, "", ada}, {"", "+49151235", "+49151235"},
	} {
		if got := good.identity(tt.uuid, tt.number); got != tt.want {
			t.Errorf("who has the account %q and the number %q is %q, want %q", tt.uuid, tt.number, got, tt.want)
		}
	}
}

// Many mentions take memory as their number does; their order does not matter.
func TestManyMentions(t *testing.T) {
	const n = 3000
	d := &data{Message: strings.Repeat("a", n) + "b"}
	for i := range n {
		d.Mentions = append(d.Mentions, mention{Name: strings.Repeat("x", 19), Start: n - 1 - i, Length: 1})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text, _ := (&Connector{o: Options{Account: "+1"}}).mentioned(d)
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; len(text) != 20*n+1 || took > 10 {
		t.Errorf("a text of %d bytes takes %d MB of memory", len(text), took)
	}
}
