package slack

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"daycare/connectors/chat"
)

// A socket of a quiet workspace stays as long as Slack pings, which is no message. One over which
// nothing comes any more is ended, for the engine to make another.
func TestAQuietSocketStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &workspace{acked: map[string]bool{}, change: make(chan struct{}), calls: map[string]int{},
			Server: &httptest.Server{URL: "http://slack.test"}}
		conns := make(pipes)
		server := &http.Server{Handler: s}
		var serving sync.WaitGroup
		serving.Go(func() { server.Serve(conns) })
		c := testConnector(t, s, Options{}, chat.Host{}, slog.New(slog.DiscardHandler))
		c.api.HTTP.Transport = &http.Transport{DialContext: conns.dial}
		done := make(chan error, 1)
		go func() { done <- c.Run(t.Context(), nil) }()

		synctest.Wait()
		socket := s.conn
		for range 60 {
			time.Sleep(10 * time.Second)
			_ = socket.Ping(t.Context())
		}
		if len(done) > 0 {
			t.Errorf("ended within ten minutes with pings: %v; want a socket that stays", <-done)
			done <- c.Run(t.Context(), nil)
		}
		if err := <-done; err == nil || !strings.Contains(err.Error(), "slack said nothing for 2m0s") {
			t.Errorf("without pings it ends with %v", err)
		}

		server.Close()
		serving.Wait()
	})
}

// pipes are a listener whose connections are pipes, for tests in virtual time.
type pipes chan net.Conn

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p <- theirs
	return ours, nil
}

func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error {
	close(p)
	return nil
}

func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }
