package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t testing.TB, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

// operations are all that make something durable, each with what it prepares and what
// the file may hold after it failed.
var operations = map[string]func(t *testing.T, v *Volume, dir string) func() error{
	"WriteFile": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "file"), "old")
		return func() error { return v.WriteFile("state", filepath.Join(dir, "file"), []byte("new")) }
	},
	"AddFile": func(t *testing.T, v *Volume, dir string) func() error {
		return func() error { return v.AddFile("state", filepath.Join(dir, "file"), []byte("new")) }
	},
	"WriteDraftOf": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "file"), "old")
		return func() error {
			return v.WriteDraftOf("draft", filepath.Join(dir, "file"), []byte("new"), time.Unix(1e9, 0))
		}
	},
	"Exchange": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "file"), "old")
		return func() error {
			_, err := v.Exchange("state", filepath.Join(dir, "file"), []byte("new"), []byte("old"))
			return err
		}
	},
	"Exchange where names cannot be swapped": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "file"), "old")
		v.exchange = func(string, string) (bool, error) { return false, nil }
		return func() error {
			_, err := v.Exchange("state", filepath.Join(dir, "file"), []byte("new"), []byte("old"))
			return err
		}
	},
	"Exchange of no file": func(t *testing.T, v *Volume, dir string) func() error {
		return func() error {
			_, err := v.Exchange("state", filepath.Join(dir, "file"), []byte("new"), nil)
			return err
		}
	},
	"Amend": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "file"), "old")
		return func() error {
			_, err := v.Amend("state", filepath.Join(dir, "file"), []byte("new"), []byte("old"))
			return err
		}
	},
	"ReplaceIn": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "file"), "old")
		return func() error { return ReplaceIn("tool.file", root(t, dir), "file", []byte("new"), InOptions{}) }
	},
	"MkdirIn": func(t *testing.T, v *Volume, dir string) func() error {
		return func() error { return MkdirIn("tool.file", root(t, dir), "file", 0o700) }
	},
	"Rename": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "from"), "new")
		return func() error { return v.Rename("trash", filepath.Join(dir, "from"), filepath.Join(dir, "file")) }
	},
	"Rename to another folder": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "from"), "new")
		mkdir(t, filepath.Join(dir, "sub"))
		return func() error { return v.Rename("trash", filepath.Join(dir, "from"), filepath.Join(dir, "sub", "file")) }
	},
	"Link": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "from"), "new")
		return func() error { return v.Link("state", filepath.Join(dir, "from"), filepath.Join(dir, "file")) }
	},
	"Remove": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "file"), "old")
		return func() error { return v.Remove("letter", filepath.Join(dir, "file")) }
	},
	"RemoveAll": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "old"), "x")
		return func() error { return v.RemoveAll("claim", filepath.Join(dir, "old")) }
	},
	"Shift": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "a"), "x")
		return func() error { return v.Shift("claim", filepath.Join(dir, "a"), filepath.Join(dir, "b")) }
	},
	"Swap": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "a"), "x")
		write(t, filepath.Join(dir, "b"), "y")
		return func() error {
			_, err := v.Swap("claim", filepath.Join(dir, "a"), filepath.Join(dir, "b"))
			return err
		}
	},
	"MkdirAll": func(t *testing.T, v *Volume, dir string) func() error {
		return func() error { return v.MkdirAll(filepath.Join(dir, "a", "b", "c")) }
	},
	"MkdirAll in a folder of an earlier process": func(t *testing.T, v *Volume, dir string) func() error {
		mkdir(t, filepath.Join(dir, "a"))
		return func() error { return v.MkdirAll(filepath.Join(dir, "a", "b")) }
	},
	"Prepare": func(t *testing.T, v *Volume, dir string) func() error {
		mkdir(t, filepath.Join(dir, "a"))
		return func() error {
			return v.Prepare([]string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}, filepath.Join(dir, "a"))
		}
	},
	"Settle": func(t *testing.T, v *Volume, dir string) func() error {
		mkdir(t, filepath.Join(dir, "a", "b"))
		return func() error { return v.Settle(filepath.Join(dir, "a", "b")) }
	},
	"Withdraw": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "file"), "old")
		return func() error { return v.Withdraw("permission", filepath.Join(dir, "file"), []byte("old")) }
	},
	"SyncFile": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "file"), "new")
		return func() error { return v.SyncFile("blob.sync", filepath.Join(dir, "file")) }
	},
	"OpenLog with a torn end": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "file"), "{a}\n{half")
		return func() error {
			l, _, err := v.OpenLog(filepath.Join(dir, "file"), LogOptions{Name: "inbox", Valid: closed})
			if err == nil {
				l.Close()
			}
			return err
		}
	},
	"OpenLog with a line without its end": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "file"), "{a}\n{b}")
		return func() error {
			l, _, err := v.OpenLog(filepath.Join(dir, "file"), LogOptions{Name: "inbox", Valid: closed})
			if err == nil {
				l.Close()
			}
			return err
		}
	},
	"OpenLog after a failure": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "file"), "{a}\n")
		v.markFailure()
		return func() error {
			l, _, err := v.OpenLog(filepath.Join(dir, "file"), LogOptions{Name: "inbox", Valid: closed})
			if err == nil {
				l.Close()
			}
			return err
		}
	},
	"Append and Barrier": func(t *testing.T, v *Volume, dir string) func() error {
		l, _, err := v.OpenLog(filepath.Join(dir, "file"), LogOptions{Name: "inbox"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return func() error {
			if _, err := l.Append([]byte("{a}\n")); err != nil {
				return err
			}
			err := l.Barrier()
			if durable := l.Durable(); durable != (err == nil) {
				t.Errorf("barrier: %v, durable: %v", err, durable)
			}
			return err
		}
	},
	"Replace": func(t *testing.T, v *Volume, dir string) func() error { return replacing(t, v, dir) },
	"Replace where names cannot be swapped": func(t *testing.T, v *Volume, dir string) func() error {
		v.exchange = func(string, string) (bool, error) { return false, nil }
		return replacing(t, v, dir)
	},
	"Recover of a save that had been swapped out": func(t *testing.T, v *Volume, dir string) func() error {
		write(t, filepath.Join(dir, "file"), "new")
		write(t, filepath.Join(dir, swapPrefix+"file-1."+tag([]byte("old"))+"."+tag([]byte("new"))), "by hand")
		return func() error { return v.Recover(dir) }
	},
}

func replacing(t *testing.T, v *Volume, dir string) func() error {
	write(t, filepath.Join(dir, "file"), "{old}\n")
	l, _, err := v.OpenLog(filepath.Join(dir, "file"), LogOptions{Name: "history"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return func() error { return l.Replace([]byte("{new}\n"), filepath.Join(dir, "sub", "kept")) }
}

func root(t *testing.T, dir string) *os.Root {
	t.Helper()
	r, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// Whatever step of whatever operation fails, for a moment or for good, it is reported; and
// what is left is what there was or what there should be, with nothing beside it.
func TestEveryFailedStepIsReported(t *testing.T) {
	for name, prepare := range operations {
		for _, fault := range []string{"eio", "emfile", "enospc", "eacces"} {
			var excused []string
			if fault == "enospc" && strings.HasPrefix(name, "OpenLog with") {
				excused = []string{"torn.write", "inbox.write"} // that is what space is kept back for
			}
			t.Run(name, func(t *testing.T) {
				crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
					dir := t.TempDir()
					v := NewVolume(dir)
					op := prepare(t, v, dir)
					return func() error {
						err := op()
						if fault == "eio" && errors.Is(err, syscall.EIO) != (v.Err() != nil) &&
							!strings.HasSuffix(name, "In") && !strings.HasPrefix(name, "WriteDraft") {
							t.Errorf("%v, and the volume says %v", err, v.Err())
						}
						if v.Err() == nil {
							tidy(t, dir)
						}
						return err
					}
				}, excused...)
			})
		}
	}
}

// tidy fails the test if a replacement left something of its own.
func tidy(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if Hidden(e.Name()) {
			t.Errorf("left behind: %s", e.Name())
		}
		if e.Name() != "file" {
			continue
		}
		if data, err := os.ReadFile(filepath.Join(dir, "file")); err == nil &&
			!slices.Contains([]string{"", "old", "new", "by hand", "{old}\n", "{new}\n", "{a}\n", "{a}\n{b}\n",
				"{a}\n{b}", "{a}\n{half"}, string(data)) {
			t.Errorf("the file holds %q", data)
		}
	}
}

// Where all is made durable at once, a failure is reported, but not that a file system knows no such thing.
func TestSyncAll(t *testing.T) {
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		return func() error { return SyncAll("import", t.TempDir()) }
	})
	if err := SyncAll("import", filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
	crash.Arm(t, "einval@import.sync#1")
	if err := SyncAll("import", t.TempDir()); err != nil {
		t.Errorf("a file system that cannot: %v", err)
	}
}

