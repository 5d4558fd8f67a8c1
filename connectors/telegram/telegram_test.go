package telegram

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/connectors/chat"
	"daycare/connectors/format"
	"daycare/connectors/telegram/telegramtest"
	"daycare/engine/message"
)

// stage is a running connector on a fake, with what it delivered.
type stage struct {
	*telegramtest.Server
	c     *Connector
	said  bytes.Buffer
	mu    sync.Mutex
	taken []message.Incoming
}

func newStage(t *testing.T, o Options, host chat.Host) *stage {
	t.Helper()
	s := &stage{Server: telegramtest.New(token)}
	t.Cleanup(s.Close)
	o.ID, o.BaseURL = "telegram", s.URL
	if o.Allow == nil {
		o.Allow = []string{"5550001"}
	}
	s.c = connector(t, o, host, slog.New(slog.NewTextHandler(&s.said, nil)))

	return s
}

func (s *stage) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.c.Run(ctx, s.deliver) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

func (s *stage) deliver(_ context.Context, in message.Incoming) (message.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = append(s.taken, in)
	return message.Receipt{Agent: "agent"}, nil
}

// push hands an update over and waits until it is confirmed.
func (s *stage) push(t *testing.T, body map[string]any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	id := s.Push(body)
	if !s.Wait(ctx, func() bool { return s.Confirmed(id) }) {
		t.Fatalf("the update was not confirmed; log:\n%s", s.said.String())
	}
}

func (s *stage) last(t *testing.T) message.Incoming {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.taken) == 0 {
		t.Fatal("nothing was delivered")
	}
	in := s.taken[len(s.taken)-1]
	s.taken = nil

	return in
}

func (s *stage) none(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.taken) > 0 {
		t.Errorf("delivered %+v, want nothing", s.taken)
	}
}

// of is a message with more in it.
func of(more map[string]any) map[string]any {
	m := telegramtest.Message(ada, "")
	delete(m, "text")
	for k, v := range more {
		m[k] = v
	}
	return map[string]any{"message": m}
}

// store keeps files in memory.
type store struct {
	mu   sync.Mutex
	kept map[string]string
}

func (s *store) Put(name string, r io.Reader) (message.File, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return message.File{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[name] = string(data)

	return message.File{ID: name, Name: name, Size: int64(len(data))}, nil
}

func TestReceiveKinds(t *testing.T) {
	files := &store{kept: map[string]string{}}
	s := newStage(t, Options{}, chat.Host{Files: files})
	s.Files = map[string][]byte{"big": []byte("large photo"), "doc": []byte("document"), "v": []byte("voice")}
	s.run(t)
	tests := []struct {
		name  string
		more  map[string]any
		text  string
		files []string
	}{
		{"caption and photo", map[string]any{"caption": "look",
			"photo": []any{map[string]any{"file_id": "small"}, map[string]any{"file_id": "big"}}}, "look", []string{"photo.jpg"}},
		{"document", map[string]any{"document": map[string]any{"file_id": "doc", "file_name": "a.pdf", "file_size": 8}},
			"", []string{"a.pdf"}},
		{"voice", map[string]any{"voice": map[string]any{"file_id": "v"}}, "", []string{"voice.ogg"}},
		{"too large", map[string]any{"caption": "x",
			"document": map[string]any{"file_id": "doc", "file_name": "a.iso", "file_size": 21 << 20}},
			"x\n[the file a.iso is missing: it is over 20 MB]", nil},
		{"too large for the bot", map[string]any{"video": map[string]any{"file_id": "not there"}},
			"[the file video.mp4 is missing: it is over 20 MB]", nil},
		{"location", map[string]any{"location": map[string]any{"latitude": 52.5, "longitude": 13.4}},
			"[location: 52.500000, 13.400000]", nil},
		{"contact", map[string]any{"contact": map[string]any{"phone_number": "+49", "first_name": "B",
			"last_name": "C"}}, "[contact: B C, +49]", nil},
		{"sticker", map[string]any{"sticker": map[string]any{"emoji": "👍"}}, "👍", nil},
		{"forward", map[string]any{"text": "news",
			"forward_origin": map[string]any{"sender_user": map[string]any{"first_name": "Bob"}}}, "[forwarded from Bob]\nnews", nil},
		{"reply", map[string]any{"text": "yes",
			"reply_to_message": map[string]any{"message_id": 7, "text": "two\nlines"}}, "> two\n> lines\n\nyes", nil},
		{"a path is no command", map[string]any{"text": "/etc/passwd is what?"}, "/etc/passwd is what?", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s.push(t, of(test.more))
			in := s.last(t)
			var names []string
			for _, f := range in.Files {
				names = append(names, f.Name)
			}
			if in.Text != test.text || !cmp.Equal(names, test.files) {
				t.Errorf("delivered %q with %q, want %q with %q", in.Text, names, test.text, test.files)
			}
		})
	}

	if files.kept["photo.jpg"] != "large photo" {
		t.Errorf("kept %q, want the largest size of the photo", files.kept["photo.jpg"])
	}
	s.push(t, of(nil)) // nothing that anybody could read
	s.none(t)
}

