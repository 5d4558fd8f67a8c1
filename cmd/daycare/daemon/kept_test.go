package daemon

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// A place in a chat that a process read is not lost in a power cut, even if the process before it died between the
// new name and its sync: messages after an older place, or those before the first, would be skipped.
func TestAPlaceThatIsReadLasts(t *testing.T) {
	root := t.TempDir()
	d := &Daemon{place: place{at: workspace.OfData(root), vol: disk.NewVolume(root)}}
	u := unlost{hints{d}}
	if _, err := u.Load("matrix", "sync.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of a connector that kept nothing: %v", err)
	}

	path := u.path("matrix", "sync.json")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, _ := d.vol.Stats()
	if data, err := u.Load("matrix", "sync.json"); err != nil || string(data) != "{}" {
		t.Errorf("%q, %v", data, err)
	}
	if after, _ := d.vol.Stats(); after-before != 3 { // the names connectors, matrix and sync.json
		t.Errorf("%d barriers, want 3", after-before)
	}
}
