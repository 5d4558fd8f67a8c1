package beneath

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// holding is how many files this process has open.
func holding(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("which files are open can only be asked on Linux")
	}
	return len(entries)
}

// What is opened is what was looked at: something else that took its place is a race.
func TestWhatTookThePlaceIsNotOpened(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "d/f"), "one")
	put(t, filepath.Join(root, "other/f"), "two")
	dir, err := Root(root)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	look := func(name string) fs.FileInfo {
		t.Helper()
		info, err := dir.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	before := holding(t)

	for range 5 {
		if sub, err := Enter(dir, "d", look("other")); !errors.Is(err, ErrRace) || sub != nil {
			t.Errorf("another folder was entered: %v", err)
		}
		if f, err := Open(dir, "d/f", look("other/f")); !errors.Is(err, ErrRace) || f != nil {
			t.Errorf("another file was opened: %v", err)
		}
		if _, err := Enter(dir, "gone", look("d")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a folder that is gone: %v", err)
		}
		if _, err := Open(dir, "gone", look("d/f")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a file that is gone: %v", err)
		}
		if _, err := Enter(dir, "gone", nil); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a folder that was never there: %v", err)
		}
		if _, err := Enter(dir, "d/f", nil); !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("a file was entered: %v", err)
		}
	}

	if after := holding(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
	sub, err := Enter(dir, "d", look("d"))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	f, err := Open(sub, "f", look("d/f"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if data, err := io.ReadAll(f); string(data) != "one" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}

// A walk opens one folder after the other, leaves none open, and never leaves the root.
func TestAWalkLeavesNothingOpen(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "a/b/c/f"), "text")
	if err := os.Symlink("a", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	before := holding(t)

	for path, want := range map[string]error{"": nil, ".": nil, "a": nil, "a/b/c": nil, "a/./b/../b": nil, "a/b/none": fs.ErrNotExist,
		"a/b/c/f": syscall.ENOTDIR, "link/b": ErrLink, "..": fs.ErrInvalid, "/etc": fs.ErrInvalid, "a/../..": fs.ErrInvalid} {
		dir, err := Dir(root, path)
		if !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%q: %v, want %v", path, err, want)
		}
		if err != nil {
			continue
		}

		info, serr := dir.Stat(".")
		there, lerr := os.Stat(filepath.Join(root, path))
		if err := errors.Join(serr, lerr); err != nil || !os.SameFile(info, there) {
			t.Errorf("%q: another folder was opened, %v", path, err)
		}
		dir.Close()
	}

	if _, err := Dir(filepath.Join(root, "none"), "a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a root that is not there: %v", err)
	}
	if _, err := ReadFile(filepath.Join(root, "none"), "f", 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file beneath a root that is not there: %v", err)
	}

	for path, want := range map[string]error{"a/b/c/f": nil, "a/none/f": fs.ErrNotExist, "../f": fs.ErrInvalid, "link/b/c/f": ErrLink,
		"": fs.ErrInvalid, "..": fs.ErrInvalid, "/f": fs.ErrInvalid} {
		if data, err := ReadFile(root, path, 10); !errors.Is(err, want) || (err == nil) != (string(data) == "text") {
			t.Errorf("%q: %q, %v, want %v", path, data, err, want)
		}
	}

	if after := holding(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
}

// A file of exactly the bound is read; of a larger one the beginning, with an error.
func TestTheBoundOfAFile(t *testing.T) {
	root := t.TempDir()
	for size, want := range map[int]string{9: "xxxxxxxxx", 10: "xxxxxxxxxx", 11: "xxxxxxxxxx"} {
		put(t, filepath.Join(root, "f"), strings.Repeat("x", size))
		data, err := ReadFile(root, "f", 10)
		own, info, oerr := Own(filepath.Join(root, "f"), 10)
		for _, got := range []struct {
			data []byte
			err  error
		}{{data, err}, {own, oerr}} {
			if string(got.data) != want || errors.Is(got.err, ErrTooLarge) != (size > 10) || (got.err != nil) != (size > 10) {
				t.Errorf("of %d bytes %q was read, %v", size, got.data, got.err)
			}
		}

		if info.Size() != int64(size) {
			t.Errorf("it says that there are %d bytes, want %d", info.Size(), size)
		}
	}
}

// A file of .daycare that is something else is an error at once, and leaves nothing open.
func TestOwnFilesOfAnotherKind(t *testing.T) {
	root := t.TempDir()
	pipe := filepath.Join(root, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(root, "socket")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	before := holding(t)

	for range 5 {
		for path, want := range map[string]error{pipe: ErrKind, socket: ErrKind, root: ErrKind,
			filepath.Join(root, "none"): fs.ErrNotExist} {
			if f, info, err := OpenOwn(path); !errors.Is(err, want) || f != nil || info != nil {
				t.Errorf("%s: %v, want %v", path, err, want)
			}
		}
	}

	if after := holding(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
}

// Two names of one file are one file, which has two names.
func TestWhichFileItIs(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "a"), "x")
	put(t, filepath.Join(root, "b"), "x")
	if err := os.Link(filepath.Join(root, "a"), filepath.Join(root, "c")); err != nil {
		t.Fatal(err)
	}

	look := func(name string) fs.FileInfo {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	if a, b, c := IDOf(look("a")), IDOf(look("b")), IDOf(look("c")); a != c || a == b || a == (ID{}) {
		t.Errorf("a is %v, b %v, c %v", a, b, c)
	}
	if a, b := Links(look("a")), Links(look("b")); a != 2 || b != 1 {
		t.Errorf("a has %d names and b %d, want 2 and 1", a, b)
	}
	if id, n := IDOf(unknown{}), Links(unknown{}); id != (ID{}) || n != 1 {
		t.Errorf("of a file that the system knows nothing of: %v, %d names", id, n)
	}
}

// unknown is what is known of a file by a system that says no more.
type unknown struct{ fs.FileInfo }

func (unknown) Sys() any { return nil }

// The cause of an error is said without the name, which is relative to some folder.
func TestReasonOfAnError(t *testing.T) {
	cause := errors.New("odd")
	if got := Reason(fmt.Errorf("read: %w", &fs.PathError{Op: "open", Path: "f", Err: cause})); got != cause {
		t.Errorf("the reason is %v", got)
	}
	if got := Reason(cause); got != cause {
		t.Errorf("of an error without a path it is %v", got)
	}
}
