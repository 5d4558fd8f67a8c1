//go:build darwin || freebsd

package crash

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// FileID tells a file or directory from every other, also from one that gets its
// inode number after it is gone: that one was born later.
func FileID(path string) (string, error) {
	var s unix.Stat_t
	if err := unix.Lstat(path, &s); err != nil {
		return "", &fs.PathError{Op: "lstat", Path: path, Err: err}
	}

	return identify(&s), nil
}

// openID is FileID of an open file, whatever its name is by now.
func openID(f *os.File) (string, error) {
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return "", &fs.PathError{Op: "fstat", Path: f.Name(), Err: err}
	}

	return identify(&s), nil
}

func identify(s *unix.Stat_t) string {
	return fmt.Sprintf("%d-%d-%d", s.Ino, s.Btim.Sec, s.Btim.Nsec)
}
