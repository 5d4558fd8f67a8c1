package disk

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync is F_FULLFSYNC, which is what os.File.Sync does on macOS.
func datasync(f *os.File) error { return f.Sync() }

// exchange swaps two names in one step. ok is false where the file system has
// no such step.
func exchange(a, b string) (ok bool, err error) {
	err = unix.RenamexNp(a, b, unix.RENAME_SWAP)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL) {
		return false, nil
	}

	return err == nil, err
}
