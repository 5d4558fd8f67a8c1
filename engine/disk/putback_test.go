package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"daycare/engine/crash"
)

// failing is an exchange of names that fails from the n-th time on, after what happens
// before it.
func failing(n int, why error, before map[int]func()) func(a, b string) (bool, error) {
	calls := 0
	return func(a, b string) (bool, error) {
		calls++
		if do := before[calls]; do != nil {
			do()
		}
		if calls >= n {
			return false, why
		}

		return exchange(a, b)
	}
}

// A save that cannot be put back is kept beside the file, of a user's file and of a log.
func TestASaveThatCannotBePutBackIsKept(t *testing.T) {
	for why, want := range map[error]error{syscall.EMFILE: syscall.EMFILE, syscall.ENOENT: ErrChanged, syscall.EIO: syscall.EIO} {
		dir := t.TempDir()
		v := NewVolume(dir)
		path := filepath.Join(dir, "state.json")
		write(t, path, "by hand")
		v.exchange = failing(2, why, nil)
		if found, err := v.Exchange("state", path, []byte("new"), []byte("old")); !errors.Is(err, want) || found != nil {
			t.Errorf("%v: %q, %v", why, found, err)
		}
		if got := copies(t, dir); got != "by hand" {
			t.Errorf("%v: kept is %q", why, got)
		}

		l := openLog(t, filepath.Join(t.TempDir(), "log"))
		if _, err := l.Append([]byte("{old}\n")); err != nil {
			t.Fatal(err)
		}
		l.vol.exchange = failing(2, why, map[int]func(){1: func() { write(t, l.path, "{by hand}\n") }})
		if err := l.Replace([]byte("{new}\n"), ""); !errors.Is(err, want) && !errors.Is(err, ErrChanged) {
			t.Errorf("%v: %v", why, err)
		}
		if got := copies(t, filepath.Dir(l.path)); got != "{by hand}\n" {
			t.Errorf("%v: kept is %q", why, got)
		}
		if (l.vol.Err() != nil) != (why == syscall.EIO) {
			t.Errorf("%v: the volume says %v", why, l.vol.Err())
		}
	}
}

// Of two saves during one replacement the newer is in place and the older beside it.
func TestTwoSavesDuringOneReplacement(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	path := filepath.Join(dir, "state.json")
	write(t, path, "one")
	v.exchange = failing(9, nil, map[int]func(){2: func() { write(t, path, "two") }})
	if found, err := v.Exchange("state", path, []byte("new"), []byte("old")); !errors.Is(err, ErrChanged) || string(found) != "two" {
		t.Errorf("%q, %v", found, err)
	}
	if got := content(t, path) + copies(t, dir); got != "twoone" {
		t.Errorf("the file and its copy hold %q", got)
	}

	l := openLog(t, filepath.Join(t.TempDir(), "log"))
	l.vol.exchange = failing(9, nil, map[int]func(){1: func() { write(t, l.path, "{one}\n") }, 2: func() { write(t, l.path, "{two}\n") }})
	if err := l.Replace([]byte("{new}\n"), ""); !errors.Is(err, ErrChanged) {
		t.Errorf("%v", err)
	}
	if got := content(t, l.path) + copies(t, filepath.Dir(l.path)); got != "{two}\n{one}\n" {
		t.Errorf("the log and its copy hold %q", got)
	}
}

// One save during a replacement is put back, and what was to replace it is not kept beside it
// as if someone had saved that.
func TestOneSaveDuringAReplacement(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	path := filepath.Join(dir, "state.json")
	write(t, path, "by hand")
	if found, err := v.Exchange("state", path, []byte("new"), []byte("old")); !errors.Is(err, ErrChanged) || string(found) != "by hand" {
		t.Errorf("%q, %v", found, err)
	}
	if got := content(t, path) + copies(t, dir); got != "by hand" {
		t.Errorf("the file and its copies hold %q", got)
	}

	l := openLog(t, filepath.Join(t.TempDir(), "log"))
	l.vol.exchange = failing(9, nil, map[int]func(){1: func() { write(t, l.path, "{by hand}\n") }})
	if err := l.Replace([]byte("{new}\n"), ""); !errors.Is(err, ErrChanged) {
		t.Errorf("%v", err)
	}
	if got := content(t, l.path) + copies(t, filepath.Dir(l.path)); got != "{by hand}\n" {
		t.Errorf("the log and its copies hold %q", got)
	}
}

// copies is the content of the files that were kept beside the others; hidden ones are none.
func copies(t *testing.T, dir string) (all string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}

	for _, e := range entries {
		if Hidden(e.Name()) {
			t.Errorf("left behind: %s", e.Name())
		}
		if strings.Contains(e.Name(), ".conflict-") {
			all += content(t, filepath.Join(dir, e.Name()))
		}
	}

	return all
}

// A folder that stands where a file was is not read, and not lost.
func TestAFolderInThePlaceOfAFile(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	path := filepath.Join(dir, "state.json")
	if err := os.MkdirAll(filepath.Join(path, "theirs"), 0o700); err != nil {
		t.Fatal(err)
	}
	var kept string
	v.OnKept(func(_, copy string) { kept = copy })
	if _, err := v.Exchange("state", path, []byte("new"), []byte("old")); err == nil || kept == "" ||
		!Exists(filepath.Join(kept, "theirs")) {
		t.Errorf("%v, kept is %q", err, kept)
	}
}

// A folder that comes to stand there while a save is put back is kept beside the file, which
// has the save again or nothing; it is not read as a save.
func TestAFolderComesOutWhileASaveIsPutBack(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	path := filepath.Join(dir, "state.json")
	write(t, path, "by hand")
	var kept string
	v.OnKept(func(_, copy string) { kept = copy })
	v.exchange = failing(9, nil, map[int]func(){2: func() {
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Error(err)
		}
	}})
	found, err := v.Exchange("state", path, []byte("new"), []byte("old"))
	if err == nil || errors.Is(err, ErrChanged) || found != nil || content(t, path) != "by hand" {
		t.Errorf("%q, %v, the file holds %q", found, err, content(t, path))
	}
	if info, err := os.Stat(kept); err != nil || !info.IsDir() {
		t.Errorf("%q is not the folder: %v", kept, err)
	}
}

// A rename within a folder is one barrier, one into another folder two.
func TestBarriersOfARename(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "a"), "")

	for _, tt := range []struct {
		from, to string
		barriers int64
	}{{"a", "b", 1}, {"b", "sub/c", 2}, {"sub/c", "a", 2}} {
		before, _ := v.Stats()
		if err := v.Rename("trash", filepath.Join(dir, tt.from), filepath.Join(dir, tt.to)); err != nil {
			t.Fatal(err)
		}
		if after, _ := v.Stats(); after-before != tt.barriers {
			t.Errorf("%s to %s: %d barriers, want %d", tt.from, tt.to, after-before, tt.barriers)
		}
	}
}

// Two names are exchanged, or it is said why not: where the system has no such step for them that is no error, as
// there are other ways.
func TestSwap(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	if err := os.MkdirAll(filepath.Join(a, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, b, "")
	ok, err := v.Swap("claim", a, b)
	if !ok && err == nil {
		t.Skip("names cannot be exchanged here")
	}
	inside := filepath.Join(b, "inside")
	if err != nil || !Exists(inside) {
		t.Errorf("a folder with a file: %v", err)
	}

	if ok, err := v.Swap("claim", b, inside); ok || err != nil || !Exists(inside) {
		t.Errorf("a folder with one in it: %v, %v", ok, err)
	}
	if ok, err := v.Swap("claim", b, b+".none"); ok || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder with nothing: %v, %v", ok, err)
	}
}

// A log whose place another takes is replicated whole or not at all; without a replica it is not read, however
// long it is.
func TestALogThatCannotBeReadWhenItIsReplaced(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "log"))
	why := errors.New("read")
	if err := l.replaced([]byte("{new}\n"), l.path+".old", iotest.ErrReader(why)); err != nil {
		t.Errorf("without a replica: %v", err)
	}
	l.mirrored.on = true
	if err := l.replaced([]byte("{new}\n"), l.path+".old", iotest.ErrReader(why)); !errors.Is(err, why) || !l.mirrored.whole {
		t.Errorf("with one: %v", err)
	}
}

// A process that cannot open the folder which is to be synced has changed nothing in it: what failed is not seen
// by others for a moment as if it had been done.
func TestWithoutADescriptorNothingChanges(t *testing.T) {
	for name, op := range map[string]func(v *Volume, path string) error{
		"WriteFile": func(v *Volume, path string) error { return v.WriteFile("state", path, []byte("new")) },
		"Rename":    func(v *Volume, path string) error { return v.Rename("state", path, path+".other") },
		"Withdraw":  func(v *Volume, path string) error { return v.Withdraw("permission", path, []byte("old")) },
		"Exchange": func(v *Volume, path string) error {
			_, err := v.Exchange("state", path, []byte("new"), []byte("old"))
			return err
		},
		"Exchange of nothing": func(v *Volume, path string) error {
			_, err := v.Exchange("state", path+".other", []byte("new"), nil)
			return err
		},
		"Amend": func(v *Volume, path string) error {
			_, err := v.Amend("state", path, []byte("new"), []byte("old"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			write(t, path, "old")
			v := NewVolume(dir)
			crash.Arm(t, "emfile@state.dirsync#1;emfile@permission.dirsync#1")
			if err := op(v, path); !errors.Is(err, syscall.EMFILE) || v.Err() != nil {
				t.Errorf("%v, and the volume says %v", err, v.Err())
			}
			if left := listing(t, dir); strings.TrimSpace(left) != "file" || content(t, path) != "old" {
				t.Errorf("there is %q, and the file holds %q", left, content(t, path))
			}
			if err := op(v, path); err != nil {
				t.Errorf("tried again: %v", err)
			}
		})
	}
}

// What a start makes and reads is synced once, from the inside out, whatever is asked for later.
func TestPrepare(t *testing.T) {
	for name, tt := range map[string]struct {
		there    []string
		barriers int64
	}{"nothing is there": {nil, 2}, "all is there": {[]string{"a/x", "b", "c"}, 4}, "a part is there": {[]string{"a", "b"}, 3}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
			for _, there := range tt.there {
				if err := os.MkdirAll(in(there), 0o700); err != nil {
					t.Fatal(err)
				}
			}

			v := NewVolume(dir)
			if err := v.Prepare([]string{in("a"), in("a/x"), in("b"), in("c")}, in("a/x"), in("b")); err != nil {
				t.Fatal(err)
			}
			if n, _ := v.Stats(); n != tt.barriers {
				t.Errorf("%d barriers, want %d", n, tt.barriers)
			}
			if err := errors.Join(v.MkdirAll(in("a/x")), v.MkdirAll(in("c")), v.Settle(in("a/x")), v.Settle(in("b"))); err != nil {
				t.Fatal(err)
			}
			if n, _ := v.Stats(); n != tt.barriers {
				t.Errorf("%d barriers after what is prepared was asked for, want %d", n, tt.barriers)
			}
			if err := v.Settle(in("c")); err != nil {
				t.Fatal(err)
			}
			if n, _ := v.Stats(); n != tt.barriers+1 {
				t.Errorf("%d barriers after a folder that was not said to be read, want %d", n, tt.barriers+1)
			}
		})
	}

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := NewVolume(dir).Prepare([]string{filepath.Join(dir, "a")}); err == nil || !strings.Contains(err.Error(), "it is a file") {
		t.Errorf("a file in the place of a folder: %v", err)
	}

	for n, want := range []string{"a/x", "a", "."} {
		dir := t.TempDir()
		folders := []string{filepath.Join(dir, "a"), filepath.Join(dir, "a", "x")}
		if err := os.MkdirAll(folders[1], 0o700); err != nil {
			t.Fatal(err)
		}
		crash.Arm(t, fmt.Sprintf("eio@home.dirsync#%d", n+1))
		err := NewVolume(dir).Prepare(folders, folders[1])
		want := "sync " + filepath.Join(dir, filepath.FromSlash(want)) + ": "
		if !errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), want) {
			t.Errorf("sync %d: %v, want %q", n+1, err, want)
		}
	}
}

