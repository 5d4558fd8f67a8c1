package backup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"daycare/engine/workspace"
)

// A backup that finds no room for what it copies at its moment says so, and writes nothing.
func TestABackupWithoutRoomForItsCopies(t *testing.T) {
	root := filled(t, map[string]string{"script.yaml": strings.Repeat("x", 512<<10)})
	dir := filepath.Join(root, home)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("daycare-test", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("SKIPPED, not shown here: a small file system cannot be mounted: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	put := func(name string, size int) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte("x"), size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("settings.yaml", 10)
	same := func(b []byte) ([]byte, error) { return b, nil }
	for name, o := range map[string]Options{
		"a file that is named":    {Named: []string{"script.yaml"}, Scrub: same},
		"settings without tokens": {Scrub: func([]byte) ([]byte, error) { return make([]byte, 512<<10), nil }},
		"a file of its own":       {Scrub: same, Version: "1"},
	} {
		if o.Version != "" {
			put("memory.md", 150<<10)
		}
		o.Place = workspace.At(root)
		var b bytes.Buffer
		if err := Write(t.Context(), &b, o); !errors.Is(err, syscall.ENOSPC) || b.Len() > 0 {
			t.Errorf("%s: %d bytes, %v", name, b.Len(), err)
		}
		if o.Version != "" {
			if err := os.Remove(filepath.Join(dir, "memory.md")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if h, err := Verify(bytes.NewReader(written(t, Options{Place: workspace.At(root)}))); err != nil || h.Files != 1 {
		t.Errorf("with room for all: %+v, %v", h, err)
	}
}
