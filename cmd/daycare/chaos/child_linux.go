package chaos

import "syscall"

// childAttributes put the daemon into a process group of its own, so that a Ctrl-C at
// the harness is not one at the daemon, and end it with the harness, however that ends.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