// Content whose sync failed takes the place of no file.
func TestWhatIsNotSyncedReplacesNothing(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	crash.Arm(t, "eio@state.sync#1")
	err := NewVolume(dir).WriteFile("state", path, []byte("new"))
	if data, rerr := os.ReadFile(path); !errors.Is(err, ErrFailed) || rerr != nil || string(data) != "old" {
		t.Errorf("%v, and the file has %q, %v", err, data, rerr)
	}
	if entries, err := os.ReadDir(dir); err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return Hidden(e.Name()) }) {
		t.Errorf("left are %v, %v", entries, err)
	}
}

// Once the disk has failed nothing is done any more.
func TestNothingIsDoneOnAFailedVolume(t *testing.T) {
	for name, prepare := range operations {
		if name == "ReplaceIn" || name == "MkdirIn" || name == "WriteDraftOf" || strings.HasPrefix(name, "Recover") ||
			strings.HasPrefix(name, "MkdirAll") {
			continue // of no volume, without a barrier, or done before the barrier is asked for
		}
		dir := t.TempDir()
		v := NewVolume(dir)
		op := prepare(t, v, dir)
		before := listing(t, dir)
		why := v.Fail(syscall.EIO)
		if v.Fail(syscall.EROFS) != why || !errors.Is(v.Err(), syscall.EIO) {
			t.Errorf("the first reason did not stay: %v", v.Err())
		}
		old := time.Unix(1e9, 0)
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
		if err := op(); !errors.Is(err, ErrFailed) {
			t.Errorf("%s: %v", name, err)
		}
		if info, err := os.Stat(dir); err != nil || !info.ModTime().Equal(old) {
			t.Errorf("%s: a name was made or removed, %v", name, err)
		}
		after := strings.ReplaceAll(listing(t, dir), failureMark+" ", "")
		if strings.ReplaceAll(before, failureMark+" ", "") != after {
			t.Errorf("%s: there was %q, there is %q", name, before, after)
		}
	}
}

