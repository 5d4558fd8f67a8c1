package telegram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/connectors/chat"
	"daycare/connectors/telegram/telegramtest"
	"daycare/engine/message"
)

// What Telegram answers is a result or a no, with what it asks for, and never has the token.
func TestAnswersOfTheAPI(t *testing.T) {
	a := newAPI("", "123:secret")
	if a.Base != officialAPI || newAPI("http://x/y/", "t").Base != "http://x/y" {
		t.Errorf("the address is %s", a.Base)
	}
	type result struct{ N int }
	for name, tt := range map[string]struct {
		status int
		body   string
		want   result
		no     *apiError
		err    string
	}{
		"a result":       {200, `{"ok":true,"result":{"N":7}}`, result{7}, nil, ""},
		"another result": {200, `{"ok":true,"result":"x"}`, result{}, nil, "read result of m"},
		"not JSON":       {200, `<html>`, result{}, nil, "not JSON"},
		"a proxy's page": {502, `<html>`, result{}, &apiError{Method: "m", Code: 502, Description: "Bad Gateway"}, ""},
		"a no": {400, `{"ok":false,"error_code":400,"description":"Bad Request"}`, result{},
			&apiError{Method: "m", Code: 400, Description: "Bad Request"}, ""},
		"a no without a code": {403, `{"ok":false}`, result{}, &apiError{Method: "m", Code: 403, Description: "Forbidden"}, ""},
		"a no with the token": {401, `{"ok":false,"error_code":401,"description":"bot123:secret"}`, result{},
			&apiError{Method: "m", Code: 401, Description: "bot[redacted]"}, ""},
		"a pause and a new chat": {429, `{"ok":false,"error_code":429,"description":"x","parameters":{"retry_after":3,` +
			`"migrate_to_chat_id":-5}}`, result{},
			&apiError{Method: "m", Code: 429, Description: "x", RetryAfter: 3 * time.Second, MigrateTo: -5}, ""},
	} {
		var got result
		err := a.read("m", tt.status, []byte(tt.body), &got)
		var no *apiError
		errors.As(err, &no)
		if diff := cmp.Diff(tt.no, no); diff != "" || got != tt.want ||
			(err == nil) != (tt.no == nil && tt.err == "") || tt.err != "" && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %+v, %v\n%s", name, got, err, diff)
		}
	}

	if err := a.read("m", 200, []byte(`{"ok":true,"result":"x"}`), nil); err != nil {
		t.Errorf("a result that nobody wants: %v", err)
	}
	no := fmt.Errorf("x: %w", &apiError{Method: "m", Code: 400, Description: "Message is Too Long"})
	for want, got := range map[string]bool{"any": is(no, 400), "said": is(no, 400, "other", "too long")} {
		if !got {
			t.Errorf("%s is not found", want)
		}
	}

	if is(no, 401) || is(no, 400, "other") || is(errors.New("400"), 400) || is(nil, 400) {
		t.Error("a no is found that is none")
	}
}

// What fails on the way says which call it was.
func TestCallsThatFail(t *testing.T) {
	a := newAPI("http://127.0.0.1:1", "123:secret")
	for what, err := range map[string]error{
		"no server":       a.call(t.Context(), "m", struct{}{}, nil),
		"no JSON":         a.call(t.Context(), "m", func() {}, nil),
		"a broken upload": a.upload(t.Context(), "m", nil, "f", "n", broken{}, nil),
		"no address":      newAPI("http://a b", "t").call(t.Context(), "m", struct{}{}, nil),
	} {
		if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), " m") {
			t.Errorf("%s: %v", what, err)
		}
	}

	for what, base := range map[string]string{"no server": "http://127.0.0.1:1", "no address": "http://a b"} {
		if body, err := newAPI(base, "123:secret").download(t.Context(), "p"); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, %v", what, body, err)
		}
	}
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/gone") {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "{")
	}))
	defer cut.Close()
	a = newAPI(cut.URL, "t")
	defer a.HTTP.CloseIdleConnections()
	if err := a.call(t.Context(), "m", struct{}{}, nil); err == nil || !strings.Contains(err.Error(), "read answer of m") {
		t.Errorf("an answer that is cut short: %v", err)
	}
	if _, err := a.download(t.Context(), "gone"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("a file that is gone: %v", err)
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("broken") }

