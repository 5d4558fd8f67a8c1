package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"daycare/engine/crash"
)

// Rename gives a file or a folder another name, durably: the names of both folders are
// synced. Failpoints are step.rename and .dirsync.
func (v *Volume) Rename(step, from, to string) error {
	if err := v.Shift(step, from, to); err != nil {
		return err
	}
	for _, dir := range folders(to, from) {
		if err := v.SyncDir(step+".dirsync", dir); err != nil {
			return err
		}
	}
	return nil
}

// Shift is Rename without a barrier: after a power cut the file may have its old name
// again, so it is for one that is then renamed again. The failpoint is step.rename.
func (v *Volume) Shift(step, from, to string) error {
	if err := v.Err(); err != nil {
		return err
	}
	if err := crash.Do(step+".rename", func() error { return os.Rename(from, to) }); err != nil {
		return v.classifyName(fmt.Errorf("rename: %w", err))
	}
	return nil
}

// Swap exchanges the names of two files or folders in one step, without a barrier; ok is false
// where the file system cannot. The failpoint is step.rename.
func (v *Volume) Swap(step, a, b string) (ok bool, err error) {
	if err := v.Err(); err != nil {
		return false, err
	}
	err = crash.Do(step+".rename", func() (err error) { ok, err = v.exchange(a, b); return err })
	if err != nil {
		return false, v.classifyName(fmt.Errorf("exchange: %w", err))
	}

	return ok, nil
}

// folders are those that two paths are in.
func folders(a, b string) []string {
	if filepath.Dir(a) == filepath.Dir(b) {
		return []string{filepath.Dir(a)}
	}
	return []string{filepath.Dir(a), filepath.Dir(b)}
}

// Link gives a file a second name in its folder. It makes no barrier: what replaces the
// file next syncs the folder. One that is there is an error: fs.ErrExist. The failpoint
// is step.link.
func (v *Volume) Link(step, from, to string) error {
	if err := v.Err(); err != nil {
		return err
	}
	if err := crash.Do(step+".link", func() error { return os.Link(from, to) }); err != nil {
		return v.classifyName(fmt.Errorf("keep: %w", err))
	}
	return nil
}

// Remove removes a file. It makes no barrier: after a power cut the file may be there
// again, so it is for one that is then removed again. One that is gone is not an error.
// The failpoint is step.unlink.
func (v *Volume) Remove(step, path string) error {
	if err := v.Err(); err != nil {
		return err
	}
	err := crash.Do(step+".unlink", func() error { return os.Remove(path) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return v.classifyName(err)
	}
	return v.replication.remove(path)
}

// RemoveAll removes a folder of the runtime's own and all that is in it, without a barrier:
// after a power cut parts of it may be there again. One that is gone is not an error. The failpoint
// is step.unlink.
func (v *Volume) RemoveAll(step, dir string) error {
	if err := v.Err(); err != nil {
		return err
	}
	if err := crash.Do(step+".unlink", func() error { return os.RemoveAll(dir) }); err != nil {
		return v.classifyName(err)
	}

	return nil
}

// MkdirAll makes a folder of the runtime's own, and those above it that are missing,
// durably: what is kept in a folder lasts as long as the folder's name. The failpoint
// is mkdir.dirsync.
func (v *Volume) MkdirAll(dir string) error {
	err := os.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		if info, serr := os.Stat(dir); serr == nil && !info.IsDir() {
			return fmt.Errorf("make folder %s: it is a file", dir)
		}
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(dir) != dir {
		if err := v.MkdirAll(filepath.Dir(dir)); err != nil {
			return err
		}
		if err = os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrExist) {
			return nil
		}
	}
	if err != nil {
		return v.classifyName(fmt.Errorf("make folder: %w", err))
	}
	return v.SyncDir("mkdir.dirsync", filepath.Dir(dir))
}
