package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"daycare/engine/crash"
)

// temp writes content to a synced temporary file beside path. Its name begins
// with a dot, so that watchers and listings leave it alone.
func (v *Volume) temp(step, path string, content []byte) (name string, err error) {
	if err := v.Err(); err != nil {
		return "", err
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix+filepath.Base(path)+"-")
	if err != nil {
		return "", v.judgeName(err)
	}
	defer func() {
		f.Close()
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	if _, err := crash.Write(step+".write", content, f.Write); err != nil {
		return "", v.judge(fmt.Errorf("write %s: %w", f.Name(), err))
	}
	if err := v.sync(step+".sync", f); err != nil {
		return "", err
	}
	return f.Name(), nil
}

const tempPrefix = ".tmp-"

// RemoveTemps removes what a crash left of unfinished replacements in dir.
func RemoveTemps(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, tempPrefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// WriteFile replaces the file at path in one step, durably. It is for files that
// only the runtime writes; step is the failpoint prefix: step.write, .sync,
// .rename, .dirsync.
func (v *Volume) WriteFile(step, path string, content []byte) error {
	temp, err := v.temp(step, path, content)
	if err != nil {
		return err
	}
	if err := crash.Do(step+".rename", func() error { return os.Rename(temp, path) }); err != nil {
		os.Remove(temp)
		return v.judgeName(fmt.Errorf("replace %s: %w", path, err))
	}
	return v.SyncDir(step+".dirsync", filepath.Dir(path))
}

// WriteDraft replaces the file at path in one step without any barrier: after a
// kill it is whole, after a power cut it may be old or gone.
func (v *Volume) WriteDraft(step, path string, content []byte) error {
	temp := filepath.Join(filepath.Dir(path), tempPrefix+filepath.Base(path))
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = crash.Write(step+".write", content, f.Write)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = crash.Do(step+".rename", func() error { return os.Rename(temp, path) })
	}
	if err != nil {
		os.Remove(temp)
	}
	return err
}

// writeNew makes a durable file without the detour by a temporary one; the
// directory is synced by whoever needs the name to last.
func (v *Volume) writeNew(step, path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := crash.Write(step+".write", content, f.Write); err != nil {
		return v.judge(fmt.Errorf("write %s: %w", path, err))
	}
	return v.sync(step+".sync", f)
}

// Exchange publishes content at path if what stands there is still base (nil: no
// file). It is for files that people write too. The two names are swapped in one
// step and what came out is compared, so a save that a person made in between is
// never lost: the person's version is put back and returned with ErrChanged, for
// the caller to merge and try again.
func (v *Volume) Exchange(step, path string, content, base []byte) (found []byte, err error) {
	temp, err := v.temp(step, path, content)
	if err != nil {
		return nil, err
	}
	defer os.Remove(temp)
	if base == nil {
		err = crash.Do(step+".rename", func() error { return os.Link(temp, path) })
		if errors.Is(err, syscall.EEXIST) {
			found, rerr := os.ReadFile(path)
			return found, errors.Join(ErrChanged, rerr)
		}
	} else {
		var ok bool
		err = crash.Do(step+".rename", func() (err error) { ok, err = exchange(temp, path); return err })
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%w: %s is gone", ErrChanged, path)
		case err == nil && !ok:
			return v.checkedRename(step, temp, path, base)
		}
	}
	if err != nil {
		return nil, v.judgeName(fmt.Errorf("publish %s: %w", path, err))
	}
	if base != nil {
		displaced, err := os.ReadFile(temp)
		if err != nil {
			return nil, fmt.Errorf("read what %s held: %w", path, err)
		}
		if !bytes.Equal(displaced, base) {
			found, err := putBack(temp, path, content, displaced)
			if err != nil {
				return nil, err
			}
			return found, fmt.Errorf("%w: %s", ErrChanged, path)
		}
	}
	return nil, v.SyncDir(step+".dirsync", filepath.Dir(path))
}

// putBack swaps the person's version in again. If another save landed on ours
// meanwhile, that newer one comes out in the swap and is swapped back in turn,
// until what comes out is ours.
func putBack(temp, path string, ours, theirs []byte) ([]byte, error) {
	for {
		if ok, err := exchange(temp, path); err != nil || !ok {
			return nil, fmt.Errorf("put back %s: %w", path, err)
		}
		out, err := os.ReadFile(temp)
		if err != nil {
			return nil, err
		}
		if bytes.Equal(out, ours) {
			return theirs, nil
		}
		ours, theirs = theirs, out
	}
}

// checkedRename is the second best, where names cannot be swapped.
func (v *Volume) checkedRename(step, temp, path string, base []byte) ([]byte, error) {
	now, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(now, base) {
		return now, fmt.Errorf("%w: %s", ErrChanged, path)
	}
	if err := os.Rename(temp, path); err != nil {
		return nil, v.judgeName(err)
	}
	return nil, v.SyncDir(step+".dirsync", filepath.Dir(path))
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
