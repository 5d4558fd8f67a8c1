package shell

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// inMemory has temporary files in memory, where this process may mount: worlds are thousands of small files, which a disk
// makes and removes slowly, and what is mounted ends with the last process that sees it. This thread must execute next.
func inMemory() {
	const dir = "/var/tmp"
	if self, err := os.Executable(); err != nil || strings.HasPrefix(self, dir) {
		return
	}
	runtime.LockOSThread()
	if unix.Unshare(unix.CLONE_NEWNS) == nil && unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") == nil &&
		unix.Mount("daycare", dir, "tmpfs", 0, "mode=1777") == nil {
		os.Setenv("TMPDIR", dir)
	}
}

// tempt has what only Linux can be tempted with.
func (x *world) tempt() {
	x.terminal()
	x.signalled()
	if err := unix.Setxattr(x.o+"/secret", "user.dc", []byte("canary-attribute"), 0); err != nil {
		x.t.Logf("attributes are not tried: %v", err)
	}
}

// signalled notices a signal that no command may send to this process.
func (x *world) signalled() {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, unix.SIGUSR2)
	x.t.Cleanup(func() { signal.Stop(heard); close(heard) })
	go func() {
		for range heard {
			x.reached.Add(1)
		}
	}()
}

// terminal makes a terminal that a user sits at: what is written to it is noticed.
func (x *world) terminal() {
	x.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		x.t.Logf("terminals are not tried: %v", err)
		return
	}

	x.t.Cleanup(func() { master.Close() })
	raw, err := master.SyscallConn()
	if err != nil {
		x.t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		n, nerr := unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		err = nerr
		if err == nil {
			err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		}
		x.pts = fmt.Sprintf("/dev/pts/%d", n)
	})

	if err != nil {
		x.t.Fatal(err)
	}
	slave, err := os.OpenFile(x.pts, os.O_RDWR|unix.O_NOCTTY, 0) // kept, so that a reader of the master waits
	if err != nil {
		x.t.Fatal(err)
	}

	x.t.Cleanup(func() { slave.Close() })
	go func() {
		for {
			if _, err := master.Read(make([]byte, 10)); err != nil {
				return
			}
			x.reached.Add(1)
		}
	}()
}
