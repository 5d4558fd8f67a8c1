//go:build !linux

package shell

import "syscall"

// attributes puts the command into a group of its own.
func attributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// killMarked cannot see other processes' environments here; the group is what is
// ended.
func killMarked(string) {}
