package changes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"daycare/engine/attacktest"
	"daycare/engine/beneath"
	"daycare/engine/crash"
	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// differs says in which way files are not those that they should be; nil: they are.
func differs(t *testing.T, dir string, want map[string]string) error {
	if got := has(t, dir); !maps.Equal(got, want) {
		return fmt.Errorf("%s has %q, want %q", dir, got, want)
	}
	return nil
}

// A copy that is made without enough descriptors is whole, or none.
func TestCopiesWithFewDescriptors(t *testing.T) {
	files := map[string]string{"a": "1\n", "dir/deep/b": "1\n"}
	newBench(t, files) // what the process opens once is open
	crashtest.FewDescriptors(t, func(t *testing.T) (op, holds func() error) {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
		b := bench{t: t, of: t.TempDir()}
		for path, text := range files {
			b.put(b.of, path, text)
		}
		if err := os.Symlink("a", filepath.Join(b.of, "link")); err != nil {
			t.Fatal(err)
		}
		var c Copy
		op = func() (err error) {
			c, err = Make(t.Context(), workspace.At(b.of), b.of, "agent", disk.StampOf(time.Now()))
			return err
		}
		return op, func() error {
			to, err := os.Readlink(filepath.Join(c.Tree(), "link"))
			if err == nil && to != "a" {
				err = fmt.Errorf("the link leads to %q", to)
			}
			return errors.Join(err, differs(t, c.Tree(), files))
		}
	})
}

// worked is a bench with a change of each kind, one of which has to be merged.
func worked(t *testing.T) bench {
	b := newBench(t, map[string]string{"a": "1\n", "dir/b": "1\n2\n3\n4\n5\n", "gone": "1\n"})
	b.put(b.copy.Tree(), "a", "2\n")
	b.put(b.copy.Tree(), "dir/b", "ONE\n2\n3\n4\n5\n")
	b.put(b.copy.Tree(), "new/deep/c", "2\n")
	b.put(b.of, "dir/b", "1\n2\n3\n4\nFIVE\n")
	if err := os.Remove(filepath.Join(b.copy.Tree(), "gone")); err != nil {
		t.Fatal(err)
	}
	return b
}

// What cannot be opened is not taken for what is not there: nothing is listed, carried or read by
// half without an error.
func TestCopiesAreReadWithFewDescriptors(t *testing.T) {
	changes := []string{"changed a", "changed dir/b it has changed since", "removed gone", "added new/deep/c"}
	t.Run("list", func(t *testing.T) {
		crashtest.FewDescriptors(t, func(t *testing.T) (op, holds func() error) {
			b := worked(t)
			var list []Change
			op = func() (err error) {
				list, err = b.copy.Changes(t.Context())
				return err
			}
			return op, func() error {
				if got := told(list); !slices.Equal(got, changes) {
					return fmt.Errorf("it lists %q", got)
				}
				return nil
			}
		})
	})
	t.Run("contents", func(t *testing.T) {
		crashtest.FewDescriptors(t, func(t *testing.T) (op, holds func() error) {
			b := worked(t)
			one := b.expect(changes...)[1]
			var got []string
			op = func() error {
				before, now, there, err := b.copy.Contents(one)
				got = []string{string(before), string(now), string(there)}
				return err
			}
			return op, func() error {
				if want := []string{"1\n2\n3\n4\n5\n", "ONE\n2\n3\n4\n5\n", "1\n2\n3\n4\nFIVE\n"}; !slices.Equal(got, want) {
					return fmt.Errorf("the contents are %q", got)
				}
				return nil
			}
		})
	})
	t.Run("copies", func(t *testing.T) {
		crashtest.FewDescriptors(t, func(t *testing.T) (op, holds func() error) {
			b := worked(t)
			var shelf Shelf
			op = func() (err error) {
				shelf, err = List(workspace.At(b.of))
				return err
			}
			return op, func() error {
				if len(shelf.Copies) != 1 || shelf.Copies[0] != b.copy || len(shelf.Broken) > 0 {
					return fmt.Errorf("the copies are %v", shelf)
				}
				return nil
			}
		})
	})
	t.Run("apply", func(t *testing.T) {
		crashtest.FewDescriptors(t, func(t *testing.T) (op, holds func() error) {
			b := worked(t)
			list := b.expect(changes...)
			op = func() error {
				results, err := b.copy.Apply(t.Context(), list, true)
				if refused := Refusals(results); len(refused) > 0 {
					err = errors.Join(err, errors.New(refused[0].Why))
				}
				return err
			}
			return op, func() error {
				want := map[string]string{"a": "2\n", "dir/b": "ONE\n2\n3\n4\nFIVE\n", "new/deep/c": "2\n"}
				if left := b.changes(); len(left) > 0 {
					return fmt.Errorf("what is left is %q", told(left))
				}
				return errors.Join(differs(t, b.of, want), differs(t, b.copy.Tree(), want))
			}
		})
	})
}

