package mattermost

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
	_ chat.CardSender      = (*withButtons)(nil)
	_ chat.DirectMessenger = (*withButtons)(nil)
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConnector(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness {
		s := newServer(t)
		host := chat.Host{Waiting: &s.waiting}
		var newest atomic.Pointer[Connector]
		write := func(ctx context.Context, m connectortest.Message, user string) bool {
			p := s.write(m.Key, private(user), user, m.Text)
			for ctx.Err() == nil {
				if newest.Load().backlog.Taken(private(user), place(p.Created, 0)) {
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
			To: []message.Address{{Connector: "mattermost", ChannelID: private(ada)},
				{Connector: "mattermost", ChannelID: town, ThreadID: id("root")}},
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
	o.ID, o.URL, o.Allow = "mattermost", s.URL, []string{ada, bob}
	c, err := New(o, token, host, log)
	if err != nil {
		t.Fatal(err)
	}
	c.pause = time.Millisecond
	c.backlog = c.newBacklog(host.Waiting)

	return c
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// After a night without daycare, 10,000 posts of two channels come in their order, each once,
// a page at a time, though the server says at once only what is newest.
func TestNight(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	host := chat.Host{Waiting: &s.waiting}
	stop := connectortest.Serve(t, testConnector(t, s, Options{}, host, quiet()), e.Deliver)
	s.connected(t)
	s.write("before", private(ada), ada, "before")
	e.Until(t, 1)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	s.cut()
	const night = 10_000
	for i := range night / 2 {
		s.write(fmt.Sprint("a", i), private(ada), ada, fmt.Sprint("a ", i))
		s.write(fmt.Sprint("g", i), town, bob, fmt.Sprint("@bot g ", i))
	}
	connectortest.Serve(t, testConnector(t, s, Options{}, host, quiet()), e.Deliver)
	next := map[string]int{}
	for _, text := range e.Until(t, night+1)[1:] {
		chat, n, _ := strings.Cut(text, " ")
		if want := fmt.Sprint(next[chat]); n != want {
			t.Fatalf("message %s of chat %s came where %s was next", n, chat, want)
		}
		next[chat]++
	}
	if s.handed > 5*night {
		t.Errorf("%d posts were fetched for %d", s.handed, night)
	}
}

// A connection whose pings are answered stays; one without answers is ended, for the engine to make another.
func TestPings(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	c := testConnector(t, s, Options{}, chat.Host{Waiting: &s.waiting}, quiet())
	c.pings.every = time.Millisecond
	stop := connectortest.Serve(t, c, e.Deliver)
	s.connected(t)
	for end := time.Now().Add(time.Minute); s.pinged.Load() < 5; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d pings came", s.pinged.Load())
		}
	}
	s.write("1", private(ada), ada, "1")
	e.Until(t, 1)
	if err := stop(); err != nil {
		t.Errorf("Run = %v", err)
	}

	deaf := newServer(t)
	deaf.deaf = true
	c = testConnector(t, deaf, Options{}, chat.Host{Waiting: &deaf.waiting}, quiet())
	c.pings = pings{every: time.Millisecond, within: 20 * time.Millisecond}
	if err := c.Run(t.Context(), e.Deliver); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("Run = %v", err)
	}
}

// A websocket that breaks loses nothing, and neither does one that is refused.
func TestReconnect(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	c := testConnector(t, s, Options{}, chat.Host{Waiting: &s.waiting}, quiet())
	done := make(chan error, 1)
	go func() { done <- c.Run(t.Context(), e.Deliver) }()
	s.connected(t)
	s.write("1", private(ada), ada, "1")
	e.Until(t, 1)
	s.cut()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "websocket ended") {
		t.Errorf("Run = %v", err)
	}
	s.write("2", private(ada), ada, "2")
	stop := connectortest.Serve(t, c, e.Deliver)
	if got := e.Until(t, 2); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("taken are %q", got)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}

	c.api.token = id("other")
	if err := c.Run(t.Context(), e.Deliver); err == nil || !strings.Contains(err.Error(), "daycare auth set mattermost") ||
		strings.Contains(err.Error(), token) {
		t.Errorf("Run with another token = %v", err)
	}
}

