package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"

	"daycare/engine/crash"
)

// descriptors is how many files this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(entries)
}

// Whatever fails, and whatever works, leaves no file open.
func TestNothingIsLeftOpen(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))  // it would close what was forgotten
	write(t, filepath.Join(t.TempDir(), "first"), "") // the runtime opens files of its own with the first one
	for name, prepare := range operations {
		for k := range 12 {
			before := descriptors(t)
			t.Run(fmt.Sprint(name, " ", k), func(t *testing.T) {
				dir := t.TempDir()
				op := prepare(t, NewVolume(dir), dir)
				crash.Arm(t, fmt.Sprintf("eio@#%d", k+1))
				op()
			})
			if after := descriptors(t); after != before {
				t.Errorf("%s with a fault at step %d: %d files are left open", name, k+1, after-before)
			}
		}
	}
	for name, op := range map[string]func(t *testing.T, dir string){
		"a log that is no file": func(t *testing.T, dir string) {
			if err := syscall.Mkfifo(filepath.Join(dir, "log"), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, _, err := NewVolume(dir).OpenLog(filepath.Join(dir, "log"), LogOptions{Name: "inbox"}); err == nil {
				t.Error("a pipe was opened as a log")
			}
		},
		"a log that was replaced": func(t *testing.T, dir string) {
			l := logIn(t, dir, "{a}\n")
			write(t, filepath.Join(dir, "new"), "{b}\n")
			if err := os.Rename(filepath.Join(dir, "new"), l.path); err != nil {
				t.Fatal(err)
			}
			if data, err := reloaded(l); err != nil || string(data) != "{b}\n" {
				t.Errorf("%q, %v", data, err)
			}
			l.Close()
		},
		"a replacement beside a person": func(t *testing.T, dir string) {
			l := logIn(t, dir, "{a}\n")
			real := l.vol.exchange
			l.vol.exchange = func(a, b string) (bool, error) {
				l.vol.exchange = real
				write(t, l.path, "{by hand}\n")
				return real(a, b)
			}
			if err := l.Replace([]byte("{new}\n"), ""); !errors.Is(err, ErrChanged) {
				t.Errorf("replace: %v", err)
			}
			l.Close()
		},
		"a lock that another holds": func(t *testing.T, dir string) {
			path := filepath.Join(dir, "lock")
			lock, _, err := TryLock(path, Holder{PID: os.Getpid()})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := TryLock(path, Holder{PID: 8}); !errors.Is(err, ErrLocked) || !Held(path) {
				t.Errorf("locked twice: %v", err)
			}
			lock.Release()
		},
		"a lock that is a folder": func(t *testing.T, dir string) {
			if _, _, err := TryLock(dir, Holder{}); err == nil {
				t.Error("a folder was locked")
			}
		},
	} {
		before := descriptors(t)
		t.Run(name, func(t *testing.T) { op(t, t.TempDir()) })
		if after := descriptors(t); after != before {
			t.Errorf("%s: %d files are left open", name, after-before)
		}
	}
}

func logIn(t *testing.T, dir, text string) *Log {
	t.Helper()
	path := filepath.Join(dir, "log")
	write(t, path, text)
	l, _, err := NewVolume(dir).OpenLog(path, LogOptions{Name: "inbox", Valid: closed})
	if err != nil {
		t.Fatal(err)
	}

	return l
}

// Who asks whether a lock is held shares it for a moment, and a command that a dead holder
// started for twenty seconds; both are waited for, a holder that lives is not.
func TestLockIsWaitedForAsLongAsItsHolderDeserves(t *testing.T) {
	const dead = 123456789
	for name, tt := range map[string]struct {
		pid  int
		held time.Duration
		want error
	}{
		"asked for a moment":      {os.Getpid(), 20 * time.Millisecond, nil},
		"held by the living":      {os.Getpid(), 200 * time.Millisecond, ErrLocked},
		"shared with the dead":    {dead, 15 * time.Second, nil},
		"kept by what is left":    {dead, 30 * time.Second, ErrLocked},
		"by somebody not written": {0, 20 * time.Millisecond, nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "lock")
			write(t, path, "")
			if tt.pid > 0 {
				write(t, path, fmt.Sprintf(`{"pid":%d}`, tt.pid))
			}
			synctest.Test(t, func(t *testing.T) {
				other := flock.New(path)
				if ok, err := other.TryRLock(); !ok || err != nil {
					t.Fatal(ok, err)
				}
				done := make(chan struct{})
				go func() { defer close(done); time.Sleep(tt.held); other.Close() }()
				defer func() { <-done }()
				lock, _, err := TryLock(path, Holder{PID: 7})
				if !errors.Is(err, tt.want) {
					t.Errorf("%v, want %v", err, tt.want)
				}
				if lock != nil {
					lock.Release()
				}
			})
		})
	}
}

