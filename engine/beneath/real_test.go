package beneath

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRealResolvesWhatExists(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(top, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}

	for name, to := range map[string]string{"link": "dir", "dangling": "nowhere", "round": "round"} {
		if err := os.Symlink(to, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}

	for path, want := range map[string]string{
		"dir": "dir", "link": "dir", "link/new/file": "dir/new/file", "missing/../link": "dir", "dir/./x": "dir/x",
		"dangling": "dangling", "dangling/x": "dangling/x", "round": "round", "missing/deep": "missing/deep",
	} {
		if got := Real(filepath.Join(top, path)); got != filepath.Join(top, want) {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}

	if got := Real("/"); got != "/" {
		t.Errorf("the root is %s", got)
	}
}