func listing(t *testing.T, dir string) (names string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names += e.Name() + " "
	}
	return names
}

// What an error says of the disk decides what becomes of the process.
func TestWhatErrorsSayOfTheDisk(t *testing.T) {
	type saying struct{ full, failed, nameFailed, transient, unsupported bool }
	for err, want := range map[error]saying{
		syscall.ENOSPC: {full: true, transient: true}, syscall.EDQUOT: {full: true, transient: true},
		syscall.EIO: {failed: true, nameFailed: true, transient: true}, syscall.EROFS: {failed: true, nameFailed: true, transient: true},
		syscall.ENXIO: {failed: true, nameFailed: true, transient: true}, syscall.ENODEV: {failed: true, nameFailed: true, transient: true},
		syscall.ESTALE: {failed: true, nameFailed: true, transient: true},
		syscall.EMFILE: {failed: true, transient: true}, syscall.EACCES: {failed: true, transient: true},
		syscall.ENOENT: {failed: true}, syscall.EINVAL: {failed: true, unsupported: true},
		syscall.ENOSYS:  {failed: true, unsupported: true},
		syscall.ENOTSUP: {failed: true, unsupported: true}, errors.New("not a message"): {failed: true},
	} {
		err := fmt.Errorf("somewhere: %w", err)
		v, named := NewVolume(t.TempDir()), NewVolume(t.TempDir())
		got := saying{errors.Is(v.classify(err), ErrFull), v.Err() != nil, errors.Is(named.classifyName(err), ErrFailed),
			Transient(err), unsupported(err)}
		if got != want || v.full.Load() != want.full || named.full.Load() != want.full {
			t.Errorf("%v: %+v, want %+v", err, got, want)
		}
		if (named.Err() != nil) != want.nameFailed || !want.full && !want.nameFailed && named.classifyName(err) != err {
			t.Errorf("%v of a name: the volume says %v", err, named.Err())
		}
	}
	for _, err := range []error{ErrFull, ErrFailed} {
		if !Transient(fmt.Errorf("x: %w", err)) {
			t.Errorf("%v says something of a file", err)
		}
	}
	if Transient(nil) || unsupported(nil) || isFull(nil) {
		t.Error("no error says something")
	}
}

