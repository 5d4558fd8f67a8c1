package disk

import (
	"os"
	"path/filepath"
	"testing"
)

// After a power cut between the halves of a rename a draft can have two names. The next
// one replaces it in one step all the same, and leaves one name.
func TestADraftWithTwoNamesIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	path, other := filepath.Join(dir, "SYSTEM.md"), filepath.Join(dir, "other")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, second := range []string{filepath.Join(dir, tempPrefix+"SYSTEM.md"), other} {
		if err := os.Link(path, second); err != nil {
			t.Fatal(err)
		}
	}

	if err := NewVolume(dir).WriteDraft("draft", path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{path: "new", other: "old"} {
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v, want %q", filepath.Base(name), got, err, want)
		}
	}

	if left, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*")); err != nil || len(left) > 0 {
		t.Errorf("%q are left, %v", left, err)
	}
}