// The names of folders that a process before this one made are synced once: it may have died before.
func TestFoldersOfAProcessThatDied(t *testing.T) {
	dir := t.TempDir()
	v := NewVolume(dir)
	if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o700); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		what     string
		do       func(string) error
		name     string
		barriers int64
	}{
		{"make", v.MkdirAll, "a/b", 2}, {"make again", v.MkdirAll, "a/b", 0}, {"make above", v.MkdirAll, "a", 0},
		{"make a new one", v.MkdirAll, "a/c", 1}, {"make again", v.MkdirAll, "a/c", 0},
		{"make the volume's", v.MkdirAll, ".", 0}, {"make one outside", v.MkdirAll, "..", 0},
		{"settle", v.Settle, "a/b", 1}, {"settle what is not there", v.Settle, "x", 0},
	} {
		before, _ := v.Stats()
		if err := tt.do(filepath.Join(dir, tt.name)); err != nil {
			t.Fatal(err)
		}
		if after, _ := v.Stats(); after-before != tt.barriers {
			t.Errorf("%s %s: %d barriers, want %d", tt.what, tt.name, after-before, tt.barriers)
		}
	}

	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	before, _ := v.Stats()
	if err := v.Settle(filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	if after, _ := v.Stats(); after-before != 2 {
		t.Errorf("settle a folder with a name that is not durable: %d barriers, want 2", after-before)
	}
}

// A lock whose holder cannot be written is not taken, and one that is refused leaves
// nothing open.
func TestRefusedLocks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if _, _, err := TryLock(path, Holder{PID: 1,
		StartedAt: Stamp{time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}}); err == nil || Held(path) {
		t.Errorf("%v, held %v", err, Held(path))
	}
	if err := writeHolder(path+".none", Holder{PID: 1}); !errors.Is(err, os.ErrNotExist) || Exists(path+".none") {
		t.Errorf("the holder is written to a file that is not there: %v", err)
	}
	l, _, err := TryLock(path, Holder{PID: os.Getpid()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Release()
	open := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc here")
		}
		return len(entries)
	}
	before := open()

	for range 8 {
		if _, _, err := TryLock(path, Holder{PID: 1}); !errors.Is(err, ErrLocked) || !Held(path) {
			t.Fatal(err)
		}
		if _, _, err := TryLock(filepath.Join(path, "x"), Holder{PID: 1}); err == nil {
			t.Fatal("a lock in a file")
		}
	}

	if after := open(); after > before+3 {
		t.Errorf("%d descriptors are open, %d were before", after, before)
	}
}

// A log that is gone when its names are swapped, or whose new content is, is changed or an
// error, and stays as it was.
func TestReplaceOfWhatIsGone(t *testing.T) {
	l := openLog(t, filepath.Join(t.TempDir(), "log"))
	l.vol.exchange = failing(9, nil, map[int]func(){1: func() { os.Remove(l.path) }})
	if err := l.Replace([]byte("{new}\n"), ""); !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), "gone") {
		t.Errorf("%v", err)
	}
	if left := listing(t, filepath.Dir(l.path)); left != "" {
		t.Errorf("left behind: %s", left)
	}

	l = openLog(t, filepath.Join(t.TempDir(), "log"))
	if err := os.Remove(l.path); err != nil {
		t.Fatal(err)
	}
	if err := l.Replace([]byte("{new}\n"), l.path+".old"); !errors.Is(err, ErrChanged) || l.vol.Err() != nil {
		t.Errorf("a log that was gone before: %v", err)
	}

	l = openLog(t, filepath.Join(t.TempDir(), "log"))
	if _, _, err := l.swap("inbox.rotate", l.path+".none", l.id); !errors.Is(err, os.ErrNotExist) || l.vol.Err() != nil {
		t.Errorf("%v", err)
	}

	for name, aside := range map[string]func(v *Volume) (string, error){
		"a log": func(v *Volume) (string, error) {
			l := &Log{logFile: logFile{vol: v, path: filepath.Join(v.dir, "file")}}
			write(t, l.path, "new")
			write(t, l.path+".aside", "by hand")
			return l.path, l.putBack(l.path+".aside", identity{})
		},
		"a file": func(v *Volume) (string, error) {
			path := filepath.Join(v.dir, "file")
			write(t, path, "new")
			write(t, path+".aside", "by hand")
			_, err := v.putBack(path+".aside", path, []byte("new"))
			return path, err
		},
	} {
		v := NewVolume(t.TempDir())
		v.exchange = func(a, b string) (bool, error) { // the one that comes out is taken away
			ok, err := exchange(a, b)
			return ok, errors.Join(err, os.Remove(a))
		}
		if path, err := aside(v); name == "a file" && !errors.Is(err, ErrChanged) || content(t, path) != "by hand" {
			t.Errorf("%s: %v, it holds %q", name, err, content(t, path))
		}
	}
}

