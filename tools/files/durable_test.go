package files

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"daycare/engine/crash"
	"daycare/tools"
)

// What a tool said it wrote, moved or removed is so after a power cut: the names are
// synced, too. A child with a mirror of what is durable does it, because the mirror is
// set for a whole process.
func TestWrittenFilesSurviveAPowerCut(t *testing.T) {
	const variable = "FILES_TEST_WORKSPACE"
	if os.Getenv(variable) != "" {
		w := newWorld(t)
		w.want(w.call("write", a{"path": "new/deep/a.txt", "content": "a"}), tools.OK)
		w.want(w.call("write", a{"path": "old.txt", "content": "moved\n"}), tools.OK)
		w.want(w.call("apply_patch", a{"patch": "*** Begin Patch\n*** Update File: old.txt\n*** Move to: " +
			"moved/b.txt\n@@\n-moved\n+b\n*** End Patch\n"}), tools.OK)
		check(t, w.ws)
		return
	}

	cmd := exec.Command(os.Args[0], "-test.run=^TestWrittenFilesSurviveAPowerCut$")
	cmd.Env = append(os.Environ(), variable+"=1", "DAYCARE_FAILPOINT_MIRROR="+t.TempDir())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// check holds what is durable against what was done.
func check(t *testing.T, ws string) {
	t.Helper()
	mirror := crash.OpenMirror(os.Getenv("DAYCARE_FAILPOINT_MIRROR"))
	names := func(dir string) map[string]crash.Name {
		t.Helper()
		id, err := crash.FileID(filepath.Join(ws, dir))
		if err != nil {
			t.Fatal(err)
		}
		all, err := mirror.Names(id)
		if err != nil {
			t.Fatal(err)
		}

		return all
	}
	for file, content := range map[string]string{"new/deep/a.txt": "a", "moved/b.txt": "b\n"} {
		for dir, base := filepath.Dir(file), filepath.Base(file); ; dir, base = filepath.Dir(dir), filepath.Base(dir) {
			if _, ok := names(dir)[base]; !ok {
				t.Errorf("the name of %s in %s is not durable", base, dir)
			}
			if dir == "." {
				break
			}
		}
		kept := names(filepath.Dir(file))[filepath.Base(file)]
		if data, err := os.ReadFile(mirror.Path(kept.ID)); err != nil || string(data) != content {
			t.Errorf("%s holds %q after a power cut, want %q: %v", file, data, content, err)
		}
	}

	if _, ok := names(".")["old.txt"]; ok {
		t.Error("old.txt is there again after a power cut")
	}
}