func TestEditsAndReactionsAreNotes(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	s.run(t)
	edited := telegramtest.Message(ada, "better")
	s.push(t, map[string]any{"edited_message": edited})
	if in := s.last(t); in.Kind != message.System || !in.Silent || !strings.HasSuffix(in.Text, "It now reads:\n\nbetter") {
		t.Errorf("an edit is delivered as %+v, want a silent note", in)
	}
	s.push(t, map[string]any{"message_reaction": map[string]any{"message_id": 9, "chat": map[string]any{"id": ada, "type": "private"},
		"user": map[string]any{"id": ada, "first_name": "Ada"}, "new_reaction": []any{map[string]any{"type": "emoji", "emoji": "❤"}}}})
	if in := s.last(t); !in.Silent || in.Text != "The person reacted to message 9 with ❤" {
		t.Errorf("a reaction is delivered as %+v, want a silent note", in)
	}
}

func TestGroups(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	s.run(t)
	group := func(more map[string]any) map[string]any {
		more["chat"] = map[string]any{"id": -100200, "type": "supergroup"}
		return of(more)
	}
	s.push(t, group(map[string]any{"text": "hello all"}))
	s.none(t)
	s.push(t, group(map[string]any{"text": "@Test_Bot 😀 hello",
		"entities": []any{map[string]any{"type": "mention", "offset": 0, "length": 9}}}))
	in := s.last(t)
	if want := (message.Address{Connector: "telegram", ChannelID: "-100200", UserID: "5550001"}); in.Text != "😀 hello" || in.From != want {
		t.Errorf("delivered %q from %+v, want the text without the name, from %+v", in.Text, in.From, want)
	}

	s.push(t, group(map[string]any{"text": "and?", "message_thread_id": 5, "is_topic_message": true,
		"reply_to_message": map[string]any{"message_id": 8, "text": "x", "from": map[string]any{"id": 777}}}))
	if in := s.last(t); in.From.ThreadID != "5" || in.Route == nil || in.Route.ThreadID != "5" {
		t.Errorf("from %+v, route %+v: want the topic in both", in.From, in.Route)
	}
	s.push(t, group(map[string]any{"text": "/stop@other_bot",
		"entities": []any{map[string]any{"type": "bot_command", "offset": 0, "length": 15}}}))
	s.push(t, group(map[string]any{"text": "/help@test_bot",
		"entities": []any{map[string]any{"type": "bot_command", "offset": 0, "length": 14}}}))
	s.none(t)
	if sent := s.Sent(); len(sent) != 1 || !strings.Contains(sent[0].Text, "/reset") || sent[0].Chat != "-100200" {
		t.Errorf("sent %+v, want one list of commands to the group", sent)
	}

	stranger := telegramtest.Message(666, "psst")
	stranger["chat"] = map[string]any{"id": -100200, "type": "supergroup"}
	s.push(t, map[string]any{"message": stranger})
	if len(s.Sent()) != 1 {
		t.Error("somebody who did not speak to the bot was answered")
	}
}

