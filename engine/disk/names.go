package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"daycare/engine/crash"
)

// Rename gives a file or a folder another name, durably: the names of both folders are
// synced. Failpoints are step.rename and .dirsync.
func (v *Volume) Rename(step, from, to string) error {
	var dirs []*os.File
	for _, dir := range folders(to, from) {
		f, err := openFolder(step+".dirsync", dir)
		if err != nil {
			return err
		}
		defer f.Close()
		dirs = append(dirs, f)
	}

	if err := v.Shift(step, from, to); err != nil {
		return err
	}
	for _, f := range dirs {
		if err := v.syncFolder(step+".dirsync", f); err != nil {
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
// durably: what is kept in a folder lasts as long as the folder's name. One in the folder of the
// volume that is there already may have been made by a process that died before the sync, so its
// name is synced once in the life of a process. The failpoint is mkdir.dirsync.
func (v *Volume) MkdirAll(dir string) error {
	up := filepath.Dir(dir)
	made, err := v.makeFolder(dir)
	if errors.Is(err, fs.ErrNotExist) && up != dir {
		if err := v.MkdirAll(up); err != nil {
			return err
		}
		made, err = v.makeFolder(dir)
	}

	if err != nil {
		return err
	}
	if !made && (!v.inside(dir) || v.knows(dir)) {
		return nil
	}
	if v.inside(up) {
		if err := v.MkdirAll(up); err != nil {
			return err
		}
	}
	if err := v.SyncDir("mkdir.dirsync", up); err != nil {
		return err
	}
	v.learn(dir)

	return nil
}

// makeFolder makes one folder, whose name is not durable then; made is false if it was there.
func (v *Volume) makeFolder(dir string) (made bool, err error) {
	err = os.Mkdir(dir, 0o700)
	switch {
	case err == nil:
		return true, nil
	case !errors.Is(err, fs.ErrExist):
		return false, v.classifyName(fmt.Errorf("make folder: %w", err))
	}

	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return false, fmt.Errorf("make folder %s: it is a file", dir)
	}

	return false, nil
}

// Prepare makes folders of the volume, in this order. It then makes their names durable, and what earlier
// processes left in those that are read: with one sync for each folder, from the inside out. The failpoint is
// home.dirsync.
func (v *Volume) Prepare(folders []string, read ...string) error {
	if err := v.Err(); err != nil {
		return err
	}

	due := []string{v.dir}
	for _, dir := range folders {
		made, err := v.makeFolder(dir)
		if err != nil {
			return err
		}
		if !made && slices.Contains(read, dir) {
			due = append(due, dir)
		}
		due = append(due, filepath.Dir(dir))
	}

	slices.Sort(due) // a folder comes before what is in it
	for _, dir := range slices.Backward(slices.Compact(due)) {
		if err := v.SyncDir("home.dirsync", dir); err != nil {
			return err
		}
	}

	v.learn(folders...)
	v.settled.learn(read...)
	return nil
}

// Settle makes durable what a process before this one left in a folder of the volume: a name that it
// gave and died before the sync can be read, but a power cut may take it away. It is called once before
// anything relies on what is read there, and does nothing for one that is prepared. The failpoint is
// settle.dirsync. With a nil volume, of a command that only reads, it does nothing.
func (v *Volume) Settle(dir string) error {
	if v == nil || v.settled.knows(dir) || !Exists(dir) {
		return nil
	}
	if err := v.MkdirAll(dir); err != nil {
		return err
	}

	return v.SyncDir("settle.dirsync", dir)
}

// inside reports whether a folder is below that of the volume.
func (v *Volume) inside(dir string) bool { return dir != v.dir && under(v.dir, dir) }

// names are folders: those whose own names this process has made durable, or those whose entries.
type names struct {
	mu  sync.Mutex
	all map[string]bool
}

// mostNames bounds them. What is forgotten is synced once more.
const mostNames = 4096

func (n *names) knows(dir string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all[dir]
}

func (n *names) learn(dirs ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.all == nil || len(n.all) >= mostNames {
		n.all = map[string]bool{}
	}
	for _, dir := range dirs {
		n.all[dir] = true
	}
}
