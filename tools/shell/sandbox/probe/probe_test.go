package probe

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"daycare/tools/shell/sandbox"
)

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The probe must see that nothing holds, where nothing does: else it proves nothing
// where something should.
func TestProbeFindsEscapes(t *testing.T) {
	err := probe(sandbox.Plain(self(t)))
	if err == nil {
		t.Fatal("without a sandbox the probe found no way out")
	}

	for _, way := range []string{"read beside the workspace", "read what is hidden", "write beside the workspace",
		"signal the daemon", "connect to a TCP port", "connect to a unix socket", "a datagram arrived", "a file was written outside"} {
		if !strings.Contains(err.Error(), way) {
			t.Errorf("the probe did not find %q: %v", way, err)
		}
	}
}

func TestChoose(t *testing.T) {
	r, err := Choose("auto", self(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %s", r.Level, r.Why)
	if _, err := Choose("nonsense", self(t)); !errors.Is(err, sandbox.ErrUnusable) {
		t.Errorf("a level that does not exist: %v", err)
	}
	if r, err := Choose("auto", "/nonexistent"); err != nil || r.Level != sandbox.None || r.Why == "" {
		t.Errorf("without a helper: %+v %v", r, err)
	}
}

// The whole machine can be granted: its links to /usr are there then, and its processes
// are not.
func TestEverythingGranted(t *testing.T) {
	for _, level := range []string{"bwrap", "landlock"} {
		t.Run(level, func(t *testing.T) {
			r, err := Choose(level, self(t))
			if err != nil {
				t.Skipf("SKIPPED: %v", err)
			}

			for name, v := range map[string]sandbox.View{"read": {Read: []string{"/"}}, "write": {Write: []string{"/"}}} {
				v.Dir, v.Home = "/", t.TempDir()
				l, err := r.Wrap(v, []string{"/bin/sh", "-c",
					"ls -d /bin /usr/bin; test ! -d /proc/" + strconv.Itoa(os.Getpid()) + " || echo shown"}, []string{"PATH=/usr/bin:/bin"})
				if err != nil {
					t.Fatal(err)
				}
				p, err := newProcess(r, l)
				if err != nil {
					t.Fatal(err)
				}
				defer p.close()
				out, err := p.CombinedOutput()
				if err != nil || string(out) != "/bin\n/usr/bin\n" {
					t.Errorf("%s: %v, %q", name, err, out)
				}
			}
		})
	}
}

// At the level landlock the helper makes namespaces where the system lets it; without
// them the level is what the kernel's Landlock alone is.
func TestLandlockWithAndWithoutNamespaces(t *testing.T) {
	r, err := Choose("landlock", self(t))
	if err != nil {
		t.Skipf("SKIPPED: %v", err)
	}
	t.Logf("view %v: %s", r.HasView(), r.Why)
	alone := r.WithoutNamespaces()
	if alone.HasView() || alone.Proxied() {
		t.Error("without namespaces there is no view")
	}
	if err := probe(alone); err != nil {
		t.Error(err)
	}
}

// Folders of probes that a kill ended are removed by a later probe; one that may still be in use
// and what is not a folder of a probe stay.
func TestLeftoversOfProbesAreRemoved(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	ages := map[string]time.Duration{"daycare-probe-1": 2 * old, "daycare-probe-2": old / 2, "other": 2 * old}
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

	sweep(dir, now)
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
