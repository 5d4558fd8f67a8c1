package irc

import (
	"cmp"
	"context"
	"encoding/base64"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine"
	"daycare/engine/message"
)

var (
	_ engine.Connector = (*Connector)(nil)
	_ engine.Splitter  = (*Connector)(nil)
	_ chat.Platform    = (*Connector)(nil)
)

const canary = "canary+password/of=the account"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConnector(t *testing.T) {
	connectortest.Run(t, func(t *testing.T) connectortest.Harness {
		s := newServer(t, base64.StdEncoding.EncodeToString([]byte("\x00daycare\x00"+canary)))
		host := chat.Host{Waiting: &connectortest.Keeper{}}
		p := &platform{server: s, done: map[string]chan struct{}{}}
		forge := func(ctx context.Context, m connectortest.Message) {
			p.await(m.Key)
			s.tell(ctx, "bot", "@msgid="+m.Key+";account=eve ", "ada!ada@203.0.113.9", "bot", m.Text)
			<-p.await(m.Key)
		}

		return connectortest.Harness{
			New: func(t *testing.T, log *slog.Logger) engine.Connector {
				c := testConnector(t, Options{Settings: chat.Settings{Allow: []string{"ada", "bob"}},
					Server: s.listener.Addr().String(), Account: "daycare"}, host, log)
				c.arrived = chat.NewQueue(c.desk, time.Millisecond, func(post chat.Post) { p.finish(post.Key) })
				return c
			},
			Offer: p.offer,
			Other: func(ctx context.Context, m connectortest.Message) {
				key := strings.ReplaceAll(m.Key, " ", "_")
				s.tell(ctx, "bot", "@msgid="+key+";account=bob ", "bob!~bob@203.0.113.8", "bot", m.Text)
				select {
				case <-p.await(key):
				case <-ctx.Done():
				}
			},
			Forge:     forge,
			Strangers: &connectortest.Strangers{Host: &host, Write: forge, Told: s.received},
			To:        []message.Address{{Connector: "irc", ChannelID: "ada"}, {Connector: "irc", ChannelID: "#room"}},
			Sent:      s.received,
			Fault:     s.misbehave,
			Revoke:    s.revoke,
			Unable:    []connectortest.Fault{connectortest.Busy, connectortest.Forget},
			Secrets:   []string{canary},
		}
	})
}

func testConnector(t *testing.T, o Options, host chat.Host, log *slog.Logger) *Connector {
	t.Helper()
	o.ID, o.Nick, o.Plaintext = "irc", cmp.Or(o.Nick, "bot"), true
	c, err := New(o, canary, host, log)
	if err != nil {
		t.Fatal(err)
	}
	c.pause, c.flood = time.Millisecond, flood{burst: 100, every: time.Millisecond}

	return c
}

// platform tells when the connector is done with a message: IRC has no word for
// it, so the connector says it to its test.
type platform struct {
	*server
	mu   sync.Mutex
	done map[string]chan struct{}
}

func (p *platform) await(key string) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done[key] == nil {
		p.done[key] = make(chan struct{}, 100)
	}
	return p.done[key]
}

func (p *platform) finish(key string) { p.await(key) <- struct{}{} }

func (p *platform) offer(ctx context.Context, messages ...connectortest.Message) []bool {
	received := make([]bool, len(messages))
	for _, m := range messages {
		p.tell(ctx, "bot", "@msgid="+strings.ReplaceAll(m.Key, " ", "_")+";account=ada ", "ada!~ada@203.0.113.9", "bot", m.Text)
	}

	for i, m := range messages {
		select {
		case <-p.await(strings.ReplaceAll(m.Key, " ", "_")):
			received[i] = true
		case <-ctx.Done():
			return received
		}
	}

	return received
}

