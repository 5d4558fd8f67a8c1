// Package freeport gives tests ports for servers whose settings must name one, or which must
// come back under the same one after a kill. Where a server can listen on port 0, that is better.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
)

// Ports are drawn from below those that systems give to outgoing connections and to listeners on
// port 0 (from 32768 on Linux, from 49152 elsewhere), so nothing takes one by chance.
const (
	lowest = 20000
	count  = 12000
)

// folder is where the ports that tests have are locked, below that of temporary files.
const folder = "daycare-test-ports"

// Take returns an address of loopback, "127.0.0.1:PORT", at which nothing listens. No other test
// gets it until this one ends, whatever process it is in.
func Take(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), folder)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}

	start := rand.IntN(count)
	for i := range count {
		port := lowest + (start+i)%count
		lock := flock.New(filepath.Join(dir, fmt.Sprint(port)))
		if ok, err := lock.TryLock(); err != nil {
			t.Fatal(err)
		} else if !ok {
			continue
		}

		address := fmt.Sprintf("127.0.0.1:%d", port)
		l, err := net.Listen("tcp", address)
		if err != nil {
			lock.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { lock.Close() })
		return address
	}

	t.Fatal("no port is free")
	return ""
}