// What a message holds beside its text is said in words.
func TestDescriptions(t *testing.T) {
	ada := &user{FirstName: "Ada", LastName: "Lovelace"}
	for want, o := range map[string]*origin{"": nil, "Ada Lovelace": {Sender: ada, SenderName: "x"},
		"Hidden": {SenderName: "Hidden"}, "someone": {},
		"News": {Chat: &struct {
			Title string `json:"title"`
		}{"News"}}} {
		if got := forwarded(o); got != want {
			t.Errorf("%+v is from %q, want %q", o, got, want)
		}
	}

	at := &location{Latitude: 1.5, Longitude: -2}
	for want, m := range map[string]media{
		"": {}, "[location: 1.500000, -2.000000]": {Location: at},
		"[place: Museum, Street 1 (1.500000, -2.000000)]": {Location: at, Venue: &venue{"Museum", "Street 1"}},
		"[contact: Ada Lovelace, 123]":                    {Contact: &contact{"123", "Ada", "Lovelace"}},
		"[poll: Why?]":                                    {Poll: &poll{Question: "Why?"}}, "😀": {Sticker: &sticker{"😀"}},
	} {
		if got := m.described(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}

	if (media{Sticker: &sticker{}}).described() != "" || (media{Venue: &venue{}}).described() != "" {
		t.Error("nothing is described")
	}
	if name(&user{Username: "ada"}) != "ada" || name(&user{FirstName: "Ada", Username: "x"}) != "Ada" {
		t.Error("a person has another name")
	}
}

// Only what names the bot is for it, and its name is taken off.
func TestAddressed(t *testing.T) {
	c := &Connector{reader: &reader{me: user{ID: 7, Username: "Test_Bot"}}}
	for name, tt := range map[string]struct {
		text     string
		entities []entity
		rest     string
		forUs    bool
	}{
		"plain":               {"hello", nil, "hello", false},
		"in front":            {"@test_bot, hello", []entity{{Type: "mention", Length: 9}}, "hello", true},
		"alone":               {"@test_bot", []entity{{Type: "mention", Length: 9}}, "@test_bot", true},
		"behind, after emoji": {"😀 @Test_Bot", []entity{{Type: "mention", Offset: 3, Length: 9}}, "😀 @Test_Bot", true},
		"another":             {"@other hi", []entity{{Type: "mention", Length: 6}}, "@other hi", false},
		"two": {"@test_bot @other",
			[]entity{{Type: "mention", Length: 9}, {Type: "mention", Offset: 10, Length: 6}}, "@other", true},
		"by number":         {"Bot hi", []entity{{Type: "text_mention", Length: 3, User: &user{ID: 7}}}, "Bot hi", true},
		"by another number": {"Bot hi", []entity{{Type: "text_mention", Length: 3, User: &user{ID: 8}}}, "Bot hi", false},
		"by no number":      {"Bot hi", []entity{{Type: "text_mention", Length: 3}}, "Bot hi", false},
		"a command":         {"/stop now", []entity{{Type: "bot_command", Length: 5}}, "/stop now", true},
		"our command":       {"/stop@test_bot now", []entity{{Type: "bot_command", Length: 14}}, "/stop now", true},
		"another's command": {"/stop@other now", []entity{{Type: "bot_command", Length: 11}}, "/stop@other now", false},
		"a command behind":  {"see /stop", []entity{{Type: "bot_command", Offset: 4, Length: 5}}, "see /stop", false},
		"past the end": {"hi", []entity{{Type: "mention", Offset: 1, Length: 5},
			{Type: "mention", Offset: -1, Length: 1}, {Type: "mention", Length: -1}}, "hi", false},
	} {
		if rest, forUs := c.reader.addressed(tt.text, tt.entities); rest != tt.rest || forUs != tt.forUs {
			t.Errorf("%s: %q, %v", name, rest, forUs)
		}
	}
}

// An error says whether the answer is tried again.
func TestJudge(t *testing.T) {
	no := func(code int) error { return fmt.Errorf("x: %w", &apiError{Code: code, RetryAfter: time.Minute}) }
	for code, want := range map[int]message.NotSent{429: {After: time.Minute}, 403: {Final: true}, 400: {Final: true}, 413: {Final: true}} {
		var got *message.NotSent
		if err := judge(no(code)); !errors.As(err, &got) || got.After != want.After || got.Final != want.Final {
			t.Errorf("%d: %v", code, err)
		}
	}

	for _, err := range []error{no(401), no(404), no(500), errors.New("x"), &message.NotSent{Final: true}} {
		if judge(err) != err {
			t.Errorf("%v is another error", err)
		}
	}
}

// Errors that no repetition heals say what to do.
func TestExplains(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	for code, want := range map[int]string{401: "auth set", 404: "auth set", 409: "another program", 500: "m: 500 "} {
		if err := s.c.explain(&apiError{Method: "m", Code: code}); !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, want %q", code, err, want)
		}
	}
}

