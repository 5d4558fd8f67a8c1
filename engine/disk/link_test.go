package disk

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A link stays a link: what it leads to is written, or nothing is.
func TestExchangeThroughLinks(t *testing.T) {
	base := t.TempDir()
	root, elsewhere, workspace := filepath.Join(base, "work", ".daycare"), filepath.Join(base, "dotfiles"), filepath.Join(base, "work")
	for _, dir := range []string{root, elsewhere} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}

	v := NewVolume(root)
	for name, tt := range map[string]struct {
		target string
		make   func(string) error
		writes bool
	}{
		"elsewhere": {filepath.Join(elsewhere, "state.json"),
			func(p string) error { return os.WriteFile(p, []byte("old"), 0o600) }, true},
		"in root": {filepath.Join(root, "shared.json"), func(p string) error { return os.WriteFile(p, []byte("old"), 0o600) }, true},
		"agents' reach": {filepath.Join(workspace, "state.json"),
			func(p string) error { return os.WriteFile(p, []byte("old"), 0o600) }, false},
		"nothing":  {filepath.Join(elsewhere, "none"), func(string) error { return nil }, false},
		"a folder": {filepath.Join(elsewhere, "folder"), func(p string) error { return os.Mkdir(p, 0o700) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			link := filepath.Join(root, "state.json")
			if err := errors.Join(tt.make(tt.target), os.Symlink(tt.target, link)); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(link)
			_, err := v.Exchange("state", link, []byte("new"), []byte("old"))
			if tt.writes != (err == nil) || !tt.writes && !errors.Is(err, ErrLink) {
				t.Errorf("error %v, want writing %v", err, tt.writes)
			}
			if to, err := os.Readlink(link); err != nil || to != tt.target {
				t.Errorf("the link is %q, %v", to, err)
			}
			if data, _ := os.ReadFile(tt.target); tt.writes && string(data) != "new" || !tt.writes && string(data) == "new" {
				t.Errorf("the file holds %q", data)
			}
			if found, err := v.Exchange("state", link, []byte("newer"), []byte("what it was")); tt.writes &&
				(!errors.Is(err, ErrChanged) || string(found) != "new") {
				t.Errorf("a save in between: %q, %v", found, err)
			}
		})
	}

	left, err := filepath.Glob(filepath.Join(elsewhere, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
