package control

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"daycare/engine/fault"
)

// logger is an Inspector whose log gets a line with each send to more.
type logger struct {
	Inspector
	more  chan string
	fails error
}

func (l logger) Log(ctx context.Context, q LogQuery, line func([]byte) error) error {
	if l.fails != nil {
		return l.fails
	}
	if err := line([]byte(`{"msg":"old"}`)); err != nil || !q.Follow {
		return err
	}
	for {
		select {
		case text := <-l.more:
			if err := line([]byte(text)); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func TestLogIsFollowedUntilTheClientLeaves(t *testing.T) {
	b := whole(&pair{fake: &fake{}})
	l := logger{more: make(chan string)}
	b.Inspector = l
	h := Handler(b, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "GET", "http://daycare/v1/logs?follow=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := Local(h).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	go func() { l.more <- `{"msg":"new"}` }()
	lines := bufio.NewScanner(resp.Body)
	for _, want := range []string{`{"msg":"old"}`, `{"msg":"new"}`} {
		found := false
		for !found && lines.Scan() {
			found = lines.Text() == "data: "+want
		}
		if !found {
			t.Fatalf("%s is not told: %v", want, lines.Err())
		}
	}
	cancel() // goleak sees what goes on
}

// The lines of a log that is not followed come as they are, in one answer.
func TestLinesOfALog(t *testing.T) {
	b := whole(&pair{fake: &fake{}})
	b.Inspector = logger{}
	if status, _, text := raw(t, Handler(b, Options{}), "GET", "/v1/logs", ""); status != 200 || text != `{"lines":[{"msg":"old"}]}`+"\n" {
		t.Errorf("%d %s", status, text)
	}
	b.Inspector = torn{}
	if status, _, text := raw(t, Handler(b, Options{}), "GET", "/v1/logs", ""); status != 500 || !strings.Contains(text, "internal") {
		t.Errorf("what cannot be sent: %d %s", status, text)
	}
}

// torn is an Inspector whose log has half a line.
type torn struct{ Inspector }

func (torn) Log(_ context.Context, _ LogQuery, line func([]byte) error) error {
	return line([]byte(`{"msg":`))
}

func TestLogThatCannotBeReadIsAnError(t *testing.T) {
	b := whole(&pair{fake: &fake{}})
	for _, path := range []string{"/v1/logs", "/v1/logs?follow=1"} {
		b.Inspector = logger{fails: fault.UnknownAgent}
		if status, _, text := raw(t, Handler(b, Options{}), "GET", path, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, _, text := raw(t, Handler(b, Options{}), "GET", "/v1/logs?level=loud", ""); status != 400 ||
		!strings.Contains(text, "debug, info") {
		t.Errorf("%d %s", status, text)
	}
}

// quiet is an Inspector whose log says nothing before it ends.
type quiet struct{ Inspector }

func (quiet) Log(ctx context.Context, _ LogQuery, _ func([]byte) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// A log that says nothing yet is followed all the same: its stream begins.
func TestAQuietLogIsFollowed(t *testing.T) {
	b := whole(&pair{fake: &fake{}})
	b.Inspector = quiet{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", "http://daycare/v1/logs?follow=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := Local(Handler(b, Options{})).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Errorf("%d %s", resp.StatusCode, kind)
	}
}
