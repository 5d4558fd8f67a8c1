package disk

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestGlob(t *testing.T) {
	root := filepath.Join(t.TempDir(), "notes [2026] *")
	for _, name := range []string{"a/x/1.json", "a/y/2.json", "a/y/2.txt", "b/3.json", "c.json", "a-/x/4.json"} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	for pattern, want := range map[string][]string{
		"*.json":     {"c.json"},
		"*/*.json":   {"b/3.json"},
		"*/*/*.json": {"a-/x/4.json", "a/x/1.json", "a/y/2.json"},
		"a/*/*":      {"a/x/1.json", "a/y/2.json", "a/y/2.txt"},
		"?":          {"a", "b"},
		"[b-c]*":     {"b", "c.json"},
		"c.json/*":   nil,
		"d/*":        nil,
	} {
		got, err := Glob(root, pattern)
		for i := range got {
			got[i] = filepath.ToSlash(strings.TrimPrefix(got[i], root+string(filepath.Separator)))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", pattern, got, err, want)
		}
	}

	if _, err := Glob(root, "a/["); !errors.Is(err, path.ErrBadPattern) {
		t.Errorf("a pattern that is none: %v", err)
	}
}

// What cannot be read may have anything in it.
func TestGlobReportsWhatItCannotRead(t *testing.T) {
	root := t.TempDir()
	if err := os.Symlink("loop", filepath.Join(root, "loop")); err != nil {
		t.Fatal(err)
	}
	if got, err := Glob(root, "*/*"); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a folder that cannot be read: %v, %v, want the error", got, err)
	}
}
