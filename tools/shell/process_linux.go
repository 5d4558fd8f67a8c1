package shell

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// attributes puts the command into a session of its own, without a terminal to type
// into, and ends it with daycare. A supervisor must live on for a moment, to end what is
// below it.
func attributes(supervised bool) *syscall.SysProcAttr {
	if supervised {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// killMarked ends all processes whose environment holds mark: those that made a
// session of their own and so left the group. It looks again until it finds
// none, because a process may have forked meanwhile.
func killMarked(mark string) {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		found := false
		// With more behind the id the kernel would list what there is to know of each.
		paths, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			return
		}

		for _, path := range paths {
			environ, err := os.ReadFile(filepath.Join(path, "environ"))
			if err != nil || !holds(environ, mark) {
				continue // not ours to look at, or gone
			}
			pid, err := strconv.Atoi(filepath.Base(path))
			if err == nil && pid != os.Getpid() && syscall.Kill(pid, syscall.SIGKILL) == nil {
				found = true
			}
		}

		if !found {
			return
		}
	}
}

func holds(environ []byte, mark string) bool {
	for kv := range bytes.SplitSeq(environ, []byte{0}) {
		if string(kv) == mark {
			return true
		}
	}

	return false
}