// A file that was just written is left alone until it is at rest, one that is written all the
// time only once in a while, and one that came whole by a rename at once.
func TestReloadWaitsUntilAFileStandsStill(t *testing.T) {
	for name, tt := range map[string]struct {
		file string // in the place of the log; "": the log itself
		edit func(touch func())
		want time.Duration
	}{
		"long ago":            {"", func(func()) {}, 0},
		"just now":            {"", func(touch func()) { touch() }, 35 * time.Millisecond},
		"all the time":        {"", func(touch func()) { again(touch) }, patience},
		"renamed and whole":   {"{b}\n", func(touch func()) { touch() }, 0},
		"renamed and cut":     {"{b", func(touch func()) { touch() }, 35 * time.Millisecond},
		"renamed and nothing": {"-", func(touch func()) { touch() }, 35 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := logIn(t, dir, "{a}\n")
			defer l.Close()
			if tt.file != "" {
				write(t, filepath.Join(dir, "new"), strings.TrimPrefix(tt.file, "-"))
				if err := os.Rename(filepath.Join(dir, "new"), l.path); err != nil {
					t.Fatal(err)
				}
			}

			synctest.Test(t, func(t *testing.T) {
				touch := func() {
					if err := os.Chtimes(l.path, time.Now(), time.Now()); err != nil {
						t.Error(err)
					}
				}
				old := time.Now().Add(-time.Hour)
				if err := os.Chtimes(l.path, old, old); err != nil {
					t.Fatal(err)
				}

				done := make(chan struct{})
				go func() { defer close(done); tt.edit(touch) }()
				defer func() { <-done }()
				synctest.Wait()
				begin := time.Now()
				if _, err := reloaded(l); err != nil {
					t.Error(err)
				}
				if got := time.Since(begin); got != tt.want {
					t.Errorf("waited %v, want %v", got, tt.want)
				}
				if begin = time.Now(); tt.want == patience {
					if _, err := reloaded(l); err != nil || time.Since(begin) != 0 {
						t.Errorf("waited again %v, %v", time.Since(begin), err)
					}
				}
			})
		})
	}
}

func again(touch func()) {
	for range 100 {
		touch()
		time.Sleep(freshness / 3)
	}
}

