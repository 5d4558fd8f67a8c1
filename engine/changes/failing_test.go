package changes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// tooLong is a name that no file system has: to look at it fails, and it is not missing.
var tooLong = strings.Repeat("x", 300)

// unreadable puts a file there that can be opened and not be read.
func unreadable(t *testing.T, path string) {
	t.Helper()
	const memory = "/proc/self/mem"
	if _, err := os.ReadFile(memory); !disk.Transient(err) {
		t.Skip("no such file here:", err)
	}
	if err := errors.Join(os.RemoveAll(path), os.Symlink(memory, path)); err != nil {
		t.Fatal(err)
	}
}

// opened is a folder that is open while the test runs.
func opened(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// A copy is made of what was looked at, writes over nothing, and half of a file is no file.
func TestWhatCannotBeCopiedIsAnError(t *testing.T) {
	b := bench{t: t, of: t.TempDir()}
	b.put(b.of, "a", "1\n")
	b.put(b.of, "dir/b", "1\n")
	b.put(b.of, "other/c", "1\n")
	from := opened(t, b.of)
	look := func(name string) fs.FileInfo {
		info, err := from.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	m := maker{c: Copy{Dir: t.TempDir()}}
	if err := os.Mkdir(filepath.Join(m.c.Dir, textsDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func(to *os.Root) error{
		"a file that was replaced": func(to *os.Root) error {
			_, err := m.file(from, to, "a", look("dir/b"))
			return err
		},
		"a folder that was replaced": func(to *os.Root) error {
			return m.below(t.Context(), from, to, "dir", renamed{look("other"), "dir"})
		},
		"a file in the way": func(to *os.Root) error {
			_, err := m.file(from, to, "a", look("a"))
			return err
		},
		"a folder in the way":    func(to *os.Root) error { return m.below(t.Context(), from, to, "dir", look("dir")) },
		"a text in a lost place": func(to *os.Root) error { return lost(m, from, to, look("a")) },
	} {
		place := t.TempDir()
		if strings.HasSuffix(name, "in the way") {
			b.put(place, "a", "mine\n")
			b.put(place, "dir/mine", "mine\n")
		}
		before := has(t, place)
		err := do(opened(t, place))
		if err == nil || strings.HasSuffix(name, "in the way") && !errors.Is(err, fs.ErrExist) ||
			strings.HasSuffix(name, "replaced") && !errors.Is(err, beneath.ErrRace) {
			t.Errorf("%s: %v", name, err)
		}
		if got := has(t, place); name != "a text in a lost place" && len(got) != len(before) {
			t.Errorf("%s: the copy has %q", name, got)
		}
	}

	dir, err := os.Open(b.of)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	if hash, err := m.sum(dir); err == nil || hash != "" {
		t.Errorf("what cannot be read has the hash %q, %v", hash, err)
	}
	if _, err := os.ReadFile("/proc/self/mem"); disk.Transient(err) {
		proc := opened(t, "/proc/self")
		info, err := proc.Lstat("mem")
		if err != nil {
			t.Fatal(err)
		}
		if f, err := m.file(proc, opened(t, t.TempDir()), "mem", info); err == nil {
			t.Errorf("a file that cannot be read is copied as %+v", f)
		}
	}
}

// renamed is a look at a file under another name.
type renamed struct {
	fs.FileInfo
	name string
}

func (r renamed) Name() string { return r.name }

func lost(m maker, from, to *os.Root, info fs.FileInfo) error {
	m.c.Dir = filepath.Join(m.c.Dir, "none")
	_, err := m.file(from, to, "a", info)
	return err
}

// The room that a copy needs is that of its files alone, and some of the disk stays free.
func TestTheRoomOfACopy(t *testing.T) {
	b := bench{t: t, of: t.TempDir()}
	b.put(b.of, "dir/b", "12345")
	m, from := maker{home: t.TempDir()}, opened(t, b.of)
	sparse := filepath.Join(b.of, "sparse")
	size := int64(1 << 43)
	if err := errors.Join(os.Symlink("dir/b", filepath.Join(b.of, "link")), os.WriteFile(sparse, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(sparse, size); err != nil {
		t.Skip("no sparse files here:", err)
	}
	var none *NoRoom
	if err := m.room(t.Context(), from); !errors.As(err, &none) || none.Need != size+5 {
		t.Fatalf("%v: %+v, want %d bytes", err, none, size+5)
	}
	kept := false
	for range 3 { // others may free some of the disk meanwhile
		var st syscall.Statfs_t
		if err := syscall.Statfs(m.home, &st); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(sparse, int64(st.Bavail)*int64(st.Bsize)); err != nil {
			t.Fatal(err)
		}
		kept = kept || errors.As(m.room(t.Context(), from), &none)
	}
	if !kept {
		t.Error("a copy would fill the disk")
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.room(over, from); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}

// The first copy of a workspace makes its folder, durably or not at all; none to be removed is no error.
func TestTheFolderOfCopies(t *testing.T) {
	of := t.TempDir()
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
		return func() error {
			_, err := Make(context.Background(), workspace.At(of), of, "agent", disk.StampOf(time.Now()))
			return err
		}
	})
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if err := RemoveAll(workspace.At(of)); err != nil {
		t.Errorf("no copies: %v", err)
	}
	gone := filepath.Join(of, "none")
	if _, err := Make(t.Context(), workspace.At(of), gone, "agent", disk.StampOf(time.Now())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is gone: %v", err)
	}
	if err := Discard(of + "/."); err == nil || !strings.Contains(err.Error(), "remove the copy") {
		t.Errorf("a folder that cannot be removed: %v", err)
	}
}

// A link that was copied, and that the agent replaced or removed, is left alone.
func TestALinkThatTheAgentReplaced(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	b := bench{t: t, of: t.TempDir()}
	if err := errors.Join(os.Symlink("a", filepath.Join(b.of, "link")), os.Symlink("a", filepath.Join(b.of, "gone"))); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.copy, err = Make(t.Context(), workspace.At(b.of), b.of, "agent", disk.StampOf(time.Now())); err != nil {
		t.Fatal(err)
	}
	tree := b.copy.Tree()
	if err := errors.Join(os.Remove(filepath.Join(tree, "link")), os.Remove(filepath.Join(tree, "gone"))); err != nil {
		t.Fatal(err)
	}
	b.put(tree, "link", "text\n")
	list := b.expect("removed gone "+beneath.ErrLink.Error(), "changed link "+beneath.ErrLink.Error())
	b.apply(list, true)
	if to, err := os.Readlink(filepath.Join(b.of, "link")); err != nil || to != "a" {
		t.Errorf("the link is %q, %v", to, err)
	}
}

// What was applied is what both sides begin with from then on, also for a merge, and after a cut.
func TestWhatWasAppliedIsTheBase(t *testing.T) {
	b := newBench(t, map[string]string{"a": "1\n2\n3\n4\n5\n", "b": "1\n"})
	tree := b.copy.Tree()
	b.put(tree, "a", "one\n2\n3\n4\n5\n")
	b.put(tree, "b", "2\n")
	met := crash.Arm(t, "eio@changes.file.rename#2")
	if _, err := b.copy.Apply(t.Context(), b.changes(), false); err == nil || len(met()) == 0 {
		t.Fatalf("nothing failed: %v", err)
	}
	crash.Arm(t, "")
	if err := b.copy.Resume(); err != nil {
		t.Fatal(err)
	}
	b.expect()

	b.put(tree, "a", "one\nTWO\n3\n4\n5\n")
	b.put(tree, "b", "3\n")
	b.put(b.of, "a", "one\n2\n3\n4\nFIVE\n")
	b.apply(b.expect("changed a it has changed since", "changed b"), true)
	if got := has(t, b.of); got["a"] != "one\nTWO\n3\n4\nFIVE\n" || got["b"] != "3\n" {
		t.Errorf("the folder has %q", got)
	}

	s := b.copy.store()
	none := StateOf([]byte("never kept\n"), 0o644)
	if err := b.copy.settle([]Result{{Step{b.of, "a", none, none}, Done, ""}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a content that is lost: %v", err)
	}
	if _, err := s.Get(none); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is lost is said to be damaged: %v", err)
	}
}

// A step whose file cannot be looked at, or whose content is lost, changes nothing and is not taken for done.
func TestStepsThatCannotBeCarried(t *testing.T) {
	b := newBench(t, map[string]string{"a": "1\n"})
	s := b.copy.store()
	to := StateOf([]byte("2\n"), 0o644)
	if err := s.Put([]byte("2\n")); err != nil {
		t.Fatal(err)
	}
	if results, err := s.Carry([]Step{{b.of, tooLong, State{}, to}}); err == nil || Pending(s.Dir) {
		t.Errorf("a file that cannot be looked at: %+v, %v", results, err)
	}
	if results, err := s.Carry([]Step{{b.of, "new", State{}, to}}); err != nil || results[0].Outcome != Done {
		t.Errorf("a new file: %+v, %v", results, err)
	}
	if blobs, err := os.ReadDir(filepath.Join(s.Dir, "blobs")); err != nil || len(blobs) != 1 {
		t.Errorf("kept are %v, %v; want the new content alone", blobs, err)
	}
	if err := errors.Join(s.Finish(), os.RemoveAll(filepath.Join(s.Dir, "blobs"))); err != nil {
		t.Fatal(err)
	}
	if result, err := s.carry(Step{b.of, "a", StateOf([]byte("1\n"), 0o644), to}); err == nil {
		t.Errorf("a content that is lost: %+v", result)
	}
	root := opened(t, b.of)
	if err := remove(root, "a", func() error { return errChanged }); !errors.Is(err, errChanged) {
		t.Errorf("a file that changed: %v", err)
	}
	if got := has(t, b.of)["a"]; got != "1\n" {
		t.Errorf("the file has %q", got)
	}
	if s, err := look(root, tooLong, file{}); err == nil {
		t.Errorf("in a copy it is %+v", s)
	}
	if s, err := lookIn(b.of, tooLong); err != nil || s.Other == "" {
		t.Errorf("among what was written it is %+v, %v", s, err)
	}
}

// What cannot be read now is not said to be lost for ever: taking back is tried again.
func TestTakingBackWhatCannotBeReadNow(t *testing.T) {
	d := newDesk(t)
	d.by("a", "old\n")
	d.write(1, "a", "new\n")
	d.undone["t1"] = true
	takes := d.expect("a t1 ready")
	unreadable(t, filepath.Join(d.store.Dir, "blobs", StateOf([]byte("old\n"), 0).SHA256))
	if results, err := d.store.TakeBack(takes, false); !disk.Transient(err) || len(results) > 0 {
		t.Errorf("%+v, %v", results, err)
	}
}

// A merge of what is taken back needs the file as it was looked at.
func TestAMergeOfWhatChangedAgain(t *testing.T) {
	d := newDesk(t)
	d.by("b", "1\n2\n3\n4\n5\n")
	d.write(1, "b", "ONE\n2\n3\n4\n5\n")
	d.by("b", "ONE\n2\n3\n4\nFIVE\n")
	d.undone["t1"] = true
	takes := d.expect("b t1 since")
	d.by("b", "ONE\n2\n3\n4\nSIX\n")
	if results, err := d.store.TakeBack(takes, true); err == nil || !strings.Contains(err.Error(), "try again") {
		t.Errorf("it changed again: %+v, %v", results, err)
	}
	if err := os.RemoveAll(d.dir); err != nil {
		t.Fatal(err)
	}
	if results, err := d.store.TakeBack(takes, true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its folder is gone: %+v, %v", results, err)
	}
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		d := newDesk(t)
		return func() error { _, err := d.store.TakeBack(nil, false); return err }
	})
}

// Who wrote nothing has nothing to take back, whatever the history is; what cannot be listed is not taken for nothing.
func TestTakingBackNothing(t *testing.T) {
	ws := t.TempDir()
	home := filepath.Join(ws, workspace.Home)
	u := UndoingOf(disk.NewVolume(home), workspace.OfData(home), "one")
	if err := os.MkdirAll(filepath.Join(u.agentDir, "history.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if results, err := u.TakeBack(nil, false); err != nil || len(results) > 0 || disk.Exists(u.Store.Dir) {
		t.Errorf("%+v, %v; it made a folder: %v", results, err, disk.Exists(u.Store.Dir))
	}
	if err := os.MkdirAll(u.Store.List(), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, paths := range [][]string{nil, {"a"}} {
		results, err := u.TakeBack(paths, false)
		if _, no := errors.AsType[*NoFile](err); err == nil || no || len(results) > 0 {
			t.Errorf("%q of a list that cannot be read: %+v, %v", paths, results, err)
		}
	}
}

// A file whose removal was applied is a new one if the agent makes it again.
func TestARemovedFileIsAddedAgain(t *testing.T) {
	b := newBench(t, map[string]string{"a": "1\n"})
	if err := os.Remove(filepath.Join(b.copy.Tree(), "a")); err != nil {
		t.Fatal(err)
	}
	b.apply(b.expect("removed a"), false)
	b.put(b.copy.Tree(), "a", "2\n")
	b.apply(b.expect("added a"), false)
	if got := has(t, b.of)["a"]; got != "2\n" {
		t.Errorf("the folder has %q", got)
	}
}
