package slack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

var (
	_ engine.Connector     = (*Connector)(nil)
	_ engine.Splitter      = (*Connector)(nil)
	_ engine.Reactor       = (*Connector)(nil)
	_ chat.Platform        = (*Connector)(nil)
	_ chat.CardSender      = (*Connector)(nil)
	_ chat.DirectMessenger = (*Connector)(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSocketMode(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness {
		s := newWorkspace(t)
		h := harness(s, "")
		h.Offer = connectortest.OneByOne(func(ctx context.Context, m connectortest.Message) bool {
			return s.envelope(ctx, "events_api", said(m.Key, ada, m.Text))
		})
		h.Other = func(ctx context.Context, m connectortest.Message) {
			s.envelope(ctx, "events_api", said(m.Key, bob, m.Text))
		}
		h.Forge = func(ctx context.Context, m connectortest.Message) {
			s.envelope(ctx, "events_api", said(m.Key, "U0STRANGER", m.Text))
		}
		h.Strangers.Write, h.Revoke = h.Forge, s.revoke

		return h
	})
}

func TestPostedEvents(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness {
		s := newWorkspace(t)
		h := harness(s, "127.0.0.1:0")
		var newest *Connector
		made := h.New
		h.New = func(t *testing.T, log *slog.Logger) engine.Connector {
			newest = made(t, log).(*Connector)
			return newest
		}
		post := func(ctx context.Context, m connectortest.Message, user, secret string) int {
			for newest.Address() == "" && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			body, _ := json.Marshal(said(m.Key, user, m.Text))
			status, _ := do(signed(newest.Address(), "application/json", body, time.Now(), secret).WithContext(ctx))
			return status
		}
		h.Offer = connectortest.OneByOne(func(ctx context.Context, m connectortest.Message) bool {
			return post(ctx, m, ada, canaries.Signing) == http.StatusOK
		})
		h.Forge = func(ctx context.Context, m connectortest.Message) { post(ctx, m, ada, "not the secret") }
		h.Other = func(ctx context.Context, m connectortest.Message) { post(ctx, m, bob, canaries.Signing) }
		h.Strangers.Write = func(ctx context.Context, m connectortest.Message) { post(ctx, m, "U0STRANGER", canaries.Signing) }

		return h
	})
}

func harness(s *workspace, listen string) connectortest.Harness {
	host := chat.Host{Waiting: &s.waiting}
	return connectortest.Harness{
		New: func(t *testing.T, log *slog.Logger) engine.Connector {
			return testConnector(t, s, Options{Listen: listen}, host, log)
		},
		Strangers: &connectortest.Strangers{Host: &host, Told: s.sent},
		To:        []message.Address{{Connector: "slack", ChannelID: "D1"}, {Connector: "slack", ChannelID: "C1", ThreadID: "1.1"}},
		Sent:      s.sent,
		Shown:     s.visible,
		Fault:     s.misbehave,
		Secrets:   []string{canaries.Bot, canaries.App, canaries.Signing, "canary-ticket"},
	}
}

func testConnector(t *testing.T, s *workspace, o Options, host chat.Host, log *slog.Logger) *Connector {
	t.Helper()
	o.ID, o.BaseURL, o.Allow = "slack", s.URL, []string{ada, bob}
	c, err := New(o, canaries, host, log)
	if err != nil {
		t.Fatal(err)
	}
	c.pause, c.hook.ingress.Grace = time.Millisecond, 100*time.Millisecond

	return c
}

