package disk

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// /proc is a file system that has no sync for folders, and is there on every Linux.
func TestSyncOfAFolderThatHasNone(t *testing.T) {
	v := NewVolume(t.TempDir())
	if err := v.SyncDir("log.dirsync", "/proc"); err != nil || v.Err() != nil {
		t.Errorf("sync of /proc: %v, the volume: %v", err, v.Err())
	}
	if ok, err := SyncsFolders("/proc"); ok || err != nil {
		t.Errorf("the probe of /proc says %v, %v", ok, err)
	}
	if ok, err := SyncsFolders(t.TempDir()); !ok || err != nil {
		t.Errorf("the probe of a folder says %v, %v", ok, err)
	}
}

// While another program has the log open it is not held; with nobody else it is, and then
// what is appended cannot come between two pieces of a save.
func TestReloadIsAlone(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "log"))
	if _, err := l.Append([]byte("{a}\n")); err != nil {
		t.Fatal(err)
	}
	if err := lease(l.f, syscall.F_WRLCK); err != nil {
		t.Skipf("no leases here: %v", err)
	}

	letGo(l.f)
	for _, other := range []bool{true, false} {
		var theirs *os.File
		if other {
			f, err := os.Open(l.path)
			if err != nil {
				t.Fatal(err)
			}
			theirs = f
		}

		held := false
		synctest.Test(t, func(t *testing.T) {
			for _, want := range []time.Duration{writing, 0} { // who waited in vain does not wait again at once
				begin := time.Now()
				held = l.waitAlone(l.f)
				if waited := time.Since(begin); other && (waited < want || waited > want+writing/100) {
					t.Errorf("it waited %v, want %v", waited, want)
				}
			}
		})
		if held {
			letGo(l.f)
		}
		if held == other {
			t.Errorf("another program: %v, held: %v", other, held)
		}
		if theirs != nil {
			theirs.Close()
		}
	}

	holdsAlone(t, l, "{a}\n")
	write(t, l.path+"~", "{a}\n{b}\n")
	if err := os.Rename(l.path+"~", l.path); err != nil {
		t.Fatal(err)
	}
	holdsAlone(t, l, "{a}\n{b}\n") // the file that a save put there, too
}

// A save in place that stands still between cutting the file and writing it takes nothing along
// that was appended meanwhile, not even where it leaves size and time of change as they were.
func TestASaveThatStandsStill(t *testing.T) {
	l := logIn(t, t.TempDir(), "{a}\n{b}\n")
	if err := lease(l.f, syscall.F_WRLCK); err != nil {
		t.Skipf("no leases here: %v", err)
	}
	letGo(l.f)

	editor, err := os.OpenFile(l.path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	saved := make(chan error, 1)
	go func() {
		time.Sleep(5 * freshness)
		info, err := editor.Stat()
		_, werr := editor.WriteString("{b}\n{x}\n")
		saved <- errors.Join(err, werr, os.Chtimes(l.path, time.Time{}, info.ModTime()), editor.Close())
	}()

	if _, err := l.Append([]byte("{c}\n")); !errors.Is(err, ErrChanged) {
		t.Fatalf("append to a file that was cut: %v", err)
	}
	data, release, err := l.Reload()
	if string(data) != "{b}\n{x}\n" || err != nil {
		t.Errorf("read is %q, %v", data, err)
	}
	if _, err := l.Append([]byte("{a}\n{c}\n")); err != nil {
		t.Error(err)
	}
	release()

	if err := <-saved; err != nil {
		t.Fatal(err)
	}
	if got := content(t, l.path); got != "{b}\n{x}\n{a}\n{c}\n" {
		t.Errorf("the file has %q", got)
	}
}

// A sync that fails is an error: a pipe has none.
func TestASyncThatFailsIsAnError(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := datasync(w); err == nil {
		t.Error("a pipe is synced")
	}
}

// Who asks whether a file is open for writing keeps no other program from opening it.
func TestAskingForWritersShutsNoneOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	write(t, path, "x")
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if OpenForWriting(f) {
		t.Error("a file without writers is open for writing")
	}
	other, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatalf("another program cannot open it: %v", err)
	}
	defer other.Close()
	if err := lease(f, syscall.F_RDLCK); !errors.Is(err, syscall.EAGAIN) {
		t.Skipf("no leases here: %v", err)
	}
	if !OpenForWriting(f) {
		t.Error("a file that another program writes to is not open for writing")
	}
}

// holdsAlone reads a log anew and checks that others cannot open it until it is released.
func holdsAlone(t *testing.T, l *Log, want string) {
	t.Helper()
	content, release, err := l.Reload()
	if err != nil || string(content) != want {
		t.Errorf("%q, %v", content, err)
	}
	if f, err := os.OpenFile(l.path, os.O_RDWR|syscall.O_NONBLOCK, 0); !errors.Is(err, syscall.EWOULDBLOCK) {
		f.Close()
		t.Errorf("another program opens it meanwhile: %v", err)
	}

	release()
	f, err := os.OpenFile(l.path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Errorf("another program cannot open it afterwards: %v", err)
	}
	f.Close()
}
