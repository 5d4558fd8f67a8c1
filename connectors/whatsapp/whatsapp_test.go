package whatsapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine"
	"daycare/engine/disk"
	"daycare/engine/message"
	"daycare/engine/permission"
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
		g := newGraph(t)
		host := chat.Host{Waiting: &g.waiting}
		write := func(ctx context.Context, m connectortest.Message, user, secret string) bool {
			return g.post(ctx, written(user, m.Key, time.Now(), text(m.Text)), secret) == http.StatusOK
		}
		return connectortest.Harness{
			New: func(t *testing.T, log *slog.Logger) engine.Connector { return g.connector(t, Options{}, host, log) },
			Offer: connectortest.OneByOne(func(ctx context.Context, m connectortest.Message) bool {
				return write(ctx, m, ada, secret)
			}),
			Other: func(ctx context.Context, m connectortest.Message) { write(ctx, m, bob, secret) },
			Forge: func(ctx context.Context, m connectortest.Message) { write(ctx, m, ada, "not the secret") },
			Strangers: &connectortest.Strangers{Host: &host, Told: g.answers,
				Write: func(ctx context.Context, m connectortest.Message) { write(ctx, m, stranger, secret) }},
			To:      []message.Address{{Connector: "whatsapp", ChannelID: ada}, {Connector: "whatsapp", ChannelID: bob}},
			Sent:    g.answers,
			Fault:   g.misbehave,
			Revoke:  g.revoke,
			Secrets: []string{token, secret},
		}
	})
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// TestForged: nothing reaches an inbox that Meta did not sign, and nothing twice.
func TestForged(t *testing.T) {
	g, e := newGraph(t), &connectortest.Taker{}
	c := g.connector(t, Options{}, chat.Host{Waiting: &g.waiting}, quiet())
	connectortest.Serve(t, c, e.Deliver)
	for c.Address() == "" {
		time.Sleep(time.Millisecond)
	}
	good := written(ada, "1", time.Now(), text("x"))
	ok := func() *http.Request { return signed(c.Address(), good, secret) }
	change := func(f func(*http.Request)) *http.Request { r := ok(); f(r); return r }
	for _, test := range []struct {
		name string
		r    *http.Request
		want int
	}{
		{"unsigned", change(func(r *http.Request) { r.Header.Del("X-Hub-Signature-256") }), 401},
		{"other secret", signed(c.Address(), good, "x"), 401},
		{"empty secret", signed(c.Address(), good, ""), 401},
		{"the token as secret", signed(c.Address(), good, token), 401},
		{"sha1", change(func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha1=00") }), 401},
		{"not hex", change(func(r *http.Request) { r.Header.Set("X-Hub-Signature-256", "sha256=zz") }), 401},
		{"other body", change(func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{}")), 2
		}), 401},
		{"DELETE", change(func(r *http.Request) { r.Method = http.MethodDelete }), 405},
		{"other path", change(func(r *http.Request) { r.URL.Path = "/" }), 404},
		{"oversized", signed(c.Address(), []byte(strings.Repeat(" ", maxBody+1)), secret), 413},
		{"not JSON", signed(c.Address(), []byte("{"), secret), 400},
		{"old", signed(c.Address(), written(ada, "2", time.Now().Add(-7*24*time.Hour), text("x")), secret), 200},
		{"another number", signed(c.Address(), []byte(strings.Replace(string(good), numberID, "1"+numberID, 1)), secret), 200},
		{"another field", signed(c.Address(), []byte(strings.Replace(string(good), `"messages"`, `"flows"`, 1)), secret), 200},
		{"a stranger", signed(c.Address(), written(stranger, "3", time.Now(), text("x")), secret), 200},
	} {
		if status, said := do(test.r); status != test.want && !(test.want == 413 && status == 0) {
			t.Errorf("%s: status %d %s, want %d", test.name, status, said, test.want)
		}
	}
	if len(e.Taken) != 0 {
		t.Errorf("delivered %+v", e.Taken)
	}

	// What is posted again is not done again: a message by its key, a command by its id, also
	// after a restart.
	host := chat.Host{Waiting: &g.waiting}
	for range 2 {
		c := g.connector(t, Options{}, host, quiet())
		stop := connectortest.Serve(t, c, e.Deliver)
		for range 2 {
			g.post(t.Context(), good, secret)
			g.post(t.Context(), written(ada, "4", time.Now(), text("/help")), secret)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	helps := 0
	for _, m := range g.all() {
		if strings.Contains(textOf(m), "/status") {
			helps++
		}
	}
	if len(e.Taken) != 1 || helps != 1 {
		t.Errorf("delivered %d messages, answered /help %d times, want each once", len(e.Taken), helps)
	}
}

// Meta asks whether the address is ours.
func TestChallenge(t *testing.T) {
	g := newGraph(t)
	c := g.connector(t, Options{}, chat.Host{}, quiet())
	connectortest.Serve(t, c, (&connectortest.Taker{}).Deliver)
	for c.Address() == "" {
		time.Sleep(time.Millisecond)
	}
	verdict, err := c.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	verify := verdict[strings.LastIndex(verdict, " ")+1:]
	for query, want := range map[string]string{"hub.mode=subscribe&hub.challenge=42&hub.verify_token=" + verify: "200 42",
		"hub.mode=subscribe&hub.challenge=42&hub.verify_token=x": "403", "hub.challenge=42&hub.verify_token=" + verify: "403",
		"hub.mode=subscribe&hub.challenge=42": "403"} {
		r, _ := http.NewRequest(http.MethodGet, "http://"+c.Address()+"/whatsapp?"+query, nil)
		if status, said := do(r); !strings.HasPrefix(fmt.Sprint(status, " ", said), want) {
			t.Errorf("%s: %d %s, want %s", query, status, said, want)
		}
	}
}

// What a user sends becomes a message, and is shown as read once it is durable.
func TestWhatAMessageBecomes(t *testing.T) {
	g, e := newGraph(t), &connectortest.Taker{}
	c := g.connector(t, Options{}, chat.Host{Waiting: &g.waiting}, quiet())
	connectortest.Serve(t, c, e.Deliver)
	for i, tt := range []struct{ raw, want string }{
		{`{"type":"text","text":{"body":" hi "},"context":{"id":"wamid.q"}}`, "hi"},
		{`{"type":"text","text":{"body":"old"},"context":{"forwarded":true}}`, "[forwarded]\nold"},
		{`{"type":"location","location":{"latitude":1.5,"longitude":2,"name":"Home"}}`, "[location: Home (1.500000, 2.000000)]"},
		{`{"type":"contacts","contacts":[{"name":{"formatted_name":"Eve"},"phones":[{"phone":"+1"}]}]}`, "[contact: Eve, +1]"},
		{`{"type":"button","button":{"text":"Yes","payload":"p"}}`, "Yes"},
		{`{"type":"reaction","reaction":{"message_id":"wamid.q","emoji":"👍"}}`, "The person reacted to message wamid.q with 👍"},
		{`{"type":"reaction","reaction":{"message_id":"wamid.q"}}`, "The person took their reaction off message wamid.q"},
		{`{"type":"unsupported"}`, "[a message of a kind that WhatsApp does not hand over]"},
		{`{"type":"system"}`, ""},
		{`{"type":"image","image":{"id":"777777","caption":"look"}}`,
			"look\n[the file photo.jpg is missing: files are not accepted here]"},
	} {
		var more map[string]any
		if err := json.Unmarshal([]byte(tt.raw), &more); err != nil {
			t.Fatal(err)
		}
		before := len(e.Taken)
		if status := g.post(t.Context(), written(ada, fmt.Sprint("m", i), time.Now(), more), secret); status != 200 {
			t.Errorf("%s: %d", tt.raw, status)
		}
		got := ""
		if len(e.Taken) > before {
			got = e.Taken[before].Text
		}
		if got != tt.want {
			t.Errorf("%s becomes %q, want %q", tt.raw, got, tt.want)
		}
	}
	if len(g.reads) != len(e.Taken) || g.reads[0]["message_id"] != "wamid.m0" {
		t.Errorf("%d are shown as read, want %d", len(g.reads), len(e.Taken))
	}
	e.Refuse = disk.ErrFull
	if status := g.post(t.Context(), written(ada, "full", time.Now(), text("x")), secret); status != http.StatusServiceUnavailable {
		t.Errorf("on a full disk: %d", status)
	}

	body, err := c.api.open(t.Context(), "777777")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, _ := io.ReadAll(body); string(got) != "content" {
		t.Errorf("file %q", got)
	}
	for _, id := range []string{"888888", "../me"} {
		if _, err := c.api.open(t.Context(), id); err == nil {
			t.Errorf("the file %s was fetched", id)
		}
	}
}

// An answer is not sent again once Meta said that it was sent, also where its own answer was
// lost; files follow the text.
func TestSend(t *testing.T) {
	g, e := newGraph(t), &connectortest.Taker{}
	c := g.connector(t, Options{}, chat.Host{Waiting: &g.waiting}, quiet())
	connectortest.Serve(t, c, e.Deliver)
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("1,2"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := message.Outgoing{ID: "o", Parts: 1, To: message.Address{ChannelID: ada}, ReplyTo: "wamid.1", Text: "**b** [x](https://y)",
		Files: []message.File{{Name: "a.png", MimeType: "image/png", Path: path}, {Name: "a.csv", MimeType: "text/csv", Path: path}}}
	g.misbehave(connectortest.Drop)
	if _, err := c.Send(t.Context(), out); err == nil {
		t.Fatal("Send = nil, though the answer was lost")
	}
	g.misbehave(connectortest.None)
	key := g.all()[0]["biz_opaque_callback_data"]
	status := map[string]any{"statuses": []any{map[string]any{"id": "wamid.out1", "status": "sent", "recipient_id": ada,
		"biz_opaque_callback_data": key}}}
	if got := g.post(t.Context(), event(status), secret); got != 200 {
		t.Fatal(got)
	}
	out.Retry = true
	id, err := c.Send(t.Context(), out)
	all := g.all()
	if err != nil || id != "wamid.out1" || len(all) != 3 || textOf(all[0]) != "*b* x (https://y)" || all[1]["type"] != "image" ||
		all[2]["type"] != "document" || !strings.Contains(g.uploads[0], "1,2") {
		t.Errorf("Send = %q, %v; sent %+v", id, err, all)
	}
	var no *message.NotSent
	out = message.Outgoing{ID: "big", Parts: 1, To: out.To, Files: []message.File{{Name: "film", Path: path, Size: maxDocument + 1}}}
	if _, err := c.Send(t.Context(), out); !errors.As(err, &no) || !no.Final {
		t.Errorf("a file that is too large: %v", err)
	}
	if err := c.React(t.Context(), out.To, "wamid.1", "👍"); err != nil || g.all()[3]["type"] != "reaction" {
		t.Errorf("React = %v", err)
	}
	if err := c.Typing(t.Context(), out.To); err != nil || len(g.reads) != 0 {
		t.Errorf("Typing without a message = %v, %v", err, g.reads)
	}
	g.post(t.Context(), written(ada, "2", time.Now(), text("x")), secret)
	if err := c.Typing(t.Context(), out.To); err != nil || g.reads[1]["typing_indicator"] == nil {
		t.Errorf("Typing = %v, %v", err, g.reads)
	}
}

// A user who did not write for a day gets the template, once, and the answer when they write.
// Without a template whoever reads the error knows what to do.
func TestWindow(t *testing.T) {
	g, e := newGraph(t), &connectortest.Taker{}
	out := message.Outgoing{ID: "o", Parts: 1, To: message.Address{ChannelID: ada}, Text: "news"}
	send := func(c *Connector) *message.NotSent {
		t.Helper()
		var no *message.NotSent
		if _, err := c.Send(t.Context(), out); err != nil && !errors.As(err, &no) {
			t.Fatal(err)
		}
		return no
	}
	g.refuse = fmt.Sprint(windowClosed)
	c := g.connector(t, Options{}, chat.Host{}, quiet())
	if no := send(c); no == nil || !no.Final || !strings.Contains(no.Error(), "24 hours of their last message (131047)\nset template") {
		t.Errorf("without a template: %v", no)
	}

	host := chat.Host{Waiting: &g.waiting}
	template := Options{Template: Template{Name: "news"}}
	c = g.connector(t, template, host, quiet())
	for range 2 {
		if no := send(c); no == nil || no.Final || no.After != afterAsking {
			t.Errorf("with a template: %v", no)
		}
		c = g.connector(t, template, host, quiet()) // and after a restart
	}
	if all := g.all(); len(all) != 1 || all[0]["type"] != "template" {
		t.Errorf("sent %+v, want the template once", all)
	}
	g.refuse = ""
	stop := connectortest.Serve(t, c, e.Deliver)
	g.post(t.Context(), written(ada, "1", time.Now(), text("hello")), secret)
	if no := send(c); no != nil || textOf(g.all()[1]) != "news" {
		t.Errorf("they wrote, and the answer is %v", no)
	}

	// Meta says later that it was not delivered: the agent hears why.
	failed := map[string]any{"statuses": []any{map[string]any{"id": "wamid.out2", "status": "failed", "recipient_id": ada,
		"errors": []any{map[string]any{"code": windowClosed, "title": "Re-engagement message"}}}}}
	for range 2 {
		g.post(t.Context(), event(failed), secret)
	}
	if len(e.Taken) != 2 || !e.Taken[1].Silent || !strings.Contains(e.Taken[1].Text, "24 hours") || len(g.all()) != 3 ||
		g.all()[2]["type"] != "template" {
		t.Errorf("delivered %+v, sent %d", e.Taken, len(g.all()))
	}
	if no := send(c); no == nil || no.Final {
		t.Errorf("Send after that = %v", no)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// A token that is revoked ends the connector with what to do.
func TestRevoked(t *testing.T) {
	g := newGraph(t)
	c := g.connector(t, Options{}, chat.Host{}, quiet())
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), (&connectortest.Taker{}).Deliver) }()
	for c.Address() == "" {
		time.Sleep(time.Millisecond)
	}
	g.refuse = "190"
	if _, err := c.Send(t.Context(), message.Outgoing{ID: "o", Parts: 1, To: message.Address{ChannelID: ada}, Text: "x"}); !code(err,
		badToken) {
		t.Errorf("Send = %v", err)
	}
	for range 2 {
		if err := <-done; err == nil || !strings.Contains(err.Error(), "daycare auth set whatsapp") || strings.Contains(err.Error(),
			token) {
			t.Errorf("Run = %v", err)
		}
		done <- c.Run(t.Context(), (&connectortest.Taker{}).Deliver) // the engine begins again
	}
	if _, err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "auth set whatsapp") {
		t.Errorf("Probe = %v", err)
	}
}

type asks struct {
	pending []permission.Pending
	decided []string
}

func (a *asks) List() []permission.Pending { return a.pending }

func (a *asks) Decide(_ context.Context, token string, d permission.Decision, by string) (*permission.Pending, error) {
	a.decided = append(a.decided, token+" "+string(d)+" "+by)
	return nil, nil
}

// Approvals have buttons, or a list where WhatsApp takes no more of them.
func TestButtons(t *testing.T) {
	g, e := newGraph(t), &connectortest.Taker{}
	a := &asks{pending: []permission.Pending{{Token: "abcdefghijkl", Agent: "agent", Owner: permission.Owner{Connector: "whatsapp",
		UserID: ada}}}}
	c := g.connector(t, Options{}, chat.Host{Waiting: &g.waiting, Asks: a}, quiet())
	connectortest.Serve(t, c, e.Deliver)
	at := message.Address{ChannelID: ada}
	if id, err := c.Card(t.Context(), at, "", "**ask**", []chat.Choice{{Label: "Once", Data: "once x"}, {Label: "Deny",
		Data: "deny x"}}); err != nil || id == "" {
		t.Fatal(id, err)
	}
	long := strings.Repeat("é", maxBodyText+1)
	if _, err := c.Card(t.Context(), at, "", long, []chat.Choice{{Label: strings.Repeat("wide", 10), Data: "once x"}}); err != nil {
		t.Fatal(err)
	}
	if err := c.Settle(t.Context(), at, "wamid.out1", "ask\n\n**Denied.**"); err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(g.all())
	for _, want := range []string{`"type":"button"`, `{"reply":{"id":"once x","title":"Once"},"type":"reply"}`, `"type":"list"`,
		`"title":"widewidewidewidewidewid…"`, long, `"body":"*Denied.*"`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("sent %s, want %s", got, want)
		}
	}

	press := map[string]any{"type": "interactive", "interactive": map[string]any{"type": "button_reply",
		"button_reply": map[string]string{"id": "once abcdefghijkl"}}}
	for range 2 {
		g.post(t.Context(), written(ada, "press", time.Now(), press), secret)
	}
	g.post(t.Context(), written(stranger, "press2", time.Now(), press), secret)
	if !slices.Equal(a.decided, []string{"abcdefghijkl once whatsapp:" + ada}) {
		t.Errorf("decided %v", a.decided)
	}
}

// 10,000 messages that Meta posts after a night come in its order, each once.
func TestNight(t *testing.T) {
	g, e := newGraph(t), &connectortest.Taker{}
	connectortest.Serve(t, g.connector(t, Options{}, chat.Host{Waiting: &g.waiting}, quiet()), e.Deliver)
	const night, each = 10_000, 100
	for first := 0; first < night; first += each {
		var all []any
		for i := first; i < first+each; i++ {
			all = append(all, map[string]any{"from": ada, "id": fmt.Sprint("wamid.", i), "timestamp": fmt.Sprint(time.Now().Unix()),
				"type": "text", "text": map[string]string{"body": fmt.Sprint(i)}})
		}
		if status := g.post(t.Context(), event(map[string]any{"messages": all}), secret); status != 200 {
			t.Fatal(status)
		}
	}
	for i, in := range e.Taken {
		if in.Text != fmt.Sprint(i) {
			t.Fatalf("message %s came as number %d", in.Text, i)
		}
	}
	if len(e.Taken) != night {
		t.Errorf("%d messages, want %d", len(e.Taken), night)
	}
}

func TestSettings(t *testing.T) {
	good := Options{Settings: chat.Settings{ID: "w"}, Number: numberID, Listen: "127.0.0.1:1"}
	for _, change := range []func(*Options){func(*Options) {}, func(o *Options) {
		o.Allow, o.Template.Name = []string{ada},
			"hello_world"
	}} {
		o := good
		if change(&o); o.Validate() != nil {
			t.Errorf("%+v: %v", o, o.Validate())
		}
	}
	for _, change := range []func(*Options){func(o *Options) { o.ID = "" }, func(o *Options) { o.Number = "+49 151" },
		func(o *Options) { o.Listen = "x" },
		func(o *Options) { o.Allow = []string{"+4915100000001"} }, func(o *Options) { o.Template.Language = "de" },
		func(o *Options) { o.Template.Name = "No" }, func(o *Options) { o.BaseURL = "ftp://x" }} {
		o := good
		if change(&o); o.Validate() == nil {
			t.Errorf("%+v is valid, want an error", o)
		}
	}
	for _, tt := range []struct{ token, secret, want string }{{"", "s", "auth set w\n"}, {"t", "", "auth set w-secret\n"}} {
		if _, err := New(good, tt.token, tt.secret, chat.Host{}, quiet()); err == nil || !strings.Contains(err.Error()+"\n", tt.want) {
			t.Errorf("New = %v, want %q", err, tt.want)
		}
	}
}
