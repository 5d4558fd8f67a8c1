package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"daycare/engine/crash"
)

// temp writes content to a synced temporary file beside path. Its name begins
// with a dot, so that watchers and listings leave it alone.
func (d *flusher) temp(step, path string, content []byte) (name string, err error) {
	return d.tempOf(step, path, content, time.Time{})
}

// tempOf is temp with a time of the last save; zero: now.
func (d *flusher) tempOf(step, path string, content []byte, saved time.Time) (name string, err error) {
	if err := d.Err(); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+filepath.Base(path)+"-")
	if err != nil {
		return "", d.classifyName(err)
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
		}
	}()

	if _, err := crash.Write(step+".write", content, f.Write); err != nil {
		return "", d.classify(fmt.Errorf("write %s: %w", f.Name(), err))
	}
	if !saved.IsZero() { // before the sync, so that it lasts as the content does
		if err := os.Chtimes(f.Name(), time.Time{}, saved); err != nil {
			return "", d.classifyName(err)
		}
	}
	if crash.Bug("nofilesync") {
		return f.Name(), nil
	}
	if err := d.sync(step+".sync", f); err != nil {
		return "", err
	}

	return f.Name(), nil
}

// WriteFile replaces the file at path in one step, durably. It is for files that
// only the runtime writes; step is the failpoint prefix: step.write, .sync,
// .rename, .dirsync.
func (v *Volume) WriteFile(step, path string, content []byte) error {
	dir, err := openFolder(step+".dirsync", filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()

	if err := v.place(step, path, content); err != nil {
		return err
	}
	if err := v.syncFolder(step+".dirsync", dir); err != nil {
		return err
	}

	return v.put(Content{path, content})
}

// AddFile is WriteFile without the sync of the folder, which is new: it is synced once, when it has all its files. Until
// then a power cut may take the file's name away. The failpoints are step.write, .sync, .rename.
func (v *Volume) AddFile(step, path string, content []byte) error {
	if err := v.place(step, path, content); err != nil {
		return err
	}
	return v.put(Content{path, content})
}

// place replaces a file by one whose content is durable; its name is not yet.
func (v *Volume) place(step, path string, content []byte) error {
	temp, err := v.temp(step, path, content)
	if err != nil {
		return err
	}
	if err := crash.Do(step+".rename", func() error { return os.Rename(temp, path) }); err != nil {
		os.Remove(temp)
		return v.classifyName(fmt.Errorf("replace %s: %w", path, err))
	}

	return nil
}

// WriteDraft replaces the file at path in one step without any barrier: after a
// kill it is whole, after a power cut it may be old or gone.
func (v *Volume) WriteDraft(step, path string, content []byte) error {
	return v.WriteDraftOf(step, path, content, time.Time{})
}

// WriteDraftOf is WriteDraft of a copy: the file gets the time at which its original was
// saved, so that a look tells whether it is current. The zero time is now.
func (v *Volume) WriteDraftOf(step, path string, content []byte, saved time.Time) error {
	temp := filepath.Join(filepath.Dir(path), tempPrefix+filepath.Base(path))
	f, err := newDraft(temp)
	if err != nil {
		return err
	}

	_, err = crash.Write(step+".write", content, f.Write)
	err = errors.Join(err, f.Close())
	if err == nil && !saved.IsZero() {
		err = os.Chtimes(temp, time.Time{}, saved)
	}
	if err == nil {
		err = crash.Do(step+".rename", func() error { return os.Rename(temp, path) })
	}
	if err != nil {
		os.Remove(temp)
	}

	return err
}

// newDraft makes the file that is to take a draft's place. One that a crash left is removed,
// never written over: after a power cut it can be a second name of the draft itself, which
// would be torn by writing, and the rename of a file over itself would leave both names.
func newDraft(temp string) (*os.File, error) {
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if !errors.Is(err, fs.ErrExist) {
		return f, err
	}
	os.Remove(temp)

	return os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
}

// writeNew makes a durable file without the detour by a temporary one; the
// directory is synced by whoever needs the name to last.
func (d *flusher) writeNew(step, path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := crash.Write(step+".write", content, f.Write); err != nil {
		return d.classify(fmt.Errorf("write %s: %w", path, err))
	}

	return d.sync(step+".sync", f)
}
