package freeport

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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

// Ports that another test has, and those at which something listens, are passed over; what was given
// back the next one gets.
func TestWhichPortIsFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	var all []net.Listener
	var ports []int
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		all, ports = append(all, l), append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	found := func(want int) *flock.Flock {
		t.Helper()
		address, lock, err := find(dir, slices.Values(ports))
		if err != nil || address != all[want].Addr().String() {
			t.Fatalf("found is %q, %v; want %s", address, err, all[want].Addr())
		}
		return lock
	}

	if address, _, err := find(dir, slices.Values(ports)); err == nil {
		t.Errorf("%s was found, at which something listens", address)
	}
	all[1].Close()
	all[2].Close()
	one := found(1)
	two := found(2)
	if address, _, err := find(dir, slices.Values(ports)); err == nil {
		t.Errorf("%s was found, which is taken", address)
	}
	one.Close()
	found(1).Close()
	two.Close()
	all[0].Close()
	found(0).Close() // it was let go of when something listened there
}

// What cannot be locked is an error, and not a port that is free or taken.
func TestLocksThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{dir, filepath.Join(dir, "file")} {
		var of *fs.PathError
		if address, lock, err := find(in, slices.Values([]int{1})); !errors.As(err, &of) || lock != nil {
			t.Errorf("in %s: %q, %v", in, address, err)
		}
	}
}

// refused is a test that is ended by its first failure.
type refused struct {
	testing.TB
	said   []any
	helped bool
}

func (r *refused) Helper() { r.helped = true }
func (r *refused) Fatal(args ...any) {
	r.said = args
	runtime.Goexit()
}

// A test that gets no port ends where it asked for one.
func TestNoPort(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", file)
	r, ended := &refused{TB: t}, make(chan struct{})
	went := false
	go func() {
		defer close(ended)
		Take(r)
		went = true
	}()
	if <-ended; went || len(r.said) != 1 || !r.helped {
		t.Errorf("it goes on: %v; said was %v, for the caller: %v", went, r.said, r.helped)
	}
}

// Each port comes once, whichever comes first.
func TestEachPortComesOnce(t *testing.T) {
	for _, start := range []int{0, 7, count - 1} {
		list := slices.Collect(from(start))
		if list[0] != lowest+start {
			t.Errorf("the first one from %d is %d", start, list[0])
		}
		slices.Sort(list)
		if len(slices.Compact(list)) != count || list[0] != lowest || list[count-1] != lowest+count-1 {
			t.Errorf("from %d come %d, from %d to %d", start, len(list), list[0], list[len(list)-1])
		}
	}
	for port := range from(3) {
		if port != lowest+3 {
			t.Errorf("behind a break comes %d", port)
		}
		break
	}
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
