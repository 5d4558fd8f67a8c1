package webhook

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/message"
)

// caller makes a connector of one hook that calls back to handler, without
// running it.
func caller(t *testing.T, handler http.HandlerFunc) *Connector {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := New(Options{ID: "hooks", Listen: "127.0.0.1:0", Hooks: []Hook{
		{ID: "a", SecretEnv: "A", Callback: server.URL + "/answers"}, {ID: "mute", SecretEnv: "A"},
	}}, func(string) string { return "whsec_cmF3IGtleQ==" }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	return c
}

var toA = message.Address{Connector: "hooks", ChannelID: "a"}

// TestCallbackFormat: the body, and a signature that any library of Standard
// Webhooks accepts.
func TestCallbackFormat(t *testing.T) {
	type call struct {
		body   string
		header http.Header
	}
	calls := make(chan call, 1)
	c := caller(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		calls <- call{string(body), r.Header}
	})
	out := message.Outgoing{ID: "out1", To: toA, ReplyTo: "72d3162e", Text: "**done**", Part: 1, Parts: 3,
		Files: []message.File{{ID: "f", Name: "log.txt", MimeType: "text/plain", Size: 7, Path: "/home/ada/log.txt"}}}
	if _, err := c.Send(t.Context(), out); err != nil {
		t.Fatal(err)
	}

	got := <-calls
	want := `{"id":"out1.1","hook":"a","text":"**done**","replyTo":"72d3162e","part":1,"parts":3,"files":[{"name":"log.txt",` +
		`"mimeType":"text/plain","size":7}]}`
	if diff := cmp.Diff(want, got.body); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	if key := got.header.Get("Idempotency-Key"); key != "out1.1" {
		t.Errorf("Idempotency-Key = %q, want the part's key", key)
	}

	r := newRequest("a", "")
	stamp := got.header.Get("webhook-timestamp")
	at, err := time.ParseDuration(stamp + "s")
	if err != nil {
		t.Fatal(err)
	}

	signStandard(r, "raw key", "out1.1", got.body, time.Unix(int64(at/time.Second), 0))
	if want, got := r.Header.Get("webhook-signature"), got.header.Get("webhook-signature"); got != want {
		t.Errorf("webhook-signature = %q, want %q", got, want)
	}
}

func TestCallbackAnswers(t *testing.T) {
	tests := []struct {
		status int
		retry  string
		ok     bool
		final  bool
		after  time.Duration
	}{
		{status: 200, ok: true}, {status: 204, ok: true},
		{status: 302}, {status: 308},
		{status: 400, final: true}, {status: 401, final: true}, {status: 404, final: true}, {status: 410, final: true},
		{status: 408}, {status: 425}, {status: 500}, {status: 502},
		{status: 429, retry: "12", after: 12 * time.Second},
		{status: 429, retry: "never"},
		{status: 503, retry: "100000000", after: maxRetryAfter},
		{status: 503, retry: "-5"},
		{status: 503},
	}
	for _, test := range tests {
		c := caller(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/answers" {
				t.Errorf("a redirect was followed to %s", r.URL)
			}
			w.Header().Set("Location", "/elsewhere")
			if test.retry != "" {
				w.Header().Set("Retry-After", test.retry)
			}
			w.WriteHeader(test.status)
		})
		_, err := c.Send(t.Context(), message.Outgoing{ID: "o", To: toA, Text: "x"})
		var no *message.NotSent
		errors.As(err, &no)

		switch {
		case (err == nil) != test.ok:
			t.Errorf("%d: Send = %v", test.status, err)
		case (no != nil && no.Final) != test.final:
			t.Errorf("%d: Send = %v, want final %v", test.status, err, test.final)
		case test.after != 0 && (no == nil || no.After != test.after):
			t.Errorf("%d: Send = %#v, want to wait %v", test.status, err, test.after)
		}
	}
}

func TestRetryAfterDate(t *testing.T) {
	now := time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
	if got := retryAfter("Fri, 20 Nov 2026 18:01:30 GMT", now); got != 90*time.Second {
		t.Errorf("retryAfter = %v, want 90 s", got)
	}
}

func TestNoCallback(t *testing.T) {
	c := caller(t, func(http.ResponseWriter, *http.Request) { t.Error("called back") })
	for _, channel := range []string{"mute", "unknown"} {
		to := message.Address{Connector: "hooks", ChannelID: channel}
		if c.Answers(to) {
			t.Errorf("Answers(%s) = true, but there is no callback", channel)
		}
		_, err := c.Send(t.Context(), message.Outgoing{ID: "o", To: to, Text: "x"})
		var no *message.NotSent
		if !errors.As(err, &no) || !no.Final {
			t.Errorf("Send to %s = %v, want a final error", channel, err)
		}
	}

	if !c.Answers(toA) {
		t.Error("Answers(a) = false, but it has a callback")
	}
}

// TestCallbackErrorHidesAddress: callbacks often have a token in their address.
func TestCallbackErrorHidesAddress(t *testing.T) {
	c := caller(t, nil)
	for _, address := range []string{"http://127.0.0.1:1/?token=canary", "http://127.0.0.1:1/canary/%zz"} {
		c.hooks["a"].Callback = address
		if _, err := c.Send(t.Context(), message.Outgoing{ID: "o", To: toA}); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("Send = %v, want an error without the address", err)
		}
	}
}
