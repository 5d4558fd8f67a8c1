package shell

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// attributes puts the command into a group of its own and ends it with daycare. A
// supervisor must live on for a moment, to end what is below it.
func attributes(supervised bool) *syscall.SysProcAttr {
	if supervised {
		return &syscall.SysProcAttr{Setpgid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killMarked ends all processes whose environment holds mark: those that made a
// session of their own and so left the group. It looks again until it finds
// none, because a process may have forked meanwhile.
func killMarked(mark string) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		found := false
		for _, pid := range processes() {
			environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if err != nil || !holds(environ, mark) {
				continue // not ours to look at, or gone
			}
			if pid != os.Getpid() && syscall.Kill(pid, syscall.SIGKILL) == nil {
				found = true
			}
		}
		if !found {
			return
		}
	}
}

// processes are those of the system. A pattern with something after the id would have
// the kernel list what there is to know of each of them.
func processes() (ids []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			ids = append(ids, pid)
		}
	}
	return ids
}

func holds(environ []byte, mark string) bool {
	for kv := range bytes.SplitSeq(environ, []byte{0}) {
		if string(kv) == mark {
			return true
		}
	}
	return false
}
