package shell

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"daycare/engine/permission"
)

// What a command names as its script is not even opened where it is no regular file: some devices do
// something when they are.
func TestOnlyRegularFilesAreOpenedAsScripts(t *testing.T) {
	e, access := asking(t)
	pipe, link := filepath.Join(access.WorkingDir, "pipe.sh"), filepath.Join(access.WorkingDir, "link.sh")
	if err := errors.Join(unix.Mkfifo(pipe, 0o700), os.Symlink("pipe.sh", link)); err != nil {
		t.Fatal(err)
	}
	opened := openings(t, pipe)
	for _, command := range []string{"sh pipe.sh", "./pipe.sh", "sh link.sh", ". ./link.sh"} {
		need := needs(t, e, access, a{"command": command})
		if len(need.Scripts) != 1 || need.Scripts[0].SHA256 != permission.Unreadable {
			t.Errorf("%s: scripts are %+v", command, need.Scripts)
		}
		if opened() {
			t.Errorf("%s: the pipe was opened", command)
		}
	}

	f, err := os.OpenFile(pipe, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if !opened() {
		t.Error("this test does not see that the pipe is opened")
	}
}

// openings reports whether the file was opened since it was asked last.
func openings(t *testing.T, path string) func() bool {
	t.Helper()
	queue, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(queue) })
	if _, err := unix.InotifyAddWatch(queue, path, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}

	return func() bool {
		n, err := unix.Read(queue, make([]byte, 4096))
		if err != nil && !errors.Is(err, unix.EAGAIN) {
			t.Fatal(err)
		}
		return n > 0
	}
}
