package beneath

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A file that is held while its owner reads it anew is opened once it is released.
func TestAFileThatIsHeldIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "inbox.jsonl")
	if err := os.WriteFile(path, []byte("{a}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	owner, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	if _, err := unix.FcntlInt(owner.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("no leases here: %v", err)
	}

	released := make(chan error, 1)
	go func() {
		time.Sleep(20 * time.Millisecond)
		_, err := unix.FcntlInt(owner.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		released <- err
	}()
	if data, _, err := Own(path, 100); string(data) != "{a}\n" || err != nil {
		t.Errorf("read is %q, %v", data, err)
	}
	if err := <-released; err != nil {
		t.Error(err)
	}
}
