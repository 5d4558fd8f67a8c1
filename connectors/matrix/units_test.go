package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/connectors/matrix/e2ee"
	"daycare/engine/message"
)

func TestValidate(t *testing.T) {
	good := Options{Settings: chat.Settings{ID: "matrix", Allow: []string{ada}}, Homeserver: "https://matrix.example.org",
		Always: []string{adaRoom}}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Options){
		func(o *Options) { o.ID = "" }, func(o *Options) { o.Homeserver = "" }, func(o *Options) { o.Homeserver = "matrix.example.org" },
		func(o *Options) { o.Homeserver = "http://matrix.example.org" }, func(o *Options) { o.Homeserver = "https://x/_matrix" },
		func(o *Options) { o.Homeserver = "https://ada@x" }, func(o *Options) { o.Allow = []string{"ada"} },
		func(o *Options) { o.Always = []string{"#room:x"} }, func(o *Options) { o.Verified = []string{"ABC"} },
	} {
		o := good
		change(&o)
		if o.Validate() == nil {
			t.Errorf("%+v is valid, want an error", o)
		}
	}
	for _, token := range []string{"", "a b"} {
		_, err := New(good, token, chat.Host{}, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "auth set matrix") {
			t.Errorf("with the token %q: %v, want what to do", token, err)
		}
	}
}

// What an event becomes.
func TestWhatAnEventBecomes(t *testing.T) {
	for name, tt := range map[string]struct {
		kind, content, text string
		right               func(chat.Post) bool
	}{
		"a text": {"m.room.message", `{"msgtype":"m.text","body":"hi"}`, "hi", func(p chat.Post) bool { return p.Key == "$1" }},
		"an act": {"m.room.message", `{"msgtype":"m.emote","body":"waves"}`, "* waves", func(chat.Post) bool { return true }},
		"a place": {"m.room.message", `{"msgtype":"m.location","body":"here","geo_uri":"geo:1,2"}`, "[location: 1,2] here",
			func(chat.Post) bool { return true }},
		"an edit": {"m.room.message", `{"msgtype":"m.text","body":"* new","m.new_content":{"msgtype":"m.text","body":"new"},` +
			`"m.relates_to":{"rel_type":"m.replace","event_id":"$0"}}`, "new", func(p chat.Post) bool { return p.Amends == "$0" }},
		"a reply": {"m.room.message", `{"msgtype":"m.text","body":"> <@bot:x> was\n> so\n\nyes",` +
			`"m.relates_to":{"m.in_reply_to":{"event_id":"$0"}}}`,
			"yes", func(p chat.Post) bool { return p.ReplyTo == "$0" && p.Quote == "was\nso" }},
		"a reply that begins with a quotation": {"m.room.message", `{"msgtype":"m.text","body":"> so it is\n\nyes",` +
			`"m.relates_to":{"m.in_reply_to":{"event_id":"$0"}}}`,
			"> so it is\n\nyes", func(p chat.Post) bool { return p.ReplyTo == "$0" && p.Quote == "" }},
		"in a thread": {"m.room.message", `{"msgtype":"m.text","body":"hi","m.relates_to":{"rel_type":"m.thread","event_id":"$t",` +
			`"is_falling_back":true,"m.in_reply_to":{"event_id":"$0"}}}`, "hi",
			func(p chat.Post) bool { return p.From.ThreadID == "$t" && p.ReplyTo == "" }},
		"a picture": {"m.room.message", `{"msgtype":"m.image","body":"a.png","url":"mxc://x/y"}`, "", func(chat.Post) bool { return true }},
		"a caption": {"m.room.message", `{"msgtype":"m.image","body":"look","filename":"a.png","url":"mxc://x/y"}`, "look",
			func(chat.Post) bool { return true }},
		"a reaction": {"m.reaction", `{"m.relates_to":{"rel_type":"m.annotation","event_id":"$0","key":"+"}}`,
			"The person reacted to message $0 with +", func(p chat.Post) bool { return p.Note }},
		"a sticker": {"m.sticker", `{"body":"a cat that waves","url":"mxc://x/y"}`, "[sticker: a cat that waves]",
			func(p chat.Post) bool { return len(p.Files) == 0 }},
		"a deletion": {"m.room.redaction", `{"redacts":"$0"}`, "", func(p chat.Post) bool { return p.Amends == "$0" && p.Deleted }},
		"of a bot":   {"m.room.message", `{"msgtype":"m.notice","body":"hi"}`, "-", nil},
		"a name":     {"m.room.name", `{"name":"x"}`, "-", nil},
		"no target":  {"m.reaction", `{}`, "-", nil},
	} {
		e := roomEvent{ID: "$1", Type: tt.kind, Sender: ada}
		if err := json.Unmarshal([]byte(tt.content), &e.Content); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p, ok := post(adaRoom, e)
		if ok != (tt.right != nil) || ok && (p.Text != tt.text || !tt.right(p)) {
			t.Errorf("%s is %+v, %v", name, p, ok)
		}
	}
}

