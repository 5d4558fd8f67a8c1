package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
)

// What Discord tells becomes a message, or none.
func TestWhatAnEventBecomes(t *testing.T) {
	s := newServer(t)
	for _, tt := range []struct {
		o     Options
		event string
		want  string // channel, thread, group, addressed, note, text; "": none
	}{
		{Options{}, `{"id":"1","channel_id":"5","author":{"id":"7"},"content":" hi "}`, `5 "" false false false hi`},
		{Options{}, `{"id":"1","channel_id":"G","guild_id":"1","author":{"id":"7"},"content":"hi"}`, `G "" true false false `},
		{Options{},
			`{"id":"1","channel_id":"G","guild_id":"1","author":{"id":"7"},"content":"<@ME>, hi ` +
				`<@200000000000000001> <:yes:400000000000000001>",` +
				`"mentions":[{"id":"ME"},{"id":"200000000000000001","username":"ada"}]}`, `G "" true true false hi @ada :yes:`},
		{Options{}, `{"id":"1","channel_id":"G","guild_id":"1","type":19,"author":{"id":"7"},"content":"hi",` +
			`"referenced_message":{"id":"3","content":"before","author":{"id":"ME"}}}`, `G "" true true false hi; answers 3 before`},
		{Options{}, `{"id":"1","channel_id":"G","guild_id":"1","author":{"id":"7"},"content":"hi","mention_roles":["9"]}`,
			`G "" true true false hi`},
		{Options{}, `{"id":"1","channel_id":"T","guild_id":"1","author":{"id":"7"},"content":"hi"}`, `G "T" true true false hi`},
		{Options{Groups: "always"}, `{"id":"1","channel_id":"G","guild_id":"1","author":{"id":"7"},"content":"hi"}`,
			`G "" true true false hi`},
		{Options{Groups: "always", Threads: true}, `{"id":"1","channel_id":"G","guild_id":"1","author":{"id":"7"},"content":"hi"}`,
			`G "1" true true false hi`},
		{Options{}, `{"id":"1","channel_id":"5","author":{"id":"7","bot":true},"content":"hi"}`, ``},
		{Options{}, `{"id":"1","channel_id":"5","author":{"id":"ME"},"content":"hi"}`, ``},
		{Options{}, `{"id":"1","channel_id":"5","author":{"id":"7"},"webhook_id":"8","content":"hi"}`, ``},
		{Options{}, `{"id":"1","channel_id":"5","type":7,"author":{"id":"7"}}`, ``},
		{Options{},
			`{"id":"1","channel_id":"5","author":{"id":"7"},"sticker_items":[{"name":"wave"}],"poll":{"question":{"text":"tea?"}},` +
				`"message_snapshots":[{"message":{"content":"old"}}]}`,
			"5 \"\" false false false [forwarded]\nold\n[sticker: wave]\n[poll: tea?]"},
		{Options{}, `edit{"id":"1","channel_id":"5","author":{"id":"7"},"content":"new","edited_timestamp":"t"}`,
			"5 \"\" false false false new; amends 1"},
		{Options{}, `edit{"id":"1","channel_id":"5","author":{"id":"7"},"content":"preview"}`, ``},
		{Options{}, `delete{"id":"1","channel_id":"5"}`, `5 "" false false false ; amends 1 of ` + ada},
		{Options{}, `delete{"id":"2","channel_id":"T","guild_id":"1"}`, `G "T" true false false ; amends 2 of `},
		{Options{}, `delete{"id":"3","channel_id":"6"}`, `6 "" false false false ; amends 3 of `},
		{Options{}, `react{"user_id":"7","channel_id":"5","message_id":"1","emoji":{"name":"👍"}}`,
			`5 "" false true true The person reacted to message 1 with 👍`},
		{Options{},
			`react{"user_id":"7","channel_id":"G","guild_id":"1","message_id":"1","message_author_id":"8","emoji":{"name":"👍"}}`, ``},
		{Options{}, `react{"user_id":"7","channel_id":"G","guild_id":"1","message_id":"1","message_author_id":"ME","emoji":{"name":"👍"}}`,
			`G "" true true true The person reacted to message 1 with 👍`},
	} {
		c := testConnector(t, s, tt.o, keeps(s), quiet())
		c.in.rooms.me.Bot.ID, c.in.rooms.roles["9"] = me, true
		c.in.rooms.all["T"] = room{ID: "T", Type: 11, Parent: "G", Owner: me}
		c.in.rooms.all["G"] = room{ID: "G", Guild: "1"}
		c.in.rooms.private[ada] = "5"
		m := incoming{kind: "MESSAGE_CREATE"}
		raw, edit := strings.CutPrefix(tt.event, "edit")
		raw, react := strings.CutPrefix(raw, "react")
		raw, gone := strings.CutPrefix(raw, "delete")
		if edit {
			m.kind = "MESSAGE_UPDATE"
		} else if gone {
			m.kind = "MESSAGE_DELETE"
		} else if react {
			m.kind = "MESSAGE_REACTION_ADD"
		}
		if err := json.Unmarshal([]byte(strings.ReplaceAll(raw, "ME", me)), &m); err != nil {
			t.Fatal(err)
		}
		p, ok, err := c.in.post(t.Context(), m)
		got := fmt.Sprintf("%s %q %v %v %v %s", p.From.ChannelID, p.From.ThreadID, p.Group, p.Addressed, p.Note, p.Text)
		if p.Amends != "" {
			got += "; amends " + p.Amends
		}
		if p.ReplyTo != "" {
			got += "; answers " + p.ReplyTo + " " + p.Quote
		}
		if p.Deleted {
			got += " of " + p.From.UserID
		}
		if err != nil || ok != (tt.want != "") || ok && got != tt.want {
			t.Errorf("%s becomes %q (%v, %v), want %q", tt.event, got, ok, err, tt.want)
		}
	}
}

