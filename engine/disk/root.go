package disk

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"

	"daycare/engine/crash"
)

// InOptions say how ReplaceIn makes a file.
type InOptions struct {
	Mode  fs.FileMode  // 0: 0600
	Exact bool         // the umask does not apply to Mode
	Check func() error // asked last; with an error nothing is replaced, and it is returned
}

// ReplaceIn puts content in place of the file name in an open folder, in one step and
// durably. It is for folders that agents can write to: what they put in the way, such as
// a symbolic link, is replaced and never written through, and no path leads out. An
// error is not that of a Volume: the folder may be on another disk, and nothing else
// depends on it. Failpoints are step.write, .sync, .rename and .dirsync.
func ReplaceIn(step string, dir *os.Root, name string, content []byte, o InOptions) (err error) {
	mode := cmp.Or(o.Mode, 0o600)
	temp := tempPrefix + rand.Text()
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}

	_, err = crash.Write(step+".write", content, f.Write)
	if err == nil && o.Exact {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = crash.Do(step+".sync", func() error { return crash.Sync(f, datasync) })
	}

	err = errors.Join(err, f.Close())
	if err == nil && o.Check != nil {
		err = o.Check()
	}
	if err == nil {
		err = crash.Do(step+".rename", func() error { return dir.Rename(temp, name) })
	}
	if err != nil {
		dir.Remove(temp) // best effort; the first error is the one to tell
		return err
	}

	return SyncIn(step, dir, ".")
}

// MkdirIn makes a folder in an open one, durably; one that is there is no error. What a
// link leads to is not looked at. The failpoint is step.dirsync.
func MkdirIn(step string, dir *os.Root, name string, mode fs.FileMode) error {
	if err := dir.Mkdir(name, mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncIn(step, dir, ".")
}

// SyncIn makes the names in a folder below an open one durable, where the file system
// can do that. The failpoint is step.dirsync.
func SyncIn(step string, root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	err = crash.Do(step+".dirsync", func() error { return crash.Sync(f, (*os.File).Sync) })
	if unsupported(err) {
		return nil
	}

	return err
}