func FuzzEvent(f *testing.F) {
	f.Add("m.room.message", `{"msgtype":"m.text","body":"> <@a:b> x\n\ny","m.relates_to":{"m.in_reply_to":{"event_id":"$0"}}}`)
	f.Fuzz(func(t *testing.T, kind, body string) {
		e := roomEvent{ID: "$1", Type: kind, Sender: ada}
		if json.Unmarshal([]byte(body), &e.Content) != nil {
			return
		}
		if p, ok := post(adaRoom, e); ok && (p.From.UserID != ada || p.Key != "$1") {
			t.Errorf("%s %s is %+v", kind, body, p)
		}
	})
}

// running is a connector that runs, and what it delivered.
type running struct {
	mu   sync.Mutex
	all  []message.Incoming
	keys map[string]bool
	stop func()
}

func run(t *testing.T, c *Connector) *running {
	t.Helper()
	r := &running{keys: map[string]bool{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = c.Run(ctx, func(_ context.Context, in message.Incoming) (message.Receipt, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.keys[in.Dedupe] {
				return message.Receipt{Duplicate: true}, nil
			}
			r.keys[in.Dedupe] = true
			r.all = append(r.all, in)
			return message.Receipt{Agent: "a", Item: in.Dedupe}, nil
		})
	})
	r.stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	t.Cleanup(r.stop)

	return r
}

func (r *running) texts() (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range r.all {
		all = append(all, in.Text)
	}
	return all
}

// 10,000 messages of a night arrive in order, each once, though an answer has only the end of
// them.
func TestANightAway(t *testing.T) {
	s := newServer(t, canary)
	s.most = 50
	keeper := &connectortest.Keeper{}
	host := chat.Host{Waiting: keeper}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	first := run(t, testConnector(t, s, Options{}, host, slog.New(slog.DiscardHandler)))
	s.tell(ctx, speech(adaRoom, ada, "before", "before"))
	first.stop()
	var night []happened
	const many = 10_000
	for i := range many {
		night = append(night, speech(adaRoom, ada, fmt.Sprint("night", i), fmt.Sprint(i)))
	}
	s.mu.Lock()
	s.events = append(s.events, night...)
	s.mu.Unlock()
	second := run(t, testConnector(t, s, Options{}, host, slog.New(slog.DiscardHandler)))
	s.tell(ctx, speech(adaRoom, ada, "after", "after"))
	got := second.texts()
	if len(got) != many+1 || got[many] != "after" {
		t.Fatalf("%d messages were delivered, want %d", len(got), many+1)
	}
	for i := range many {
		if got[i] != fmt.Sprint(i) {
			t.Fatalf("message %d is %q", i, got[i])
		}
	}
}

// Invitations of users who have access are accepted, and of nobody else.
func TestInvitations(t *testing.T) {
	s := newServer(t, canary)
	s.invites["!eve:test.example"], s.invites[adaRoom] = eve, ada
	r := run(t, testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler)))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	s.tell(ctx, speech(adaRoom, ada, "1", "hi"))
	r.stop()
	if !slices.Equal(s.joined, []string{adaRoom}) {
		t.Errorf("joined %q, want the room of ada alone", s.joined)
	}
}

// In a group only what names us, answers us, or is in a room of always is for us.
func TestGroups(t *testing.T) {
	s := newServer(t, canary)
	s.members["!team:x"], s.members["!open:x"] = 5, 5
	r := run(t, testConnector(t, s, Options{Always: []string{"!open:x"}}, chat.Host{}, slog.New(slog.DiscardHandler)))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	named := speech("!team:x", ada, "3", "you there?")
	named.event["content"].(map[string]any)["m.mentions"] = map[string]any{"user_ids": []string{bot}}
	s.tell(ctx, speech("!team:x", ada, "1", "chatter"), speech("!team:x", ada, "2", "Daybot: hello"), named)
	s.tell(ctx, speech("!open:x", ada, "4", "to all"), speech("!open:x", eve, "5", "of a stranger"))
	if got := r.texts(); !slices.Equal(got, []string{"hello", "you there?", "to all"}) {
		t.Errorf("delivered %q", got)
	}
}

