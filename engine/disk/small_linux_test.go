package disk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// mounted mounts a file system in memory.
func mounted(t *testing.T, kind, options string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := syscall.Mount("daycare-test", dir, kind, 0, options); err != nil {
		t.Skipf("SKIPPED, not shown here: a %s cannot be mounted: %v", kind, err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A disk without room for what is kept back is not an error, and nothing of it is left there.
func TestADiskWithoutRoomForWhatIsKeptBack(t *testing.T) {
	v := NewVolume(mounted(t, "tmpfs", "size=2m"))
	if err := v.Reserve(); err != nil || Exists(v.ballast()) || v.Err() != nil {
		t.Errorf("reserve: %v, something is left: %v, the volume: %v", err, Exists(v.ballast()), v.Err())
	}
}

// Where the file system cannot set space apart, what is kept back is written.
func TestSpaceIsKeptBackOnAnyFileSystem(t *testing.T) {
	v := NewVolume(mounted(t, "ramfs", ""))
	if err := v.Reserve(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(v.ballast()); err != nil || info.Size() != ballastBytes {
		t.Errorf("kept back: %v, %v", info, err)
	}
}

// A disk that was full is full until there is room for more than what is kept back.
func TestADiskIsFullUntilThereIsRoomForMore(t *testing.T) {
	v := NewVolume(mounted(t, "tmpfs", "size=6m"))
	if v.release(); !v.Full() || Exists(v.ballast()) {
		t.Errorf("with room for what is kept back alone: full %v, kept back %v", v.Full(), Exists(v.ballast()))
	}
}

// Bytes that are written in place land where they belong, also where only some of them find room.
func TestOverwriteWithoutRoomForAll(t *testing.T) {
	const block = 64 << 10
	path := filepath.Join(mounted(t, "tmpfs", "size=128k"), "f")
	front := bytes.Repeat([]byte("a"), block)
	write(t, path, string(front))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(3 * block); err != nil { // a hole has no room of its own
		t.Fatal(err)
	}
	n, err := overwrite(f, bytes.Repeat([]byte("b"), 2*block), block)
	if !errors.Is(err, syscall.ENOSPC) || n == 0 || n >= 2*block {
		t.Errorf("%d bytes, %v", n, err)
	}
	if data, err := os.ReadFile(path); err != nil || !bytes.Equal(data[:block], front) || data[block+n-1] != 'b' {
		t.Errorf("what is before them was written over, or they are not there: %v", err)
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
