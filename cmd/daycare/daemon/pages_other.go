//go:build !linux

package daemon

// dropPages is for Linux.
func dropPages() {}