func TestEvents(t *testing.T) {
	s := newWorkspace(t)
	c := testConnector(t, s, Options{}, chat.Host{Waiting: &s.waiting}, slog.New(slog.DiscardHandler))
	c.me = "UBOT00001"
	read := func(raw string) (chat.Post, bool) {
		var e event
		if err := json.Unmarshal([]byte(raw), &e); err != nil {
			t.Fatal(err)
		}
		return c.event(e)
	}
	p, ok := read(`{"type":"app_mention","channel":"C1","user":"U1","ts":"2.2","text":"<@UBOT00001> see <https://x.example|here> ` +
		`&lt;b&gt; <@U9|eve> <#C2|dev>"}`)
	if !ok || p.Text != "see here (https://x.example) <b> @eve #dev" || !p.Addressed || !p.Group ||
		p.From.ThreadID != "2.2" || p.Key != "C1/2.2" {
		t.Errorf("a mention is %+v", p)
	}
	if q, _ := read(`{"type":"message","channel":"C1","user":"U1","ts":"2.2","text":"<@UBOT00001> x"}`); q.Key != p.Key {
		t.Errorf("keys %q and %q: a mention comes as two events and is one message", q.Key, p.Key)
	}
	if p, ok := read(`{"type":"message","channel":"C1","user":"U1","ts":"3","thread_ts":"2.2","text":"chatter"}`); !ok || p.Addressed ||
		p.From.ThreadID != "2.2" {
		t.Errorf("chatter is %+v", p)
	}
	if p, ok := read(`{"type":"message","subtype":"message_changed","channel":"D1","event_ts":"9","message":{"user":"U1","ts":"3",` +
		`"text":"better"}}`); !ok || p.Amends != "3" || p.Text != "better" {
		t.Errorf("an edit is %+v", p)
	}
	if p, ok := read(`{"type":"reaction_added","user":"U1","reaction":"heart","event_ts":"9","item":{"channel":"D1","ts":"3"}}`); !ok ||
		p.Text != "The person reacted to message 3 with :heart:" || p.Group {
		t.Errorf("a reaction is %+v", p)
	}

	for _, raw := range []string{
		`{"type":"message","channel":"D1","user":"UBOT00001","ts":"1","text":"own"}`,
		`{"type":"message","channel":"D1","user":"U1","bot_id":"B1","ts":"1","text":"bot"}`,
		`{"type":"message","subtype":"channel_join","channel":"C1","user":"U1","ts":"1"}`,
		`{"type":"user_change","user":"U1"}`,
	} {
		if p, ok := read(raw); ok {
			t.Errorf("%s is taken as %+v", raw, p)
		}
	}

	p, _ = read(`{"type":"message","subtype":"file_share","channel":"D1","user":"U1","ts":"4","files":[{"name":"a.txt","size":7,` +
		`"url_private_download":"` + s.URL + `/files/a.txt"},{"name":"b","url_private_download":"https://evil.example/x"}]}`)
	body, err := p.Files[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(body); string(got) != "content" {
		t.Errorf("file %q", got)
	}
	if _, err := p.Files[1].Open(t.Context()); err == nil || !strings.Contains(err.Error(), "not Slack's") {
		t.Errorf("a file elsewhere: %v, want the token kept at home", err)
	}
}

func TestSend(t *testing.T) {
	s := newWorkspace(t)
	c := testConnector(t, s, Options{}, chat.Host{Waiting: &s.waiting}, slog.New(slog.DiscardHandler))
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("1,2"), 0o600); err != nil {
		t.Fatal(err)
	}

	out := message.Outgoing{ID: "o", Parts: 1, To: message.Address{Connector: "slack", ChannelID: "C1", ThreadID: "2.2"}, Text: "**b** <x>",
		Files: []message.File{{Name: "a.csv", Path: path}}}
	if id, err := c.Send(t.Context(), out); err != nil || id == "" {
		t.Fatalf("Send = %q, %v", id, err)
	}
	if p := s.last(); p.Text != "*b* &lt;x&gt;" || p.Thread != "2.2" || s.upload != "1,2" {
		t.Errorf("sent %+v with %q", p, s.upload)
	}

	id, err := c.Card(t.Context(), out.To, "", "**ask**", []chat.Choice{{Label: "Once", Data: "once tok"}})
	if p := s.last(); err != nil || id == "" || len(p.Blocks) != 2 || p.Blocks[1].Elements[0].Value != "once tok" {
		t.Errorf("card %+v, %q, %v", p, id, err)
	}
	if err := c.Settle(t.Context(), out.To, id, "**done**"); err != nil || s.last().TS != id {
		t.Errorf("settled %+v, %v", s.last(), err)
	}
}

func TestReact(t *testing.T) {
	s := newWorkspace(t)
	c := testConnector(t, s, Options{}, chat.Host{Waiting: &s.waiting}, slog.New(slog.DiscardHandler))
	to := message.Address{Connector: "slack", ChannelID: "C1"}
	for _, emoji := range []string{"👍", ":party-parrot:", "❤\uFE0F", "👍"} { // the last as after a crash: it is there already
		if err := c.React(t.Context(), to, "2.2", emoji); err != nil {
			t.Errorf("%s: %v", emoji, err)
		}
	}

	if got := strings.Join(s.reactions, " "); got != "C1/2.2/+1 C1/2.2/party-parrot C1/2.2/heart" {
		t.Errorf("reactions %s", got)
	}
	for emoji, want := range map[string]string{"🦖": "does not know the name", "nope": "no emoji :nope:"} {
		if err := c.React(t.Context(), to, "2.2", emoji); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", emoji, err, want)
		}
	}
}

// postedTo runs a connector that takes posted events.
func postedTo(t *testing.T, deliver message.Deliver) (s *workspace, c *Connector) {
	t.Helper()
	s = newWorkspace(t)
	c = testConnector(t, s, Options{Listen: "127.0.0.1:0"}, chat.Host{Waiting: &s.waiting}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, deliver) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})

	for c.Address() == "" {
		time.Sleep(time.Millisecond)
	}
	return s, c
}

