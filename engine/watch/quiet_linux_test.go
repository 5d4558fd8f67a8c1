package watch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// onlyText are the entries that matter to these tests.
func onlyText(name string) bool { return strings.HasSuffix(name, ".md") }

// still asks until the places are watched, as whoever keeps something does before every use.
func still(t *testing.T, q *Quiet, places ...Place) Mark {
	t.Helper()
	m := q.Mark()
	q.Still(m, places...)
	m = q.Mark()
	if !q.Still(m, places...) {
		t.Fatal("nothing changed, and it is not still")
	}
	return m
}

// Whatever is done to a file, a folder or one above it, it is not still after it.
func TestAChangeIsSeenAtOnce(t *testing.T) {
	write := func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
	for name, change := range map[string]func(top, dir string) error{
		"written in place": func(_, dir string) error { return write(filepath.Join(dir, "a.md"), "new") },
		"as long as before": func(_, dir string) error {
			return write(filepath.Join(dir, "a.md"), "old")
		},
		"appended": func(_, dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, "a.md"), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			t.Cleanup(func() { f.Close() }) // whoever wrote has not closed it
			_, err = f.WriteString("more")
			return err
		},
		"saved by a rename": func(_, dir string) error {
			fresh := filepath.Join(dir, ".new")
			return errors.Join(write(fresh, "new"), os.Rename(fresh, filepath.Join(dir, "a.md")))
		},
		"made":           func(_, dir string) error { return write(filepath.Join(dir, "b.md"), "new") },
		"removed":        func(_, dir string) error { return os.Remove(filepath.Join(dir, "a.md")) },
		"mode":           func(_, dir string) error { return os.Chmod(filepath.Join(dir, "a.md"), 0) },
		"touched":        func(_, dir string) error { return os.Chtimes(filepath.Join(dir, "a.md"), time.Now(), time.Now()) },
		"folder moved":   func(_, dir string) error { return os.Rename(dir, dir+"2") },
		"folder removed": func(_, dir string) error { return os.RemoveAll(dir) },
		"moved above":    func(top, _ string) error { return os.Rename(filepath.Join(top, "x"), filepath.Join(top, "y")) },
		"exchanged above": func(top, dir string) error {
			here, other := filepath.Join(top, "x"), filepath.Join(top, "other")
			return errors.Join(os.MkdirAll(filepath.Join(other, "dir"), 0o700), write(filepath.Join(other, "dir", "a.md"), "other"),
				os.Rename(here, filepath.Join(top, "y")), os.Rename(other, here))
		},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, "x", "dir")
			must(t, os.MkdirAll(dir, 0o700))
			must(t, write(filepath.Join(dir, "a.md"), "old"))
			q := NewQuiet()
			defer q.Close()
			p := Place{Dir: dir, Names: onlyText}
			m := still(t, q, p)
			must(t, write(filepath.Join(dir, "a.txt"), "it does not matter"))
			if !q.Still(m, p) {
				t.Error("a file that does not matter is taken for one that does")
			}
			must(t, change(top, dir))
			if q.Still(m, p) {
				t.Error("the change was not seen")
			}
			if q.Still(m, p) {
				t.Error("the change is forgotten with the first look")
			}
			if name == "exchanged above" { // the paths lead elsewhere: they are watched there
				m = still(t, q, p)
				must(t, write(filepath.Join(dir, "a.md"), "once more"))
				if q.Still(m, p) {
					t.Error("a change in the other folder was not seen")
				}
			}
		})
	}
}

