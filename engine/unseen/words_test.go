package unseen

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// A change that waits is told with what happened, whose command ran, and what to do.
func TestWhatIsSaidOfAChange(t *testing.T) {
	old := "old"
	for name, tt := range map[string]struct {
		c              Change
		reason, remedy []string
		not            string
	}{
		"changed": {Change{Agent: "mole", Before: &old}, []string{"it changed", "agent mole", "the old text"},
			[]string{"touch /ws/AGENTS.md", "restore the old text", ".daycare/unseen"}, "delete it"},
		"made": {Change{Agent: "mole"}, []string{"it appeared", "agent mole", "ignore it"},
			[]string{"touch /ws/AGENTS.md", "delete it"}, "restore"},
		"removed": {Change{Agent: "mole", Removed: true, Before: &old}, []string{"it was removed", "agent mole", "the old text"},
			[]string{"restore the text", ".daycare/unseen", "restart daycare"}, "touch"},
	} {
		f := tt.c.Finding("/ws/AGENTS.md")
		for _, word := range tt.reason {
			if !strings.Contains(f.Reason, word) {
				t.Errorf("%s: the reason %q does not say %q", name, f.Reason, word)
			}
		}

		for _, word := range tt.remedy {
			if !strings.Contains(f.Remedy, word) {
				t.Errorf("%s: the remedy %q does not say %q", name, f.Remedy, word)
			}
		}
		if strings.Contains(f.Remedy, tt.not) || f.File != "/ws/AGENTS.md" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// What waits is kept by a name that is right wherever the workspace lies, with all that is
// known of it, and is gone once it was seen.
func TestWhatIsKeptOfAChange(t *testing.T) {
	g := newGround(t)
	outside := filepath.Join(t.TempDir(), "RULES.md")
	g.write("old")
	g.used()
	g.Use(outside, []byte("old"), nil)
	ended := g.Began("mole")
	g.write("evil")
	g.used()
	info, err := os.Stat(g.path)
	if err != nil {
		t.Fatal(err)
	}
	g.Use(outside, []byte("evil"), info)
	ended()
	kept := func() map[string]Change {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(g.ws, ".daycare", Dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]Change{}
		for _, file := range files {
			var c Change
			data, err := os.ReadFile(file)
			if err == nil {
				err = json.Unmarshal(data, &c)
			}
			if err != nil || !strings.HasSuffix(string(data), "}\n") {
				t.Fatalf("%s holds %s: %v", file, data, err)
			}
			all[c.Path] = c
		}
		return all
	}
	list := kept()
	c, other := list["AGENTS.md"], list[outside]
	if len(list) != 2 || c.Agent != "mole" || c.Before == nil || *c.Before != "old" || c.SHA256 != sum([]byte("evil")) || c.Removed ||
		time.Since(c.At) > time.Hour || other.Before != nil {
		t.Errorf("kept is %+v", list)
	}
	// A copy of the workspace knows of it under the new path.
	moved := t.TempDir()
	if err := os.CopyFS(moved, os.DirFS(g.ws)); err != nil {
		t.Fatal(err)
	}
	texts, err := Open(nil, workspace.At(moved))
	if err != nil {
		t.Fatal(err)
	}
	waits := texts.Waiting()
	if waits[filepath.Join(moved, "AGENTS.md")] == nil || waits[outside] == nil || len(waits) != 2 {
		t.Errorf("in a copy wait %v", waits)
	}
	clear(waits)
	if n := len(texts.Waiting()); n != 2 {
		t.Errorf("who asks for the list changes it: %d are left", n)
	}
	copied := &ground{t: t, ws: moved, path: filepath.Join(moved, "AGENTS.md")}
	copied.restart()
	copied.save("mine")
	copied.want("seen in the copy", "mine")
	if left, err := filepath.Glob(filepath.Join(moved, ".daycare", Dir, "*")); err != nil || len(left) != 1 {
		t.Errorf("in the copy are left %q, %v", left, err)
	}
	g.save("mine")
	g.want("seen", "mine")
	if list := kept(); len(list) != 1 {
		t.Errorf("after it was seen are kept %+v", list)
	}
}

// Who only looks writes nothing.
func TestWhoLooksWritesNothing(t *testing.T) {
	g := newGround(t)
	var err error
	if g.Texts, err = Open(nil, workspace.At(g.ws)); err != nil {
		t.Fatal(err)
	}
	g.write("old")
	g.used()
	ended := g.Began("mole")
	g.write("evil")
	g.want("while it runs", "old!")
	ended()
	g.save("mine")
	g.want("seen", "mine")
	if _, err := os.Stat(filepath.Join(g.ws, ".daycare", Dir)); !os.IsNotExist(err) {
		t.Errorf("something was written: %v", err)
	}
}

// A command that cannot change a folder cannot have changed what is in it.
func TestWhatACommandCannotHaveChanged(t *testing.T) {
	for safe, waits := range map[string]bool{".": false, "AGENTS.md": false, "sub": true, "AGENTS": true, "..": false} {
		g := newGround(t)
		g.write("old")
		g.used()
		ended := g.Began("mole", filepath.Join(g.ws, "other"), filepath.Join(g.ws, safe))
		g.write("new")
		want := "new"
		if waits {
			want = "old!"
		}
		g.want("safe is "+safe, want)
		ended()
	}
}

// A file that was never there and is not there now is not a change, and one that was not looked
// at before is kept back all the same.
func TestWhatWasNeverLookedAt(t *testing.T) {
	g := newGround(t)
	ended := g.Began("mole")
	g.want("nothing", "-")
	ended()
	g = newGround(t)
	g.write("new")
	ended = g.Began("mole")
	g.want("never looked at", "-!")
	ended()
}

// A touch alone is how its owner says that they have seen it.
func TestATouchIsEnough(t *testing.T) {
	g := newGround(t)
	g.write("old")
	g.used()
	ended := g.Began("mole")
	g.write("evil")
	g.want("while it runs", "old!")
	ended()
	g.want("not touched", "old!")
	g.save("evil")
	g.want("touched", "evil")
}

// Whoever restores the text of before has dropped the change.
func TestTheTextOfBeforeDropsTheChange(t *testing.T) {
	g := newGround(t)
	g.write("old")
	g.used()
	ended := g.Began("mole")
	g.write("evil")
	g.want("while it runs", "old!")
	ended()
	g.save("old")
	if g.want("restored", "old"); len(g.Waiting()) != 0 {
		t.Error("the change still waits")
	}
}

// Only what it wrote itself is read, and what cannot be read says so.
func TestWhatIsReadOfTheFolder(t *testing.T) {
	g := newGround(t)
	dir := filepath.Join(g.ws, ".daycare", Dir)
	if err := os.MkdirAll(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}

	for _, name := range []string{"notes.txt", ".tmp-x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if texts, err := Open(nil, workspace.At(g.ws)); err != nil || len(texts.Waiting()) != 0 {
		t.Errorf("files of others are read: %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(disk.NewVolume(g.ws), workspace.At(g.ws)); err == nil {
		t.Error("a file in the place of the folder is taken for an empty one")
	}
}
