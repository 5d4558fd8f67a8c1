package disk

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err != unix.EINTR {
			return err
		}
	}
}

// syncAll syncs the file system that f is on.
func syncAll(f *os.File) error { return unix.Syncfs(int(f.Fd())) }

// allocate reserves n bytes for f. File systems without fallocate get written
// zeros, because a sparse file reserves nothing.
func allocate(f *os.File, n int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, n)
	if errors.Is(err, unix.EOPNOTSUPP) {
		_, err = f.Write(make([]byte, n))
	}

	return err
}

// exchange swaps two names in one step. ok is false where the file system has
// no such step.
func exchange(a, b string) (ok bool, err error) {
	err = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) {
		return false, nil
	}

	return err == nil, err
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

// uncollected reports whether a process has ended and its parent has not collected it yet.
func uncollected(pid int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // "12 (name) Z …": a name can hold anything
	return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" Z"))
}

// OpenForWriting reports whether any program has the file open for writing: a read
// lease is given only if none has. Where the file system knows no leases the answer
// is no.
func OpenForWriting(f *os.File) bool {
	err := lease(f, unix.F_RDLCK)
	if err == nil {
		letGo(f)
	}

	return errors.Is(err, unix.EAGAIN)
}

// holdAlone reports whether nobody else has the file open; others that open it wait
// until letGo. Where the file system knows no leases the answer is yes.
func holdAlone(f *os.File) bool { return !errors.Is(lease(f, unix.F_WRLCK), unix.EAGAIN) }

// letGo ends holdAlone. An error means that there was nothing to end.
func letGo(f *os.File) { _ = lease(f, unix.F_UNLCK) }

func lease(f *os.File, kind int) error {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, kind)
	return err
}
