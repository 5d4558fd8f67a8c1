package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"daycare/connectors/chat"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// A script is a Slack that answers each method as a test says: with a text, or a status.
type script struct {
	*httptest.Server
	mu     sync.Mutex
	called []string // method and body
}

// scripted makes a connector on a script. "@" in an answer is the address of the script.
func scripted(t *testing.T, o Options, says map[string]string) (*Connector, *script) {
	t.Helper()
	s := &script{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		method := strings.TrimPrefix(r.URL.Path, "/")
		s.mu.Lock()
		s.called = append(s.called, method+" "+string(body))
		s.mu.Unlock()
		answer, ok := says[method]
		if !ok {
			answer = `{"ok":true,"ts":"1.1"}`
		}
		if status, err := strconv.Atoi(answer); err == nil {
			w.WriteHeader(status)
			return
		}
		io.WriteString(w, strings.ReplaceAll(answer, "@", s.URL))
	}))
	t.Cleanup(s.Close)
	o.ID, o.BaseURL = "slack", s.URL
	c, err := New(o, canaries, chat.Host{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.api.HTTP.CloseIdleConnections)

	return c, s
}

// calls are the calls of one method, or of all that begin so.
func (s *script) calls(method string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range s.called {
		if strings.HasPrefix(call, method) {
			all = append(all, call)
		}
	}

	return all
}

// Whether an answer is tried again follows from the word of Slack's no. What is said of it has
// neither a token nor the ticket of an upload in it.
func TestWhatSlackRefuses(t *testing.T) {
	const place = `{"ok":true,"upload_url":"@/up?canary-ticket","file_id":"F1"}`
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("1,2"), 0o600); err != nil {
		t.Fatal(err)
	}
	no := func(word string) string { return fmt.Sprintf(`{"ok":false,"error":%q}`, word) }
	for name, tt := range map[string]struct {
		says  map[string]string
		file  string
		want  string // "": it was sent; final, later, after 1s
		wrong string
	}{
		"with a file":       {map[string]string{"files.getUploadURLExternal": place}, path, "", ""},
		"too often":         {map[string]string{"chat.postMessage": "429"}, "", "after 1s", "ratelimited"},
		"too often, said":   {map[string]string{"chat.postMessage": no("rate_limited")}, "", "after 0s", "rate_limited"},
		"an archive":        {map[string]string{"chat.postMessage": no("is_archived")}, "", "final", "slack chat.postMessage: is_archived"},
		"a failure":         {map[string]string{"chat.postMessage": no("internal_error " + canaries.Bot)}, "", "later", "internal_error"},
		"a status":          {map[string]string{"chat.postMessage": "500"}, "", "later", "slack answers 500 Internal Server Error"},
		"no JSON":           {map[string]string{"chat.postMessage": "none"}, "", "later", "not JSON"},
		"another result":    {map[string]string{"chat.postMessage": `{"ok":true,"ts":7}`}, "", "later", "read result of chat.postMessage"},
		"a file that is no": {nil, path + "gone", "final", "read file a.csv"},
		"no place":          {map[string]string{"files.getUploadURLExternal": no("invalid_arguments")}, path, "final", "invalid_arguments"},
		"a place nowhere": {map[string]string{"files.getUploadURLExternal": `{"ok":true,"upload_url":":"}`}, path, "later",
			"invalid address"},
		"a place that fails": {map[string]string{"files.getUploadURLExternal": place, "up": "507"}, path, "later",
			"upload file: slack answers 507"},
		"a place that is gone": {map[string]string{
			"files.getUploadURLExternal": `{"ok":true,"upload_url":"http://127.0.0.1:1/canary-ticket"}`},
			path, "later", "upload file: "},
		"not completed": {map[string]string{"files.getUploadURLExternal": place, "files.completeUploadExternal": no("is_archived")}, path,
			"final", "is_archived"},
	} {
		c, s := scripted(t, Options{}, tt.says)
		out := message.Outgoing{ID: "o", Parts: 1, To: message.Address{ChannelID: "C1", ThreadID: "2.2"}, Text: "hi"}
		if tt.file != "" {
			out.Files = []message.File{{Name: "a.csv", Path: tt.file}}
		}
		_, err := c.Send(t.Context(), out)
		got := "later"
		var refused *message.NotSent
		switch {
		case err == nil:
			got = ""
		case errors.As(err, &refused) && refused.Final:
			got = "final"
		case refused != nil:
			got = "after " + refused.After.String()
		}
		if got != tt.want || err != nil && (!strings.Contains(err.Error(), tt.wrong) || strings.Contains(err.Error(), "canary")) {
			t.Errorf("%s: %q (%v), want %q (%s)", name, got, err, tt.want, tt.wrong)
		}
		if name == "with a file" && !slices.Equal(s.calls("files.complete"), []string{"files.completeUploadExternal " +
			`{"channel_id":"C1","files":[{"id":"F1","title":"a.csv"}],"thread_ts":"2.2"}`}) {
			t.Errorf("the upload was completed with %q", s.calls("files.complete"))
		}
	}
}

