// Package freeport gives tests, and harnesses that play servers, ports for servers whose settings must
// name one, or which must come back under the same one after a kill. Where a server can listen on port 0,
// that is better.
package freeport

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Ports are drawn from below those that systems give to outgoing connections and to listeners on
// port 0 (from 32768 on Linux, from 49152 elsewhere), so nothing takes one by chance.
const (
	lowest = 20000
	count  = 12000
)

// folder is where the ports that are taken are locked, below that of temporary files.
const folder = "daycare-test-ports"

// A T is a test: a testing.TB.
type T interface {
	Helper()
	Fatal(args ...any)
	Cleanup(f func())
}

// Take is Reserve for a test, until it ends.
func Take(t T) string {
	t.Helper()
	address, release, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(release)

	return address
}

// Reserve returns an address of loopback, "127.0.0.1:PORT", at which nothing listens. Nobody else who
// asks here gets it until release is called, in whatever process.
func Reserve() (address string, release func(), err error) {
	address, lock, err := find(filepath.Join(os.TempDir(), folder), from(rand.IntN(count)))
	if err != nil {
		return "", nil, err
	}

	return address, func() { lock.Close() }, nil
}

// from are all ports, each once, from lowest+start on.
func from(start int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range count {
			if !yield(lowest + (start+i)%count) {
				return
			}
		}
	}
}

// find locks the first of some ports that no test has and at which nothing listens. The locks are
// files in dir.
func find(dir string, ports iter.Seq[int]) (address string, lock *flock.Flock, err error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", nil, err
	}
	for port := range ports {
		lock := flock.New(filepath.Join(dir, fmt.Sprint(port)))
		if ok, err := lock.TryLock(); err != nil {
			return "", nil, err
		} else if !ok {
			continue
		}

		address := fmt.Sprintf("127.0.0.1:%d", port)
		if l, err := net.Listen("tcp", address); err == nil {
			l.Close()
			return address, lock, nil
		}
		lock.Close()
	}

	return "", nil, errors.New("no port is free")
}
