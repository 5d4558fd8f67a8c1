package ingress

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// A request that is in progress at the end is answered; one that takes too long loses
// its context, and Serve waits for it.
func TestEndOfRequests(t *testing.T) {
	for name, test := range map[string]struct {
		grace time.Duration
		want  string
	}{"patient": {time.Minute, "answered"}, "cut off": {time.Millisecond, ""}} {
		t.Run(name, func(t *testing.T) {
			entered, release := make(chan struct{}), make(chan struct{})
			left := false
			l := &Listener{Name: "tests", Log: quiet(), Grace: test.grace}
			ctx, cancel := context.WithCancel(t.Context())
			done, up := make(chan error, 1), make(chan struct{})
			go func() {
				done <- l.Serve(ctx, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
					defer func() { left = true }()
					close(entered)
					select {
					case <-release:
					case <-r.Context().Done():
						return
					}
					io.WriteString(w, "answered")
				}, func(context.Context) error { close(up); return nil })
			}()

			<-up
			answer := make(chan string, 1)
			address := l.Address()
			go func() {
				res, err := http.Get("http://" + address)
				if err != nil {
					answer <- ""
					return
				}
				defer res.Body.Close()
				body, _ := io.ReadAll(res.Body)
				answer <- string(body)
			}()

			<-entered
			cancel()
			if test.want != "" {
				close(release)
			}
			if got := <-answer; got != test.want {
				t.Errorf("answer %q, want %q", got, test.want)
			}
			if err := <-done; err != nil || !left || l.Address() != "" {
				t.Errorf("Serve = %v, the request had left: %v, address %q", err, left, l.Address())
			}
		})
	}
}

// What a platform posted is dealt with though it hangs up: it waits for seconds, a file takes
// longer, and what it posts again is then known.
func TestWhoPostsMayHangUp(t *testing.T) {
	l := &Listener{Name: "tests", Log: quiet()}
	ctx, cancel := context.WithCancel(t.Context())
	posting, hangUp := context.WithCancel(t.Context())
	done, up, worked := make(chan error, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		done <- l.Serve(ctx, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
			hangUp()
			for gone := error(nil); gone == nil; gone = http.NewResponseController(w).Flush() {
				_, _ = w.Write(make([]byte, 64<<10))
			}
			worked <- r.Context().Err()
		}, func(context.Context) error { close(up); return nil })
	}()

	<-up
	r, err := http.NewRequestWithContext(posting, http.MethodPost, "http://"+l.Address(), strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := http.DefaultClient.Do(r); err == nil {
		res.Body.Close()
	}
	if err := <-worked; err != nil {
		t.Errorf("the work on what was posted ends with the connection: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Serve = %v", err)
	}
}

func TestWhatEndsServing(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	l := &Listener{Name: "tests", Log: quiet()}
	if err := l.Serve(t.Context(), taken.Addr().String(), nil, nil); err == nil || !strings.HasPrefix(err.Error(), "listen for tests: ") {
		t.Errorf("on a taken address: %v", err)
	}

	refused := errors.New("the service says no")
	if err := l.Serve(t.Context(), "127.0.0.1:0", nil, func(context.Context) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("Serve = %v, want %v", err, refused)
	}
}

func TestWarnsOfOpenListener(t *testing.T) {
	for listen, want := range map[string]bool{"127.0.0.1:0": false, "[::1]:0": false, "localhost:0": false, "0.0.0.0:0": true, ":0": true} {
		if local(listen) == want {
			t.Errorf("local(%q) = %v", listen, !want)
		}
	}
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	l := &Listener{Name: "tests", Log: slog.New(slog.NewTextHandler(&log, nil))}
	if err := l.Serve(ctx, ":0", nil, func(context.Context) error { cancel(); return nil }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "put a TLS proxy in front") {
		t.Errorf("log: %s", &log)
	}
}