// What cannot be read or written at the end of a log keeps it from being opened, and is
// never taken for an end.
func TestTailsThatCannotBeRepaired(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	write(t, path, "{a}\n{half")
	if err := os.Mkdir(path+".torn-4", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := NewVolume(dir).OpenLog(path, LogOptions{Name: "inbox"}); !errors.Is(err, syscall.EISDIR) ||
		content(t, path) != "{a}\n{half" {
		t.Errorf("%v, it holds %q", err, content(t, path))
	}

	l := openLog(t, filepath.Join(dir, "other"))
	if _, err := l.Append([]byte("{a}\n")); err != nil {
		t.Fatal(err)
	}
	write(t, l.path, "{b}")
	crash.Arm(t, "eio@inbox.write#1")
	if data, err := reloaded(l); !errors.Is(err, ErrFailed) || data != nil {
		t.Errorf("%q, %v", data, err)
	}

	l = openLog(t, filepath.Join(t.TempDir(), "log"))
	if _, err := l.Append([]byte("{a}\n")); err != nil {
		t.Fatal(err)
	}
	l.id.size-- // as if someone had appended a byte behind the check
	crash.Arm(t, "enospc@inbox.write#1:50")
	if err := l.write([]byte("{bb}\n"), false); !errors.Is(err, ErrChanged) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	if err := l.f.Close(); err != nil {
		t.Fatal(err)
	}
	if torn, err := l.repair(); err == nil {
		t.Errorf("a closed file is repaired: %+v", torn)
	}
	if n, err := overwrite(l.f, []byte("x"), 0); err == nil || n != 0 {
		t.Errorf("%d bytes are written over in a closed file, %v", n, err)
	}

	l.vol.markFailure()
	if err := l.rewriteTail(); err != nil { // another one has it, so it is left alone
		t.Errorf("%v", err)
	}

	for range Lines([]byte("a\nb\n")) {
		break
	}
}

// Two tests of one second each: a program that has a torn or suspect log open may be
// writing, so nothing is cut off and nothing written over.
func TestALogThatAnotherProgramHasOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("whether a file is open can only be asked on Linux")
	}
	for name, text := range map[string]string{"torn": "{a}\n{half", "suspect": "{a}\n"} {
		dir := t.TempDir()
		path := filepath.Join(dir, "log")
		write(t, path, text)
		v := NewVolume(dir)
		if name == "suspect" {
			v.markFailure()
		}

		editor, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		met := crash.Arm(t, "eio@log.rewrite#1;eio@torn.truncate#1")
		l, torn, err := v.OpenLog(path, LogOptions{Name: "inbox", Valid: closed})
		if err != nil || torn != nil || len(met()) != 0 {
			t.Fatalf("%s: %v, %+v, met %v", name, err, torn, met())
		}
		if got := content(t, path); strings.TrimSuffix(got, "\n") != strings.TrimSuffix(text, "\n") {
			t.Errorf("%s: it holds %q", name, got)
		}

		l.Close()
		editor.Close()
		crash.Arm(t, "")
	}
}