// The same of what an agent's tools wrote.
func TestUndoWithFewDescriptors(t *testing.T) {
	t.Run("note", func(t *testing.T) {
		crashtest.FewDescriptors(t, func(t *testing.T) (op, holds func() error) {
			d := newDesk(t)
			w := Written{Turn: "t1", Folder: d.dir, Path: "a", Before: StateOf([]byte("old"), 0o644), After: StateOf([]byte("new"), 0o644)}
			op = func() error { return d.store.Note(w, []byte("old"), []byte("new")) }
			return op, func() error {
				list, err := d.store.Written()
				if err == nil && (len(list) != 1 || list[0] != w) {
					err = fmt.Errorf("noted is %v", list)
				}
				for _, of := range []State{w.Before, w.After} {
					_, lost := d.store.Get(of)
					err = errors.Join(err, lost)
				}
				return err
			}
		})
	})
	t.Run("take back", func(t *testing.T) {
		crashtest.FewDescriptors(t, func(t *testing.T) (op, holds func() error) {
			d := newDesk(t)
			d.by("a", "old\n")
			d.by("b", "1\n2\n3\n4\n5\n")
			d.write(1, "a", "new\n")
			d.write(1, "b", "ONE\n2\n3\n4\n5\n")
			d.by("b", "ONE\n2\n3\n4\nFIVE\n")
			d.undone["t1"] = true
			op = func() error {
				list, err := d.store.Written()
				if err != nil {
					return err
				}
				takes, err := d.store.Back(list, func(Written) bool { return true })
				if err != nil {
					return err
				}
				results, err := d.store.TakeBack(takes, true)
				if refused := Refusals(results); len(refused) > 0 {
					err = errors.Join(err, errors.New(refused[0].Why))
				}
				return err
			}
			return op, func() error {
				return differs(t, d.dir, map[string]string{"a": "old\n", "b": "1\n2\n3\n4\nFIVE\n"})
			}
		})
	})
}

// The folder or the copy is gone, or is a file: that is said, and nothing is listed as removed.
func TestFoldersThatAreGone(t *testing.T) {
	for name, spoil := range map[string]func(b bench) error{
		"the folder": func(b bench) error { return os.RemoveAll(b.of) },
		"the copy":   func(b bench) error { return os.RemoveAll(b.copy.Tree()) },
		"the folder is a file": func(b bench) error {
			return errors.Join(os.RemoveAll(b.of), os.WriteFile(b.of, nil, 0o600))
		},
		"the list of files": func(b bench) error { return os.Remove(filepath.Join(b.copy.Dir, baseName)) },
		"half of a line of it": func(b bench) error {
			return os.WriteFile(filepath.Join(b.copy.Dir, baseName), []byte(`{"path":"a"`), 0o600)
		},
		"a line of it is too long": func(b bench) error {
			return os.WriteFile(filepath.Join(b.copy.Dir, baseName), []byte(`{"path":"`+strings.Repeat("a", 1<<20)+`"}`), 0o600)
		},
	} {
		b := worked(t)
		list := b.changes()
		if err := spoil(b); err != nil {
			t.Fatal(err)
		}
		if got, err := b.copy.Changes(t.Context()); err == nil {
			t.Errorf("%s: %q, and no error", name, told(got))
		} else if name == "the list of files" && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
		if results, err := b.copy.Apply(t.Context(), list, true); err == nil {
			t.Errorf("%s: applied %v, and no error", name, results)
		}
	}

	b := worked(t)
	if err := os.RemoveAll(b.copy.Dir); err != nil {
		t.Fatal(err)
	}
	if err := b.copy.Remove(); err == nil {
		t.Error("a copy that is gone was removed")
	}
	if err := b.copy.Resume(); err == nil {
		t.Error("an apply of a copy that is gone was finished")
	}
	if _, err := Make(t.Context(), workspace.At(b.of), filepath.Join(b.of, "none"), "agent", disk.StampOf(time.Now())); err == nil {
		t.Error("a folder that is not there was copied")
	}
}

