package freeport

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/gofrs/flock"
)

// No test gets what another has, also not one in another process: a lock is of a file that was
// opened, so two of this process are as apart as two processes.
func TestTake(t *testing.T) {
	taken := map[string]bool{}
	t.Run("held", func(t *testing.T) {
		for range 200 {
			address := Take(t)
			if taken[address] {
				t.Fatalf("%s was given twice", address)
			}
			taken[address] = true
			l, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
		}
	})

	for address := range taken {
		if lock := flock.New(fileOf(address)); locked(lock) {
			lock.Close()
			return
		}
	}
	t.Error("nothing that a test had can be given again when it ended")
}

func locked(lock *flock.Flock) bool {
	ok, err := lock.TryLock()
	return ok && err == nil
}

// fileOf is the file whose lock an address is.
func fileOf(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return filepath.Join(os.TempDir(), folder, port)
}
