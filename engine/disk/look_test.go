package disk

import (
	"os"
	"path/filepath"
	"testing"
)

// Who only looks has no volume, and opens what it looks at all the same.
func TestRecoverWithoutAVolume(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, tempPrefix+"sums.json-1")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var none *Volume
	if err := none.Recover(dir, "sums.json"); err != nil {
		t.Fatal(err)
	}
	if Exists(left) {
		t.Error("what a death left unfinished is still there")
	}
}
