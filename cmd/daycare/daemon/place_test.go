package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/workspace"
)

// A daemon whose folder is moved while it starts says so, and not what failed first.
func TestAMoveDuringTheStartIsTheReason(t *testing.T) {
	top := t.TempDir()
	work := filepath.Join(top, "work")
	if err := os.MkdirAll(filepath.Join(work, ".daycare"), 0o700); err != nil {
		t.Fatal(err)
	}
	r, err := Open(t.Context(), Options{Place: workspace.At(work)}, slog.LevelError)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(work, filepath.Join(top, "elsewhere")); err != nil {
		t.Fatal(err)
	}
	if err := r.Run(t.Context(), true, "", func() {}); err == nil || !strings.Contains(err.Error(), "was moved") {
		t.Errorf("it ended with: %v", err)
	}
}
