package bench

import (
	"errors"
	"os"
	"syscall"
)

// datasync flushes the content of a file, and of its metadata what is needed to
// read it back.
func datasync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
