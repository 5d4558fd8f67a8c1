package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/connectors/chat"
	"daycare/connectors/telegram/telegramtest"
	"daycare/engine/message"
)

// canned is a Bot API that answers each method with a text; "" is a cut connection.
func canned(t *testing.T, answers map[string]string) *Connector {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := answers[filepath.Base(r.URL.Path)]
		if answer == "" {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"ok":`)
			return
		}
		io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	c := connector(t, Options{Settings: chat.Settings{ID: "telegram", Allow: []string{"5550001"}}, BaseURL: server.URL}, chat.Host{},
		slog.New(slog.DiscardHandler))
	t.Cleanup(c.api.HTTP.CloseIdleConnections)

	return c
}

// Nothing is made of updates that hold nothing for an agent.
func TestUpdatesWithoutAMessage(t *testing.T) {
	c := canned(t, nil)
	for name, u := range map[string]update{"nothing": {ID: 1}, "of nobody": {Message: &incoming{Text: "x"}},
		"of a channel":         {Message: &incoming{From: &user{ID: 1}, Chat: room{Type: "channel"}}},
		"a reaction of nobody": {Reaction: &reaction{}}} {
		if p, ok := c.reader.read(u); ok {
			t.Errorf("%s: %+v", name, p)
		}
	}

	off := &reaction{User: &user{ID: 1}, ID: 7}
	if p, ok := c.reader.read(update{Reaction: off}); !ok || p.Text != "The person took their reaction off message 7" {
		t.Errorf("%+v, %v", p, ok)
	}
	quoted := &incoming{From: &user{ID: 1}, ReplyTo: &incoming{Caption: "under a picture"}}
	if p, ok := c.reader.read(update{Message: quoted}); !ok || p.Quote != "under a picture" {
		t.Errorf("%+v, %v", p, ok)
	}
}

// Each attachment is there once, under its own name or one of its kind.
func TestAttachmentsOfAMessage(t *testing.T) {
	c := canned(t, nil)
	named := func(m media) (names []string) {
		for _, f := range c.reader.files(m) {
			names = append(names, f.Name)
		}
		return names
	}
	all := media{Photo: []file{{Name: "small"}, {}}, Document: &file{Name: "d.pdf"}, Voice: &file{},
		Audio: &file{}, Video: &file{},
		VideoNote: &file{Name: "round.mp4"}}
	if diff := cmp.Diff([]string{"photo.jpg", "d.pdf", "voice.ogg", "audio.mp3", "video.mp4", "round.mp4"},
		named(all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"animation.mp4"}, named(media{Animation: &file{},
		Document: &file{Name: "same"}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A file that Telegram does not name, or names outside of its folder, is not fetched.
func TestFilesThatCannotBeFetched(t *testing.T) {
	for want, answer := range map[string]string{
		"an invalid path": `{"ok":true,"result":{"file_path":"../../x"}}`, "500": `{"ok":false,"error_code":500}`,
		"read answer of getFile": "",
	} {
		if r, err := canned(t, map[string]string{"getFile": answer}).reader.open(t.Context(), "f"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", answer, r, err)
		}
	}

	if _, err := canned(t, map[string]string{"getFile": `{"ok":false,"error_code":400,"description":"file is too big"}`}).
		reader.open(t.Context(), "f"); !errors.Is(err, chat.TooLarge) {
		t.Errorf("too large: %v", err)
	}
}

// A chat that is none is an error of everything that is sent there.
func TestChatsThatAreNone(t *testing.T) {
	c := canned(t, nil)
	none := message.Address{ChannelID: "@name"}
	_, card := c.Card(t.Context(), none, "", "x", nil)
	_, sent := c.Send(t.Context(), message.Outgoing{ID: "o", To: none, Text: "x"})
	for what, err := range map[string]error{"say": c.Say(t.Context(), none, "", "x"), "react": c.React(t.Context(), none, "1", "👍"),
		"typing": c.Typing(t.Context(), none), "card": card, "send": sent, "settle": c.Settle(t.Context(), none, "1", "x")} {
		if err == nil || !strings.Contains(err.Error(), "is not a Telegram chat id") {
			t.Errorf("%s: %v", what, err)
		}
	}

	here := message.Address{ChannelID: "5550001"}
	_, card = c.Card(t.Context(), here, "", "x", nil)
	for what, err := range map[string]error{"say": c.Say(t.Context(), here, "", "x"), "react": c.React(t.Context(), here, "1", "👍"),
		"typing": c.Typing(t.Context(), here), "card": card, "settle": c.Settle(t.Context(), here, "1", "x")} {
		if err == nil || strings.Contains(err.Error(), token) {
			t.Errorf("%s over a cut connection: %v", what, err)
		}
	}
}

// An answer is known by its first message, and quotes in its first part alone.
func TestWhatIsRememberedOfAnAnswer(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := message.File{Name: "n", MimeType: "text/plain", Path: path, Size: 1}
	for part, reply := range []string{"5", ""} {
		before := len(s.Sent())
		id, err := s.c.Send(t.Context(), message.Outgoing{ID: "o", To: message.Address{ChannelID: "5550001"},
			Text: "x", ReplyTo: "5",
			Part: part, Parts: 2, Files: []message.File{f, f}})
		sent := s.Sent()[before:]
		if err != nil || len(sent) != 2 || sent[0].Reply != reply || id != decimal(sent[0].ID) {
			t.Errorf("part %d: %q, %v, sent %+v", part, id, err, sent)
		}
	}

	s.c.api.HTTP.CloseIdleConnections()
}

// A chat without topics is not sent to twice where Telegram knows no thread.
func TestThreadThatIsGone(t *testing.T) {
	c := canned(t, nil)
	no := &apiError{Code: http.StatusBadRequest, Description: "Bad Request: message thread not found"}
	for thread, want := range map[int64]int{0: 1, 3: 2} {
		calls := 0
		o := outgoing{Thread: thread}
		err := c.out.adapt(&o, func() error {
			if calls++; calls == 1 {
				return no
			}
			return nil
		})
		if calls != want || o.Thread != 0 || (err == nil) != (want == 2) {
			t.Errorf("thread %d: %d calls, %v", thread, calls, err)
		}
	}

	done := &message.NotSent{Err: no}
	if judge(done) != error(done) {
		t.Errorf("a verdict was judged again: %v", judge(done))
	}
}

// A connector that cannot work is not made.
func TestOptionsThatCannotWork(t *testing.T) {
	good := Options{Settings: chat.Settings{ID: "telegram", Allow: []string{"5550001"}}}
	for name, tt := range map[string]struct {
		o     Options
		token string
	}{"no token": {good, ""}, "a path as token": {good, "1:a/b"}, "a name allowed": {Options{Settings: chat.Settings{ID: "t",
		Allow: []string{"@ada"}}}, "1:a"},
		"no port": {Options{Settings: chat.Settings{ID: "t"}, Webhook: Webhook{URL: "https://x/", Listen: "127.0.0.1:"}}, "1:a"}} {
		if c, err := New(tt.o, tt.token, chat.Host{}, slog.New(slog.DiscardHandler)); err == nil {
			t.Errorf("%s: %+v", name, c.o)
		}
	}
}

// The probe of a webhook says why Telegram cannot post.
func TestProbeOfAWebhook(t *testing.T) {
	for last, want := range map[string]bool{"": false, "Connection refused": true} {
		for _, hook := range []string{"", "https://example.com/"} {
			c := canned(t, map[string]string{"getMe": `{"ok":true,"result":{"id":7,"username":"b"}}`,
				"getWebhookInfo": `{"ok":true,"result":{"url":"https://example.com/","last_error_message":"` + last + `"}}`})
			c.o.Webhook.URL = hook
			verdict, err := c.Probe(t.Context())
			if err != nil || strings.Contains(verdict, "could not post: "+last) != (want && hook != "") {
				t.Errorf("%q with hook %q: %q, %v", last, hook, verdict, err)
			}
		}
	}
}

// A webhook that cannot be removed ends the connector, and the error says what to do.
func TestPollingThatCannotBegin(t *testing.T) {
	c := canned(t, map[string]string{"deleteWebhook": `{"ok":false,"error_code":401}`,
		"getUpdates": `{"ok":false,"error_code":404}`})
	if err := c.poller.poll(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "deleteWebhook") {
		t.Errorf("%v", err)
	}
	if c = canned(t, map[string]string{"getMe": `{"ok":false,"error_code":401}`}); true {
		if err := c.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "getMe") {
			t.Errorf("%v", err)
		}
	}
}

// What is posted must be to the path of the webhook, by Telegram, and not too large.
func TestPostsThatAreRefused(t *testing.T) {
	c := canned(t, nil)
	other := canned(t, nil)
	other.hook.o.ID = "another"
	if c.hook.secret() == other.hook.secret() {
		t.Error("two connectors of one bot have one secret")
	}

	c.hook.o.Webhook.URL = "https://example.com"
	post := func(method, path string, body io.Reader) (int, http.Header) {
		r := httptest.NewRequest(method, path, body)
		r.Header.Set(secretHeader, c.hook.secret())
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		_, status := c.hook.authentic(w, r)
		return status, w.Header()
	}
	if status, _ := post("POST", "/", strings.NewReader(`{"update_id":7}`)); status != http.StatusOK {
		t.Errorf("a post to a webhook without a path: %d", status)
	}
	if status, h := post("GET", "/", nil); status != http.StatusMethodNotAllowed || h.Get("Allow") != "POST" {
		t.Errorf("GET: %d, Allow %q", status, h.Get("Allow"))
	}

	long := `{"update_id":7,"x":"` + strings.Repeat("x", maxUpdate) + `"}`
	for _, body := range []io.Reader{strings.NewReader(long),
		io.MultiReader(strings.NewReader(long))} { // its length is told, or not
		if status, _ := post("POST", "/", body); status != http.StatusRequestEntityTooLarge {
			t.Errorf("a long body: %d", status)
		}
	}
}

// An error of the client has no address, which has the token.
func TestCleanErrors(t *testing.T) {
	a := newAPI("", token)
	cause := errors.New("refused")
	if err := a.Clean(&url.Error{Op: "Post", URL: "http://x", Err: cause}); err != cause {
		t.Errorf("%v", err)
	}
	if _, err := canned(t, nil).poller.updates(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "read answer of getUpdates") {
		t.Errorf("a cut connection: %v", err)
	}
}

// A message that is edited later is posted as an answer to another; a text that is the same already is no error.
func TestMessagesThatAreEdited(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	to := message.Address{ChannelID: "5550001"}
	id, err := s.c.pen.Post(t.Context(), to, "key", "12", "one")
	if err != nil || id == "" || s.Sent()[0].Reply != "12" {
		t.Errorf("posted as %q, %v: %+v", id, err, s.Sent())
	}
	if _, err := s.c.pen.Post(t.Context(), to, "key", "", "two"); err != nil || s.Sent()[1].Reply != "" {
		t.Errorf("without another: %v, %+v", err, s.Sent())
	}
	if id, err := s.c.pen.Post(t.Context(), message.Address{ChannelID: "nobody"}, "key", "", "x"); err == nil {
		t.Errorf("posted to nobody as %q", id)
	}

	no := canned(t, map[string]string{"sendMessage": `{"ok":false,"error_code":403}`,
		"editMessageText": `{"ok":false,"error_code":400,"description":"Bad Request: message is not modified: it is the same"}`})
	if id, err := no.pen.Post(t.Context(), to, "key", "", "x"); err == nil {
		t.Errorf("posted as %q to a chat that is closed", id)
	}
	if err := no.pen.Edit(t.Context(), to, "7", "the same"); err != nil {
		t.Errorf("the same text: %v", err)
	}
	gone := canned(t, map[string]string{
		"editMessageText": `{"ok":false,"error_code":400,"description":"Bad Request: message to edit not found"}`})
	if err := gone.pen.Edit(t.Context(), to, "7", "x"); !errors.As(err, new(*message.NotSent)) {
		t.Errorf("a message that is gone: %v", err)
	}
}

// A reaction says to which message, and the emoji that came last.
func TestAReactionHasItsMessage(t *testing.T) {
	c := canned(t, nil)
	for want, on := range map[string]*reaction{"7 👍": {User: &user{ID: 1}, ID: 7, New: []symbol{{Emoji: "👀"}, {Emoji: "👍"}}},
		" ": {User: &user{ID: 1}, ID: 7}} {
		if p, ok := c.reader.read(update{Reaction: on}); !ok || p.Reaction.To+" "+p.Reaction.Emoji != want {
			t.Errorf("%+v, want %q", p.Reaction, want)
		}
	}
}

// A message that is not accepted is fetched again after a pause.
func TestAMessageThatIsNotAcceptedIsFetchedLater(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	s.c.poller.pause = 200 * time.Millisecond
	var at []time.Time
	ctx, cancel := context.WithCancel(t.Context())
	s.c.poller.take = func(context.Context, message.Deliver, update) error {
		if at = append(at, time.Now()); len(at) == 1 {
			return errors.New("full")
		}
		cancel()
		return nil
	}
	s.Push(telegramtest.Text(ada, "hello"))
	if err := s.c.poller.poll(ctx, s.deliver); err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	if took := at[1].Sub(at[0]); took < s.c.poller.pause {
		t.Errorf("it was fetched again after %v", took)
	}
	if !strings.Contains(s.said.String(), "not accepted") {
		t.Errorf("the log has %q", s.said.String())
	}
}

// After a week without one an update has any number, also a lower one. It is confirmed, and taken
// once; an offset that Telegram does not know of confirms nothing.
func TestUpdatesBeginAtAnotherNumber(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	s.run(t)
	s.push(t, telegramtest.Text(ada, "before"))
	asked, id := s.Calls("getUpdates"), int64(10)
	s.Repeat(id, telegramtest.Text(ada, "a week later"))
	s.Wait(t.Context(), func() bool { return s.Confirmed(id) || s.Calls("getUpdates") > asked+20 })
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.taken) != 2 || !s.Confirmed(id) {
		t.Errorf("delivered %d messages, confirmed: %v; want two, the second confirmed", len(s.taken), s.Confirmed(id))
	}
}

// All pictures of an album are for us if the one with the words is, and those of others are not.
func TestAlbumsInGroups(t *testing.T) {
	c := canned(t, nil)
	c.reader.me = user{ID: 777, Username: "test_bot"}
	picture := func(album, caption string) bool {
		m := &incoming{ID: 1, From: &user{ID: 5550001}, Chat: room{ID: -100200, Type: "supergroup"}, Caption: caption,
			part: part{Album: album}, media: media{Photo: []file{{ID: "f"}}}}
		if caption != "" {
			m.InCaps = []entity{{Type: "mention", Length: len("@test_bot")}}
		}
		p, _ := c.reader.message("1", m)
		return p.Addressed
	}
	for i, tt := range []struct {
		album, caption string
		want           bool
	}{{"a", "", false}, {"b", "@test_bot compare", true}, {"b", "", true}, {"b", "", true}, {"a", "", false}, {"", "", false}} {
		if got := picture(tt.album, tt.caption); got != tt.want {
			t.Errorf("picture %d %+v is for us: %v", i, tt, got)
		}
	}
	for n := range maxAlbums {
		picture(fmt.Sprint(n), "@test_bot")
	}
	if picture("b", "") || len(c.reader.albums) != maxAlbums {
		t.Errorf("%d albums are remembered, want the newest %d", len(c.reader.albums), maxAlbums)
	}
}
