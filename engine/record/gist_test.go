package record

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/permission"
	"daycare/engine/workspace"
)

// gistOf is what is remembered of a state.json that was left alone for long.
func gistOf(t *testing.T, g *Gists, dir string) Gist {
	t.Helper()
	got, err := g.Of(nil, dir)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A state.json that was changed in any way counts at the next look, also where what was remembered of
// the one before has the same size and the same time of writing.
func TestAGistIsOfTheFileAsItIs(t *testing.T) {
	plan, auto := State{}, State{}
	plan.Permissions.Profile, auto.Permissions.Profile = permission.Planning, permission.Auto
	for name, edit := range map[string]func(path string, content []byte) error{
		"in place": func(path string, content []byte) error { return os.WriteFile(path, content, 0o600) },
		"renamed": func(path string, content []byte) error {
			return errors.Join(os.WriteFile(path+".new", content, 0o600), os.Rename(path+".new", path))
		},
		"with the time of before": func(path string, content []byte) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			return errors.Join(os.WriteFile(path, content, 0o600), os.Chtimes(path, info.ModTime(), info.ModTime()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, stateName)
			before, err := EncodeState(workspace.At(dir), plan)
			after, aerr := EncodeState(workspace.At(dir), auto)
			if err = errors.Join(err, aerr, os.WriteFile(path, before, 0o600)); err != nil || len(before) != len(after) {
				t.Fatal(err, len(before), len(after))
			}
			var g Gists
			for range 3 { // the first looks come too early for anything to be remembered
				if got := gistOf(t, &g, dir); got.Profile != permission.Planning {
					t.Fatalf("found %q", got.Profile)
				}
				time.Sleep(beneath.Tick)
			}
			if len(g.known) != 1 {
				t.Fatal("nothing is remembered")
			}
			if n := testing.AllocsPerRun(10, func() { gistOf(t, &g, dir) }); n > 10 {
				t.Errorf("a look at a file that is as before takes %v allocations: it is read again", n)
			}
			if err := edit(path, after); err != nil {
				t.Fatal(err)
			}
			if got := gistOf(t, &g, dir); got.Profile != permission.Auto {
				t.Errorf("found %q, want the edited one", got.Profile)
			}
		})
	}
}

// Two changes within a tick of the file system's clock may look the same: the second counts, too.
func TestAGistOfAFileThatWasJustWrittenIsNotRemembered(t *testing.T) {
	dir := t.TempDir()
	var g Gists
	for i := range 50 {
		profile := []permission.Profile{permission.Planning, permission.Auto}[i%2]
		content := strings.Replace(`{"permissions":{"profile":"X"}}`, "X", string(profile), 1)
		if err := os.WriteFile(filepath.Join(dir, stateName), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := gistOf(t, &g, dir); got.Profile != profile {
			t.Fatalf("edit %d: found %q, want %q", i, got.Profile, profile)
		}
	}
}

// What is missing or broken is looked at each time, and is what CurrentState says it is.
func TestAGistOfNoGoodFileIsNotRemembered(t *testing.T) {
	dir := t.TempDir()
	vol, path := disk.NewVolume(dir), filepath.Join(dir, stateName)
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * beneath.Tick)
	}
	var g Gists
	write(`{"permissions":{},"budget":{"usd":2}}`)
	for _, content := range []string{"", `{"permissions":{},"budget":{"usd":"two"}}`} {
		for range 2 {
			if got, err := g.Of(vol, dir); err != nil || got.Budget.USD != 2 {
				t.Errorf("%q: found %+v, %v; want the last good budget", content, got, err)
			}
		}
		write(content)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got, err := g.Of(vol, dir); err != nil || got.Budget.USD != 2 {
		t.Errorf("without the file: %+v, %v; want the budget to stay", got, err)
	}
	write(`{"permissions":{},"budget":{"usd":3}}`)
	if got := gistOf(t, &g, dir); got.Budget.USD != 3 {
		t.Errorf("the file is good again, and %+v is remembered", got)
	}
}
