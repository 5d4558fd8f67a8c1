package clustertest

import (
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Store is a folder for a server, in memory if this system has a place for it: a server makes many files for each
// cluster, and most of what the tests took was to make them.
func Store(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "daycare-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })

	return dir
}

// Serve runs a server with JetStream until the test ends. dir is its store; port 0 is any.
func Serve(t testing.TB, dir string, port int) *server.Server {
	t.Helper()
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	if !s.ReadyForConnections(30 * time.Second) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })

	return s
}
