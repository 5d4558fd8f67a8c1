package webhook

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"daycare/engine/attacktest"
	"daycare/engine/message"
)

// serve runs a connector of two hooks until the test ends.
func serve(t *testing.T, o Options, secrets map[string]string, deliver message.Deliver) *Connector {
	t.Helper()
	o.ID, o.Listen = "hooks", "127.0.0.1:0"
	c, err := New(o, func(name string) string { return secrets[name] }, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx, deliver) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
	})

	for c.Address() == "" {
		select {
		case err := <-done:
			t.Fatalf("Run = %v before it listened", err)
		case <-time.After(time.Millisecond):
		}
	}

	return c
}

// TestForged: whatever is wrong with a request, it is refused with the right code
// and nothing reaches the engine.
func TestForged(t *testing.T) {
	const secret, body = "a secret of hook a", `{"text":"do it"}`
	now := time.Now()
	stamped := func(r *http.Request) { signStamped(r, secret, body, now) }
	tests := []struct {
		name   string
		hook   string
		method string
		body   string
		sign   func(r *http.Request)
		want   int
	}{
		{name: "no signature", sign: func(*http.Request) {}, want: 401},
		{name: "wrong secret", sign: func(r *http.Request) { signStamped(r, "wrong", body, now) }, want: 401},
		{name: "truncated", sign: func(r *http.Request) {
			stamped(r)
			r.Header.Set("X-Webhook-Signature", r.Header.Get("X-Webhook-Signature")[:40])
		}, want: 401},
		{name: "old", sign: func(r *http.Request) { signStamped(r, secret, body, now.Add(-6*time.Minute)) }, want: 403},
		{name: "future", sign: func(r *http.Request) { signStamped(r, secret, body, now.Add(6*time.Minute)) }, want: 403},
		{name: "old, timestamp made new", sign: func(r *http.Request) {
			signStamped(r, secret, body, now.Add(-6*time.Minute))
			r.Header.Set("X-Webhook-Timestamp", fmt.Sprint(now.Unix()))
		}, want: 401},
		{name: "replayed under another delivery id", body: "real", sign: func(r *http.Request) {
			signStamped(r, secret, "real", now)
			r.Header.Set("X-Webhook-Delivery", "forged")
		}, want: 403},
		{name: "standard, id changed", sign: func(r *http.Request) {
			signStandard(r, secret, "m1", body, now)
			r.Header.Set("webhook-id", "m2")
		}, want: 401},
		{name: "other body", body: `{"text":"do something else"}`, sign: stamped, want: 401},
		{name: "empty secret", sign: func(r *http.Request) { signStamped(r, "", body, now) }, want: 401},
		{name: "hook whose secret went away", hook: "gone", sign: func(r *http.Request) { signStamped(r, "", body, now) }, want: 401},
		{name: "wrong algorithm", sign: func(r *http.Request) {
			r.Header.Set("X-Hub-Signature", "sha1=0123456789012345678901234567890123456789")
		}, want: 401},
		{name: "wrong version", sign: func(r *http.Request) {
			signStandard(r, secret, "m1", body, now)
			r.Header.Set("webhook-signature", "v2"+strings.TrimPrefix(r.Header.Get("webhook-signature"), "v1"))
		}, want: 401},
		{name: "wrong prefix", sign: func(r *http.Request) {
			stamped(r)
			r.Header.Set("X-Webhook-Signature", "sha512="+strings.TrimPrefix(r.Header.Get("X-Webhook-Signature"), "sha256="))
		}, want: 401},
		{name: "hub without prefix", sign: func(r *http.Request) {
			signHub(r, secret, body)
			r.Header.Set("X-Hub-Signature-256", strings.TrimPrefix(r.Header.Get("X-Hub-Signature-256"), "sha256="))
		}, want: 401},
		{name: "signed for another hook", hook: "b", sign: stamped, want: 401},
		{name: "no such hook", hook: "nothing", sign: stamped, want: 404},
		{name: "no such hook, unsigned", hook: "nothing", sign: func(*http.Request) {}, want: 404},
		{name: "path outside", hook: "../hooks/a", sign: stamped, want: 404},
		{name: "another scheme's content as body", body: fmt.Sprintf("%d.%s", now.Unix(), body), sign: func(r *http.Request) {
			signHub(r, secret, fmt.Sprintf("%d.%s", now.Unix(), body))
		}, want: 401},
		{name: "10 MB", body: strings.Repeat("x", 10<<20), sign: stamped, want: 413},
		{name: "10 MB, no signature", body: strings.Repeat("x", 10<<20), sign: func(*http.Request) {}, want: 413},
		{name: "10 MB of unknown length", body: strings.Repeat("x", 10<<20), sign: func(r *http.Request) {
			stamped(r)
			r.ContentLength = -1
		}, want: 413},
		{name: "duplicated signature", sign: func(r *http.Request) {
			r.Header.Add("X-Webhook-Signature", "sha256="+strings.Repeat("00", 32))
			r.Header["X-Webhook-Signature"] = append(r.Header["X-Webhook-Signature"], signature(secret, body, now))
			r.Header.Set("X-Webhook-Timestamp", fmt.Sprint(now.Unix()))
		}, want: 401},
		{name: "duplicated timestamp", sign: func(r *http.Request) {
			stamped(r)
			r.Header.Add("X-Webhook-Timestamp", fmt.Sprint(now.Unix()))
		}, want: 401},
		{name: "timestamp that is no number", sign: func(r *http.Request) {
			stamped(r)
			r.Header.Set("X-Webhook-Timestamp", "now")
		}, want: 401},
		{name: "delivery id that would be a second key", sign: func(r *http.Request) {
			stamped(r)
			r.Header.Set("X-Webhook-Delivery", "a b")
		}, want: 401},
		{name: "endless delivery id", sign: func(r *http.Request) {
			stamped(r)
			r.Header.Set("Idempotency-Key", strings.Repeat("a", 1000))
		}, want: 401},
		{name: "GET", method: "GET", sign: stamped, want: 405},
		{name: "PUT", method: "PUT", sign: stamped, want: 405},
		{name: "a weaker signature beside a wrong one", sign: func(r *http.Request) {
			signHub(r, secret, body)
			signStamped(r, "wrong", body, now)
		}, want: 401},
	}
	var delivered []string
	secrets := map[string]string{"A": secret, "B": "another one", "C": "at the start"}
	c := serve(t, Options{Hooks: []Hook{{ID: "a", SecretEnv: "A"}, {ID: "b", SecretEnv: "B"}, {ID: "gone", SecretEnv: "C"}}}, secrets,
		func(_ context.Context, in message.Incoming) (message.Receipt, error) {
			delivered = append(delivered, in.Text)
			return message.Receipt{}, nil
		})
	delete(secrets, "C")
	real := newRequest("a", "real")
	signStamped(real, secret, "real", now)
	if status, _, got := do(real, c.Address()); status != http.StatusAccepted {
		t.Fatalf("the real request: %d %s", status, got)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.body == "" {
				test.body = body
			}
			if test.hook == "" {
				test.hook = "a"
			}
			r := newRequest(test.hook, test.body)
			r.Header.Set("Content-Type", "application/json")
			if test.method != "" {
				r.Method = test.method
			}
			test.sign(r)
			status, _, got := do(r, c.Address())
			if status != test.want {
				t.Errorf("status = %d, want %d: %s", status, test.want, got)
			}
			if strings.Contains(string(got), secret) {
				t.Errorf("the secret is in the answer: %s", got)
			}
			attacktest.Held(t, attacktest.Row{Class: "forged hooks", How: fmt.Sprint(status), Name: test.name})
		})
	}
	t.Run("header injection", func(t *testing.T) {
		got := raw(t, c.Address(), "POST /hooks/a HTTP/1.1\r\nHost: x\r\nX-Webhook-Timestamp : 1\r\nContent-Length: 0\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 400") {
			t.Errorf("answer %q, want 400", got)
		}
	})
	t.Run("smuggled length", func(t *testing.T) {
		got := raw(t, c.Address(), "POST /hooks/a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nreal")
		if !strings.HasPrefix(got, "HTTP/1.1 400") {
			t.Errorf("answer %q, want 400", got)
		}
	})
	if len(delivered) != 1 {
		t.Errorf("delivered %q, want only the real request", delivered)
	}
}

func signature(secret, body string, at time.Time) string {
	r := newRequest("a", body)
	signStamped(r, secret, body, at)
	return r.Header.Get("X-Webhook-Signature")
}

// raw sends bytes that a client library would not, and returns the first line.
func raw(t *testing.T, address, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}

	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return line
}
