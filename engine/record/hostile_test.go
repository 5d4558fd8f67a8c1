package record

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe in the place of state.json holds nobody up.
func TestStateThatIsAPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, stateName), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := ReadState(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("%v", err)
	}
}