// A barrier counts, with its time.
func TestStats(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	if n, d := v.Stats(); n != 0 || d != 0 {
		t.Errorf("before any barrier: %d, %v", n, d)
	}
	for range 3 {
		if err := v.SyncDir("log.dirsync", dir); err != nil {
			t.Fatal(err)
		}
	}
	if n, d := v.Stats(); n != 3 || d <= 0 {
		t.Errorf("after three barriers: %d, %v", n, d)
	}
}

func TestSyncsFoldersReportsOtherErrors(t *testing.T) {
	dir := t.TempDir()
	if ok, err := SyncsFolders(filepath.Join(dir, "none")); ok || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a folder that is not there: %v, %v", ok, err)
	}
	for fault, want := range map[string]error{"eio": syscall.EIO, "einval": nil} {
		crash.Arm(t, fault+"@probe.dirsync#1")
		if ok, err := SyncsFolders(dir); ok || !errors.Is(err, want) {
			t.Errorf("%s: %v, %v", fault, ok, err)
		}
	}
	v := NewVolume(dir)
	if err := v.SyncDir("log.dirsync", filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) || v.Err() != nil {
		t.Errorf("sync of a folder that is not there: %v, %v", err, v.Err())
	}
	if err := v.SyncFile("blob.sync", filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) || v.Err() != nil {
		t.Errorf("sync of a file that is not there: %v, %v", err, v.Err())
	}
	if err := SyncIn("tool.file", root(t, dir), "none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("sync in a folder that is not there: %v", err)
	}
	crash.Arm(t, "einval@tool.file.dirsync#1+")
	if err := SyncIn("tool.file", root(t, dir), "."); err != nil {
		t.Errorf("where folders cannot be synced: %v", err)
	}
}

