package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Folders of probes that a kill ended are removed by a later probe; one that may still be in use
// and what is not a folder of a probe stay.
func TestLeftoversOfProbesAreRemoved(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	ages := map[string]time.Duration{"daycare-probe-1": 2 * probeOld, "daycare-probe-2": probeOld / 2, "other": 2 * probeOld}
	for name, age := range ages {
		if err := os.MkdirAll(filepath.Join(dir, name, "workspace", "hidden"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name), now, now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "other"), filepath.Join(dir, "daycare-probe-3")); err != nil {
		t.Fatal(err)
	}

	sweepProbes(dir, now)
	var left []string
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if want := []string{"daycare-probe-2", "daycare-probe-3", "other"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %q, %v, want %q", left, err, want)
	}
}

// A long path of the folder for temporary files takes no sandbox away: the bait's socket is where it fits. Where it does
// not, making the bait says so.
func TestProbeWithALongTemporaryFolder(t *testing.T) {
	long := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := newBait(long); err == nil {
		t.Error("a socket was made whose path is too long")
	}

	usual, err := Choose("auto", self(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", long)
	if r, err := Choose("auto", self(t)); err != nil || r.Level != usual.Level || r.Why != usual.Why {
		t.Errorf("it is %+v, %v, and without a long path %+v", r, err, usual)
	}
}
