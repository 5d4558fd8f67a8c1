package chaos

import "syscall"

// childAttributes put the daemon into a process group of its own: a Ctrl-C at the
// harness is not one at the daemon.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