// Attachments come from Discord alone.
func TestFiles(t *testing.T) {
	s := newServer(t)
	c := testConnector(t, s, Options{}, keeps(s), quiet())
	files := c.in.files([]file{{Name: "a.txt", Size: 7, URL: s.URL + "/cdn/a.txt"}, {URL: "https://evil.example/x"},
		{URL: "http://cdn.discordapp.com/x"}})
	body, err := files[0].Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, _ := io.ReadAll(body); string(got) != "content" {
		t.Errorf("file %q", got)
	}
	for _, f := range files[1:] {
		if _, err := f.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "not Discord's") {
			t.Errorf("a file elsewhere: %v", err)
		}
	}
}

// A message is sent once, however often it is tried, notifies nobody it names, and begins a
// thread where that is asked for.
func TestSend(t *testing.T) {
	s := newServer(t)
	c := testConnector(t, s, Options{}, keeps(s), quiet())
	out := message.Outgoing{ID: "o", Parts: 1, To: message.Address{ChannelID: general}, ReplyTo: "700000000000000001",
		Text: "@everyone **b** <@&1>"}
	for range 2 {
		if id, err := c.Send(t.Context(), out); err != nil || id == "" {
			t.Fatalf("Send = %q, %v", id, err)
		}
	}
	p := s.posts[1]
	body, _ := json.Marshal(p)
	if len(s.shown) != 1 || p.Content != `@everyone **b** \<@&1>` || !strings.Contains(string(body),
		`"allowed_mentions":{"parse":[],"replied_user":true}`) ||
		p.Reply == nil || p.Reply.Message != out.ReplyTo || p.Flags != noPreview || len(p.Nonce) > 25 {
		t.Errorf("%d messages are shown; sent %s", len(s.shown), body)
	}

	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("1,2"), 0o600); err != nil {
		t.Fatal(err)
	}
	out = message.Outgoing{ID: "files", Parts: 1, To: out.To, Text: "files"}
	for i := range 12 {
		out.Files = append(out.Files, message.File{Name: fmt.Sprint(i, ".csv"), Path: path, Size: 3})
	}
	out.Files = append(out.Files, message.File{Name: "film", Path: path, Size: 11 << 20})
	s.posts = nil
	if _, err := c.Send(t.Context(), out); err != nil {
		t.Fatal(err)
	}
	if len(s.posts) != 2 || len(s.posts[0].Files) != 10 || len(s.posts[1].Files) != 2 || !strings.Contains(s.posts[0].Content,
		"larger than 10 MB") ||
		!strings.Contains(s.bodies[len(s.bodies)-1], "1,2") {
		t.Errorf("sent %+v", s.posts)
	}
	out.Files = []message.File{{Name: "gone", Path: path + "x"}}
	var no *message.NotSent
	if _, err := c.Send(t.Context(), message.Outgoing{ID: "gone", Parts: 1, To: out.To, Files: out.Files}); !errors.As(err, &no) ||
		!no.Final {
		t.Errorf("a file that is gone: %v", err)
	}

	s.posts, s.to = nil, nil
	begun := "700000000000000002"
	out = message.Outgoing{ID: "t", Parts: 1, To: message.Address{ChannelID: general, ThreadID: begun}, ReplyTo: begun,
		Text: "# Title\ntext"}
	if _, err := c.Send(t.Context(), out); err != nil || s.to[0] != begun || s.posts[0].Reply != nil ||
		s.rooms[begun]["parent_id"] != general {
		t.Errorf("a thread: %v, sent to %v", err, s.to)
	}
	if id, err := c.Send(t.Context(), message.Outgoing{ID: "e", Parts: 1, To: out.To, Text: "\n"}); id != "" || err != nil {
		t.Errorf("nothing was sent as %q, %v", id, err)
	}
	to, _ := c.Direct(ada)
	if err := c.Say(t.Context(), to, "", "hi"); err != nil || s.to[len(s.to)-1] != private(ada) {
		t.Errorf("said to %v, %v", s.to, err)
	}
	if err := c.React(t.Context(), out.To, begun, "👍"); err != nil || c.React(t.Context(), out.To, "x", "👍") == nil {
		t.Errorf("React = %v", err)
	}
	if err := c.Typing(t.Context(), out.To); err != nil || !slices.Contains(s.calls, "POST /channels/"+begun+"/typing") {
		t.Errorf("Typing = %v", err)
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

type directory struct{}

func (directory) Find(message.Address) (string, bool) { return "agent", true }

func (directory) Home(string) (message.Address, bool) {
	return message.Address{Connector: "discord", ChannelID: private(ada), UserID: ada}, true
}

type silent chan event.Event

func (s silent) Subscribe(ctx context.Context) <-chan event.Event {
	return s
}

// cardKeeper keeps files, and tells when it is noted where a card is shown.
type cardKeeper struct {
	connectortest.Keeper
	once  sync.Once
	noted chan struct{}
}

func (k *cardKeeper) Save(connector, name string, data []byte) error {
	if bytes.Contains(data, []byte(`"remote"`)) {
		k.once.Do(func() { close(k.noted) })
	}
	return k.Keeper.Save(connector, name, data)
}

// Buttons and slash commands are acknowledged at once and answered to who used them alone.
func TestInteractions(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	a := &asks{pending: []permission.Pending{{Token: "abcdefghijkl", Agent: "agent",
		Owner: permission.Owner{Connector: "discord", UserID: ada}}}}
	events := make(silent)
	t.Cleanup(func() { close(events) })
	hints := &cardKeeper{noted: make(chan struct{})}
	host := chat.Host{Waiting: &s.waiting, Hints: hints, Asks: a, Directory: directory{}, Events: events}
	connectortest.Serve(t, testConnector(t, s, Options{}, host, quiet()), e.Deliver)
	s.connected(t)
	s.until(t, "the card", func() bool { return len(s.posts) == 1 })
	<-hints.noted // a button pressed before that is settled by an event, and this test sends no events
	if p := s.posts[0]; p.Components == nil || len((*p.Components)[0].Buttons) == 0 || len(p.Embeds) != 1 ||
		!strings.HasPrefix((*p.Components)[0].Buttons[0].Data, "once ") {
		t.Errorf("the card is %+v", p)
	}

	said := func(id string) string {
		var got string
		s.until(t, "an answer to "+id, func() bool {
			for i, call := range s.calls {
				if call == "PATCH /webhooks/"+me+"/token-"+id+"/messages/@original" {
					got = s.bodies[i]
					return slices.Contains(s.calls, "POST /interactions/"+id+"/token-"+id+"/callback")
				}
			}
			return false
		})
		return got
	}
	interact := func(id, who string, kind int, data map[string]any) {
		s.event("INTERACTION_CREATE", map[string]any{"id": id, "application_id": me, "type": kind, "token": "token-" + id,
			"channel_id": private(ada), "user": map[string]string{"id": who}, "data": data})
	}
	interact("1", stranger, button, map[string]any{"custom_id": "once abcdefghijkl"})
	if got := said("1"); !strings.Contains(got, "another user") {
		t.Errorf("a stranger pressed, and reads %s", got)
	}
	interact("2", ada, button, map[string]any{"custom_id": "once abcdefghijkl"})
	if got := said("2"); !strings.Contains(got, "Allowed once") || len(a.decided) != 1 ||
		a.decided[0] != "abcdefghijkl once discord:"+ada {
		t.Errorf("the answer is %s, decided %v", got, a.decided)
	}
	s.until(t, "the card settled", func() bool {
		return slices.ContainsFunc(s.bodies, func(b string) bool { return strings.Contains(b, `"components":[]`) })
	})
	interact("3", ada, slashCommand, map[string]any{"name": "help"})
	if got := said("3"); !strings.Contains(got, "!status") {
		t.Errorf("the answer to /help is %s", got)
	}
	interact("4", ada, slashCommand, map[string]any{"name": "mark", "options": []any{map[string]string{"value": "before"}}})
	if got := said("4"); !strings.Contains(got, "Checkpoint set") || len(e.Taken) != 1 || e.Taken[0].Text != "before" {
		t.Errorf("the answer to /mark is %s, delivered %+v", got, e.Taken)
	}
}

// The menu is what Discord accepts.
func TestMenu(t *testing.T) {
	for _, k := range menu() {
		name, about := k["name"].(string), k["description"].(string)
		if name != strings.ToLower(name) || len(name) > 32 || len(about) > 100 {
			t.Errorf("%s: %s", name, about)
		}
	}
}

func TestSettings(t *testing.T) {
	d := chat.Settings{ID: "d"}
	for _, o := range []Options{{Settings: d}, {Settings: chat.Settings{ID: "d", Allow: []string{ada}}, Groups: "always",
		BaseURL: "https://x"}} {
		if err := o.Validate(); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, o := range []Options{{}, {Settings: chat.Settings{ID: "d", Allow: []string{"ada"}}}, {Settings: d, Groups: "x"},
		{Settings: d, BaseURL: "ftp://x"}} {
		if o.Validate() == nil {
			t.Errorf("%+v is valid, want an error", o)
		}
	}
	for _, token := range []string{"", "a b", "a\nb"} {
		if _, err := New(Options{Settings: d}, token, chat.Host{}, quiet()); err == nil || !strings.Contains(err.Error(), "auth set d") {
			t.Errorf("token %q: %v", token, err)
		}
	}

	s := newServer(t)
	c := testConnector(t, s, Options{}, chat.Host{}, quiet())
	if verdict, err := c.Probe(t.Context()); err != nil ||
		verdict != "bot answers; it is in 1 servers; it can connect 1000 more times today" {
		t.Errorf("Probe = %q, %v", verdict, err)
	}
	c = testConnector(t, s, Options{Groups: "always"}, chat.Host{}, quiet())
	if _, err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "Message Content Intent") {
		t.Errorf("Probe without the intent = %v", err)
	}
	c.api.token = "other"
	if _, err := c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "auth set discord") || strings.Contains(err.Error(),
		token) {
		t.Errorf("Probe with another token = %v", err)
	}
	if id := idAt(time.UnixMilli(epoch + 1)); id != 1<<22 {
		t.Errorf("the id of the first millisecond is %d", id)
	}
}

