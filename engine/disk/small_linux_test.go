package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A disk without room for what is kept back is not an error, and nothing of it is left there.
func TestADiskWithoutRoomForWhatIsKeptBack(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("daycare-test", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("SKIPPED, not shown here: a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})

	v := NewVolume(dir)
	if err := v.Reserve(); err != nil || Exists(v.ballast()) || v.Err() != nil {
		t.Errorf("reserve: %v, something is left: %v, the volume: %v", err, Exists(v.ballast()), v.Err())
	}
}

// Who does not get a lock holds nothing open.
func TestWhoDoesNotGetALockHoldsNothingOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, _, err := TryLock(path, Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	opened := func() (n int) {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}

		for _, e := range entries {
			if to, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && to == path {
				n++
			}
		}
		return n
	}
	before := opened()

	for range 3 {
		if _, _, err := TryLock(path, Holder{PID: 7}); !errors.Is(err, ErrLocked) {
			t.Errorf("a second lock: %v", err)
		}
	}
	if now := opened(); now != before {
		t.Errorf("the lock file is open %d times, before it was %d", now, before)
	}
}
