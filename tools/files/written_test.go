package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"daycare/engine/changes"
	"daycare/engine/disk"
	"daycare/engine/permission"
	"daycare/engine/workspace"
	"daycare/tools"
)

// What a tool writes, changes and removes is noted before; where that fails nothing changes.
func TestWritesAreNoted(t *testing.T) {
	w := newWorld(t)
	var noted []changes.Written
	var full error
	for _, tool := range New(Options{Data: filepath.Join(w.ws, ".daycare"), Home: w.home, Folders: w.folders,
		Written: func(who string, one changes.Written, before, after []byte) error {
			if who != agent || one.Folder != w.ws || changes.StateOf(after, one.After.Mode) != one.After && !one.After.Missing() {
				t.Errorf("%s wrote %+v", who, one)
			}
			if disk.Exists(one.File()) && w.content(one.Path) != string(before) {
				t.Errorf("%s was noted after it changed", one.Path)
			}
			noted = append(noted, one)
			return full
		}}) {
		w.tools[tool.Spec().Name] = tool
	}
	w.file("old.txt", "one\ntwo\n")
	w.file("gone.txt", "x\n")
	w.want(w.call("write", map[string]any{"path": "deep/er/new.txt", "content": "new\n"}), tools.OK, "created")
	w.want(w.call("read", map[string]any{"path": "old.txt"}), tools.OK)
	w.want(w.call("edit", map[string]any{"path": "old.txt", "old": "two", "new": "TWO"}), tools.OK, "changed line 2")
	w.want(w.call("apply_patch", patchOf("*** Delete File: gone.txt")), tools.OK, "deleted")
	if len(noted) != 3 || noted[0].Path != "deep/er/new.txt" || !noted[0].Before.Missing() || noted[1].Path != "old.txt" ||
		noted[1].Before.Missing() || noted[2].Path != "gone.txt" || !noted[2].After.Missing() {
		t.Errorf("noted is %+v", noted)
	}
	must(t, os.Chmod(w.file("run.sh", "x\n"), 0o757))
	w.want(w.call("write", map[string]any{"path": "run.sh", "content": "y\n"}), tools.OK)
	info, err := os.Stat(filepath.Join(w.ws, "run.sh"))
	if err != nil || info.Mode().Perm() != 0o757 || noted[len(noted)-1].After.Mode != 0o757 {
		t.Errorf("its mode is %v, %v; noted is %v", info.Mode(), err, noted[len(noted)-1].After.Mode)
	}
	full = errors.New("the disk is full")
	w.want(w.call("write", map[string]any{"path": "late.txt", "content": "x"}), tools.Failed, "what it holds now cannot be kept")
	if disk.Exists(filepath.Join(w.ws, "late.txt")) {
		t.Error("it was written all the same")
	}
}

// In a dry run paths of the workspace are those of its copy, and nothing else is written, whatever was granted.
func TestADryRunWritesInItsCopy(t *testing.T) {
	w := newWorld(t)
	t.Setenv("XDG_STATE_HOME", filepath.Join(w.home, "state"))
	w.file("a.txt", "one\n")
	w.file(filepath.Join(w.outside, "b.txt"), "one\n")
	made, err := changes.Make(t.Context(), workspace.At(w.ws), w.ws, agent, disk.StampOf(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	w.access.Profile, w.access.WorkingDir = permission.DryRun, made.Tree()
	w.access.WriteDirs = []string{w.ws, w.outside}
	w.want(w.call("write", map[string]any{"path": filepath.Join(w.ws, "a.txt"), "content": "two\n"}), tools.OK, "overwrote a.txt")
	w.want(w.call("read", map[string]any{"path": filepath.Join(w.ws, "a.txt")}), tools.OK, "two")
	w.want(w.call("write", map[string]any{"path": filepath.Join(w.outside, "b.txt"), "content": "two\n"}), tools.Denied,
		"outside the folders")
	if w.content("a.txt") != "one\n" || w.content(filepath.Join(w.outside, "b.txt")) != "one\n" {
		t.Error("a file outside of the copy was written")
	}
	if data, err := os.ReadFile(filepath.Join(made.Tree(), "a.txt")); err != nil || string(data) != "two\n" {
		t.Error(string(data), err)
	}
}
