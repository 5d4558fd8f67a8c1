package chaos

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// A folder of cases holds a lock as long as its harness lives. A folder whose lock
// nobody holds was left by a harness that was killed. One without the lock is kept for
// a user, who looks at what failed.
const (
	folderPrefix = "daycare-chaos-"
	lockName     = "harness.lock"
)

// newFolder makes a folder of cases in parent and takes its lock. The lock is there
// only once it is held, so that no other harness takes the folder for one that was left.
func newFolder(parent string) (dir string, lock *os.File, err error) {
	if dir, err = os.MkdirTemp(parent, folderPrefix); err != nil {
		return "", nil, err
	}
	path := filepath.Join(dir, lockName)
	if lock, err = os.Create(path + ".new"); err == nil {
		err = errors.Join(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), os.Rename(lock.Name(), path))
	}

	return dir, lock, err
}

// sweep takes down what killed harnesses left in parent: mounts, images, cases.
func sweep(parent string, log io.Writer) error {
	locks, err := filepath.Glob(filepath.Join(parent, folderPrefix+"*", lockName))
	if err != nil {
		return err
	}

	for _, path := range locks {
		if err := sweepOne(path, log); err != nil {
			return fmt.Errorf("clean up %s, which a harness that was killed left: %w", filepath.Dir(path), err)
		}
	}

	return nil
}

func sweepOne(path string, log io.Writer) error {
	lock, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil // gone by now, or another user's
	}
	if err != nil {
		return err
	}
	defer lock.Close()

	switch err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil // its harness lives
	case err != nil:
		return err
	}

	dir := filepath.Dir(path)
	if err := unmountBelow(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}

	_, err = fmt.Fprintf(log, "removed %s, which a run that was killed left\n", dir)
	return err
}