func TestStrangers(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	s.run(t)
	for range 3 {
		s.push(t, telegramtest.Text(666, "let me in"))
	}
	s.none(t)
	sent := s.Sent()
	if len(sent) != 2 || sent[0].Chat != "666" || !strings.Contains(sent[0].Text, "666") || sent[1].Chat != "5550001" ||
		!strings.Contains(sent[1].Text, "666") {
		t.Fatalf("sent %+v, want one notice to the stranger and one to the owner", sent)
	}
	if n := strings.Count(s.said.String(), "not in allow"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, s.said.String())
	}

	for i := range 20 {
		s.push(t, telegramtest.Text(int64(700+i), "flood"))
	}
	if n := len(s.Sent()); n > 12 {
		t.Errorf("%d notices after a flood of strangers, want a handful", n)
	}
}

func TestMenu(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	s.run(t)
	s.push(t, telegramtest.Text(ada, "/nonsense"))
	want := []string{"help", "status", "stop", "reset", "compact", "mark", "rewind", "context", "model", "agents", "permissions"}
	if diff := cmp.Diff(want, s.Menu()); diff != "" {
		t.Errorf("menu (-want +got):\n%s", diff)
	}
	if sent := s.Sent(); len(sent) != 1 || !strings.Contains(sent[0].Text, "/permissions") {
		t.Errorf("sent %+v, want the list", sent)
	}

	s.push(t, telegramtest.Text(ada, "/reset"))
	if in := s.last(t); in.Kind != message.Reset || in.Dedupe == "" {
		t.Errorf("/reset delivers %+v", in)
	}
}

func send(t *testing.T, c *Connector, out message.Outgoing) error {
	t.Helper()
	out.To.Connector, out.Parts = "telegram", max(out.Parts, 1)
	_, err := c.Send(t.Context(), out)
	return err
}

func TestSend(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	to := message.Address{ChannelID: "5550001"}
	if err := send(t, s.c, message.Outgoing{ID: "a", To: to, ReplyTo: "12", Text: "**bold** <i>"}); err != nil {
		t.Fatal(err)
	}
	if got := s.Sent()[0]; got.Source != "<b>bold</b> &lt;i&gt;" || got.Mode != "HTML" || got.Reply != "12" {
		t.Errorf("sent %+v", got)
	}

	s.Fault = func(string) telegramtest.Fault {
		if s.Calls("sendMessage") < 2 {
			return telegramtest.Entities
		}
		return telegramtest.OK
	}
	if err := send(t, s.c, message.Outgoing{ID: "b", To: to, Text: "**bold**"}); err != nil {
		t.Fatal(err)
	}
	if got := s.Sent()[1]; got.Source != "bold" || got.Mode != "" {
		t.Errorf("sent %+v, want plain text where HTML is refused", got)
	}

	s.Fault = nil
	if err := send(t, s.c, message.Outgoing{ID: "c", To: message.Address{ChannelID: "-50"}, Text: "moved"}); err != nil {
		t.Fatal(err)
	}
	if got := s.Sent()[2]; got.Chat != "-10050" {
		t.Errorf("sent to %s, want the group's new id", got.Chat)
	}

	for _, chat := range []string{"404", "nobody"} {
		err := send(t, s.c, message.Outgoing{ID: "d", To: message.Address{ChannelID: chat}, Text: "x"})
		var no *message.NotSent
		if !errors.As(err, &no) || !no.Final {
			t.Errorf("chat %s: Send = %v, want a final error", chat, err)
		}
	}
}

func TestReact(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	to := message.Address{ChannelID: "5550001", ThreadID: "3"}
	for range 2 { // a call whose answer was lost is made again
		if err := s.c.React(t.Context(), to, "12", "❤\uFE0F"); err != nil {
			t.Fatal(err)
		}
	}

	if got := s.Reaction("5550001", "12"); got != "❤" {
		t.Errorf("reaction %q", got)
	}
	for id, want := range map[string]string{"12": "has no reaction 🦄", "twelve": "not a Telegram message id"} {
		if err := s.c.React(t.Context(), to, id, "🦄"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("message %s: %v, want %q", id, err, want)
		}
	}
}