// A folder that is not there is still until it comes, wherever on its way something appears.
func TestAFolderThatAppearsIsSeen(t *testing.T) {
	for name, change := range map[string]func(top string) error{
		"made":  func(top string) error { return os.MkdirAll(filepath.Join(top, "x", "dir"), 0o700) },
		"above": func(top string) error { return os.Mkdir(filepath.Join(top, "x"), 0o700) },
		"moved": func(top string) error { return os.Rename(filepath.Join(top, "ready"), filepath.Join(top, "x")) },
		"link":  func(top string) error { return os.Symlink("ready", filepath.Join(top, "x")) },
	} {
		for _, dir := range []string{"x/dir", "x"} {
			t.Run(name+" for "+dir, func(t *testing.T) {
				top := t.TempDir()
				must(t, os.MkdirAll(filepath.Join(top, "ready", "dir"), 0o700))
				q := NewQuiet()
				defer q.Close()
				p := Place{Dir: filepath.Join(top, dir)}
				m := still(t, q, p)
				must(t, change(top))
				if q.Still(m, p) {
					t.Error("it was not seen")
				}
				if name == "link" { // a way with a link in it is not watched
					return
				}
				must(t, os.MkdirAll(p.Dir, 0o700))
				m = still(t, q, p)
				must(t, os.WriteFile(filepath.Join(p.Dir, "file"), nil, 0o600))
				if q.Still(m, p) {
					t.Error("a change in the new folder was not seen")
				}
			})
		}
	}
}

// What was read before the watch was set, or long ago, is not known to be as it was.
func TestWhatIsNotKnownIsNotStill(t *testing.T) {
	dir := t.TempDir()
	q := NewQuiet()
	defer q.Close()
	p, m := Place{Dir: dir}, q.Mark()
	if q.Still(m, p) {
		t.Error("the watch was set after the mark")
	}
	m = still(t, q, p)
	m.at = m.at.Add(-MaxStill)
	if q.Still(m, p) {
		t.Error("a look is not made again after MaxStill")
	}
	if q.Still(Mark{}, p) {
		t.Error("without a mark it is still")
	}
	q.Close()
	if q.Still(q.Mark(), p) {
		t.Error("it is still after its end")
	}
}

// A way with a link in it, and what the system refuses to watch, is never still.
func TestWhatCannotBeWatchedIsNeverStill(t *testing.T) {
	top := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(top, "dir", "in"), 0o700))
	must(t, os.Symlink("dir", filepath.Join(top, "link")))
	must(t, os.WriteFile(filepath.Join(top, "file"), nil, 0o600))
	full := NewQuiet()
	full.open = func() (queue, error) { return nil, errors.New("too many") }
	for name, try := range map[string]struct {
		q   *Quiet
		dir string
	}{
		"link":       {NewQuiet(), filepath.Join(top, "link", "in")},
		"last":       {NewQuiet(), filepath.Join(top, "link")},
		"file":       {NewQuiet(), filepath.Join(top, "file")},
		"relative":   {NewQuiet(), "dir"},
		"full table": {full, filepath.Join(top, "dir")},
	} {
		t.Run(name, func(t *testing.T) {
			defer try.q.Close()
			for range 3 {
				if try.q.Still(try.q.Mark(), Place{Dir: try.dir}) {
					t.Error("it is taken for still")
				}
			}
		})
	}
}

// A queue that cannot be read says that all may have changed.
func TestAQueueThatCannotBeRead(t *testing.T) {
	dir, err := os.Open(t.TempDir())
	must(t, err)
	defer dir.Close()
	q := &inotify{fd: int(dir.Fd()), buf: make([]byte, 100)}
	if some, moved := q.changes(); !some || !moved {
		t.Errorf("some %v, moved %v, want both", some, moved)
	}
}

// Without descriptors left nothing can be watched, which is an error.
func TestWithoutDescriptorsLeft(t *testing.T) {
	dir := t.TempDir()
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}))
	_, system := openSystem()
	_, queue := openQueue()
	moved := Moved(t.Context(), []string{dir}, func() bool { return true })
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	for what, err := range map[string]error{"events": system, "the queue": queue, "moves": moved} {
		if !errors.Is(err, unix.EMFILE) {
			t.Errorf("%s: %v, want too many open files", what, err)
		}
	}
}

// More changes than the system keeps are one change.
func TestMoreThanTheQueueHolds(t *testing.T) {
	dir := t.TempDir()
	q := NewQuiet()
	defer q.Close()
	p := Place{Dir: dir, Names: onlyText}
	m := still(t, q, p)
	a, b := filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")
	must(t, os.WriteFile(a, nil, 0o600))
	for range 10_000 { // the system keeps 16,384 unless told otherwise, and two come of each
		must(t, os.Rename(a, b))
		a, b = b, a
	}
	if q.Still(m, p) {
		t.Error("changes were dropped, and it is taken for still")
	}
	still(t, q, p)
}