// amending is an engine whose queue has no message: what is amended there is noted.
type amending struct{ done chan message.Amendment }

func (amending) Agent(context.Context, string) (event.Agent, error)   { return event.Agent{}, nil }
func (amending) Agents(context.Context) ([]event.Agent, error)        { return nil, nil }
func (amending) Known(context.Context, string) ([]event.Agent, error) { return nil, nil }
func (amending) Stop(context.Context, string) (bool, error)           { return false, nil }

func (a amending) Amend(_ context.Context, m message.Amendment) (bool, error) {
	a.done <- m
	return m.MessageID != "" && m.Text == "" && m.From.UserID == ada, nil
}

// What a user deletes is dropped while it is queued, and else noted, also where many messages of
// several users are deleted at once. Of whom it was, daycare has to know by itself.
func TestDeletions(t *testing.T) {
	s, e := newServer(t), &connectortest.Taker{}
	host := keeps(s)
	done := make(chan message.Amendment, 10)
	host.Agents = amending{done}
	stop := connectortest.Serve(t, testConnector(t, s, Options{}, host, quiet()), e.Deliver)
	s.connected(t)
	queued := s.write("q", general, ada, "<@"+me+"> queued")
	answered := s.write("a", general, bob, "<@"+me+"> answered")
	other := s.write("o", general, ada, "to somebody else")
	e.Until(t, 2)
	s.event("MESSAGE_DELETE_BULK", map[string]any{"ids": []string{queued, answered, other, "800000000000000001"}, "channel_id": general,
		"guild_id": guild})
	e.Until(t, 3)
	mine := s.write("p", private(ada), ada, "in private")
	e.Until(t, 4)
	s.event("MESSAGE_DELETE", map[string]any{"id": mine, "channel_id": private(ada)})
	for i, want := range []string{queued + ada, answered + bob, mine + ada} {
		select {
		case m := <-done:
			if got := m.MessageID + m.From.UserID; got != want || !m.Deleted {
				t.Errorf("amendment %d is %+v, want the deletion of %s", i, m, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("there was no amendment %d", i)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if note := e.Taken[2]; !strings.Contains(note.Text, "deleted message "+answered) || !note.Silent || note.From.UserID != bob {
		t.Errorf("the note is %+v", note)
	}
	if len(done) != 0 || len(e.Taken) != 4 {
		t.Errorf("%d more amendments, %d messages", len(done), len(e.Taken))
	}
}
