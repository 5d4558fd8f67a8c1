package child

import "syscall"

// Attributes put a process into a process group of its own, so that a Ctrl-C at the harness is not
// one at the process, and end it with the harness, however that ends.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
