package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"daycare/engine/address"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// Looking at a workspace whose files cannot all be read reports each of them, and the rest.
func TestFilesThatCannotBeReadAreReportedBesideTheOthers(t *testing.T) {
	work := t.TempDir()
	root := filepath.Join(work, ".daycare")
	shut := filepath.Join(root, "agents", "tz4a98xxat96iws9zmbrgj3a", "state.json")
	unread := []string{shut, filepath.Join(root, "cron/a/TASK.md"), filepath.Join(root, "heartbeat/b.md")}
	for i, path := range unread {
		if i == 2 { // a folder is not an item of the heartbeat
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("b.md", path); err != nil {
				t.Fatal(err)
			}
		} else if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	broken := filepath.Join(root, "cron/c/TASK.md")
	for path, content := range map[string]string{broken: "no schedule",
		filepath.Join(filepath.Dir(shut), address.File): `{"id":"tz4a98xxat96iws9zmbrgj3a",` +
			`"type":"permanent","name":"ops","createdAt":"2026-11-20T12:00:00Z"}`} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	r, err := openFiles(t.Context(), workspace.At(work), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer r.close()
	if err := r.lookAtAll(); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, p := range r.problems.All() {
		if p.Severity == finding.Error {
			files = append(files, p.File)
		}
	}
	for _, path := range append(unread, broken) {
		if !slices.Contains(files, path) {
			t.Errorf("%s is not reported", path)
		}
	}
	if t.Failed() {
		t.Logf("reported are %v", r.problems.All())
	}
}