// Run ends no sooner than Telegram asks for, so that it is not called again before.
func TestRunWaitsAsTelegramAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Options{Settings: chat.Settings{ID: "telegram"}}, token, chat.Host{}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		c.api.HTTP.Transport = answering(`{"ok":false,"error_code":429,"description":"slow down","parameters":{"retry_after":7}}`)
		began := time.Now()
		err = c.Run(t.Context(), nil)
		if took := time.Since(began); took != 7*time.Second || !is(err, 429) {
			t.Errorf("Run = %v after %v, want a 429 after 7s", err, took)
		}
	})
}

// answering answers every call with this.
type answering string

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

// A card is shown with its buttons, pressed, and replaced; "typing" needs a chat.
func TestCards(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	to := message.Address{ChannelID: "5550001", ThreadID: "3"}
	id, err := s.c.Card(t.Context(), to, "", "May **I**?", []chat.Choice{{Label: "Yes", Data: "y"}, {Label: "No", Data: "n"}})
	if err != nil || id == "0" {
		t.Fatalf("%q, %v", id, err)
	}
	if got := s.Sent()[0]; strings.Join(got.Buttons, " ") != "y n" && strings.Join(got.Buttons, " ") != "Yes No" ||
		got.Thread != "3" || got.Mode != "HTML" {
		t.Errorf("%+v", got)
	}
	if err := s.c.Settle(t.Context(), to, id, "Done"); err != nil || s.Calls("editMessageText") != 1 {
		t.Errorf("%v after %d calls", err, s.Calls("editMessageText"))
	}
	if err := s.c.Typing(t.Context(), to); err != nil || s.Calls("sendChatAction") != 1 {
		t.Errorf("%v after %d calls", err, s.Calls("sendChatAction"))
	}

	nowhere := message.Address{ChannelID: "nobody"}
	_, card := s.c.Card(t.Context(), nowhere, "", "x", nil)
	for what, err := range map[string]error{"card": card, "settle": s.c.Settle(t.Context(), nowhere, id, "x"),
		"typing": s.c.Typing(t.Context(), nowhere),
		"say":    s.c.Say(t.Context(), nowhere, "", "x"), "react": s.c.React(t.Context(), nowhere, "1", "x"),
		"settle nothing": s.c.Settle(t.Context(), to, "x", "x")} {
		if err == nil {
			t.Errorf("%s of nobody says nothing", what)
		}
	}

	if err := s.c.Say(t.Context(), to, "12", "a **notice**"); err != nil {
		t.Fatal(err)
	}
	if got := s.Sent()[2]; got.Reply != "12" || got.Text != "a notice" {
		t.Errorf("%+v", got)
	}
	if s.c.Interim() || !(pen{Named: chat.Named{Settings: chat.Settings{Interim: true}}}).Interim() || s.c.Address() != "" {
		t.Error("what the connector is is not what its settings say")
	}
	if direct, ok := s.c.Direct("7"); !ok || direct.ChannelID != "7" || direct.UserID != "7" {
		t.Errorf("%+v", direct)
	}

	s.run(t)
	s.push(t, map[string]any{"callback_query": map[string]any{"id": "q", "from": map[string]any{"id": 5550001}, "data": "unknown"}})
	if s.Calls("answerCallbackQuery") != 1 {
		t.Errorf("a pressed button was answered %d times", s.Calls("answerCallbackQuery"))
	}

	// A button in a group: its card is the message there, and not one of the chat with whoever pressed it.
	s.push(t, map[string]any{"callback_query": map[string]any{"id": "q2", "from": map[string]any{"id": 5550001}, "data": "unknown",
		"message": map[string]any{"message_id": 77, "chat": map[string]any{"id": -100200, "type": "group"}}}})
	sent := s.Sent()
	if got := sent[len(sent)-1]; got.Method != "editMessageText" || got.Chat != "-100200" || got.Edits != "77" {
		t.Errorf("the card of a group is settled with %+v", got)
	}
}

