package memory

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"daycare/engine/attacktest"
)

// What is no note is neither found nor changed, and holds nobody up.
func TestHostileNotes(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "secret.md")
	for name, plant := range map[string]func(path string) error{
		"link":      func(path string) error { return os.Symlink(outside, path) },
		"hard link": func(path string) error { return os.Link(outside, path) },
		"pipe":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"folder":    func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := errors.Join(os.RemoveAll(outside), os.WriteFile(outside, []byte("TOP-SECRET"), 0o600),
				plant(filepath.Join(dir, "note.md"))); err != nil {
				t.Fatal(err)
			}
			s := newStore(dir)
			if hits, err := s.search("TOP SECRET", 5); err != nil || len(hits) > 0 {
				t.Errorf("found %v, %v", hits, err)
			}

			_, _, err := s.change("note.md", func(old string) string { return old + "more" })
			data, rerr := os.ReadFile(outside)
			if err == nil || rerr != nil || string(data) != "TOP-SECRET" {
				t.Errorf("changed: %v; the file outside is %q, %v", err, data, rerr)
			}
			if err != nil && strings.Contains(err.Error(), "TOP") {
				t.Error(err)
			}

			attacktest.Held(t, attacktest.Row{Class: "prompts, skills, memory",
				How: "opened as a plain file, or not at all", Name: "note: " + name})
		})
	}

	attacktest.AsUser(t)
}