// The space kept back is made once, made again when it is not whole, and given up by a
// full disk; while there is no room nothing is accepted.
func TestBallast(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	whole := func() bool {
		info, err := os.Stat(v.ballast())
		return err == nil && info.Size() == ballastBytes
	}
	if err := v.Reserve(); err != nil || !whole() || v.Full() {
		t.Fatalf("reserve: %v", err)
	}
	made, err := os.Stat(v.ballast())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(v.ballast(), made.ModTime(), time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	if err := v.Reserve(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(v.ballast()); err != nil || info.ModTime().Unix() != 1e9 {
		t.Errorf("what is whole was made again: %v, %v", info, err)
	}
	write(t, v.ballast(), "short")
	if err := v.Reserve(); err != nil || !whole() {
		t.Errorf("a short one was not made again: %v", err)
	}
	if v.release(); whole() || !v.full.Load() {
		t.Error("the space was not given up")
	}
	if v.Full() || !whole() || v.full.Load() {
		t.Error("with room on the disk the volume stays full")
	}

	if err := os.Remove(v.ballast()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(v.ballast(), 0o700); err != nil {
		t.Fatal(err)
	}
	v.full.Store(true)
	if err := v.Reserve(); err == nil || !v.Full() || !v.full.Load() {
		t.Errorf("space that cannot be kept back: %v", err)
	}
	gone := NewVolume(filepath.Join(dir, "none"))
	if _, _, err := Space(gone.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the space of a disk that cannot be asked: %v", err)
	}
	gone.full.Store(true)
	if !gone.Full() {
		t.Error("a disk that cannot be asked has room")
	}
}

// A draft may be lost, never half there.
func TestDraft(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	path := filepath.Join(dir, "draft.json")
	at := time.Unix(1_700_000_000, 0)
	if err := v.WriteDraftOf("draft", path, []byte("text"), at); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || !info.ModTime().Equal(at) || content(t, path) != "text" {
		t.Errorf("%v, %v", info, err)
	}
	if err := v.WriteDraft("draft", filepath.Join(dir, "none", "d"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in a folder that is not there: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := v.WriteDraft("draft", filepath.Join(dir, "folder"), nil); err == nil || Exists(filepath.Join(dir, tempPrefix+"folder")) {
		t.Errorf("over a folder: %v", err)
	}
}

// An amendment is not a save of the user: the time of it stays.
func TestAmendKeepsTheTimeOfTheSave(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	path := filepath.Join(dir, "state.json")
	at := time.Unix(1_700_000_000, 0)
	write(t, path, "old")
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Amend("state", path, []byte("new"), []byte("old")); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || !info.ModTime().Equal(at) || content(t, path) != "new" {
		t.Errorf("%v, %v, %q", info.ModTime(), err, content(t, path))
	}
	if found, err := v.Amend("state", path, []byte("newer"), []byte("other")); !errors.Is(err, ErrChanged) || string(found) != "new" {
		t.Errorf("over a save: %q, %v", found, err)
	}
	if _, err := v.Amend("state", filepath.Join(dir, "none"), nil, []byte("x")); !errors.Is(err, ErrChanged) {
		t.Errorf("of a file that is gone: %v", err)
	}
	if _, err := v.Amend("state", filepath.Join(path, "x"), nil, []byte("x")); !errors.Is(err, syscall.ENOTDIR) ||
		errors.Is(err, ErrChanged) {
		t.Errorf("of a file that cannot be looked at: %v", err)
	}
	if err := os.Symlink("nothing", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Amend("state", filepath.Join(dir, "link"), nil, []byte("x")); !errors.Is(err, ErrLink) {
		t.Errorf("of a link to nothing: %v", err)
	}
}

// Where names cannot be swapped, a save made before the look is found, and left.
func TestExchangeWithoutSwap(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	v.exchange = func(string, string) (bool, error) { return false, nil }
	path := filepath.Join(dir, "state.json")
	write(t, path, "by hand")
	if found, err := v.Exchange("state", path, []byte("new"),
		[]byte("old")); !errors.Is(err, ErrChanged) || string(found) != "by hand" || content(t, path) != "by hand" {
		t.Errorf("over a save: %q, %v", found, err)
	}
	if _, err := v.Exchange("state", path, []byte("new"), []byte("by hand")); err != nil || content(t, path) != "new" {
		t.Errorf("%q, %v", content(t, path), err)
	}
	if _, err := v.Exchange("state", filepath.Join(dir, "none"), []byte("new"), []byte("old")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a file that is gone: %v", err)
	}
	if got := listing(t, dir); got != "state.json " {
		t.Errorf("left behind: %s", got)
	}
}

// A name that is too long for the place beside it is refused before anything happens.
func TestExchangeOfALongName(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	path := filepath.Join(dir, strings.Repeat("n", 225))
	write(t, path, "old")
	if _, err := v.Exchange("state", path, []byte("new"),
		[]byte("old")); !errors.Is(err, syscall.ENAMETOOLONG) || v.Err() != nil || content(t, path) != "old" {
		t.Errorf("%v", err)
	}
	l := openLog(t, filepath.Join(dir, strings.Repeat("l", 225)))
	if err := l.Replace([]byte("{new}\n"), ""); !errors.Is(err, syscall.ENAMETOOLONG) || v.Err() != nil {
		t.Errorf("%v", err)
	}
	if err := os.Remove(filepath.Join(dir, strings.Repeat("l", 225))); err != nil {
		t.Fatal(err)
	}
	if got := listing(t, dir); got != filepath.Base(path)+" " {
		t.Errorf("left behind: %s", got)
	}
}

// Copies of two saves in one millisecond have two names; where no copy can be made the
// save stays where it is; each is told.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	path := filepath.Join(dir, "state.json")
	var told []string
	v.OnKept(func(of, kept string) {
		if of != path {
			t.Errorf("told of %s", of)
		}
		told = append(told, kept)
	})
	for i := range 50 {
		aside := filepath.Join(dir, fmt.Sprint(".swap-", i))
		write(t, aside, fmt.Sprint(i))
		if kept := v.keep(aside, path); Exists(aside) || content(t, kept) != fmt.Sprint(i) || !strings.HasPrefix(kept, path+".conflict-2") {
			t.Errorf("save %d is in %s", i, kept)
		}
	}
	slices.Sort(told)
	if n := len(slices.Compact(told)); n != 50 {
		t.Errorf("%d copies of 50 saves", n)
	}
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if kept := v.keep(folder, path); kept != folder || !Exists(folder) {
		t.Errorf("a folder was kept as %s", kept)
	}
	NewVolume(dir).keep(filepath.Join(dir, "none"), path) // nobody to tell
}

// Recover touches what replacements left, of the files that are named, and nothing else.
func TestRecoverNames(t *testing.T) {
	for hidden, want := range map[string]bool{
		".tmp-state.json-123": true, ".tmp-state.json": true, ".swap-state.json-1.a.b": true,
		".tmp-state.jsonx-1": false, ".tmp-other": false, ".swap-other-1.a.b": false,
	} {
		if got := belongs(hidden, []string{"history.jsonl", "state.json"}); got != want || !belongs(hidden, nil) {
			t.Errorf("%s: %v, want %v", hidden, got, want)
		}
	}
	for name, want := range map[string][3]string{
		".swap-a-b.c-12.base.ours": {"a-b.c", "base", "ours"}, ".swap-a-12.base": {}, ".swap-a": {},
		".swap-a.base.ours": {}, ".tmp-a-12.base.ours": {},
	} {
		n, base, ours, ok := parts(filepath.Join("/dir", name))
		if ok != (want[0] != "") || ok && [3]string{n, base, ours} != want {
			t.Errorf("%s: %q %q %q, %v", name, n, base, ours, ok)
		}
	}

	dir := t.TempDir()
	v := NewVolume(dir)
	if err := v.Recover(filepath.Join(dir, "none")); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
	for _, name := range []string{".tmp-a-1", ".tmp-b-1", ".swap-a-odd", "a", ".other",
		swapPrefix + "a-1." + tag([]byte("base")) + "." + tag([]byte("ours"))} {
		write(t, filepath.Join(dir, name), "ours")
	}
	if err := v.Recover(dir, "a"); err != nil {
		t.Fatal(err)
	}
	if got := listing(t, dir); got != ".other .swap-a-odd .tmp-b-1 a " {
		t.Errorf("there is %s", got)
	}
	write(t, filepath.Join(dir, swapPrefix+"a-1."+tag([]byte("base"))+"."+tag([]byte("ours"))), "base")
	if err := v.Recover(dir, "a"); err != nil || listing(t, dir) != ".other .swap-a-odd .tmp-b-1 a " {
		t.Errorf("there is %s, %v", listing(t, dir), err)
	}
	if err := v.Recover(filepath.Join(dir, "a")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".tmp-a-2", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := v.Recover(dir, "a"); !errors.Is(err, syscall.ENOTEMPTY) {
		t.Errorf("what cannot be removed: %v", err)
	}
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, ".tmp-a-2")),
		os.Mkdir(filepath.Join(dir, swapPrefix+"a-1.b.c"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := v.Recover(dir, "a"); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("what cannot be read: %v", err)
	}
}

// A log that was closed does nothing more, and may be closed again.
func TestAClosedLogDoesNothing(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "log"))
	if _, err := l.Append([]byte("{a}\n")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	_, appended := l.Append([]byte("{b}\n"))
	_, reloaded := reloaded(l)
	for what, err := range map[string]error{"append": appended, "reload": reloaded, "barrier": l.Barrier(),
		"replace": l.Replace([]byte("{c}\n"), "")} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if l.Changed() || content(t, l.path) != "{a}\n" {
		t.Errorf("changed %v, it holds %q", l.Changed(), content(t, l.path))
	}
}

// Of a write that did not fit nothing stays, unless someone else wrote behind it.
func TestCutBack(t *testing.T) {
	for name, theirs := range map[string]string{"alone": "", "somebody wrote": "{theirs}\n"} {
		l := openLog(t, filepath.Join(t.TempDir(), "log"))
		if _, err := l.Append([]byte("{a}\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := l.f.Write([]byte("{ha" + theirs)); err != nil {
			t.Fatal(err)
		}
		err := l.cutBack(3)
		want := "{a}\n"
		if theirs != "" {
			want += "{ha" + theirs
		}
		if errors.Is(err, ErrChanged) != (theirs != "") || content(t, l.path) != want || l.vol.Err() != nil {
			t.Errorf("%s: %v, the log holds %q", name, err, content(t, l.path))
		}
		if theirs == "" && l.Changed() {
			t.Errorf("%s: what we cut ourselves counts as changed", name)
		}
	}
	l := openLog(t, filepath.Join(t.TempDir(), "log"))
	if err := l.f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.cutBack(3); !errors.Is(err, ErrFailed) || l.vol.Err() == nil {
		t.Errorf("what cannot be cut: %v", err)
	}
}

// ReplaceIn makes the file with the mode that is asked for, and only if the check allows.
func TestReplaceIn(t *testing.T) {
	dir := t.TempDir()
	r := root(t, dir)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	for mode, o := range map[os.FileMode]InOptions{0o600: {}, 0o700: {Mode: 0o755}, 0o755: {Mode: 0o755, Exact: true}} {
		if err := ReplaceIn("tool.file", r, "f", []byte("new"), o); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(filepath.Join(dir, "f")); err != nil || info.Mode().Perm() != mode ||
			content(t, filepath.Join(dir, "f")) != "new" {
			t.Errorf("mode %v, %v, want %v", info.Mode(), err, mode)
		}
	}
	no := errors.New("no")
	if err := ReplaceIn("tool.file", r, "f", []byte("newer"),
		InOptions{Check: func() error { return no }}); err != no || content(t, filepath.Join(dir, "f")) != "new" {
		t.Errorf("against the check: %v", err)
	}
	if err := ReplaceIn("tool.file", r, "f", []byte("newer"),
		InOptions{Check: func() error { return nil }}); err != nil || content(t, filepath.Join(dir, "f")) != "newer" {
		t.Errorf("with the check: %v", err)
	}
	crash.Arm(t, "eio@tool.file.sync#1")
	if err := ReplaceIn("tool.file", r, "f", []byte("newest"), InOptions{}); err == nil || content(t, filepath.Join(dir, "f")) != "newer" {
		t.Errorf("with what is not synced: %v", err)
	}
	crash.Arm(t, "")
	if err := MkdirIn("tool.file", r, "sub", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := MkdirIn("tool.file", r, "sub", 0o700); err != nil {
		t.Errorf("a folder that is there: %v", err)
	}
	if err := MkdirIn("tool.file", r, "none/sub", 0o700); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder in none: %v", err)
	}
	if err := ReplaceIn("tool.file", r, "sub", nil, InOptions{}); err == nil || listing(t, dir) != "f sub " {
		t.Errorf("over a folder: %v, there is %s", err, listing(t, dir))
	}
	r.Close()
	if err := ReplaceIn("tool.file", r, "f", nil, InOptions{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("in a closed folder: %v", err)
	}
}

func TestMkdirAll(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	for range 2 {
		if err := v.MkdirAll(filepath.Join(dir, "a", "b")); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "file"), "")
	if err := v.MkdirAll(filepath.Join(dir, "file")); err == nil || !strings.Contains(err.Error(), "it is a file") {
		t.Errorf("a file: %v", err)
	}
	if err := v.MkdirAll(filepath.Join(dir, "file", "sub")); !errors.Is(err, syscall.ENOTDIR) || v.Err() != nil {
		t.Errorf("in a file: %v", err)
	}
	if err := v.MkdirAll(filepath.Join(dir, "x", "..", "x", strings.Repeat("n", 300), "y")); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("a name too long: %v", err)
	}
	if err := v.Remove("letter", filepath.Join(dir, "none")); err != nil {
		t.Errorf("remove what is gone: %v", err)
	}
	if err := v.Remove("letter", filepath.Join(dir, "a")); err == nil {
		t.Error("a folder that is not empty was removed")
	}
	if err := v.Link("state", filepath.Join(dir, "file"), filepath.Join(dir, "file")); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second name that is there: %v", err)
	}
}

// A lock needs a file that it can be written into; what cannot be asked is not held.
func TestLockThatCannotBeMade(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := TryLock(filepath.Join(dir, "none", "lock"), Holder{PID: 1}); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("in a folder that is not there: %v", err)
	}
	path := filepath.Join(dir, "lock")
	if _, err := ReadHolder(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the holder of no lock: %v", err)
	}
	for _, text := range []string{"", "{", "[]"} {
		write(t, path, text)
		if h, err := ReadHolder(path); err == nil || h != (Holder{}) {
			t.Errorf("the holder in %q: %+v, %v", text, h, err)
		}
		if !holderLives(path) {
			t.Errorf("%q: nobody is there, although somebody may be about to write", text)
		}
	}
	for pid, alive := range map[int]bool{os.Getpid(): true, 0: false, -1: false, 1 << 22: false} {
		if (Holder{PID: pid}).Alive() != alive {
			t.Errorf("process %d: alive %v", pid, !alive)
		}
	}
	l, _, err := TryLock(path, Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if _, _, err := TryLock(path, Holder{}); !errors.Is(err, ErrLocked) || time.Since(begin) > orphanPatience {
		t.Errorf("a holder that lives was waited for: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

// Only a file of the same user, outside of what agents may write, is written through a link.
func TestThrough(t *testing.T) {
	base := t.TempDir()
	data := filepath.Join(base, "ws", ".daycare")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(base, "dotfile"), "")
	link := filepath.Join(data, "link")
	if err := os.Symlink(filepath.Join(base, "dotfile"), link); err != nil {
		t.Fatal(err)
	}
	if to, err := Through(data, link); err != nil || !strings.HasSuffix(to, "/dotfile") {
		t.Errorf("%s, %v", to, err)
	}
	if to, err := Through(data, filepath.Join(data, "none")); err != nil || to != filepath.Join(data, "none") {
		t.Errorf("what is not there: %s, %v", to, err)
	}
	if _, err := Through(filepath.Join(base, "none"), link); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a root that is not there: %v", err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(filepath.Join(base, "dotfile"), 12345, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := Through(data, link); !errors.Is(err, ErrLink) || !strings.Contains(err.Error(), "another user") {
			t.Errorf("a file of another user: %v", err)
		}
	}
}

// A file that became shorter while it is read backward is not a shorter history.
func TestBackwardOfAFileCutShort(t *testing.T) {
	var err error
	for range Backward(bytes.NewReader([]byte("a\n")), 10, &err) {
	}
	if err == nil {
		t.Error("nothing is said")
	}
	if _, err := lastLineStart(bytes.NewReader([]byte("a\n")), 10); err == nil {
		t.Error("of a last line that is not there nothing is said")
	}
}