// What the server tells becomes a message, or none.
func TestWhatAnEventBecomes(t *testing.T) {
	s := newServer(t)
	for _, tt := range []struct {
		event string
		p     any
		want  string // thread, group, addressed, note, text; "": none
	}{
		{"posted", post{Channel: private(ada), User: ada, Text: " hi "}, `"" false false false hi`},
		{"posted", post{Channel: private(ada), User: ada, Root: "r", Text: "hi"}, `"r" false false false hi`},
		{"posted", post{Channel: town, User: ada, Text: "hi"}, `"p" true false false hi`},
		{"posted", post{Channel: town, User: ada, Text: "@Bot, hi"}, `"p" true true false hi`},
		{"posted", post{Channel: town, User: ada, Text: "hi @bot."}, `"p" true true false hi @bot.`},
		{"posted", post{Channel: town, User: ada, Text: "hi @bot9 and 0@bot"}, `"p" true false false hi @bot9 and 0@bot`},
		{"posted", post{Channel: town, User: ada, Text: "hi @bottle and a@bot"}, `"p" true false false hi @bottle and a@bot`},
		{"posted", post{Channel: town, User: ada, Type: "system_join_channel"}, ``},
		{"posted", post{Channel: town, User: ada, stamps: stamps{Deleted: 1}}, ``},
		{"posted", post{Channel: town, User: ada, Props: map[string]any{"from_webhook": "true"}}, ``},
		{"posted", post{Channel: private(ada), User: me, Text: "own"}, ``},
		{"post_edited", post{Channel: private(ada), User: ada, Text: "new", stamps: stamps{Edited: 5}},
			"\"\" false false false new; amends p"},
		{"post_edited", post{Channel: private(ada), User: ada, Text: "preview"}, ``},
		{"post_edited", post{Channel: private(ada), User: stranger, Text: "new", stamps: stamps{Edited: 5}}, ``},
		{"post_deleted", post{Channel: private(ada), User: ada, Text: "old", stamps: stamps{Deleted: 5}},
			"\"\" false false false ; amends p; deleted"},
		{"post_deleted", post{Channel: town, User: ada, Root: "r", Text: "@bot old", stamps: stamps{Deleted: 5}},
			"\"r\" true true false ; amends p; deleted"},
		{"post_deleted", post{Channel: private(ada), User: stranger, Text: "old", stamps: stamps{Deleted: 5}}, ``},
		{"reaction_added", reaction{Channel: private(ada), User: ada, Post: "p", Emoji: "+1"},
			`"" false false true The person reacted to message p with :+1:`},
	} {
		c := testConnector(t, s, Options{}, chat.Host{}, quiet())
		c.rooms.setSelf(user{ID: me, Name: "bot"})
		c.rooms.kinds = map[string]string{town: "O", private(ada): "D"}
		e := event{Event: tt.event}
		switch p := tt.p.(type) {
		case post:
			p.ID = "p"
			e.post = p
		case reaction:
			e.reaction, e.post.Channel = p, p.Channel
		}
		p, ok, err := c.in.read(t.Context(), e)
		got := fmt.Sprintf("%q %v %v %v %s", p.From.ThreadID, p.Group, p.Addressed, p.Note, p.Text)
		if p.Amends != "" {
			got += "; amends " + p.Amends
		}
		if p.Deleted {
			got += "; deleted"
		}
		if err != nil || ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%s %+v becomes %q (%v, %v), want %q", tt.event, tt.p, got, ok, err, tt.want)
		}
	}
}

