//go:build !linux

package beneath

import (
	"os"
	"syscall"
)

// openRegular opens a regular file, also behind a link. Anything else is not opened, unless it takes the place of
// one at this moment; then it is not waited for.
func openRegular(path string) (*os.File, error) {
	before, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !before.Mode().IsRegular() {
		return nil, &os.PathError{Op: "open", Path: path, Err: ErrKind}
	}

	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	after, err := f.Stat()
	if err == nil && !os.SameFile(before, after) {
		err = ErrRace
	}
	if err != nil {
		f.Close()
		return nil, err
	}

	return f, nil
}