// A file that is not there is not tried forever; long texts go beside their files.
func TestFilesThatAreSent(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	to := message.Address{ChannelID: "5550001", ThreadID: "3"}
	file := func(media string, size int64) message.File {
		return message.File{Name: "n", MimeType: media, Path: path, Size: size}
	}
	for _, tt := range []struct {
		f      message.File
		text   string
		reply  string
		method []string
	}{
		{file("image/png", maxPhoto), "x", "5", []string{"sendPhoto"}}, {file("image/png", maxPhoto+1), "x", "", []string{"sendDocument"}},
		{file("image/svg+xml", 1), "x", "", []string{"sendDocument"}}, {file("image/gif", 1), "", "", []string{"sendDocument"}},
		{file("text/plain", 1), strings.Repeat("x", maxCaption), "", []string{"sendDocument"}},
		{file("text/plain", 1), strings.Repeat("x", maxCaption+1), "5", []string{"sendMessage", "sendDocument"}},
	} {
		before := len(s.Sent())
		if err := send(t, s.c, message.Outgoing{ID: fmt.Sprint(before), To: to, Text: tt.text, ReplyTo: tt.reply,
			Files: []message.File{tt.f}}); err != nil {
			t.Fatal(err)
		}
		var methods []string
		for _, m := range s.Sent()[before:] {
			methods = append(methods, m.Method)
			if m.Thread != "3" || m.Reply != tt.reply {
				t.Errorf("%+v", m)
			}
		}

		if diff := cmp.Diff(tt.method, methods); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.f, diff)
		}
	}

	gone := file("text/plain", 1)
	gone.Path += "x"
	var no *message.NotSent
	if err := send(t, s.c, message.Outgoing{ID: "g", To: to, Files: []message.File{gone}}); !errors.As(err, &no) || !no.Final {
		t.Errorf("a file that is gone: %v", err)
	}

	before := len(s.Sent())
	if err := send(t, s.c, message.Outgoing{ID: "e", To: to, Text: " "}); err != nil || len(s.Sent()) != before {
		t.Errorf("a text of nothing: %v", err)
	}
}