func TestFiles(t *testing.T) {
	s := newServer(t)
	c := testConnector(t, s, Options{}, chat.Host{}, quiet())
	files, err := c.in.files(t.Context(), post{Meta: &metadata{[]file{{ID: id("f"), Name: "a.txt"}, {ID: "../users/me"}}}})
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	body, err := files[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, _ := io.ReadAll(body); string(got) != "content" {
		t.Errorf("file %q", got)
	}
	if _, err := files[1].Open(t.Context()); err == nil {
		t.Error("a file with a path as its id was fetched")
	}
}

// A part is posted once, also if its answer is lost and daycare begins again; nobody is
// notified by it; and a server that keeps nothing is asked again.
func TestSend(t *testing.T) {
	s := newServer(t)
	c := testConnector(t, s, Options{}, chat.Host{}, quiet())
	c.rooms.setSelf(user{ID: me})
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("1,2"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := message.Outgoing{ID: "o", Parts: 1, To: message.Address{ChannelID: town, ThreadID: "root"},
		Text: "@Channel **b** ![x](https://e.example/)"}
	for range 7 {
		out.Files = append(out.Files, message.File{Name: "a.csv", Path: path})
	}
	s.misbehave(connectortest.Drop)
	if _, err := c.Send(t.Context(), out); err == nil {
		t.Fatal("Send = nil, though the answer was lost")
	}
	s.misbehave(connectortest.None)
	c = testConnector(t, s, Options{}, chat.Host{}, quiet()) // a new process
	c.rooms.setSelf(user{ID: me})
	out.Retry = true
	got, err := c.Send(t.Context(), out)
	if err != nil || got == "" || len(s.posts) != 2 || len(s.posts[0].FileIDs) != 5 || len(s.posts[1].FileIDs) != 2 {
		t.Fatalf("Send = %q, %v; posted %+v", got, err, s.posts)
	}
	if p := s.posts[0]; p.Text != "@\u200bChannel **b** [x](https://e.example/)" || p.Root != "root" || s.uploads[0] != "1,2" {
		t.Errorf("posted %+v", p)
	}

	s.misbehave(connectortest.Forget)
	if _, err := c.Send(t.Context(), message.Outgoing{ID: "f", Parts: 1, To: out.To, Text: "x"}); err == nil {
		t.Error("a post that was not kept counts as sent")
	}
	s.misbehave(connectortest.None)
	to, _ := c.Direct(ada)
	if err := c.Say(t.Context(), to, "", "hi"); err != nil || s.posts[len(s.posts)-1].Channel != private(ada) {
		t.Errorf("said %+v, %v", s.posts, err)
	}
	if err := c.React(t.Context(), to, "p", "👍"); err != nil || !strings.Contains(s.bodies[len(s.bodies)-1], `"emoji_name":"+1"`) {
		t.Errorf("React = %v", err)
	}
	if err := c.React(t.Context(), to, "p", "🦖"); err == nil {
		t.Error("an emoji without a name was sent")
	}
	if err := c.Typing(t.Context(), out.To); err != nil || s.calls[len(s.calls)-1] != "POST /users/me/typing" {
		t.Errorf("Typing = %v", err)
	}
	var no *message.NotSent
	if err := judge(&apiError{Status: http.StatusBadRequest, ID: "api.post.deduplicate_create_post.pending"}); errors.As(err, &no) {
		t.Errorf("a first try that is still at work: %v", err)
	}
}

// Buttons are posted with a secret that users do not see. Nothing else presses them.
func TestButtons(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	c := testConnector(t, s, Options{Buttons: Buttons{Listen: "127.0.0.1:0", URL: "https://daycare.example/mm"}}, chat.Host{}, quiet())
	pressed := make(chan string, 10)
	c.hook.answer = func(_ context.Context, from message.Address, data string) string {
		pressed <- from.UserID + " " + data
		return "Allowed once."
	}
	stop := connectortest.Serve(t, c, e.Deliver)
	for c.Address() == "" {
		time.Sleep(time.Millisecond)
	}
	b := &withButtons{c}
	card, err := b.Card(t.Context(), message.Address{ChannelID: town}, "k", "**ask**", []chat.Choice{{Label: "Once", Data: "once tok"}})
	if err != nil || card == "" {
		t.Fatal(card, err)
	}
	again, err := b.Card(t.Context(), message.Address{ChannelID: town}, "k", "**ask**", nil)
	if err != nil || again != card {
		t.Errorf("under the same key, the card is %s and then %s, %v", card, again, err)
	}
	s.mu.Lock()
	props, _ := json.Marshal(s.posts[0].Props)
	s.mu.Unlock()
	if !strings.Contains(string(props), `"choice":"once tok","secret":"`+c.hook.secret) || strings.Contains(string(props), token) {
		t.Errorf("the card is %s", props)
	}
	err = b.Settle(t.Context(), message.Address{}, card, "done")
	s.mu.Lock()
	at := slices.IndexFunc(s.calls, func(call string) bool { return strings.HasSuffix(call, card+"/patch") })
	if err != nil || at < 0 || strings.Contains(s.bodies[at], "actions") {
		t.Errorf("Settle = %v, of the calls %q", err, s.calls)
	}
	s.mu.Unlock()

	good := fmt.Sprintf(`{"user_id":%q,"channel_id":"c","context":{"secret":%q,"choice":"once tok"}}`, ada, c.hook.secret)
	for _, tt := range []struct {
		method, media, body string
		want                int
	}{
		{http.MethodPost, "application/json", good, 200}, {http.MethodGet, "application/json", good, 405},
		{http.MethodPost, "text/plain", good, 415}, {http.MethodPost, "application/json", "{", 400},
		{http.MethodPost, "application/json", strings.Replace(good, c.hook.secret, "", 1), 401},
		{http.MethodPost, "application/json", strings.Replace(good, c.hook.secret, token, 1), 401},
		{http.MethodPost, "application/json", `{}`, 401},
		{http.MethodPost, "application/json", strings.Repeat(" ", maxPressed+1), 413},
	} {
		r, _ := http.NewRequest(tt.method, "http://"+c.Address(), strings.NewReader(tt.body))
		r.Header.Set("Content-Type", tt.media)
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tt.want || tt.want == 200 && !strings.Contains(string(said), "Allowed once.") {
			t.Errorf("%+v: %d %s", tt, resp.StatusCode, said)
		}
	}
	if got := <-pressed; got != ada+" once tok" || len(pressed) != 0 {
		t.Errorf("pressed %q, and %d more", got, len(pressed))
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestSettings(t *testing.T) {
	m := chat.Settings{ID: "m"}
	for _, o := range []Options{{Settings: m, URL: "https://x"}, {Settings: chat.Settings{ID: "m", Allow: []string{ada}},
		URL: "http://x/sub", Groups: "always",
		Buttons: Buttons{"127.0.0.1:1", "http://y"}}} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, o := range []Options{{Settings: m}, {URL: "https://x"}, {Settings: m, URL: "https://u:p@x"},
		{Settings: chat.Settings{ID: "m", Allow: []string{"ada"}}, URL: "https://x"},
		{Settings: m, URL: "ftp://x"}, {Settings: m, URL: "https://"}, {Settings: m, URL: "http:// x"}, {Settings: m, URL: "x"},
		{Settings: m, URL: "https://x", Groups: "x"},
		{Settings: m, URL: "https://x", Buttons: Buttons{Listen: "x", URL: "https://y"}},
		{Settings: m, URL: "https://x", Buttons: Buttons{Listen: ":1"}}} {
		if o.Validate() == nil {
			t.Errorf("%+v is valid, want an error", o)
		}
	}
	if _, err := New(Options{Settings: m, URL: "https://x"}, "", chat.Host{}, quiet()); err == nil || !strings.Contains(err.Error(),
		"auth set m") {
		t.Errorf("without a token: %v", err)
	}

	s := newServer(t)
	c := testConnector(t, s, Options{}, chat.Host{}, quiet())
	if verdict, err := c.Probe(t.Context()); err != nil || verdict != "@bot answers; it is in 4 channels" {
		t.Errorf("Probe = %q, %v", verdict, err)
	}
	c.api.token = id("other")
	if _, err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "auth set mattermost") {
		t.Errorf("Probe with another token = %v", err)
	}
}

// The bot sends a message to itself, and deletes it.
func TestLoop(t *testing.T) {
	s := newServer(t)
	c := testConnector(t, s, Options{}, chat.Host{}, quiet())
	verdict, err := c.Loop(t.Context())
	if err != nil || !strings.Contains(verdict, "@bot") {
		t.Errorf("Loop = %q, %v", verdict, err)
	}
	if last := s.calls[len(s.calls)-1]; !strings.HasPrefix(last, "DELETE /posts/") {
		t.Errorf("in the end it called %q", last)
	}
	s.refuse = http.StatusInternalServerError
	if _, err := c.Loop(t.Context()); err == nil || strings.Contains(err.Error(), token) {
		t.Errorf("Loop on a broken server = %v", err)
	}
}
