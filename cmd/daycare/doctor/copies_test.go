package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/changes"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// gc lists the copies of dry runs whose agent is gone, halves that a crash left, and what agents wrote long ago;
// doctor says what of them it finds.
func TestCopiesThatNobodyCanApply(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	home := filepath.Join(dir, ".daycare")
	for _, path := range []string{filepath.Join(home, "agents", "stays"), filepath.Join(dir, "src")} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	day := 24 * time.Hour
	made := func(agent string, age time.Duration) changes.Copy {
		t.Helper()
		c, err := changes.Make(t.Context(), workspace.At(dir), filepath.Join(dir, "src"), agent, disk.StampOf(now.Add(-age)))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	made("stays", 60*day)
	gone, young := made("gone", 60*day), made("gone", day)
	half := filepath.Join(filepath.Dir(gone.Dir), ".new-half")
	if err := os.MkdirAll(filepath.Join(half, "tree"), 0o500); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(half, now, now.Add(-60*day)); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(filepath.Dir(gone.Dir), "broken")
	if err := os.MkdirAll(broken, 0o700); err != nil {
		t.Fatal(err)
	}

	old, state := changes.StateOf([]byte("old"), 0o644), changes.StateOf([]byte("new"), 0o644)
	store := changes.Undo(disk.NewVolume(home), filepath.Join(home, "agents", "stays"))
	note := func(age time.Duration, before, after changes.State, was, is string) {
		t.Helper()
		w := changes.Written{At: disk.StampOf(now.Add(-age)), Turn: "t", Call: "c", Folder: dir, Path: "a", Before: before, After: after}
		if err := store.Note(w, []byte(was), []byte(is)); err != nil {
			t.Fatal(err)
		}
	}
	note(60*day, changes.State{}, old, "", "old")
	note(50*day, old, state, "old", "new")
	note(day, state, changes.State{}, "new", "")
	blob := func(s changes.State) string { return filepath.Join(store.Dir, "blobs", s.SHA256) }
	for _, s := range []changes.State{old, state} {
		if err := os.Chtimes(blob(s), now, now.Add(-50*day)); err != nil {
			t.Fatal(err)
		}
	}

	look := func(held bool) string {
		t.Helper()
		g := collector{at: workspace.OfData(home), ages: config.Default().Retention, now: now, held: held}
		if err := g.look(); err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, one := range g.found {
			found = append(found, one.Path)
			if !held {
				if err := one.remove(one.Path); err != nil {
					t.Error(err)
				}
			}
		}
		return strings.Join(found, " ")
	}
	if found := look(true); strings.Contains(found, blob(old)) {
		t.Errorf("a write may begin that needs it: %s", found)
	}
	found := look(false)
	for _, want := range []string{gone.Dir, half, blob(old)} {
		if !strings.Contains(found, want) {
			t.Errorf("%s is missing in %s", want, found)
		}
	}
	if strings.Contains(found, young.Dir) || strings.Contains(found, blob(state)) {
		t.Errorf("what is needed was found, too: %s", found)
	}
	if found = look(false); found != "" {
		t.Errorf("still there: %s", found)
	}

	d, err := examine(workspace.At(dir))
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]int{}
	for _, one := range d.ailments {
		ids[one.ID]++
	}
	if ids["copy-orphaned"] != 1 || ids["copy-unreadable"] != 1 || ids["copy-unfinished"] != 0 {
		t.Errorf("doctor finds %v", ids)
	}

	// A state folder that is no folder is one finding, and doctor looks at everything else.
	t.Setenv("XDG_STATE_HOME", filepath.Join(gone.Dir, "copy.json"))
	if err := os.MkdirAll(gone.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(gone.Dir, "copy.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err = examine(workspace.At(dir)); err != nil {
		t.Fatal(err)
	}
	unlisted := func(f control.Ailment) bool { return strings.Contains(f.Reason, "list copies: ") }
	if !slices.ContainsFunc(d.checkup().Findings, unlisted) {
		t.Errorf("where copies cannot be listed doctor finds %+v", d.checkup().Findings)
	}
}