// A file arrives in a group that has another number now, where its caption is not taken as it is,
// and as a document where it is a picture but no photo for Telegram.
func TestFilesThatAreTakenOtherwise(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	path := filepath.Join(t.TempDir(), "tall.png")
	var tall bytes.Buffer
	if err := png.Encode(&tall, image.NewGray(image.Rect(0, 0, 10, 300))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, tall.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		media, chat string
		refuse      bool // the caption's marks, once
		want        string
	}{
		{"text/plain", "-50", false, "sendDocument -10050 HTML words"},
		{"image/png", "-50", false, "sendDocument -10050 HTML words"},
		{"text/plain", "5550001", true, "sendDocument 5550001  words"},
	} {
		s.Fault = func(string) telegramtest.Fault {
			if tt.refuse {
				tt.refuse = false
				return telegramtest.Entities
			}
			return telegramtest.OK
		}
		err := send(t, s.c, message.Outgoing{ID: fmt.Sprint(i), To: message.Address{ChannelID: tt.chat}, Text: "**words**",
			Files: []message.File{{Name: "f", MimeType: tt.media, Path: path, Size: int64(tall.Len())}}})
		sent := s.Sent()
		if err != nil || len(sent) != i+1 {
			t.Fatalf("%+v: %v, sent %+v", tt, err, sent)
		}
		m := sent[i]
		if got := strings.Join([]string{m.Method, m.Chat, m.Mode, m.Text}, " "); got != tt.want || m.File != "f" {
			t.Errorf("sent %q of %q, want %q", got, m.File, tt.want)
		}
	}
	if err := s.c.Settle(t.Context(), message.Address{ChannelID: "-50"}, "7", "done"); err != nil {
		t.Errorf("a card of a group that moved: %v", err)
	}
}

// The verdict of a probe has what a user should do about it.
func TestProbeSaysWhatIsOdd(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	if verdict, err := s.c.Probe(t.Context()); err != nil || strings.Contains(verdict, "webhook") {
		t.Errorf("%q, %v", verdict, err)
	}
	s = newStage(t, Options{}, chat.Host{})
	if err := s.c.api.call(t.Context(), "setWebhook", map[string]any{"url": "http://127.0.0.1:1/", "secret_token": "x"}, nil); err != nil {
		t.Fatal(err)
	}
	if verdict, err := s.c.Probe(t.Context()); err != nil ||
		!strings.Contains(verdict, "another program has set a webhook") {
		t.Errorf("%q, %v", verdict, err)
	}

	s.Fault = func(method string) telegramtest.Fault {
		if method == "getWebhookInfo" {
			return telegramtest.Broken
		}
		return telegramtest.OK
	}
	if verdict, err := s.c.Probe(t.Context()); err == nil || verdict != "" {
		t.Errorf("%q, %v", verdict, err)
	}

	s.Fault = func(string) telegramtest.Fault { return telegramtest.Broken }
	if verdict, err := s.c.Probe(t.Context()); err == nil || verdict != "" {
		t.Errorf("%q, %v", verdict, err)
	}
}

// An update that breaks its handler is tried three times, then passed over.
func TestAnUpdateThatBreaksItsHandler(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	u := update{ID: 7, Message: &incoming{ID: 1, From: &user{ID: 5550001, FirstName: "Ada"},
		Chat: room{ID: 5550001, Type: "private"}, Text: "x"}}
	bad := func(context.Context, message.Incoming) (message.Receipt, error) { panic("seeded") }
	for n := 1; n <= 3; n++ {
		if err := s.c.take(t.Context(), bad, u); (err == nil) != (n == 3) {
			t.Errorf("try %d: %v", n, err)
		}
	}

	for name, u := range map[string]update{"nothing": {ID: 8}, "nobody's": {ID: 9, Message: &incoming{Text: "x"}},
		"a channel":            {ID: 10, Message: &incoming{From: &user{ID: 5550001}, Chat: room{Type: "channel"}}},
		"a reaction of nobody": {ID: 11, Reaction: &reaction{}}} {
		if err := s.c.take(t.Context(), bad, u); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	no := errors.New("no")
	if n, err := s.c.poller.takeAll(t.Context(), func(_ context.Context, in message.Incoming) (message.Receipt, error) {
		if in.Text == "bad" {
			return message.Receipt{}, no
		}
		return message.Receipt{}, nil
	}, []update{u, {ID: 12, Message: &incoming{ID: 2, From: u.Message.From, Chat: u.Message.Chat, Text: "bad"}},
		u}); n != 1 || !errors.Is(err, no) {
		t.Errorf("taken are %d, %v", n, err)
	}
}
