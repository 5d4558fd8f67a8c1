package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAMoveOfAFolderOrOfOneAboveItIsSeen(t *testing.T) {
	for name, leave := range map[string]func(top string) error{
		"moved":       func(top string) error { return os.Rename(filepath.Join(top, "a", "b"), filepath.Join(top, "c")) },
		"moved above": func(top string) error { return os.Rename(filepath.Join(top, "a"), filepath.Join(top, "c")) },
		"removed":     func(top string) error { return os.RemoveAll(filepath.Join(top, "a")) },
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			above, dir := filepath.Join(top, "a"), filepath.Join(top, "a", "b")
			must(t, os.MkdirAll(dir, 0o700))
			armed, done := make(chan struct{}), make(chan error, 1)
			go func() {
				done <- Moved(t.Context(), []string{dir, above}, func() bool { close(armed); return false })
			}()

			<-armed
			must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
			must(t, os.Mkdir(filepath.Join(dir, "folder"), 0o700))
			select {
			case err := <-done:
				t.Fatalf("what happens in the folder ends the wait: %v", err)
			case <-time.After(50 * time.Millisecond):
			}

			must(t, leave(top))
			select {
			case err := <-done:
				must(t, err)
			case <-time.After(time.Minute):
				t.Fatal("not seen")
			}
		})
	}
}

func TestTheWaitForAMoveEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := Moved(ctx, []string{t.TempDir()}, func() bool { cancel(); return false })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v, want the error of its context", err)
	}
	if err := Moved(t.Context(), []string{t.TempDir()}, func() bool { return true }); err != nil {
		t.Errorf("what happened before the watch was set: %v", err)
	}
}
