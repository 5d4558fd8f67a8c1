package child

import "syscall"

// Attributes put a process into its own process group, so that a Ctrl-C at the harness does not reach the process,
// and end it when the harness ends, however that happens.
func Attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
