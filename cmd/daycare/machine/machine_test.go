package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/crash/crashtest"
	"daycare/engine/workspace"
)

// A note has the path and a time, is the user's alone, and is written again by the next start.
func TestNotesOfWorkspaces(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("TMPDIR", "/nowhere")
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, root := range []string{"/w/b", "/w/a", "/w/b"} {
		if err := Note(workspace.At(root), now); err != nil {
			t.Fatal(err)
		}
	}

	for name, text := range map[string]string{"x.json": `{"path":"/w/x"}`, fileOf("/w/y"): "{", fileOf("rel"): `{"path":"rel"}`} {
		if err := os.WriteFile(filepath.Join(dir(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := List()
	if err != nil || len(all) != 2 || all[0].Path != "/w/a" || all[1].Path != "/w/b" || !all[1].StartedAt.Equal(now) {
		t.Fatalf("%+v %v", all, err)
	}

	file := filepath.Join(state, "daycare", "workspaces", fileOf("/w/a"))
	data, err := os.ReadFile(file)
	if err != nil || string(data) != `{"path":"/w/a","startedAt":"2026-11-20T12:00:00.000Z"}`+"\n" {
		t.Errorf("the note is %q %v", data, err)
	}

	for path, mode := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v, want %v", path, info.Mode(), err, mode)
		}
	}
	if files := Files(); len(files) != 2 || files[0] != file {
		t.Errorf("the files are %v", files)
	}

	for _, want := range []bool{true, false} {
		if known, err := Forget("/w/a"); err != nil || known != want {
			t.Errorf("forget: %v %v, want %v", known, err, want)
		}
	}
	if all, _ := List(); len(all) != 1 {
		t.Errorf("left are %+v", all)
	}
}

// Nothing is noted of a temporary workspace, nor for a user without a home, and the number is
// bounded.
func TestWhatIsNotNoted(t *testing.T) {
	temp, state := t.TempDir(), t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("TMPDIR", temp)
	if err := Note(workspace.At(filepath.Join(temp, "work")), time.Now()); err != nil {
		t.Error(err)
	}

	t.Setenv("TMPDIR", "/nowhere")
	t.Setenv("XDG_STATE_HOME", os.DevNull)
	if err := Note(workspace.At("/w/a"), time.Now()); err != nil {
		t.Error(err)
	}
	t.Chdir(state)
	if err := os.WriteFile(fileOf("/w/a"), []byte(`{"path":"/w/a"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := List(); err != nil || len(all) > 0 {
		t.Errorf("with nothing noted, listed are %+v %v", all, err)
	}
	if known, err := Forget("/w/a"); err != nil || known {
		t.Errorf("with nothing noted, forgotten: %v %v", known, err)
	}

	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", filepath.Join(temp, "no-home"))
	if err := Note(workspace.At("/w/a"), time.Now()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(temp, "no-home")); err == nil {
		t.Error("a home was made")
	}

	t.Setenv("XDG_STATE_HOME", state)
	if all, err := List(); err != nil || len(all) > 0 {
		t.Errorf("noted are %+v %v", all, err)
	}

	// A folder of the environment that is relative means nothing, and the home counts.
	t.Setenv("HOME", temp)
	t.Setenv("XDG_STATE_HOME", "state")
	if err := Note(workspace.At("/w/a"), time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(temp, ".local", "state", "daycare", "workspaces", fileOf("/w/a"))); err != nil {
		t.Error(err)
	}
}

// A workspace is named by its folder, whichever way it is named.
func TestClean(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for named, want := range map[string]string{"/w/a": "/w/a", "/w/a/": "/w/a", "/w/b/../a/.daycare": "/w/a",
		"a": filepath.Join(dir, "a"), ".": dir, "/w/a.daycare": "/w/a.daycare"} {
		if got, err := Clean(named); err != nil || got != want {
			t.Errorf("%s is %s %v, want %s", named, got, err, want)
		}
	}
}

// Notes are listed by path, and their number is bounded; what is noted already is noted again.
func TestNotesAreBoundedAndInOrder(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("TMPDIR", "/nowhere")
	if err := os.MkdirAll(dir(), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range maxEntries {
		path := fmt.Sprintf("/w/%04d", i)
		if err := os.WriteFile(filepath.Join(dir(), fileOf(path)), fmt.Appendf(nil, `{"path":%q}`, path), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := List()
	if err != nil || len(all) != maxEntries || !slices.IsSortedFunc(all, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) }) {
		t.Errorf("%d are listed, %v, want %d in order", len(all), err, maxEntries)
	}
	if err := Note(workspace.At("/w/new"), time.Now()); err == nil || !strings.Contains(err.Error(), "forget") {
		t.Errorf("one more than there may be: %v", err)
	}
	if err := Note(workspace.At("/w/0007"), time.Now()); err != nil {
		t.Errorf("one that is known: %v", err)
	}
	if known, err := Forget("/w/0008"); !known || err != nil {
		t.Error(known, err)
	}
	if err := Note(workspace.At("/w/new"), time.Now()); err != nil {
		t.Errorf("when there is room: %v", err)
	}
}

// Notes that cannot be read or written are reported, and never taken for none.
func TestNotesThatCannotBeKept(t *testing.T) {
	top := t.TempDir()
	fresh := func(t *testing.T) string {
		dir, err := os.MkdirTemp(top, "")
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	t.Setenv("TMPDIR", "/nowhere")
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		t.Setenv("XDG_STATE_HOME", fresh(t))
		return func() error { return Note(workspace.At("/w/a"), time.Now()) }
	})
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		t.Setenv("XDG_STATE_HOME", fresh(t))
		if err := Note(workspace.At("/w/a"), time.Now()); err != nil {
			t.Fatal(err)
		}
		return func() error {
			known, err := Forget("/w/a")
			if err == nil && !known {
				err = errors.New("it is not known")
			}
			return err
		}
	})
	for _, inTheWay := range []string{"daycare", "daycare/workspaces"} {
		state := fresh(t)
		t.Setenv("XDG_STATE_HOME", state)
		path := filepath.Join(state, inTheWay)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if all, err := List(); err == nil {
			t.Errorf("with a file in the place of %s there are %v", inTheWay, all)
		}
		if err := Note(workspace.At("/w/a"), time.Now()); err == nil {
			t.Errorf("it is noted in a file, %s", inTheWay)
		}
	}
}
