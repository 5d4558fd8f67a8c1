package signal

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"daycare/connectors/chat"
	"daycare/engine/message"
)

// TestStreamBreaks: a stream that ends after each event loses and doubles nothing.
func TestStreamBreaks(t *testing.T) {
	d := newDaemon(t)
	d.cut = 1
	c := testConnector(t, d, chat.Host{Waiting: &d.waiting}, slog.New(slog.DiscardHandler))
	got := make(chan string, 100)
	c.arrived = chat.NewQueue(c.desk, 0, func(p chat.Post) { got <- p.Text })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		var err error
		for ctx.Err() == nil && (err == nil || strings.Contains(err.Error(), "ended the stream")) { // as the engine does
			err = c.Run(ctx, func(context.Context, message.Incoming) (message.Receipt, error) { return message.Receipt{}, nil })
		}
		done <- err
	}()

	for i := range 10 {
		want := strconv.Itoa(i)
		d.push(envelopeOf(want, want))
		select {
		case text := <-got:
			if text != want {
				t.Errorf("took %s, want %s", text, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s did not come", want)
		}
	}

	cancel()
	if err := <-done; err != nil && !strings.Contains(err.Error(), "ended the stream") {
		t.Error(err)
	}
}

// An event of another account, or one that cannot be read, is passed over, and some versions
// wrap an event.
func TestWhichEventsCount(t *testing.T) {
	d := newDaemon(t)
	c := testConnector(t, d, chat.Host{}, slog.New(slog.DiscardHandler))
	long := strings.Repeat("x", 100<<10)
	event := func(account, text string) string {
		return fmt.Sprintf(`{"account":%q,"envelope":{"sourceUuid":%q,"timestamp":%d,"dataMessage":{"message":%q}}}`,
			account, ada, today, text)
	}
	d.events = []string{"none", event("+491", "another"), `{"jsonrpc":"2.0","params":` + event("+491", "another") + `}`,
		`{"jsonrpc":"2.0","params":` + event(account, "wrapped") + `}`, event("", "of the only account"),
		strings.Replace(event(account, "of two lines"), ",", ",\ndata:", 1), event(account, long), event(account, "last")}
	got := make(chan string, len(d.events))
	c.arrived = chat.NewQueue(c.desk, 0, func(p chat.Post) { got <- p.Text })
	d.cut = len(d.events)
	ctx, cancel := context.WithCancel(t.Context())
	var queue sync.WaitGroup
	queue.Go(func() {
		c.arrived.Run(ctx, func(context.Context, message.Incoming) (message.Receipt, error) { return message.Receipt{}, nil })
	})
	err := c.stream(ctx)
	for _, want := range []string{"wrapped", "of the only account", "of two lines", long, "last"} {
		select {
		case text := <-got:
			if text != want {
				t.Errorf("took %.40q, want %.40q", text, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%.40q did not come", want)
		}
	}
	cancel()
	queue.Wait()
	if err == nil || !strings.Contains(err.Error(), "ended the stream") || c.last != "run-8" {
		t.Errorf("stream = %v, the last event is %q", err, c.last)
	}
}

// A stream on which the daemon says nothing is not waited for: it sends a comment every 15 s.
func TestSilentStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := testConnector(t, &daemon{Server: &httptest.Server{URL: "http://x"}}, chat.Host{}, slog.New(slog.DiscardHandler))
		begun := time.Now()
		c.client.HTTP = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			body, w := io.Pipe()
			go func() {
				for range 10 {
					time.Sleep(silence - time.Second)
					fmt.Fprint(w, ":\n\n")
				}
				<-r.Context().Done()
				w.CloseWithError(r.Context().Err())
			}()
			return &http.Response{StatusCode: http.StatusOK, Body: body}, nil
		})}
		if err := c.stream(t.Context()); err == nil || time.Since(begun) != 10*(silence-time.Second)+silence {
			t.Errorf("stream = %v after %v", err, time.Since(begun))
		}
	})
}

type roundTrip func(r *http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A daemon that is not there, or is something else, is named with what to check.
func TestNoDaemon(t *testing.T) {
	d := newDaemon(t)
	c := testConnector(t, d, chat.Host{Waiting: &d.waiting}, slog.New(slog.DiscardHandler))
	c.client.Base += "/other"
	err := c.Run(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "the daemon answers 404 Not Found\ncheck that signal-cli") {
		t.Errorf("Run = %v", err)
	}
	d.Close()
	if err := c.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "check that signal-cli's daemon is running at "+d.URL) {
		t.Errorf("Run = %v", err)
	}
}

// TestChild: a program in place of signal-cli is started with the daemon's flags
// and ended with Run.
func TestChild(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "signal-cli")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$@\" > "+dir+"/args\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Settings: chat.Settings{ID: "signal"}, Account: account, URL: "http://127.0.0.1:8080", Command: script},
		chat.Host{},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.child(ctx) }()
	var args []byte
	for end := time.Now().Add(time.Minute); len(args) == 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		args, _ = os.ReadFile(dir + "/args")
	}

	if want := "-a " + account + " daemon --http 127.0.0.1:8080 --receive-mode manual\n"; string(args) != want {
		t.Errorf("started with %q, want %q", args, want)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("child = %v", err)
	}

	c.o.Command = filepath.Join(dir, "none")
	if err := c.child(t.Context()); err == nil || !strings.Contains(err.Error(), "start signal-cli") {
		t.Errorf("a command that does not exist: %v", err)
	}
	c.o.Command = script
	for name, says := range map[string]string{"nothing": "", "a line that never ends": "head -c 300000 /dev/zero | tr '\\0' x >&2\n"} {
		if err := os.WriteFile(script, []byte("#!/bin/sh\n"+says+"exit 3\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := c.child(ctx); err == nil || !strings.Contains(err.Error(), "signal-cli ended: exit status 3") {
			t.Errorf("a command that says %s and fails: %v", name, err)
		}
		cancel()
	}
}

// TestRunWithChild: Run receives once the daemon that it started answers, and ends with its error
// when the daemon ends.
func TestRunWithChild(t *testing.T) {
	d := newDaemon(t)
	var starting atomic.Int32
	starting.Store(2)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if starting.Add(-1) >= 0 {
			http.Error(w, "starting", http.StatusServiceUnavailable)
			return
		}
		d.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	c := testConnector(t, &daemon{Server: front}, chat.Host{Waiting: &d.waiting}, slog.New(slog.DiscardHandler))
	c.o.Command = filepath.Join(t.TempDir(), "signal-cli")
	if err := os.WriteFile(c.o.Command, []byte("#!/bin/sh\nwhile [ ! -e \"$0.end\" ]; do sleep 0.05; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}

	got := make(chan string, 1)
	c.arrived = chat.NewQueue(c.desk, 0, func(p chat.Post) { got <- p.Text })
	done := make(chan error, 1)
	go func() {
		done <- c.Run(t.Context(), func(context.Context, message.Incoming) (message.Receipt, error) { return message.Receipt{}, nil })
	}()

	d.push(envelopeOf("1", "hello"))
	select {
	case text := <-got:
		if text != "hello" {
			t.Errorf("took %q", text)
		}
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
	}

	if err := os.WriteFile(c.o.Command+".end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "signal-cli exited") {
		t.Errorf("Run = %v", err)
	}
}
