package engine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/address"
	"daycare/engine/crash"
)

// A long message between agents is a file, and the short one that names it is accepted
// only when the file survives a power cut. Told again, as after a crash, it is never
// away, whatever the moment of a crash. Failpoints are set for a whole process, so a
// child writes it.
func TestALongMessageIsDurableAndNeverAway(t *testing.T) {
	const variable, name = "ENGINE_TEST_WORKSPACE", "x.md"
	text := strings.Repeat("long ", 2_000)
	if workspace := os.Getenv(variable); workspace != "" {
		if err := writeBeneath(openRoot(t, workspace), spillDir, name, text); err != nil {
			t.Fatal(err)
		}
		return
	}

	child := func(workspace, env string) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestALongMessageIsDurableAndNeverAway$")
		cmd.Env = append(os.Environ(), variable+"="+workspace, env)
		if out, err := cmd.CombinedOutput(); (err != nil) != strings.Contains(env, "kill@") {
			t.Fatalf("%s: %v\n%s", env, err, out)
		}
	}
	workspace, mirrored := t.TempDir(), t.TempDir()
	child(workspace, "DAYCARE_FAILPOINT_MIRROR="+mirrored)
	mirror := crash.OpenMirror(mirrored)
	dir := workspace
	for _, name := range []string{spillDir, name} {
		id, err := crash.FileID(dir)
		if err != nil {
			t.Fatal(err)
		}
		if names, err := mirror.Names(id); err != nil || names[name].ID == "" {
			t.Errorf("the name %s is not durable: %v", name, err)
		}
		dir = filepath.Join(dir, name)
	}

	if id, err := crash.FileID(dir); err != nil {
		t.Error(err)
	} else if data, err := os.ReadFile(mirror.Path(id)); err != nil || string(data) != text {
		t.Errorf("%d bytes are durable, want %d: %v", len(data), len(text), err)
	}

	for _, step := range []string{"dirsync#1", "write#1:50", "sync#1", "rename#1", "rename#1:100", "dirsync#2"} {
		child(workspace, "DAYCARE_FAILPOINT=kill@told."+step)
		if data, err := os.ReadFile(dir); err != nil || string(data) != text {
			t.Errorf("after a death at %s there are %d bytes, want %d: %v", step, len(data), len(text), err)
		}
	}
}

// Without a workspace there is no place for a long message, which is an error and no file somewhere else.
func TestALongMessageWithoutAWorkspace(t *testing.T) {
	h := newHouse(t, t.TempDir(), idle)
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	f := NewFamily(h.System, func() Limits { return Limits{} })
	err = f.Note(t.Context(), a.ID, "other", "key", strings.Repeat("long ", maxSystemText))
	if err == nil || !strings.Contains(err.Error(), "which workspace") {
		t.Errorf("%v, want that the workspace is not known", err)
	}
}