func TestSendFiles(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := message.Outgoing{ID: "a", To: message.Address{ChannelID: "5550001"}, Text: "two files",
		Files: []message.File{{Name: "p.png", MimeType: "image/png", Path: path, Size: 7},
			{Name: "d.txt", MimeType: "text/plain", Path: path, Size: 7}}}
	calls := 0
	s.Fault = func(string) telegramtest.Fault {
		if calls++; calls == 2 {
			return telegramtest.Broken
		}
		return telegramtest.OK
	}
	if err := send(t, s.c, out); err == nil {
		t.Fatal("Send = nil, want the second file's error")
	}

	out.Retry = true
	if err := send(t, s.c, out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range s.Sent() {
		got = append(got, m.Method+" "+m.File+" "+m.Text)
	}

	if diff := cmp.Diff([]string{"sendPhoto p.png two files", "sendDocument d.txt "}, got); diff != "" {
		t.Errorf("sent, without what was there already (-want +got):\n%s", diff)
	}
}

// TestLongAnswer: every part of a long text with tables and code is taken as it
// is, formatted, and nothing of it is missing.
func TestLongAnswer(t *testing.T) {
	source, err := os.ReadFile("../format/testdata/long.md")
	if err != nil {
		t.Fatal(err)
	}
	s := newStage(t, Options{}, chat.Host{})
	parts := s.c.Split(string(source))
	for i, text := range parts {
		if err := send(t, s.c, message.Outgoing{ID: "long", To: message.Address{ChannelID: "5550001"}, Text: text,
			Part: i, Parts: len(parts)}); err != nil {
			t.Fatalf("part %d: %v", i+1, err)
		}
	}

	var all strings.Builder
	for i, m := range s.Sent() {
		if m.Mode != "HTML" {
			t.Errorf("message %d lost its format", i+1)
		}
		if n := format.UTF16(m.Text); n > maxText {
			t.Errorf("message %d is %d long", i+1, n)
		}
		all.WriteString(m.Text + "\n")
	}

	for _, want := range []string{"node-090.example.com", "billing-45", "Say go and I begin"} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	t.Logf("%d characters in %d messages", len([]rune(string(source))), len(s.Sent()))
}

func TestRunEndsWhereNothingHelps(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault telegramtest.Fault
		of    string
		want  string
	}{
		{"somebody else polls", telegramtest.Conflict, "getUpdates", "another program"},
		{"the token is revoked", "401", "", "daycare auth set telegram"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStage(t, Options{}, chat.Host{})
			s.Fault = func(method string) telegramtest.Fault {
				if method == test.of {
					return test.fault
				}
				return telegramtest.OK
			}
			if test.fault == "401" {
				s.Token = "778:another"
			}

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			err := s.c.Run(ctx, s.deliver)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), token) {
				t.Errorf("Run = %v, want one that says %q", err, test.want)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	verdict, err := s.c.Probe(t.Context())
	if err != nil || !strings.Contains(verdict, "@test_bot (777) answers") {
		t.Errorf("Probe = %q, %v", verdict, err)
	}
	s.Token = "778:another"
	if _, err := s.c.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "auth set") {
		t.Errorf("Probe = %v, want what to do", err)
	}
}

func TestValidate(t *testing.T) {
	for _, o := range []Options{
		{}, {Settings: chat.Settings{ID: "t", Allow: []string{"@ada"}}}, {Settings: chat.Settings{ID: "t"}, BaseURL: "ftp://x"},
		{Settings: chat.Settings{ID: "t"}, Webhook: Webhook{URL: "http://x/", Listen: "127.0.0.1:1"}},
		{Settings: chat.Settings{ID: "t"}, Webhook: Webhook{URL: "https://x/"}},
	} {
		if o.Validate() == nil {
			t.Errorf("%+v is valid, want an error", o)
		}
	}
	if _, err := New(Options{Settings: chat.Settings{ID: "t"}}, "", chat.Host{}, slog.New(slog.DiscardHandler)); err == nil ||
		!strings.Contains(err.Error(), "BotFather") {
		t.Errorf("New without a token = %v, want what to do", err)
	}
}
