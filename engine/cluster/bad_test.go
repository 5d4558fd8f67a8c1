package cluster

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/cluster/clustertest"
	"daycare/engine/crash"
	"daycare/engine/disk"
)

// Servers with which no cluster is possible are refused, with what to do.
func TestServersThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change   func(o *server.Options)
		replicas int
		want     string
	}{
		"no JetStream":         {func(o *server.Options) { o.JetStream = false }, 1, "enable JetStream"},
		"messages too small":   {func(o *server.Options) { o.MaxPayload = 64 << 10 }, 1, "set max_payload: 8MB"},
		"too few for replicas": {func(*server.Options) {}, 3, "cluster.replicas requires several"},
		"another user":         {func(o *server.Options) { o.Username, o.Password = "other", "secret" }, 1, "Authorization Violation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := &server.Options{ServerName: "n", Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(),
				NoLog: true, NoSigs: true}
			test.change(o)
			s, err := server.NewServer(o)
			if err != nil {
				t.Fatal(err)
			}
			go s.Start()
			defer s.WaitForShutdown()
			defer s.Shutdown()
			if !s.ReadyForConnections(30 * time.Second) {
				t.Fatal("the server does not start")
			}
			root := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			n, err := Join(ctx, Config{Servers: []string{s.ClientURL()}, Root: root, Volume: disk.NewVolume(root), Covers: covered,
				Copies: Copies{Servers: test.replicas}, Log: slog.New(slog.DiscardHandler)})
			if err == nil {
				n.Close()
			}
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			until(t, "its connection is closed", func() bool { return s.NumClients() == 0 })
		})
	}
}

// While the servers have no room nothing is accepted, and why is known; what had begun is there when they have.
func TestServersWithoutRoom(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	h := newHost(t, s)
	h.make("a")
	if err := h.Acquire("a"); err != nil {
		t.Fatal(err)
	}
	l, _, err := h.vol.OpenLog(h.path("a", "history.jsonl"), disk.LogOptions{Name: "history"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	room := func(bytes int64) {
		t.Helper()
		in, _ := h.presence.store.handles.logs.of("a")
		info, err := in.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		info.Config.MaxBytes = bytes
		if _, err := h.presence.store.js.UpdateStream(t.Context(), info.Config); err != nil {
			t.Fatal(err)
		}
	}
	room(1)

	done := make(chan error, 1)
	go func() { done <- write(l, "waits") }()
	until(t, "it is known that there is no room", func() bool {
		e, ok := errors.AsType[*jetstream.APIError](h.Trouble())
		return ok && e.ErrorCode == codeStreamFull && h.Away()
	})
	select {
	case err := <-done:
		t.Errorf("accepted without room: %v", err)
	default:
	}
	room(-1)
	if err := <-done; err != nil {
		t.Error(err)
	}
	until(t, "messages are accepted again", func() bool { return !h.Away() && h.Trouble() == nil })
}

// Servers that do not say that they sync each message are warned of.
func TestServersThatMayNotSync(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	said := func(servers int) (all bool, text string) {
		var log bytes.Buffer
		all = allSync(t.Context(), conn, servers, slog.New(slog.NewTextHandler(&log, nil)))
		return all, log.String()
	}
	if all, got := said(1); all || !strings.Contains(got, "sync_interval: always") {
		t.Errorf("%v: it says %q", all, got)
	}
	if _, err := conn.Subscribe(SyncedSubject, func(m *nats.Msg) { _ = m.Respond(nil) }); err != nil {
		t.Fatal(err)
	}
	if all, got := said(1); !all || got != "" {
		t.Errorf("of servers that say so, %v, it says %q", all, got)
	}
	if all, got := said(3); all || !strings.Contains(got, "not all servers") {
		t.Errorf("where one of three says so, %v, it says %q", all, got)
	}
}

// A disk of the owner that fails matters where it is waited for: with one server unless the settings say never, and that
// server says that it syncs.
func TestTheDiskOfTheOwner(t *testing.T) {
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	conn, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Subscribe(SyncedSubject, func(m *nats.Msg) { _ = m.Respond(nil) }); err != nil {
		t.Fatal(err)
	}
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}

	for own, waits := range map[OwnDisk]bool{"": true, Auto: true, Always: true, Never: false} {
		h := joinWith(t, s, newRoot(t), testLease, func(c *Config) { c.Copies = Copies{1, own} })
		agent := "agent" + string(own)
		h.make(agent)
		h.own(agent)
		l := h.open(agent, "history.jsonl")
		met := crash.Arm(t, "eio@history.sync#1+")
		err := write(l, "1")
		tried := len(met()) > 0
		crash.Arm(t, "")
		if tried != waits || (err != nil) != waits {
			t.Errorf("%q: the disk is tried: %v, %v", own, tried, err)
		}
		h.Close()
	}
}
