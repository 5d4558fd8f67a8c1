package telegram

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/telegram/telegramtest"
	"daycare/engine/disk"
	"daycare/engine/freeport"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

func hooked(t *testing.T, deliver message.Deliver) (s *stage, address string) {
	t.Helper()
	o := Options{Webhook: Webhook{Listen: freeport.Take(t)}}
	o.Webhook.URL = "http://" + o.Webhook.Listen + "/telegram"
	s = newStage(t, o, chat.Host{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- s.c.Run(ctx, deliver) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v", err)
		}
	})

	limit, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	s.Wait(limit, func() bool { url, _ := s.Hook(); return url != "" })
	return s, o.Webhook.URL
}

// TestForged: nothing reaches an inbox that Telegram did not post.
func TestForged(t *testing.T) {
	s, address := hooked(t, func(context.Context, message.Incoming) (message.Receipt, error) {
		t.Error("something forged was delivered")
		return message.Receipt{}, nil
	})
	_, secret := s.Hook()
	const good = `{"update_id":5,"message":{"message_id":1,"from":{"id":5550001},"chat":{"id":5550001,"type":"private"},"text":"x"}}`
	stranger := strings.ReplaceAll(good, "5550001", "666")
	tests := []struct {
		name, method, path, secret, media, body string
		want                                    int
	}{
		{"no secret", "POST", "", "", "application/json", good, 401},
		{"empty body, no secret", "POST", "", "", "", "", 401},
		{"wrong secret", "POST", "", "wrong", "application/json", good, 401},
		{"truncated secret", "POST", "", secret[:len(secret)-1], "application/json", good, 401},
		{"longer secret", "POST", "", secret + "0", "application/json", good, 401},
		{"other case", "POST", "", strings.ToUpper(secret), "application/json", good, 401},
		{"the token as secret", "POST", "", token, "application/json", good, 401},
		{"secret in the query", "POST", "?secret_token=" + secret, "", "application/json", good, 401},
		{"GET", "GET", "", secret, "application/json", good, 405},
		{"other path", "POST", "/../admin", secret, "application/json", good, 404},
		{"a form", "POST", "", secret, "application/x-www-form-urlencoded", "update_id=5", 415},
		{"not JSON", "POST", "", secret, "application/json", `{"update_id":5,`, 400},
		{"no update", "POST", "", secret, "application/json", `{}`, 400},
		{"oversized", "POST", "", secret, "application/json", strings.Repeat(" ", maxUpdate+1) + good, 413},
		{"10 MB without a secret", "POST", "", "", "application/json", strings.Repeat(" ", 10<<20), 401},
		{"a stranger, really of Telegram", "POST", "", secret, "application/json", stranger, 200},
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			req, err := http.NewRequest(test.method, address+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", test.media)
			if test.secret != "" {
				req.Header.Set(secretHeader, test.secret)
			}

			resp, err := client.Do(req)
			if err != nil {
				if test.want == 413 || test.want == 401 && len(test.body) > 1<<20 {
					return // the connection was closed on a body that nobody wants
				}
				t.Fatal(err)
			}

			resp.Body.Close()
			if resp.StatusCode != test.want {
				t.Errorf("status %d, want %d", resp.StatusCode, test.want)
			}
		})
	}

	if strings.Contains(s.said.String(), secret) {
		t.Error("the secret is in the log")
	}
}

// TestWebhookCodes: what the engine says decides whether Telegram posts again.
func TestWebhookCodes(t *testing.T) {
	var refuse error
	s, address := hooked(t, func(context.Context, message.Incoming) (message.Receipt, error) { return message.Receipt{}, refuse })
	_, secret := s.Hook()
	for _, test := range []struct {
		err   error
		want  int
		after string
	}{
		{nil, 200, ""}, {fmt.Errorf("accept: %w", inbox.ErrFull), 429, "5"},
		{&message.TooFast{After: 1700 * time.Millisecond}, 429, "3"}, {disk.ErrFull, 503, "30"},
		{disk.ErrFailed, 503, ""}, {inbox.ErrTooLarge, 200, ""},
	} {
		refuse = test.err
		req, err := http.NewRequest("POST", address,
			strings.NewReader(`{"update_id":5,"message":{"message_id":1,"from":{"id":5550001},"chat":{"id":5550001,"type":"private"},`+
				`"text":"x"}}`))
		if err != nil {
			t.Fatal(err)
		}

		req.Header.Set("Content-Type", "application/json")
		req.Header.Set(secretHeader, secret)
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}

		resp.Body.Close()
		if resp.StatusCode != test.want || resp.Header.Get("Retry-After") != test.after {
			t.Errorf("%v: status %d, Retry-After %q; want %d, %q", test.err, resp.StatusCode,
				resp.Header.Get("Retry-After"), test.want, test.after)
		}
	}

	if n := s.Calls("getUpdates"); n != 0 {
		t.Errorf("getUpdates was called %d times beside a webhook", n)
	}
}

// TestPollingRemovesAWebhook: without, Telegram would answer every question 409.
func TestPollingRemovesAWebhook(t *testing.T) {
	s := newStage(t, Options{}, chat.Host{})
	if err := s.c.api.call(t.Context(), "setWebhook", map[string]any{"url": "http://127.0.0.1:1/"}, nil); err != nil {
		t.Fatal(err)
	}
	s.run(t)
	s.push(t, telegramtest.Text(ada, "hello"))
	if in := s.last(t); in.Text != "hello" {
		t.Errorf("delivered %+v", in)
	}
}