// A token that is refused is reported with what to do, and other failures without.
func TestRunRefused(t *testing.T) {
	for word, advice := range map[string]bool{"invalid_auth": true, "missing_scope": true, "internal_error": false} {
		for _, method := range []string{"auth.test", "apps.connections.open"} {
			c, _ := scripted(t, Options{}, map[string]string{method: fmt.Sprintf(`{"ok":false,"error":%q}`, word)})
			err := c.Run(t.Context(), nil)
			if err == nil || !strings.Contains(err.Error(), method+": "+word) ||
				strings.Contains(err.Error(), "check the tokens: daycare connectors test slack") != advice {
				t.Errorf("%s answers %s: %v, want advice: %v", method, word, err, advice)
			}
		}
	}

	c, _ := scripted(t, Options{}, map[string]string{"apps.connections.open": `{"ok":true,"url":"@/ws?canary-ticket"}`})
	if err := c.Run(t.Context(), nil); err == nil || err.Error() != "connect the socket: refused" {
		t.Errorf("a socket that is none: %v", err)
	}

	c, _ = scripted(t, Options{}, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx, nil); err != nil {
		t.Errorf("Run = %v after its context ended", err)
	}
}

// Frames of a socket that are no envelopes are passed over, and what could not be delivered
// is not acknowledged.
func TestFrames(t *testing.T) {
	s := newWorkspace(t)
	c := testConnector(t, s, Options{}, chat.Host{Waiting: &s.waiting}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- c.Run(ctx, func(_ context.Context, in message.Incoming) (message.Receipt, error) {
			if in.Text == "refused" {
				return message.Receipt{}, disk.ErrFull
			}
			return message.Receipt{}, nil
		})
	}()
	if !s.envelope(ctx, "events_api", said("1", ada, "first")) {
		t.Fatal("not acknowledged")
	}

	frame := func(kind, id string, payload any) string {
		data, err := json.Marshal(map[string]any{"type": kind, "envelope_id": id, "payload": payload})
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	s.mu.Lock()
	for _, text := range []string{"none", frame("events_api", "", said("2", ada, "no id")), frame("events_api", "broken", "none"),
		frame("slash_commands", "slash", 7), frame("other", "other", nil), frame("events_api", "refused", said("3", ada, "refused"))} {
		s.conn.Write(ctx, websocket.MessageText, []byte(text))
	}
	s.mu.Unlock()
	if !s.envelope(ctx, "events_api", said("4", ada, "last")) {
		t.Fatal("not acknowledged")
	}
	s.mu.Lock()
	acked := slices.Sorted(maps.Keys(s.acked))
	s.mu.Unlock()
	if want := []string{"broken", "envelope1", "envelope2", "other", "slash"}; !slices.Equal(acked, want) {
		t.Errorf("acknowledged are %q, want %q", acked, want)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}

	// A socket that breaks is an error, and the engine begins again.
	go func() { done <- c.Run(t.Context(), nil) }()
	s.envelope(t.Context(), "other", nil)
	s.mu.Lock()
	s.conn.CloseNow()
	s.mu.Unlock()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "read the socket: ") {
		t.Errorf("a broken socket: %v", err)
	}
}