// TestForged: nothing reaches an inbox that Slack did not post.
func TestForged(t *testing.T) {
	_, c := postedTo(t, func(context.Context, message.Incoming) (message.Receipt, error) {
		t.Error("something forged was delivered")
		return message.Receipt{}, nil
	})
	good, _ := json.Marshal(said("1", ada, "x"))
	stranger, _ := json.Marshal(said("1", "U0STRANGER", "x"))
	now := time.Now()
	ok := func() *http.Request { return signed(c.Address(), "application/json", good, now, canaries.Signing) }
	change := func(f func(*http.Request)) *http.Request { r := ok(); f(r); return r }
	for _, test := range []struct {
		name string
		r    *http.Request
		want int
	}{
		{"unsigned", change(func(r *http.Request) { r.Header.Del("X-Slack-Signature") }), 401},
		{"no timestamp", change(func(r *http.Request) { r.Header.Del("X-Slack-Request-Timestamp") }), 401},
		{"other secret", signed(c.Address(), "application/json", good, now, "x"), 401},
		{"empty secret", signed(c.Address(), "application/json", good, now, ""), 401},
		{"the bot token as secret", signed(c.Address(), "application/json", good, now, canaries.Bot), 401},
		{"truncated", change(func(r *http.Request) {
			h := r.Header.Get("X-Slack-Signature")
			r.Header.Set("X-Slack-Signature", h[:len(h)-2])
		}), 401},
		{"version v1", change(func(r *http.Request) {
			r.Header.Set("X-Slack-Signature",
				"v1"+r.Header.Get("X-Slack-Signature")[2:])
		}), 401},
		{"not hex", change(func(r *http.Request) { r.Header.Set("X-Slack-Signature", "v0=zz") }), 401},
		{"other body", change(func(r *http.Request) {
			r.Body = io.NopCloser(strings.NewReader(string(stranger)))
			r.ContentLength = int64(len(stranger))
		}), 401},
		{"other timestamp", change(func(r *http.Request) { r.Header.Set("X-Slack-Request-Timestamp", fmt.Sprint(now.Unix()+1)) }), 401},
		{"stale", signed(c.Address(), "application/json", good, now.Add(-6*time.Minute), canaries.Signing), 403},
		{"from the future", signed(c.Address(), "application/json", good, now.Add(6*time.Minute), canaries.Signing), 403},
		{"GET", change(func(r *http.Request) { r.Method = http.MethodGet }), 405},
		{"other path", change(func(r *http.Request) { r.URL.Path = "/" }), 404},
		{"oversized", signed(c.Address(), "application/json", []byte(strings.Repeat(" ", maxBody+1)), now, canaries.Signing), 413},
		{"not JSON", signed(c.Address(), "application/json", []byte("{"), now, canaries.Signing), 400},
		{"an empty form", signed(c.Address(), "application/x-www-form-urlencoded", []byte("a=b"), now, canaries.Signing), 400},
		{"a form that is none", signed(c.Address(), "application/x-www-form-urlencoded", []byte("%zz"), now, canaries.Signing), 400},
		{"a form that is half one", signed(c.Address(), "application/x-www-form-urlencoded", []byte("command=%2Fx&text=%zz"), now,
			canaries.Signing), 400},
		{"a form without JSON", signed(c.Address(), "application/x-www-form-urlencoded", []byte("payload=x"), now, canaries.Signing), 400},
		{"oversized, in chunks", func() *http.Request {
			r := signed(c.Address(), "application/json", []byte(strings.Repeat(" ", maxBody+1)), now, canaries.Signing)
			r.ContentLength = -1
			return r
		}(), 413},
		{"as large as may be", signed(c.Address(), "application/json", []byte(strings.Repeat(" ", maxBody)), now, canaries.Signing), 400},
		{"not stale yet", signed(c.Address(), "application/json", stranger, now.Add(-4*time.Minute), canaries.Signing), 200},
		{"a stranger, really of Slack", signed(c.Address(), "application/json", stranger, now, canaries.Signing), 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			if status, body := do(test.r); status != test.want && !(test.want == 413 && status == 0) {
				t.Errorf("status %d %s, want %d", status, body, test.want)
			}
		})
	}
}

