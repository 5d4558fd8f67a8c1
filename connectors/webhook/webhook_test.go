package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

var oneHook = Options{Hooks: []Hook{{ID: "a", SecretEnv: "A"}}}

func signed(hook, media, body string) *http.Request {
	r := newRequest(hook, body)
	r.Header.Set("Content-Type", media)
	signStamped(r, "s", body, time.Now())
	return r
}

func TestIncoming(t *testing.T) {
	taken := make(chan message.Incoming, 10)
	c := serve(t, Options{Hooks: []Hook{
		{ID: "a", SecretEnv: "A", AgentID: "tz4a98xxat96iws9zmbrgj3a", Template: "{{.x}}!"},
		{ID: "b", SecretEnv: "A", Callback: "http://127.0.0.1:1/"},
	}}, map[string]string{"A": "s"}, func(_ context.Context, in message.Incoming) (message.Receipt, error) {
		taken <- in
		return message.Receipt{Agent: "the agent", Item: "the item", Duplicate: true}, nil
	})
	a := signed("a", "application/json", `{"x":"hello"}`)
	a.Header.Set("X-GitHub-Delivery", "72d3162e")
	status, header, body := do(a, c.Address())
	if status != http.StatusAccepted || header.Get("Content-Type") != "application/json" {
		t.Errorf("answer %d %v, want 202 of JSON", status, header)
	}

	var got map[string]any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"agent": "the agent", "item": "the item", "duplicate": true}, got); diff != "" {
		t.Errorf("answer (-want +got):\n%s", diff)
	}

	want := message.Incoming{
		From:      message.Address{Connector: "hooks", ChannelID: "a", UserID: "webhook"},
		Agent:     "tz4a98xxat96iws9zmbrgj3a",
		Dedupe:    "hooks:a/72d3162e",
		Context:   message.Context{MessageID: "72d3162e", Sender: "a"},
		Text:      "hello!",
		Untrusted: true,
	}
	if diff := cmp.Diff(want, <-taken); diff != "" {
		t.Errorf("incoming (-want +got):\n%s", diff)
	}

	// Without a delivery id the same bytes are the same delivery.
	b := signed("b", "text/plain", "hi")
	again := b.Clone(t.Context())
	again.Body, _ = b.GetBody()
	do(b, c.Address())
	do(again, c.Address())
	first, second := <-taken, <-taken
	if first.Dedupe != second.Dedupe || !strings.HasPrefix(first.Dedupe, "hooks:b/sha256-") {
		t.Errorf("dedupe keys %q and %q, want one hash", first.Dedupe, second.Dedupe)
	}
	if first.Route == nil || *first.Route != (message.Address{Connector: "hooks", ChannelID: "b"}) {
		t.Errorf("route = %v, want hook b, which has a callback", first.Route)
	}
}

// TestCodes: what the engine says decides what the sender hears.
func TestCodes(t *testing.T) {
	tests := []struct {
		name   string
		media  string
		body   string
		err    error
		status int
		after  string
		code   string
	}{
		{"full inbox", "text/plain", "x", fmt.Errorf("accept: %w", inbox.ErrFull), 429, "5", "inbox_full"},
		{"too fast", "text/plain", "x", &message.TooFast{After: 200 * time.Millisecond}, 429, "1", "too_fast"},
		{"full disk", "text/plain", "x", fmt.Errorf("accept: %w", disk.ErrFull), 503, "30", "disk_full"},
		{"failed disk", "text/plain", "x", disk.ErrFailed, 503, "30", "unavailable"},
		{"too large", "text/plain", "x", inbox.ErrTooLarge, 413, "", "too_large"},
		{"no agent", "text/plain", "x", message.ErrUnknownAgent, 404, "", "unknown_agent"},
		{"any other", "text/plain", "x", errors.New("who knows"), 503, "30", "unavailable"},
		{"empty", "text/plain", " \n", nil, 422, "", "empty"},
		{"no text", "application/json", "", nil, 422, "", "empty"},
		{"empty text", "application/json", `{"text":""}`, nil, 422, "", "empty"},
		{"form", "application/x-www-form-urlencoded", "payload=x", nil, 415, "", "unsupported_media_type"},
		{"not JSON", "application/json", "x", nil, 400, "", "bad_request"},
	}
	var refuse error
	var mu sync.Mutex
	c := serve(t, oneHook, map[string]string{"A": "s"}, func(context.Context, message.Incoming) (message.Receipt, error) {
		mu.Lock()
		defer mu.Unlock()
		return message.Receipt{}, refuse
	})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			mu.Lock()
			refuse = test.err
			mu.Unlock()
			r := signed("a", test.media, test.body)
			r.Header.Set("Idempotency-Key", "one") // the same content in one second is one delivery
			status, header, body := do(r, c.Address())
			if status != test.status || header.Get("Retry-After") != test.after ||
				!strings.Contains(string(body), `"code":"`+test.code+`"`) {
				t.Errorf("answer %d, Retry-After %q, %s; want %d, %q, %s", status, header.Get("Retry-After"), body,
					test.status, test.after, test.code)
			}
		})
	}
}