// A pressed button is answered to who pressed it alone; what is no button is not.
func TestPressed(t *testing.T) {
	c, s := scripted(t, Options{}, map[string]string{"chat.postEphemeral": `{"ok":false,"error":"user_not_in_channel"}`})
	const button = `{"type":"block_actions","user":{"id":"` + ada + `"},"channel":{"id":"D1"},"actions":[{"value":"once x"}]}`
	for _, payload := range []string{"none", strings.Replace(button, "block_actions", "view_closed", 1),
		strings.Replace(button, `{"value":"once x"}`, "", 1), button,
		strings.Replace(button, `"actions"`, `"message":{"ts":"2","thread_ts":"1"},"actions"`, 1)} {
		if p, ok := c.read(t.Context(), "interactive", json.RawMessage(payload)); ok {
			t.Errorf("%s becomes the message %+v", payload, p)
		}
	}
	calls := s.calls("chat.postEphemeral")
	if len(calls) != 2 || !strings.Contains(calls[0], `"user":"`+ada+`"`) || strings.Contains(calls[0], "thread_ts") ||
		!strings.Contains(calls[1], `"thread_ts":"1"`) { // where the button is
		t.Errorf("answered with %q", calls)
	}
}

// What has nothing to show is not sent, and the text of a card is cut to what Slack accepts.
func TestWhatIsShown(t *testing.T) {
	c, s := scripted(t, Options{}, map[string]string{"chat.postMessage": `{"ok":true,"ts":"1"}`})
	if id, err := c.Send(t.Context(), message.Outgoing{ID: "o", Parts: 1, Text: "\n"}); id != "" || err != nil ||
		len(s.calls("chat.")) != 0 {
		t.Errorf("nothing was sent as %q, %v", s.calls("chat."), err)
	}
	if got := section(strings.Repeat("é", maxSection+1)).Text.Text; got != strings.Repeat("é", maxSection) {
		t.Errorf("a card of %d bytes, want %d", len(got), 2*maxSection)
	}
	if got := section("**b**").Text.Text; got != "*b*" {
		t.Errorf("a card says %q", got)
	}

	c, _ = scripted(t, Options{}, map[string]string{"chat.postMessage": "500", "chat.update": "500"})
	_, card := c.Card(t.Context(), message.Address{}, "", "ask", nil)
	for what, err := range map[string]error{"a notice": c.Say(t.Context(), message.Address{}, "", "hi"), "a card": card,
		"a settled card": c.Settle(t.Context(), message.Address{}, "1", "done")} {
		if err == nil {
			t.Errorf("%s that Slack did not take is reported as sent", what)
		}
	}

	c, _ = scripted(t, Options{}, map[string]string{"reactions.add": `{"ok":false,"error":"missing_scope"}`})
	if err := c.React(t.Context(), message.Address{}, "1", "eyes"); err == nil || !strings.Contains(err.Error(), "reactions:write") {
		t.Errorf("React without the right to: %v", err)
	}
}

// The token goes to Slack alone, and over TLS if the Web API is.
func TestWhereATokenGoes(t *testing.T) {
	c, s := scripted(t, Options{}, map[string]string{"file": "content"})
	secure := newAPI("", canaries)
	secure.HTTP = c.api.HTTP
	for address, own := range map[string]bool{s.URL + "/file": true, "https" + strings.TrimPrefix(s.URL, "http") + "/file": false,
		"http://files.slack.com/x": false, "https://slack.com.evil.example/x": false, "https://evilslack.com/x": false, ":": false,
		"": false} {
		body, err := c.api.download(t.Context(), address)
		if (err == nil) != own {
			t.Errorf("%q: %v, want that it is Slack's: %v", address, err, own)
		}
		if err == nil {
			body.Close()
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no call leaves this machine
	for address, own := range map[string]bool{"https://files.slack.com/x": true, "https://x.slack.com/x": true, "https://slack.com/x": true,
		"http://slack.com/x": false, "http://files.slack.com/x": false, s.URL + "/file": false} {
		if _, err := secure.download(ctx, address); err == nil || strings.Contains(err.Error(), "not Slack's") == own {
			t.Errorf("%q: %v, want that it is Slack's: %v", address, err, own)
		}
	}
}
