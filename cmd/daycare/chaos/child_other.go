//go:build !linux

package chaos

import "syscall"

// childAttributes put the daemon into a process group of its own: a Ctrl-C at the
// harness is not one at the daemon. Nothing here ends it with a harness that is killed.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