// A text that was kept for merging and is damaged merges nothing.
func TestAMergeWithADamagedBase(t *testing.T) {
	b := worked(t)
	list := b.changes()
	sum := StateOf([]byte("1\n2\n3\n4\n5\n"), 0).SHA256
	if err := os.WriteFile(filepath.Join(b.copy.Dir, textsDir, sum), []byte("1\n2\n3\n4\n6\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := has(t, b.of)
	if results, err := b.copy.Apply(t.Context(), list, true); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("%v, %v", results, err)
	}
	if err := differs(t, b.of, before); err != nil {
		t.Error(err)
	}
}

// A folder on the way that became a file is in the way, and is left alone.
func TestAFolderThatBecameAFile(t *testing.T) {
	b := newBench(t, map[string]string{"dir/a": "1\n", "b": "1\n"})
	b.put(b.copy.Tree(), "dir/a", "2\n")
	b.put(b.copy.Tree(), "b", "2\n")
	list := b.expect("changed b", "changed dir/a")
	if err := os.RemoveAll(filepath.Join(b.of, "dir")); err != nil {
		t.Fatal(err)
	}
	b.put(b.of, "dir", "mine\n")
	if _, err := b.copy.Apply(t.Context(), list, false); err == nil || has(t, b.of)["b"] != "1\n" {
		t.Errorf("changes that were listed before it: %v", err)
	}
	got := b.apply(b.expect("changed b", "changed dir/a in the folder not a directory"), false)
	if !slices.Equal(got, []string{"done b", "refused dir/a in the folder not a directory"}) {
		t.Errorf("%q", got)
	}
	if got := has(t, b.of)["dir"]; got != "mine\n" {
		t.Errorf("the file has %q", got)
	}
}

// A list of steps that cannot be read is an error of every command, and keeps its place; steps that
// lead out, or whose content was not kept, change nothing.
func TestListsOfSteps(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"broken":   func(path string) error { return os.WriteFile(path, []byte("[{"), 0o600) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		b := worked(t)
		path := filepath.Join(b.copy.Dir, journalName)
		if err := spoil(path); err != nil {
			t.Fatal(err)
		}
		if err := b.copy.Resume(); err == nil || !disk.Exists(path) {
			t.Errorf("%s: %v; it is there: %v", name, err, disk.Exists(path))
		}
		if _, err := b.copy.store().Carry(nil); err == nil {
			t.Errorf("%s: other steps are carried out", name)
		}
	}

	b := worked(t)
	s := b.copy.store()
	if results, err := s.Resume(); results != nil || err != nil {
		t.Errorf("without a list: %v, %v", results, err)
	}
	to := StateOf([]byte("2\n"), 0o644)
	if _, err := s.Carry([]Step{{b.of, "a", StateOf([]byte("1\n"), 0o644), to}}); err == nil || Pending(s.Dir) {
		t.Errorf("a step without its content: %v; it is in progress: %v", err, Pending(s.Dir))
	}
	if err := s.Put([]byte("2\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Carry([]Step{{filepath.Join(b.of, "none"), "a", State{}, to}}); err == nil || Pending(s.Dir) {
		t.Errorf("a step in a folder that is gone: %v; it is in progress: %v", err, Pending(s.Dir))
	}
	for _, step := range []Step{{b.of, "../a", State{}, to}, {b.of, "/a", State{}, to}, {b.of, "a", State{}, State{Other: "a link"}}} {
		if result, err := s.carry(step); err != nil || result.Outcome != Refused || result.Why != "it is not a regular file" {
			t.Errorf("%+v: %+v, %v", step, result, err)
		}
	}
	if _, err := s.carry(Step{filepath.Join(b.of, "none"), "a", State{}, to}); err == nil {
		t.Error("a step in a folder that is gone is no error")
	}

	b = worked(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	before := has(t, b.of)
	if results, err := b.copy.Apply(over, b.changes(), false); !errors.Is(err, context.Canceled) || Pending(b.copy.Dir) ||
		!maps.Equal(has(t, b.of), before) {
		t.Errorf("after the end of its context: %v, %v", results, err)
	}
}

// Copies whose own files are broken are reported, those in the making are passed over.
func TestCopiesThatCannotBeRead(t *testing.T) {
	b := worked(t)
	home, err := Home(workspace.At(b.of))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(home, newName+"x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if list, err := List(workspace.At(b.of)); err != nil || len(list.Copies) != 1 || len(list.Halves) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	for _, text := range []string{"{", `{"of":"here"}`, ""} {
		if err := os.WriteFile(filepath.Join(b.copy.Dir, infoName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		list, err := List(workspace.At(b.of))
		if err != nil || len(list.Broken) != 1 || !strings.Contains(list.Broken[0].Error(), infoName) {
			t.Errorf("%q: %v, %v", text, list, err)
		}
		if _, ok := Of(b.copy.Tree()); ok {
			t.Errorf("%q: it is a copy", text)
		}
	}
	if list, err := List(workspace.At(t.TempDir())); err != nil || len(list.Copies)+len(list.Broken)+len(list.Halves) > 0 {
		t.Errorf("a workspace without copies: %v, %v", list, err)
	}
	if err := errors.Join(os.RemoveAll(home), os.WriteFile(home, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := List(workspace.At(b.of)); err == nil {
		t.Error("a file in the place of the folder of copies is no error")
	}
	if _, err := Make(context.Background(), workspace.At(b.of), b.of, "agent", disk.StampOf(time.Now())); err == nil {
		t.Error("a copy is made in a file")
	}
}

// Where a path leads in a copy.
func TestInside(t *testing.T) {
	b := newBench(t, map[string]string{"a": "1\n"})
	tree, plain := b.copy.Tree(), t.TempDir()
	home := os.Getenv("XDG_STATE_HOME")
	around, err := Make(t.Context(), workspace.At(home), home, "agent", disk.StampOf(time.Now())) // it is in what it is of
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ tree, path, want string }{
		{tree, filepath.Join(b.of, "dir", "a"), filepath.Join(tree, "dir", "a")},
		{tree, b.of, tree},
		{tree, filepath.Join(tree, "a"), filepath.Join(tree, "a")},
		{tree, filepath.Join(filepath.Dir(b.of), "other"), filepath.Join(filepath.Dir(b.of), "other")},
		{tree, b.of + "2", b.of + "2"},
		{around.Tree(), filepath.Join(around.Tree(), "a"), filepath.Join(around.Tree(), "a")},
		{around.Tree(), filepath.Join(home, "a"), filepath.Join(around.Tree(), "a")},
		{plain, filepath.Join(b.of, "a"), filepath.Join(b.of, "a")},
		{filepath.Join(plain, treeName), filepath.Join(b.of, "a"), filepath.Join(b.of, "a")},
	} {
		if got := Inside(tt.tree, tt.path); got != tt.want {
			t.Errorf("%s in %s: %s, want %s", tt.path, tt.tree, got, tt.want)
		}
	}
	if c, ok := Of(tree); !ok || c != b.copy {
		t.Errorf("%v, %v", c, ok)
	}
	if _, ok := Of(b.copy.Dir); ok {
		t.Error("the folder around a copy is one")
	}
}

// Where copies are.
func TestHome(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	t.Setenv("HOME", "/home/ada")
	for set, want := range map[string]string{state: state, "": "/home/ada/.local/state", "relative": "/home/ada/.local/state",
		os.DevNull: "/home/ada/.local/state"} {
		t.Setenv("XDG_STATE_HOME", set)
		if got, err := Home(workspace.At(root)); err != nil || filepath.Dir(got) != filepath.Join(want, "daycare", "copies") {
			t.Errorf("XDG_STATE_HOME=%s: %s, %v", set, got, err)
		}
	}
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	for what, try := range map[string]func() error{
		"Home": func() error { _, err := Home(workspace.At(root)); return err },
		"Make": func() error { _, err := Make(t.Context(), workspace.At(root), root, "agent", disk.Stamp{}); return err },
	} {
		if err := try(); err == nil || !strings.Contains(err.Error(), "set HOME") {
			t.Errorf("%s without a home folder: %v", what, err)
		}
	}
}

// A user who can have no copies lists and removes nothing, without an error: what else a command does is done.
func TestHomeless(t *testing.T) {
	root := t.TempDir()
	t.Setenv("XDG_STATE_HOME", "")
	for _, home := range []string{"", filepath.Join(root, "gone")} {
		t.Setenv("HOME", home)
		s, err := List(workspace.At(root))
		if err != nil || len(s.Copies)+len(s.Broken)+len(s.Halves) > 0 {
			t.Errorf("HOME=%s: %+v, %v", home, s, err)
		}
		if err := RemoveAll(workspace.At(root)); err != nil {
			t.Errorf("HOME=%s: %v", home, err)
		}
	}
}

// Contents that a merge of what is taken back needs are lost: the file is left alone, or the reason
// is an error.
func TestMergesOfLostContents(t *testing.T) {
	for _, lost := range []string{"1\n2\n3\n4\n5\n", "ONE\n2\n3\n4\n5\n"} {
		d := newDesk(t)
		d.by("b", "1\n2\n3\n4\n5\n")
		d.write(1, "b", "ONE\n2\n3\n4\n5\n")
		d.by("b", "ONE\n2\n3\n4\nFIVE\n")
		d.undone["t1"] = true
		takes := d.expect("b t1 since")
		if err := os.Remove(filepath.Join(d.store.Dir, "blobs", StateOf([]byte(lost), 0).SHA256)); err != nil {
			t.Fatal(err)
		}
		if results, err := d.store.TakeBack(takes, true); err == nil && len(Refusals(results)) == 0 {
			t.Errorf("without %q: %v", lost, results)
		}
		if got := has(t, d.dir)["b"]; got != "ONE\n2\n3\n4\nFIVE\n" {
			t.Errorf("the file has %q", got)
		}
		d.by("b", "other\n") // it changes between the look and the order
		if _, err := d.store.TakeBack(takes, true); err == nil || has(t, d.dir)["b"] != "other\n" {
			t.Errorf("a file that changed again: %v, %q", err, has(t, d.dir)["b"])
		}
		if err := os.RemoveAll(d.dir); err != nil {
			t.Fatal(err)
		}
		if _, err := d.store.TakeBack(takes, true); err == nil {
			t.Error("a folder that is gone is no error")
		}
	}
}

// A folder that cannot be looked into leaves open what can be taken back; it is not taken for empty.
func TestWhatCannotBeLookedAtIsNotTakenBack(t *testing.T) {
	d := newDesk(t)
	d.write(1, "a", "1\n")
	list, err := d.store.Written()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(d.dir); err != nil {
		t.Fatal(err)
	}
	undone := func(Written) bool { return true }
	takes, err := d.store.Back(list, undone)
	if err != nil || len(takes) != 1 || !takes[0].Now.Missing() {
		t.Errorf("a folder that is gone: %+v, %v", takes, err)
	}
	if err := os.WriteFile(d.dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if takes, err := d.store.Back(list, undone); err == nil || len(takes) > 0 || !strings.Contains(err.Error(), d.dir) {
		t.Errorf("a folder that is a file now: %+v, %v", takes, err)
	}
}

// A file that changed between two looks is not compared with what it was.
func TestAFileThatChangedWhileItWasRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), []byte("new"), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	now, _, err := Look(root, "a")
	if err != nil {
		t.Fatal(err)
	}
	if data, err := content(root, "a", now); err != nil || string(data) != "new" {
		t.Errorf("%q, %v", data, err)
	}
	_, err = content(root, "a", StateOf([]byte("old"), 0o644))
	if err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("%v", err)
	}
}

// What changed after the list was made, on either side, is not shown as what it was.
func TestContentsOfWhatChangedSinceTheList(t *testing.T) {
	for _, side := range []string{"", "copy", "folder"} {
		b := newBench(t, map[string]string{"a": "one\n"})
		b.put(b.copy.Tree(), "a", "two\n")
		list := b.expect("changed a")
		switch side {
		case "copy":
			b.put(b.copy.Tree(), "a", "three\n")
		case "folder":
			b.put(b.of, "a", "three\n")
		}
		before, now, there, err := b.copy.Contents(list[0])
		if side != "" && (err == nil || !strings.Contains(err.Error(), "changed while it was read")) {
			t.Errorf("the %s: %q %q %q, %v", side, before, now, there, err)
		}
		if side == "" && (err != nil || string(before)+string(now)+string(there) != "one\ntwo\none\n") {
			t.Errorf("%q %q %q, %v", before, now, there, err)
		}
	}
}

// The same where the folder had changed before the list was made.
func TestContentsOfWhatChangedTwice(t *testing.T) {
	b := newBench(t, map[string]string{"a": "one\n"})
	b.put(b.copy.Tree(), "a", "two\n")
	b.put(b.of, "a", "three\n")
	list := b.expect("changed a it has changed since")
	if before, now, there, err := b.copy.Contents(list[0]); err != nil || string(before)+string(now)+string(there) != "one\ntwo\nthree\n" {
		t.Errorf("%q %q %q, %v", before, now, there, err)
	}
	b.put(b.of, "a", "four\n")
	if before, now, there, err := b.copy.Contents(list[0]); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("%q %q %q, %v", before, now, there, err)
	}
}

// What only the user changed is no change of the agent's.
func TestWhatTheUserChangedIsNotListed(t *testing.T) {
	b := newBench(t, map[string]string{"a": "one\n", "b": "one\n", "c": "one\n"})
	b.put(b.of, "a", "two\n")
	b.put(b.of, "new", "two\n")
	if err := os.Remove(filepath.Join(b.of, "b")); err != nil {
		t.Fatal(err)
	}
	b.expect()
}

// What a user saves between the look at a file and its replacement stays.
func TestASaveDuringAnApplyStays(t *testing.T) {
	b := newBench(t, map[string]string{"a": "one\n"})
	b.put(b.copy.Tree(), "a", "two\n")
	list := b.expect("changed a")
	crash.Meanwhile(t, "changes.file.write", func(int) { b.put(b.of, "a", "mine\n") })
	if got := b.apply(list, false); !slices.Equal(got, []string{"refused a it has changed since"}) {
		t.Errorf("%q", got)
	}
	if got := has(t, b.of)["a"]; got != "mine\n" {
		t.Errorf("the file has %q", got)
	}
}

// An apply leaves no folder open that it went through.
func TestAnApplyLeavesNothingOpen(t *testing.T) {
	opened := func() int {
		entries, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Skip(err)
		}
		return len(entries)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would close what was forgotten
	for turn := range 2 {                            // the runtime opens files of its own in the first one
		b := worked(t)
		b.put(b.copy.Tree(), "new/deeper/still/d", "2\n")
		list := b.changes()
		before := opened()
		b.apply(list, true)
		if after := opened(); turn > 0 && after != before {
			t.Errorf("%d files are left open", after-before)
		}
	}
}

// A copy can be removed whatever its agent did to the modes of folders, and what cannot be removed from the folder
// is not said to be.
func TestFoldersThatAreReadOnly(t *testing.T) {
	attacktest.AsUser(t)
	if os.Getuid() == 0 {
		return // root may write everywhere
	}
	b := newBench(t, map[string]string{"dir/a": "1\n", "dir/deep/b": "1\n", "c": "1\n"})
	if err := errors.Join(os.Remove(filepath.Join(b.copy.Tree(), "dir/a")), os.Chmod(filepath.Join(b.of, "dir"), 0o500)); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Join(b.of, "dir"), 0o700)
	if got := b.apply(b.expect("removed dir/a"), false); !slices.Equal(got, []string{"refused dir/a permission denied"}) {
		t.Errorf("%q", got)
	}
	for _, dir := range []string{"dir/deep", "dir"} {
		if err := os.Chmod(filepath.Join(b.copy.Tree(), dir), 0o500); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.copy.Remove(); err != nil {
		t.Error(err)
	}
	if all, err := List(workspace.At(b.of)); err != nil || len(all.Copies)+len(all.Halves) > 0 {
		t.Errorf("left is %+v, %v", all, err)
	}
}

// Copies are listed the newest first, in whatever order they were made.
func TestCopiesAreListedNewestFirst(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	of, begin := t.TempDir(), time.Now()
	for _, minute := range []time.Duration{2, 0, 4, 1, 3} {
		if _, err := Make(t.Context(), workspace.At(of), of, "agent", disk.StampOf(begin.Add(minute*time.Minute))); err != nil {
			t.Fatal(err)
		}
	}
	all, err := List(workspace.At(of))
	newest := func(a, b Copy) int { return b.At.Compare(a.At.Time) }
	if err != nil || len(all.Copies) != 5 || !slices.IsSortedFunc(all.Copies, newest) {
		t.Errorf("%+v, %v", all, err)
	}
}

// What is left out of a copy needs no room.
func TestWhatIsLeftOutNeedsNoRoom(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	of := t.TempDir()
	path := filepath.Join(of, ".daycare", "sparse")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<43), f.Close()); err != nil {
		t.Skip("no sparse files here:", err)
	}
	c, err := Make(t.Context(), workspace.At(of), of, "agent", disk.StampOf(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	if got := has(t, c.Tree()); len(got) > 0 {
		t.Errorf("the copy has %q", got)
	}
}

// A file whose mode is not the one that was asked for, as by a umask, is as the agent left it.
func TestAModeOfTheUmaskIsNoChange(t *testing.T) {
	d := newDesk(t)
	d.by("a", "old\n")
	d.write(1, "a", "new\n")
	if err := os.Chmod(filepath.Join(d.dir, "a"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.undone["t1"] = true
	if _, err := d.store.TakeBack(d.expect("a t1 ready"), false); err != nil || has(t, d.dir)["a"] != "old\n" {
		t.Errorf("%v, the file has %q", err, has(t, d.dir)["a"])
	}
}

// Taking back that was cut and cannot be finished is an error, also where nothing more is to be taken back.
func TestTakingBackThatCannotBeFinished(t *testing.T) {
	home := filepath.Join(t.TempDir(), ".daycare")
	u := UndoingOf(disk.NewVolume(home), workspace.OfData(home), "one")
	if err := errors.Join(os.MkdirAll(u.Store.Dir, 0o700),
		os.WriteFile(filepath.Join(u.Store.Dir, journalName), []byte("[{"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if results, err := u.TakeBack(nil, false); err == nil || !Pending(u.Store.Dir) {
		t.Errorf("%v, %v", results, err)
	}
}

// A link in a copy is as it was copied, or leads where an agent had it lead, which is not said; a file
// that cannot be read to its end has no hash.
func TestLinksOfACopyAreLookedAt(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("there", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for link, want := range map[string]string{"there": "there", "elsewhere": beneath.ErrLink.Error(), "": beneath.ErrLink.Error()} {
		if s, err := look(root, "link", file{Link: link}); err != nil || s.Other != want {
			t.Errorf("copied as %q: %+v, %v, want %q", link, s, err, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := root.Lstat("f")
	if err != nil {
		t.Fatal(err)
	}
	untouched := file{SHA256: "known", Mode: 0o600, Size: 1, Changed: beneath.ChangedAt(info).UnixNano()}
	if s, err := look(root, "f", untouched); err != nil || s.SHA256 != "known" {
		t.Errorf("a file that was not touched is read: %+v, %v", s, err)
	}
	for name, spoil := range map[string]func(f *file){"size": func(f *file) { f.Size++ }, "mode": func(f *file) { f.Mode = 0o644 },
		"time": func(f *file) { f.Changed++ }} {
		other := untouched
		spoil(&other)
		if s, err := look(root, "f", other); err != nil || s != StateOf([]byte("x"), 0o600) {
			t.Errorf("a file of another %s is not read: %+v, %v", name, s, err)
		}
	}
	if s, err := look(root, "none", file{}); err != nil || !s.Missing() {
		t.Errorf("what is gone: %+v, %v", s, err)
	}
	if hash, err := sum(iotest.ErrReader(os.ErrDeadlineExceeded)); hash != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("half a file is %q, %v", hash, err)
	}
}

// Only the tree of a copy is the tree of a copy, not what else lies beside it.
func TestOnlyATreeIsACopy(t *testing.T) {
	b := newBench(t, map[string]string{"a": "1\n"})
	if c, ok := Of(b.copy.Tree()); !ok || c.Of != b.copy.Of {
		t.Errorf("the tree is of %+v, %v", c, ok)
	}
	for _, name := range []string{"other", "", "."} {
		if c, ok := Of(filepath.Join(b.copy.Dir, name)); ok {
			t.Errorf("%q is of %+v", name, c)
		}
	}
	if path := Inside(filepath.Join(b.copy.Dir, "other"), filepath.Join(b.of, "a")); path != filepath.Join(b.of, "a") {
		t.Errorf("a path became %s", path)
	}
}

// The base is written in the order of its paths, whatever was applied.
func TestTheBaseIsInOrder(t *testing.T) {
	files := map[string]string{}
	for _, name := range []string{"f", "b", "a", "e", "d", "c", "h", "g"} {
		files[name] = name + "\n"
	}
	b := newBench(t, files)
	b.put(b.copy.Tree(), "d", "new\n")
	b.apply(b.changes(), false)
	data, err := os.ReadFile(filepath.Join(b.copy.Dir, baseName))
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		next := strings.Index(string(data), `"`+name+`"`)
		if next <= at {
			t.Fatalf("%s is not behind the one before it:\n%s", name, data)
		}
		at = next
	}
}
