//go:build darwin || freebsd

package disk

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// syncAll syncs all file systems: there is no call for one.
func syncAll(*os.File) error { return unix.Sync() }

// allocate writes zeros, because a sparse file reserves nothing.
func allocate(f *os.File, n int64) error {
	_, err := f.Write(make([]byte, n))
	return err
}

// Space returns the size of the disk of dir, and how many bytes may still be written to it.
func Space(dir string) (free, size int64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, 0, err
	}

	return int64(s.Bavail) * int64(s.Bsize), int64(s.Blocks) * int64(s.Bsize), nil
}

func identify(info os.FileInfo) identity {
	st := info.Sys().(*syscall.Stat_t)
	return identity{dev: uint64(st.Dev), ino: st.Ino, links: uint64(st.Nlink), size: st.Size,
		mtime: info.ModTime().UnixNano()}
}

// Whether another program has a file open cannot be asked here.
func OpenForWriting(*os.File) bool { return false }
func holdAlone(*os.File) bool      { return true }
func letGo(*os.File)               {}

// Here processes whose parent has ended are collected at once.
func uncollected(int) bool { return false }
