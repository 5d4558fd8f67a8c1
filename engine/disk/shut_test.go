package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An empty log that is closed is not replaced: there is nothing to read of it that would fail.
func TestAClosedEmptyLogIsNotReplaced(t *testing.T) {
	l := logIn(t, t.TempDir(), "")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Replace([]byte("{b}\n"), ""); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("%v, want that it is closed", err)
	}
	if data, err := os.ReadFile(l.path); err != nil || len(data) > 0 {
		t.Errorf("its file has %q: %v", data, err)
	}
}

// A log that is closed takes nothing and gives nothing: its file stays as it was.
func TestAClosedLogRefusesAll(t *testing.T) {
	dir := t.TempDir()
	l := logIn(t, dir, "{a}\n")
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	keep := filepath.Join(dir, "keep")
	for what, op := range map[string]func() error{
		"append":           func() error { _, err := l.Append([]byte("{b}\n")); return err },
		"replace":          func() error { return l.Replace([]byte("{b}\n"), "") },
		"replace and keep": func() error { return l.Replace([]byte("{b}\n"), keep) },
		"barrier":          l.Barrier,
		"reload":           func() error { _, err := reloaded(l); return err },
	} {
		if err := op(); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: %v, want that it is closed", what, err)
		}
	}

	if l.Changed() {
		t.Error("it says that its file changed")
	}
	if data, err := os.ReadFile(l.path); err != nil || string(data) != "{a}\n" || Exists(keep) {
		t.Errorf("its file has %q: %v", data, err)
	}
}

// A file that became shorter than it was when its size was read is an error, not a tail
// that is made of nothing.
func TestATailThatIsGoneIsAnError(t *testing.T) {
	l := logIn(t, t.TempDir(), "{a}\n")
	l.id.size += 100
	if torn, err := l.repair(); err == nil {
		t.Errorf("repaired to %+v, want an error", torn)
	}
	if data, err := os.ReadFile(l.path); err != nil || string(data) != "{a}\n" {
		t.Errorf("the file has %q: %v", data, err)
	}
}

// To read a log again opens its file again only where another one is there.
func TestReloadKeepsTheFileThatIsTheSame(t *testing.T) {
	dir := t.TempDir()
	l := logIn(t, dir, "{a}\n")
	f := l.f
	if data, err := reloaded(l); err != nil || string(data) != "{a}\n" || l.f != f {
		t.Errorf("%q, %v, opened again: %v", data, err, l.f != f)
	}

	write(t, filepath.Join(dir, "new"), "{b}\n")
	if err := os.Rename(filepath.Join(dir, "new"), l.path); err != nil {
		t.Fatal(err)
	}
	if data, err := reloaded(l); err != nil || string(data) != "{b}\n" || l.f == f {
		t.Errorf("%q, %v, another one: %v", data, err, l.f != f)
	}
	if err := os.Remove(l.path); err != nil {
		t.Fatal(err)
	}
	if _, err := reloaded(l); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a log that is gone: %v", err)
	}
	if err := os.Mkdir(l.path, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := reloaded(l); err == nil {
		t.Error("a folder was read as a log")
	}
}

// Bytes that are written in place land where they belong, and a file that cannot be
// written to says so.
func TestOverwrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "0123456789")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := overwrite(f, []byte("abc"), 4); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := f.WriteString("!"); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(path); string(data) != "0123abc789!" {
		t.Errorf("the file has %q, want the letters in place and what is appended at the end", data)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := overwrite(f, []byte("abc"), 4); n != 0 || err == nil {
		t.Errorf("a file that is closed: %d, %v", n, err)
	}

	read, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if n, err := overwrite(read, []byte("abc"), 4); n != 0 || err == nil {
		t.Errorf("a file that is open for reading: %d, %v", n, err)
	}
}

// Close ends who waits for a barrier.
func TestCloseEndsWhoWaits(t *testing.T) {
	l := logIn(t, t.TempDir(), "{a}\n")
	l.mu.Lock()
	woken := make(chan struct{})
	go func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for !l.closed {
			l.cond.Wait()
		}
		close(woken)
	}()

	l.mu.Unlock()
	time.Sleep(10 * time.Millisecond)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}

	select {
	case <-woken:
	case <-time.After(time.Minute):
		t.Error("it waits for ever")
	}
}
