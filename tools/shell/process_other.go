//go:build !linux

package shell

import "syscall"

// attributes puts the command into a session of its own.
func attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// killMarked cannot see other processes' environments here; the group is what is
// ended.
func killMarked(string) {}