// Outside of /hooks/ there is nothing, whatever is asked; a hook says that it takes POST alone.
func TestPathsAndMethods(t *testing.T) {
	c := serve(t, oneHook, map[string]string{"A": "s"}, nil)
	for _, tt := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{http.MethodGet, "/", 404, ""}, {http.MethodPost, "/", 404, ""}, {http.MethodGet, "/hooksa", 404, ""},
		{http.MethodGet, "/hooks/a", 405, "POST"}, {http.MethodGet, "/hooks/none", 405, "POST"}, {http.MethodPost, "/hooks/none", 404, ""},
	} {
		r := signed("a", "text/plain", "x")
		r.Method, r.URL.Path = tt.method, tt.path
		if status, header, body := do(r, c.Address()); status != tt.status || header.Get("Allow") != tt.allow {
			t.Errorf("%s %s is answered %d, Allow %q, %s; want %d, %q", tt.method, tt.path, status, header.Get("Allow"), body,
				tt.status, tt.allow)
		}
	}
}

func TestMissingSecretDoesNotStart(t *testing.T) {
	for _, secret := range []string{"", "whsec_", "whsec_!!"} {
		_, err := New(Options{ID: "hooks", Listen: "127.0.0.1:0", Hooks: oneHook.Hooks},
			func(string) string { return secret }, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "does not start") {
			t.Errorf("secret %q: New = %v, want an error", secret, err)
		}
	}
}