func TestIdentity(t *testing.T) {
	o := Options{Settings: chat.Settings{Allow: []string{"ada", "*!bob@*.example.org"}}}
	for _, test := range []struct{ account, mask, want string }{
		{"ada", "x!y@z", "ada"},
		{"", "ada!ada@203.0.113.1", "ada!ada@203.0.113.1"}, // a nick is nobody
		{"*", "b!Bob@host.EXAMPLE.org", "*!bob@*.example.org"},
		{"", "b!bob@example.org.evil.net", "b!bob@example.org.evil.net"},
		{"eve", "b!bob@host.example.org", "eve"}, // an account says more than a mask
	} {
		if got := o.identity(test.account, test.mask); got != test.want {
			t.Errorf("identity(%q, %q) = %q, want %q", test.account, test.mask, got, test.want)
		}
	}
}

func TestLines(t *testing.T) {
	got := lines("a\tb\r\n\n  \nPRIVMSG #x :b\x00\x01\n"+strings.Repeat("é", 300), maxLine)
	want := []string{"a b", "PRIVMSG #x :b", strings.Repeat("é", 200), strings.Repeat("é", 100)}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// A server cuts lines that are too long with our mask before them: whatever the names are, what is
// said arrives whole.
func TestLongNamesLeaveLessRoom(t *testing.T) {
	s := newServer(t, canary)
	nick, channel := "averylongnickof30characters_00", "#a-channel-whose-name-is-as-long-as-many-servers-take"
	c := testConnector(t, Options{Server: s.listener.Addr().String(), Nick: nick}, chat.Host{}, slog.New(slog.DiscardHandler))
	for _, text := range []string{strings.Repeat("x", 1000), strings.Repeat("😀", 250)} {
		before := len(s.received())
		if err := c.Say(t.Context(), message.Address{ChannelID: channel}, "", text); err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, line := range s.received()[before:] {
			got.WriteString(line.Text)
		}
		if got.String() != text {
			t.Errorf("%d bytes arrived of %d", got.Len(), len(text))
		}
	}
	if all := lines("😀😀", room(nick, strings.Repeat("#", 500))); len(all) != 2 {
		t.Errorf("where there is no room: %q", all)
	}
}

func FuzzLines(f *testing.F) {
	f.Add("a b\r\nc\x00" + strings.Repeat("x ", 500))
	f.Fuzz(func(t *testing.T, text string) {
		for _, line := range lines(text, maxLine) {
			if len(line) > maxLine || len(line) == 0 || strings.ContainsAny(line, "\r\n\x00") {
				t.Errorf("%q makes the line %q", text, line)
			}
		}
	})
}

func TestWrongPassword(t *testing.T) {
	s := newServer(t, "something else")
	c := testConnector(t, Options{Server: s.listener.Addr().String(), Account: "daycare"}, chat.Host{}, slog.New(slog.DiscardHandler))
	err := c.Run(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "auth set irc") || strings.Contains(err.Error(), canary) {
		t.Errorf("Run = %v, want what to do", err)
	}
}

func TestValidate(t *testing.T) {
	good := Options{Settings: chat.Settings{ID: "irc"}, Server: "x:1", Nick: "bot"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}

	for _, change := range []func(*Options){
		func(o *Options) { o.Server = "x" }, func(o *Options) { o.Server = ":1" }, func(o *Options) { o.Server = "x:" },
		func(o *Options) { o.Nick = "a b" }, func(o *Options) { o.Channels = []string{"x"} }, func(o *Options) { o.ID = "" },
		func(o *Options) { o.Allow = []string{"*"} }, func(o *Options) { o.Allow = []string{"*!*@*"} },
		func(o *Options) { o.Allow = []string{"a b"} },
	} {
		o := good
		change(&o)
		if o.Validate() == nil {
			t.Errorf("%+v is valid, want an error", o)
		}
		if _, err := New(o, canary, chat.Host{}, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%+v makes a connector", o)
		}
	}

	good.Account = "daycare"
	if _, err := New(good, "", chat.Host{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "auth set irc") {
		t.Errorf("an account without a password: %v, want what to do", err)
	}
}
