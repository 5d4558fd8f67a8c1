package signal

import (
	"context"
	"encoding/base64"
	"hash/fnv"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
	c, err := New(Options{ID: "signal", Account: account, URL: d.URL, Allow: []string{ada, bob}}, host, log)
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
			"dataMessage": map[string]any{"message": "better"}}}); !p.Note || !strings.HasSuffix(p.Text, "better") {
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

	d.files["f1"] = base64.StdEncoding.EncodeToString([]byte("content"))
	p, _ = post(t, c, map[string]any{"dataMessage": map[string]any{"message": "x",
		"attachments": []any{map[string]any{"id": "f1", "filename": "a.txt", "size": 7}}}})
	body, err := p.Files[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(body); string(got) != "content" {
		t.Errorf("attachment %q", got)
	}
}

// TestStreamBreaks: a stream that ends after each event loses and doubles nothing.
func TestStreamBreaks(t *testing.T) {
	d := newDaemon(t)
	d.cut = 1
	c := testConnector(t, d, chat.Host{Waiting: &d.waiting}, slog.New(slog.DiscardHandler))
	got := make(chan string, 100)
	c.arrived = chat.NewQueue(c.desk, 0, func(p chat.Post) { got <- p.Text })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		var err error
		for ctx.Err() == nil && (err == nil || strings.Contains(err.Error(), "ended the stream")) { // as the engine does
			err = c.Run(ctx, func(context.Context, message.Incoming) (message.Receipt, error) { return message.Receipt{}, nil })
		}
		done <- err
	}()

	for i := range 10 {
		want := strconv.Itoa(i)
		d.push(envelopeOf(want, want))
		select {
		case text := <-got:
			if text != want {
				t.Errorf("took %s, want %s", text, want)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s did not come", want)
		}
	}

	cancel()
	if err := <-done; err != nil && !strings.Contains(err.Error(), "ended the stream") {
		t.Error(err)
	}
}

func TestSend(t *testing.T) {
	d := newDaemon(t)
	c := testConnector(t, d, chat.Host{Waiting: &d.waiting}, slog.New(slog.DiscardHandler))
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("1,2"), 0o600); err != nil {
		t.Fatal(err)
	}

	out := message.Outgoing{ID: "o", Parts: 1, To: message.Address{Connector: "signal", ChannelID: ada},
		ReplyTo: ada + "/99", Text: "😀 **b**",
		Files: []message.File{{Name: "a;b.csv", MimeType: "text/csv", Path: path}}}
	id, err := c.Send(t.Context(), out)
	if err != nil || id != "1234" {
		t.Fatalf("Send = %q, %v", id, err)
	}

	k, _ := d.called("send")
	want := map[string]any{"account": account, "recipient": ada, "message": "😀 b", "textStyle": []any{"3:1:BOLD"},
		"quoteAuthor": ada, "quoteTimestamp": float64(99), "attachments": []any{"data:text/csv;filename=a_b.csv;base64,MSwy"}}
	if diff := cmp.Diff(want, k.Params); diff != "" {
		t.Errorf("send (-want +got):\n%s", diff)
	}
}

func TestReact(t *testing.T) {
	d := newDaemon(t)
	c := testConnector(t, d, chat.Host{Waiting: &d.waiting}, slog.New(slog.DiscardHandler))
	for channel, member := range map[string]string{ada: "recipient", "group:abc=": "groupId"} {
		if err := c.React(t.Context(), message.Address{ChannelID: channel}, ada+"/99", "👍"); err != nil {
			t.Fatal(err)
		}
		k, _ := d.called("sendReaction")
		want := map[string]any{"account": account, member: strings.TrimPrefix(channel, "group:"), "emoji": "👍",
			"targetAuthor": ada, "targetTimestamp": float64(99)}
		if diff := cmp.Diff(want, k.Params); diff != "" {
			t.Errorf("sendReaction (-want +got):\n%s", diff)
		}
	}

	if err := c.React(t.Context(), message.Address{ChannelID: ada}, "99", "👍"); err == nil ||
		!strings.Contains(err.Error(), "not a Signal message id") {
		t.Errorf("a number alone: %v", err)
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
}

// TestChild: a program in place of signal-cli is started with the daemon's flags
// and ended with Run.
func TestChild(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "signal-cli")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$@\" > "+dir+"/args\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{ID: "signal", Account: account, URL: "http://127.0.0.1:8080", Command: script}, chat.Host{},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.child(ctx) }()
	var args []byte
	for end := time.Now().Add(5 * time.Second); len(args) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		args, _ = os.ReadFile(dir + "/args")
	}

	if want := "-a " + account + " daemon --http 127.0.0.1:8080 --receive-mode manual\n"; string(args) != want {
		t.Errorf("started with %q, want %q", args, want)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("child = %v", err)
	}
}

// TestRunWithChild: Run receives once the daemon that it started answers, and ends with its error
// when the daemon ends.
func TestRunWithChild(t *testing.T) {
	d := newDaemon(t)
	c := testConnector(t, d, chat.Host{Waiting: &d.waiting}, slog.New(slog.DiscardHandler))
	c.o.Command = filepath.Join(t.TempDir(), "signal-cli")
	if err := os.WriteFile(c.o.Command, []byte("#!/bin/sh\nwhile [ ! -e \"$0.end\" ]; do sleep 0.05; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}

	got := make(chan string, 1)
	c.arrived = chat.NewQueue(c.desk, 0, func(p chat.Post) { got <- p.Text })
	done := make(chan error, 1)
	go func() {
		done <- c.Run(t.Context(), func(context.Context, message.Incoming) (message.Receipt, error) { return message.Receipt{}, nil })
	}()

	d.push(envelopeOf("1", "hello"))
	select {
	case text := <-got:
		if text != "hello" {
			t.Errorf("took %q", text)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nothing came")
	}

	if err := os.WriteFile(c.o.Command+".end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "signal-cli exited") {
		t.Errorf("Run = %v", err)
	}
}

func TestValidate(t *testing.T) {
	good := Options{ID: "signal", Account: account, URL: "http://127.0.0.1:1", Allow: []string{ada, "+49151234"}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}

	for _, change := range []func(*Options){
		func(o *Options) { o.ID = "" }, func(o *Options) { o.Account = "0151" }, func(o *Options) { o.URL = "127.0.0.1:1" },
		func(o *Options) { o.URL = "http://u:p@x" }, func(o *Options) { o.Allow = []string{"ada"} },
	} {
		o := good
		change(&o)
		if o.Validate() == nil {
			t.Errorf("%+v is valid, want an error", o)
		}
	}
}
