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
	return identify(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW)
}

// openID is FileID of an open file, whatever its name is by now.
func openID(f *os.File) (string, error) {
	return identify(int(f.Fd()), "", unix.AT_EMPTY_PATH)
}

func identify(fd int, path string, flags int) (string, error) {
	var s unix.Statx_t
	if err := unix.Statx(fd, path, flags, unix.STATX_INO|unix.STATX_BTIME, &s); err != nil {
		return "", &fs.PathError{Op: "statx", Path: path, Err: err}
	}

	return fmt.Sprintf("%d-%d-%d", s.Ino, s.Btime.Sec, s.Btime.Nsec), nil
}
