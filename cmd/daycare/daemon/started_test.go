package daemon

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"daycare/cmd/daycare/commandtest"
	"daycare/engine/workspace"
)

// started is a daemon of a workspace that runs until the test ends.
func started(t *testing.T, dir string) *Daemon {
	t.Helper()
	r, err := Open(t.Context(), Options{Place: workspace.At(dir)}, slog.LevelError)
	if err != nil {
		t.Fatal(err)
	}
	commandtest.Start(t, r)
	return r
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited a minute for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
