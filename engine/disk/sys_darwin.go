package disk

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// datasync is F_FULLFSYNC, which is what os.File.Sync does on macOS.
func datasync(f *os.File) error { return f.Sync() }

func allocate(f *os.File, n int64) error {
	_, err := f.Write(make([]byte, n))
	return err
}

func exchange(a, b string) (ok bool, err error) {
	err = unix.RenamexNp(a, b, unix.RENAME_SWAP)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL) {
		return false, nil
	}
	return err == nil, err
}

// Free returns how many bytes may still be written to the disk of dir.
func Free(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}

func identify(info os.FileInfo) identity {
	st := info.Sys().(*syscall.Stat_t)
	return identity{dev: uint64(st.Dev), ino: st.Ino, links: uint64(st.Nlink), size: st.Size,
		mtime: info.ModTime().UnixNano()}
}

// Whether a file is open elsewhere is not to be had on macOS.
func openForWriting(*os.File) bool { return false }
func holdAlone(*os.File) bool      { return true }
func letGo(*os.File)               {}
