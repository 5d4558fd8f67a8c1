package chaos

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// After a cut the file system is mounted anew, also if a sandbox that began before it
// still has the mount in a namespace of its own.
func TestCutBesideASandbox(t *testing.T) {
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip(err)
	}
	h := &harness{dir: t.TempDir()}
	v, err := h.mountImage("ext4", 16<<20, fileSystems[0].mkfs)
	if err != nil {
		t.Skip(err) // mounting needs root and loop devices
	}
	defer unix.Unmount(v.at, unix.MNT_DETACH)
	if held, err := v.held(); err != nil || !held {
		t.Fatalf("no loop device is seen to have the image that is mounted (%v)", err)
	}

	start := func(attributes *syscall.SysProcAttr, args ...string) *daemon {
		d := &daemon{cmd: exec.Command(args[0], args[1:]...), exited: make(chan struct{})}
		d.cmd.SysProcAttr = attributes
		if err := d.cmd.Start(); err != nil {
			t.Skip(err)
		}
		go func() {
			d.cmd.Wait()
			close(d.exited)
		}()

		return d
	}
	sandbox := start(&syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}, "sleep", "1")
	defer sandbox.kill()
	time.Sleep(50 * time.Millisecond) // it has its namespace once it is started
	if who := strings.Join(v.holders(), ", "); !strings.Contains(who, fmt.Sprintf("process %d (sleep 1)", sandbox.cmd.Process.Pid)) {
		t.Errorf("the mount is kept by %s, and not also by the sandbox", who)
	}
	if err := v.cut(start(nil, "sleep", "60")); err != nil {
		t.Fatal(err)
	}

	write(t, filepath.Join(v.at, "file"), "on what the journal made")
	if sandbox.alive() {
		t.Error("mounted while the sandbox had the old mount: the file system is the one that was shut down")
	}
}