func TestPosted(t *testing.T) {
	var refuse error
	var taken []message.Incoming
	s, c := postedTo(t, func(_ context.Context, in message.Incoming) (message.Receipt, error) {
		if refuse == nil {
			taken = append(taken, in)
		}
		return message.Receipt{}, refuse
	})
	post := func(media string, body string) (int, string) {
		return do(signed(c.Address(), media, []byte(body), time.Now(), canaries.Signing))
	}
	if status, body := post("application/json", `{"type":"url_verification","challenge":"abc"}`); status != 200 || body != "abc" {
		t.Errorf("challenge: %d %q", status, body)
	}

	const form = "application/x-www-form-urlencoded"
	if status, _ := post(form, "command=%2Fdaycare&text=reset&user_id="+ada+"&channel_id=D1&trigger_id=t1"); status != 200 ||
		len(taken) != 1 || taken[0].Kind != message.Reset {
		t.Errorf("slash command: %d, delivered %+v", status, taken)
	}
	pressed := url.QueryEscape(`{"type":"block_actions","user":{"id":"` + ada +
		`"},"channel":{"id":"D1"},"actions":[{"value":"once abcdefgh"}]}`)
	if status, _ := post(form, "payload="+pressed); status != 200 || s.calls["chat.postEphemeral"] != 1 {
		t.Errorf("button: %d, answered %d times", status, s.calls["chat.postEphemeral"])
	}

	for _, test := range []struct {
		err  error
		want int
	}{{disk.ErrFull, 503}, {inbox.ErrFull, 200}} {
		refuse = test.err
		body, _ := json.Marshal(said("5", ada, "x"))
		if status, _ := post("application/json", string(body)); status != test.want {
			t.Errorf("%v: status %d, want %d", test.err, status, test.want)
		}
	}
}

// TestRefresh: Slack renews sockets every few hours; nothing is lost between two.
func TestRefresh(t *testing.T) {
	s := newWorkspace(t)
	c := testConnector(t, s, Options{}, chat.Host{Waiting: &s.waiting}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	running, stop := context.WithCancel(t.Context())
	go func() {
		done <- c.Run(running, func(context.Context, message.Incoming) (message.Receipt, error) { return message.Receipt{}, nil })
	}()

	for i := range 3 {
		if !s.envelope(ctx, "events_api", said(fmt.Sprint(i), ada, "x")) {
			t.Fatal("not acknowledged")
		}
		s.mu.Lock()
		s.conn.Write(ctx, 1, []byte(`{"type":"disconnect","reason":"refresh_requested"}`))
		s.mu.Unlock()
	}

	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestValidate(t *testing.T) {
	id := chat.Settings{ID: "slack"}
	for _, o := range []Options{{Settings: id}, {Settings: id, Listen: ":8788", BaseURL: "http://x"},
		{Settings: id, BaseURL: "https://x/api"}} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, o := range []Options{{}, {Settings: id, Listen: "x"}, {Settings: id, Listen: "x:"}, {Settings: id, BaseURL: "ftp://x"},
		{Settings: id, BaseURL: "http:///x"}, {Settings: id, BaseURL: ":"},
		{Settings: chat.Settings{ID: "slack", Allow: []string{"u024be7lh"}}}} {
		if o.Validate() == nil {
			t.Errorf("%+v is valid, want an error", o)
		}
	}
}

func TestProbeAndSecrets(t *testing.T) {
	s := newWorkspace(t)
	c := testConnector(t, s, Options{}, chat.Host{Waiting: &s.waiting}, slog.New(slog.DiscardHandler))
	if verdict, err := c.Probe(t.Context()); err != nil || verdict != "@bot is in Test; Socket Mode is open" {
		t.Errorf("Probe = %q, %v", verdict, err)
	}
	if verdict, err := testConnector(t, s, Options{Listen: "127.0.0.1:8788"}, chat.Host{}, c.log).Probe(t.Context()); err != nil ||
		verdict != "@bot is in Test; events are posted to 127.0.0.1:8788" {
		t.Errorf("Probe of posted events = %q, %v", verdict, err)
	}
	c.api.secrets.Bot = "wrong"
	if _, err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "auth.test: invalid_auth") {
		t.Errorf("Probe with another token = %v", err)
	}
	c.api.secrets.Bot = canaries.Bot
	c.api.secrets.App = "wrong"
	if _, err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "auth set slack-app") {
		t.Errorf("Probe = %v, want what to do", err)
	}

	id := chat.Settings{ID: "slack"}
	for _, test := range []struct {
		o    Options
		s    Secrets
		want string
	}{
		{Options{Settings: id}, Secrets{}, "auth set slack"}, {Options{Settings: id}, Secrets{App: "a"}, "auth set slack"},
		{Options{Settings: id}, Secrets{Bot: "b"}, "auth set slack-app"},
		{Options{Settings: id, Listen: "127.0.0.1:1"}, Secrets{Bot: "b", App: "a"}, "auth set slack-signing"},
		{Options{Settings: chat.Settings{ID: "slack", Allow: []string{"ada"}}}, canaries, "member id"},
		{Options{Settings: id, Listen: "x"}, canaries, "HOST:PORT"},
	} {
		if _, err := New(test.o, test.s, chat.Host{}, slog.New(slog.DiscardHandler)); err == nil ||
			!strings.Contains(err.Error()+"\n", test.want+"\n") && !strings.Contains(err.Error(), test.want+" ") {
			t.Errorf("New(%+v) = %v, want %q", test.o, err, test.want)
		}
	}
}