// An encrypted room is told once that it cannot be read, and an answer rings for nobody.
func TestWhatIsSaid(t *testing.T) {
	s := newServer(t, canary)
	c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
	r := run(t, c)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	secret := func(id, from string) happened {
		return happened{adaRoom, map[string]any{"type": "m.room.encrypted", "event_id": id, "sender": from, "content": map[string]any{}}}
	}
	s.tell(ctx, secret("$0", eve), secret("$1", ada), secret("$2", ada))
	if told := s.heard(); len(told) != 1 || !strings.Contains(told[0].Text, "encrypted") {
		t.Errorf("told %+v, want once that it is encrypted", told)
	}
	r.stop()
	out := message.Outgoing{ID: "o", To: message.Address{ChannelID: adaRoom, ThreadID: "$t"}, ReplyTo: "$r",
		Text: "hi @room **now**", Parts: 1}
	if _, err := c.Send(ctx, out); err != nil {
		t.Fatal(err)
	}
	last := s.puts[len(s.puts)-1]
	if strings.Contains(last, "@room") || !strings.Contains(last, `"m.mentions":{}`) || !strings.Contains(last, `"rel_type":"m.thread"`) ||
		!strings.Contains(last, "strong") {
		t.Errorf("sent %s", last)
	}
}

// A token that is revoked is told with what to do.
func TestRevokedToken(t *testing.T) {
	s := newServer(t, "another")
	c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
	err := c.Run(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "auth set matrix") || strings.Contains(err.Error(), canary) {
		t.Errorf("Run = %v, want what to do", err)
	}
}

// The account sends a message to itself, in a room that it leaves.
func TestLoop(t *testing.T) {
	s := newServer(t, canary)
	c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
	verdict, err := c.Loop(t.Context())
	if err != nil || !strings.Contains(verdict, bot) {
		t.Errorf("Loop = %q, %v", verdict, err)
	}
	if left := strings.Join(s.puts[max(0, len(s.puts)-2):], " "); left != "/rooms/!own:test.example/leave /rooms/!own:test.example/forget" {
		t.Errorf("in the end it did %q", left)
	}
	s.misbehave(connectortest.Broken)
	if _, err := c.Loop(t.Context()); err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("Loop on a broken server = %v", err)
	}
}

// A room that becomes encrypted gets nothing in the clear from a build that has no keys, but for the
// notice that says so.
func TestNothingInTheClear(t *testing.T) {
	t.Parallel()
	s := newServer(t, "token")
	c, err := New(Options{Settings: chat.Settings{ID: "matrix", Allow: []string{ada}}, Homeserver: s.URL}, "token", chat.Host{},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.set(nil, e2ee.ErrAbsent)
	out := message.Outgoing{ID: "one", To: message.Address{ChannelID: adaRoom}, Text: "hello"}
	if _, err := c.Send(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	var b batch
	if err := json.Unmarshal([]byte(`{"rooms": {"join": {"`+adaRoom+`": {"state": {"events": [{"type": "m.room.encryption", "state_key": "",
		"content": {"algorithm": "m.megolm.v1.aes-sha2"}}]}}}}}`), &b); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.encrypted = true
	s.mu.Unlock()
	f := follower{sealed{c}}
	if err := f.keys(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	out.ID, out.Text = "two", "secret"
	no, ok := errors.AsType[*message.NotSent](errorOf(c.Send(t.Context(), out)))
	if !ok || !no.Final {
		t.Errorf("an answer in an encrypted room: %v", no)
	}
	f.notify(t.Context(), adaRoom, "about", "I cannot read this")
	f.notify(t.Context(), adaRoom, "about", "I cannot read this")
	if all := strings.Join(s.puts, "\n"); strings.Contains(all, "secret") || strings.Count(all, "I cannot read this") != 2 {
		t.Errorf("said in the clear (a text twice each, with and without HTML):\n%s", all)
	}
}

func errorOf(_ string, err error) error { return err }
