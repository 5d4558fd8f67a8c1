package inbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// What an item names in the workspace is stored by its place there, and found where the
// workspace lies now.
func TestItemsMoveWithTheirWorkspace(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	folder := func(ws string) string {
		dir := filepath.Join(ws, ".daycare", "agents", strings.Repeat("a", 24))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	open := func(dir string) *inbox.File {
		f, _, err := inbox.Open(disk.NewVolume(dir), dir, nil, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	from, to := folder(one), folder(two)
	r, err := open(from).Accept(t.Context(),
		inbox.Item{Kind: message.Permission, Token: "t", Decision: "always", Tag: "@write:" + filepath.Join(one, "docs"),
			Files: []message.File{{ID: "f", Name: "n", Path: filepath.Join(one, ".daycare", "files", "f__n")}}})
	if err != nil {
		t.Fatal(err)
	}

	raw, err := os.ReadFile(filepath.Join(from, inbox.FileName))
	if err != nil || strings.Contains(string(raw), one) {
		t.Errorf("%v: whole paths are stored: %s", err, raw)
	}
	if err := os.WriteFile(filepath.Join(to, inbox.FileName), raw, 0o600); err != nil {
		t.Fatal(err)
	}

	for ws, dir := range map[string]string{one: from, two: to} {
		it, err := open(dir).Read(r.Item)
		if want := "@write:" + filepath.Join(ws, "docs"); err != nil || it.Tag != want ||
			it.Files[0].Path != filepath.Join(ws, ".daycare", "files", "f__n") {
			t.Errorf("%+v, %v: want paths in %s", it, err, ws)
		}
	}
}
