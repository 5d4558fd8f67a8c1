package cluster

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// partsOfUsers is how many streams of logs the clusters of users have.
var partsOfUsers = parts

// TestMain has more tests go beside each other than there are processors: they wait for leases and servers.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // a tenth of what these tests compute was to collect garbage of servers that end soon
	}
	os.Setenv("TMPDIR", crashtest.Memory())
	parts = 3 // more only cost more requests
	flag.Parse()
	for name, value := range map[string]string{"test.parallel": "8", "rapid.checks": modelLives} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := f.Value.Set(value); err != nil {
				panic(err)
			}
		}
	}
	m.Run()
}

// covered are the files of these tests that are replicated.
func covered(name string) bool {
	return slices.Contains([]string{"inbox.jsonl", "history.jsonl", "state.json"}, name) || strings.HasPrefix(name, "blobs/")
}

// A host is a node with its volume.
type host struct {
	*Node
	t      testing.TB
	root   string
	vol    *disk.Volume
	server *server.Server
}

// testLease is short, and long enough for a machine with much to do.
const testLease = 1500 * time.Millisecond

// join makes a machine on root.
func join(t testing.TB, s *server.Server, root string) *host {
	t.Helper()
	return joinWith(t, s, root, testLease)
}

// joinWith is join with another lease, and with what change changes.
func joinWith(t testing.TB, s *server.Server, root string, lease time.Duration, change ...func(*Config)) *host {
	t.Helper()
	vol := disk.NewVolume(root)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c := Config{Servers: []string{s.ClientURL()}, Name: filepath.Base(root), Root: root, Volume: vol, Covers: covered,
		Shared: sharedByTests, Lease: lease, Log: slog.New(slog.DiscardHandler)}
	for _, one := range change {
		one(&c)
	}
	n, err := Join(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	m := &host{Node: n, t: t, root: root, vol: vol, server: s}
	t.Cleanup(func() {
		if n.ctx.Err() == nil {
			n.Close()
		}
	})

	return m
}

// sharedByTests are the files of these tests that belong to all machines.
var sharedByTests = &Shared{Tops: []string{"cron", "memory", "SOUL.md"},
	Covers: func(name string) bool { return !strings.Contains(name, "/files/") },
	Ledger: func(name string) bool { return strings.HasSuffix(name, ".jsonl") },
	Once:   func(name string) bool { return strings.HasPrefix(name, "memory/once") }}

// newHost is join on a new folder.
func newHost(t testing.TB, s *server.Server) *host {
	t.Helper()
	return join(t, s, newRoot(t))
}

// newRoot makes a folder for a machine.
func newRoot(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	return root
}

func (m *host) path(agent, name string) string {
	return filepath.Join(m.root, "agents", agent, filepath.FromSlash(name))
}

// own acquires an agent, waiting for the lease of a machine that died.
func (m *host) own(agent string) {
	m.t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = m.Acquire(agent); err == nil {
			return
		}
		if !errors.As(err, new(*message.Elsewhere)) && !errors.Is(err, disk.ErrAway) {
			break
		}
	}
	m.t.Fatalf("%s is not acquired: %v", agent, err)
}

// make makes the folder of an agent.
func (m *host) make(agent string) {
	m.t.Helper()
	if err := os.MkdirAll(m.path(agent, "."), 0o700); err != nil {
		m.t.Fatal(err)
	}
}

// open opens a log of an agent.
func (m *host) open(agent, name string) *disk.Log {
	m.t.Helper()
	l, _, err := m.vol.OpenLog(m.path(agent, name), disk.LogOptions{Name: "history"})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { l.Close() })

	return l
}

// add appends lines to a log, each behind a barrier of its own.
func add(t testing.TB, l *disk.Log, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if err := write(l, line); err != nil {
			t.Fatal(err)
		}
	}
}

func write(l *disk.Log, line string) error {
	_, err := l.Append([]byte(line + "\n"))
	if errors.Is(err, disk.ErrChanged) {
		var release func()
		if _, release, err = l.Reload(); err == nil {
			_, err = l.Append([]byte(line + "\n"))
		}
		release()
	}
	if err == nil {
		err = l.Barrier()
	}

	return err
}

// lines reads a file of an agent.
func (m *host) lines(agent, name string) []string {
	m.t.Helper()
	data, err := os.ReadFile(m.path(agent, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		m.t.Fatal(err)
	}
	return strings.Fields(string(data))
}

// saying is what a machine says in its log.
type saying struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *saying) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *saying) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// die ends a machine as a crash does.
func (m *host) die() { m.abandon() }
