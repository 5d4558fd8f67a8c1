//go:build !linux

package bench

import "os"

// datasync flushes a file. On macOS Sync is F_FULLFSYNC, which reaches the disk.
func datasync(f *os.File) error { return f.Sync() }
