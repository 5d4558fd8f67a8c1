package tarball

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// What is within all limits is read, in its order; folders are passed over, and so is the mark
// of the folder itself that tar writes.
func TestAnArchiveWithinItsLimitsIsRead(t *testing.T) {
	data := build(t, &tar.Header{Name: "./", Typeflag: tar.TypeDir}, &tar.Header{Name: "d/", Typeflag: tar.TypeDir}, file("./d/a", 100),
		&tar.Header{Name: "./d/e/", Typeflag: tar.TypeDir}, file("b", 50), file("c", 0))
	var names []string
	read := func(l Limits) error {
		names = nil
		return Read(bytes.NewReader(data), l, func(e Entry, r io.Reader) error {
			content, err := io.ReadAll(r)
			if int64(len(content)) != e.Size || err != nil {
				t.Errorf("%s has %d bytes, %v; want %d", e.Name, len(content), err, e.Size)
			}
			names = append(names, e.Name)
			return nil
		})
	}
	if err := read(Limits{File: 100, Total: 150, Files: 3}); err != nil || !slices.Equal(names, []string{"d/a", "b", "c"}) {
		t.Errorf("%v, %v", names, err)
	}

	for _, l := range []Limits{{99, 150, 3}, {100, 149, 3}, {100, 150, 2}} {
		if err := read(l); err == nil {
			t.Errorf("%v is read within %+v", names, l)
		}
	}
	stop := errors.New("stop")
	calls := 0
	if err := Read(bytes.NewReader(data), Limits{100, 150, 3}, func(Entry, io.Reader) error { calls++; return stop }); !errors.Is(err,
		stop) || calls != 1 {
		t.Errorf("who takes a file and fails: %v after %d calls", err, calls)
	}
}

// What is cut short is said to be, what is not an archive is not; an error of the disk stays what it
// is.
func TestWhatIsWrongWithAnArchive(t *testing.T) {
	all := func(r io.Reader) error {
		return Read(r, Limits{1000, 1000, 9}, func(_ Entry, r io.Reader) error { _, err := io.Copy(io.Discard, r); return err })
	}
	data := build(t, file("a", 700))
	disk := errors.New("disk")
	for name, tt := range map[string]struct {
		r    io.Reader
		is   error
		says bool
	}{
		"cut in a head": {bytes.NewReader(data[:100]), io.ErrUnexpectedEOF, true},
		"no archive":    {strings.NewReader(strings.Repeat("no archive ", 100)), tar.ErrHeader, false},
		"a disk":        {io.MultiReader(bytes.NewReader(data[:600]), iotest.ErrReader(disk)), disk, false},
	} {
		if err := all(tt.r); !errors.Is(err, tt.is) || strings.Contains(err.Error(), "truncated") != tt.says {
			t.Errorf("%s: %v", name, err)
		}
	}

	if err := all(bytes.NewReader(data)); err != nil {
		t.Errorf("whole: %v", err)
	}
}

// A file is put where it belongs with its time, or there is an error; one that is there is left
// as it is.
func TestFilesArePutWithTheirTimes(t *testing.T) {
	path := t.TempDir()
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	old := time.Unix(1_700_000_000, 0)
	if err := Put(dir, Entry{Name: "a/b/old", Size: 3, ModTime: old}, strings.NewReader("old")); err != nil {
		t.Fatal(err)
	}

	before := time.Now().Add(-time.Minute)
	if err := Put(dir, Entry{Name: "new", Size: 3}, strings.NewReader("new")); err != nil {
		t.Fatal(err)
	}

	for name, at := range map[string]bool{"a/b/old": true, "new": false} {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil || info.ModTime().Equal(old) != at || !at && info.ModTime().Before(before) {
			t.Errorf("%s is of %v, %v", name, info.ModTime(), err)
		}
	}

	if err := Put(dir, Entry{Name: "new", Size: 5}, strings.NewReader("again")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("one that is there: %v", err)
	}
	if err := Put(dir, Entry{Name: "new/below", Size: 1}, strings.NewReader("x")); err == nil {
		t.Error("one is put beneath a file")
	}
	if data, err := os.ReadFile(filepath.Join(path, "new")); string(data) != "new" || err != nil {
		t.Errorf("it is %q now, %v", data, err)
	}

	disk := errors.New("disk")
	if err := Put(dir, Entry{Name: "short", Size: 3, ModTime: old}, strings.NewReader("x")); !errors.Is(err, io.ErrUnexpectedEOF) ||
		!strings.Contains(err.Error(), "truncated") {
		t.Errorf("one that is shorter than it says: %v", err)
	}
	if err := Put(dir, Entry{Name: "broken", Size: 3}, iotest.ErrReader(disk)); !errors.Is(err, disk) {
		t.Errorf("one that cannot be read: %v", err)
	}
}

// Whoever writes an archive hears of what cannot be written.
func TestAnArchiveThatCannotBeWritten(t *testing.T) {
	disk := errors.New("disk")
	w := NewWriter(failing{disk})
	if err := w.Add(Entry{Name: "a", Size: 1}, strings.NewReader("x")); !errors.Is(err, disk) {
		t.Errorf("add: %v", err)
	}
	if err := NewWriter(failing{disk}).Close(); !errors.Is(err, disk) {
		t.Errorf("close: %v", err)
	}
	if err := NewWriter(io.Discard).Add(Entry{Name: "a", Size: -1}, strings.NewReader("x")); err == nil {
		t.Error("a file of less than nothing is written")
	}
	if err := NewWriter(io.Discard).Add(Entry{Name: "a", Size: 2}, iotest.ErrReader(disk)); !errors.Is(err, disk) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
