//go:build !linux

package child

import "syscall"

// Attributes put a process into a process group of its own: a Ctrl-C at the harness is not one at
// the process. Nothing here ends it with a harness that is killed.
func Attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