// TestSecretIsReadPerRequest: a changed secret counts from the next request on.
func TestSecretIsReadPerRequest(t *testing.T) {
	var mu sync.Mutex
	secret := "s"
	c, err := New(Options{ID: "hooks", Listen: "127.0.0.1:0", Hooks: oneHook.Hooks}, func(string) string {
		mu.Lock()
		defer mu.Unlock()
		return secret
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	h := &hook{Hook: oneHook.Hooks[0]}
	r := signed("a", "text/plain", "x")
	if _, _, refused := c.authentic(nil, r, h); refused != nil {
		t.Errorf("refused: %+v", refused)
	}
	mu.Lock()
	secret = "changed"
	mu.Unlock()
	r.Body, _ = r.GetBody()
	if _, _, refused := c.authentic(nil, r, h); refused == nil {
		t.Error("the old secret still opens the hook")
	}
}

func TestTooManyAtOnce(t *testing.T) {
	release := make(chan struct{})
	entered := make(chan struct{}, maxRequests)
	c := serve(t, oneHook, map[string]string{"A": "s"}, func(context.Context, message.Incoming) (message.Receipt, error) {
		entered <- struct{}{}
		<-release
		return message.Receipt{}, nil
	})
	var senders sync.WaitGroup
	for i := range maxRequests {
		senders.Go(func() {
			if status, _, body := do(signed("a", "text/plain", fmt.Sprint(i)), c.Address()); status != http.StatusAccepted {
				t.Errorf("answer %d %s, want 202", status, body)
			}
		})
	}

	for range maxRequests {
		<-entered
	}
	if status, header, _ := do(signed("a", "text/plain", "one more"),
		c.Address()); status != http.StatusServiceUnavailable || header.Get("Retry-After") != "1" {
		t.Errorf("answer %d, want 503 and to come again", status)
	}

	close(release)
	senders.Wait()
}

// Strangers who open a request and send its body slowly, or not at all, hold nothing
// that a signed request needs, from one address or another.
func TestSlowStrangersShutNobodyOut(t *testing.T) {
	c := serve(t, oneHook, map[string]string{"A": "s"}, func(context.Context, message.Incoming) (message.Receipt, error) {
		return message.Receipt{}, nil
	})
	head := signed("a", "text/plain", "x").Header
	head.Set("Content-Length", "1000000")
	var text bytes.Buffer
	text.WriteString("POST /hooks/a HTTP/1.1\r\nHost: x\r\n")
	if err := head.Write(&text); err != nil {
		t.Fatal(err)
	}

	text.WriteString("\r\n")
	const strangers = 300
	for i := range strangers {
		conn, err := net.Dial("tcp", c.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write(append(text.Bytes(), bytes.Repeat([]byte("x"), i*100)...)); err != nil {
			t.Fatal(err)
		}
		if i%50 == 49 {
			if status, _, body := do(signed("a", "text/plain", fmt.Sprint(i)), c.Address()); status != http.StatusAccepted {
				t.Errorf("beside %d slow strangers a signed request is answered %d %s, want 202", i+1, status, body)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	good := Options{ID: "hooks", Listen: "127.0.0.1:8787",
		Hooks: []Hook{{ID: "a", SecretEnv: "A", Template: "{{.a}}", Callback: "https://x.example/y?token=z"}}}
	if err := good.Validate(); err != nil {
		t.Errorf("Validate = %v, want nil", err)
	}
	tests := []struct {
		spoil func(o *Options)
		want  string
	}{
		{func(o *Options) { o.ID = "" }, "without an id"},
		{func(o *Options) { o.Listen = "8787" }, "HOST:PORT"},
		{func(o *Options) { o.Hooks = nil }, "missing"},
		{func(o *Options) { o.Hooks = append(o.Hooks, o.Hooks[0]) }, "duplicate id"},
		{func(o *Options) { o.Hooks[0].ID = "a/b" }, "id: want"},
		{func(o *Options) { o.Hooks[0].SecretEnv = "" }, "secretEnv"},
		{func(o *Options) { o.Hooks[0].Template = "line\n{{.a" }, "template:2: unclosed action"},
		{func(o *Options) { o.Hooks[0].Template = "{{nope .a}}" }, `function "nope" not defined`},
		{func(o *Options) { o.Hooks[0].Callback = "ftp://x" }, "http:// or https://"},
		{func(o *Options) { o.Hooks[0].Callback = "https://me:canary@x" }, "password"},
	}
	for _, test := range tests {
		o := good
		o.Hooks = append([]Hook(nil), good.Hooks...)
		test.spoil(&o)
		err := o.Validate()
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("Validate = %v, want %q in it", err, test.want)
		}
		if _, err := New(o, nil, nil); err == nil {
			t.Errorf("New takes what Validate refuses: %s", test.want)
		}
	}
}

// TestShutdown: a request that is in progress when ctx ends is answered, a new one
// finds nobody.
func TestShutdown(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	c, err := New(Options{ID: "hooks", Listen: "127.0.0.1:0", Hooks: oneHook.Hooks}, func(string) string { return "s" },
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- c.Run(ctx, func(ctx context.Context, _ message.Incoming) (message.Receipt, error) {
			close(entered)
			select {
			case <-release:
				return message.Receipt{}, nil
			case <-ctx.Done():
				return message.Receipt{}, ctx.Err()
			}
		})
	}()

	for c.Address() == "" {
		time.Sleep(time.Millisecond)
	}
	address, status := c.Address(), make(chan int, 1)
	go func() {
		code, _, _ := do(signed("a", "text/plain", "x"), address)
		status <- code
	}()

	<-entered
	cancel()
	time.Sleep(20 * time.Millisecond)
	close(release)
	if got := <-status; got != http.StatusAccepted {
		t.Errorf("answer %d, want 202 for what was under way", got)
	}
	if err := <-done; err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
	if got, _, _ := do(signed("a", "text/plain", "y"), address); got != 0 {
		t.Errorf("answer %d after Run returned, want none", got)
	}
}
