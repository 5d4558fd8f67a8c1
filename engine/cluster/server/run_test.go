//go:build natsserver

package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"daycare/engine/cluster"
)

// A server with a password lets in who shows it, and has nothing to say about it.
func TestPassword(t *testing.T) {
	password := strings.Repeat("long ", 20)
	var said bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	o := Options{Listen: "127.0.0.1:0", Store: t.TempDir(), Access: Access{User: "daycare", Password: password},
		Log: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	go func() { ended <- Run(ctx, o, func(address string) { ready <- address }) }()
	address := <-ready
	for _, test := range []struct {
		user, password string
		want           error
	}{
		{"daycare", password, nil},
		{"daycare", "guessed", nats.ErrAuthorization},
		{"daycare", "", nats.ErrAuthorization},
		{"somebody", password, nats.ErrAuthorization},
		{"", "", nats.ErrAuthorization},
	} {
		conn, err := nats.Connect(address, nats.UserInfo(test.user, test.password))
		if !errors.Is(err, test.want) {
			t.Errorf("%q %q: %v, want %v", test.user, test.password, err, test.want)
		}
		if err == nil {
			if _, err := conn.Request(cluster.SyncedSubject, nil, 10*time.Second); err != nil {
				t.Errorf("it does not say that it syncs: %v", err)
			}
			conn.Close()
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for line := range strings.Lines(said.String()) {
		if !strings.Contains(line, "authentication error") {
			t.Errorf("the server says %s", line)
		}
	}
}
