package address

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAFolderThatCannotBeFinishedLeavesNothing(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}

	restore := func() error { return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) }
	defer restore()

	// The descriptors run out when both files of the agent are there.
	runOut := func(string) error {
		none := before
		none.Cur = 3
		return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none)
	}
	_, err := x.CreateWith(chat("1"), []byte("{}\n"), runOut)
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("created without descriptors: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(root, "agents", newPrefix+"*")); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}

	create(t, x, chat("1"))
}