// A log that is closed, gone or cannot be looked at says which, and says nothing of the disk.
func TestLogsThatCannotBeAppendedTo(t *testing.T) {
	l := logIn(t, t.TempDir(), "{a}\n")
	l.Close()
	if _, err := l.Append([]byte("{b}\n")); !errors.Is(err, fs.ErrClosed) || l.vol.Err() != nil {
		t.Errorf("closed: %v, the volume says %v", err, l.vol.Err())
	}

	dir := filepath.Join(t.TempDir(), "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	l = logIn(t, dir, "{a}\n")
	defer l.Close()
	if err := errors.Join(os.Rename(dir, dir+".away"), os.Symlink("dir", dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append([]byte("{b}\n")); !errors.Is(err, syscall.ELOOP) || errors.Is(err, ErrChanged) || !l.Changed() {
		t.Errorf("in a folder that is a loop: %v", err)
	}
	if !Exists(l.path) {
		t.Error("what cannot be looked at counts as not there")
	}
	if _, _, err := l.vol.OpenLog(dir, LogOptions{Name: "inbox"}); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link: %v", err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if data, err := reloaded(l); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("gone: %q, %v", data, err)
	}

	l = logIn(t, t.TempDir(), "{a}\n")
	defer l.Close()
	crash.Arm(t, "enospc@inbox.rotate.write#1")
	if err := l.Replace([]byte("{b}\n"), ""); !errors.Is(err, ErrFull) || content(t, l.path) != "{a}\n" {
		t.Errorf("replaced on a full disk: %v", err)
	}
}

// A line without its end that cannot be ended is an error of the reload.
func TestReloadThatCannotEndALine(t *testing.T) {
	l := logIn(t, t.TempDir(), "{a}\n")
	defer l.Close()
	write(t, l.path, "{a}\n{b")
	crash.Arm(t, "eio@inbox.write#1")
	if data, err := reloaded(l); !errors.Is(err, ErrFailed) {
		t.Errorf("%q, %v", data, err)
	}
}

// A file that is cut short while it is read is read again.
func TestReloadOfAFileThatIsCutShort(t *testing.T) {
	l := logIn(t, t.TempDir(), "{a}\n")
	defer l.Close()
	write(t, l.path, "{a}\n{b}\n{c")
	crash.Meanwhile(t, "inbox.write", func(k int) {
		if k == 1 {
			// Not by the path: that waits for who holds the file alone, and so for this test.
			if err := l.f.Truncate(4); err != nil {
				t.Error(err)
			}
		}
	})
	if data, err := reloaded(l); err != nil || string(data) != content(t, l.path) {
		t.Errorf("%q, %v; the file has %q", data, err, content(t, l.path))
	}
}

// A torn tail that has no place to be kept stays, and the disk has not failed; on a full disk
// it is kept in the space that is kept back.
func TestTornTailThatCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	write(t, path, "{a}\n{half")
	if err := os.Symlink(filepath.Join(dir, "none", "none"), path+".torn-4"); err != nil {
		t.Fatal(err)
	}

	v := NewVolume(dir)
	if _, _, err := v.OpenLog(path, LogOptions{Name: "inbox", Valid: closed}); err == nil || v.Err() != nil {
		t.Errorf("%v, the volume says %v", err, v.Err())
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "{a}\n{half" {
		t.Errorf("%q, %v", got, err)
	}
	if err := errors.Join(os.Remove(path+".torn-4"), v.Reserve()); err != nil {
		t.Fatal(err)
	}

	crash.Arm(t, "enospc@torn.write#1")
	l, torn, err := v.OpenLog(path, LogOptions{Name: "inbox", Valid: closed})
	if err != nil || torn == nil || torn.Bytes != 5 || Exists(v.ballast()) {
		t.Fatalf("%+v, %v; the ballast is there: %v", torn, err, Exists(v.ballast()))
	}
	l.Close()
}

// A disk that has room reserves nothing by being asked.
func TestFullOfADiskWithRoom(t *testing.T) {
	v := NewVolume(t.TempDir())
	if v.Full() || Exists(v.ballast()) {
		t.Error("a look at the disk wrote something")
	}
}

// counting counts how often it is read.
type counting struct {
	*strings.Reader
	reads int
}

func (c *counting) ReadAt(p []byte, off int64) (int, error) {
	c.reads++
	return c.Reader.ReadAt(p, off)
}

// The last line is found with few reads, and with one where the file ends in a newline.
func TestLastLineIsFoundInFewReads(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "a": 0, "a\n": 2, "a\nb": 2, "\n" + strings.Repeat("x", 100_000): 1} {
		c := &counting{Reader: strings.NewReader(text)}
		if got, err := lastLineStart(c, int64(len(text))); err != nil || got != want || c.reads > 2+len(text)/1000 {
			t.Errorf("of %d bytes: %d after %d reads, %v, want %d", len(text), got, c.reads, err, want)
		}
	}
}

// Where names cannot be swapped, a file that is gone is not one that someone changed; a pipe
// that someone put in its place is kept and not read.
func TestExchangeOfWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	v := NewVolume(dir)
	write(t, filepath.Join(dir, "temp"), "new")
	if _, err := v.checkedRename("state", filepath.Join(dir, "temp"), path, []byte("old")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	write(t, path, "old")
	if _, err := v.checkedRename("state", filepath.Join(dir, "none"), path, []byte("old")); !errors.Is(err, fs.ErrNotExist) ||
		content(t, path) != "old" {
		t.Errorf("by nothing: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}

	var kept string
	v.onKept = func(_, as string) { kept = as }
	if _, err := v.Exchange("state", path, []byte("new"), []byte("old")); err == nil {
		t.Error("a pipe was exchanged as if it were the file")
	}
	if info, err := os.Lstat(kept); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		t.Errorf("the pipe is not kept: %q, %v", kept, err)
	}
}
