package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"daycare/engine/crash"
)

// Replace puts content in place of the log: temp file, sync, exchange of the
// names, directory sync. With keep set the old file gets that name first (a hard
// link, so that there is no moment without a log). A save that a user made
// meanwhile is put back and reported as ErrChanged, as Append does. When Replace
// returns, content is durable. Failpoints are name.rotate.*.
func (l *Log) Replace(content []byte, keep string) error {
	if err := l.vol.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fs.ErrClosed
	}

	l.settle()
	if err := l.same(l.id); err != nil {
		return err
	}
	step := l.opts.Name + ".rotate"
	aside, err := l.aside(step, content)
	if err != nil {
		return err
	}

	old := l.id
	if keep != "" {
		if err := l.link(step, keep); err != nil {
			os.Remove(aside)
			return err
		}
		old.links++
	}

	f, info, err := l.swap(step, aside, old)
	if err != nil {
		if keep != "" && l.vol.Err() == nil {
			os.Remove(keep)
		}
		return err
	}
	if err := l.vol.SyncDir(step+".dirsync", filepath.Dir(l.path)); err != nil {
		f.Close()
		return err
	}

	was := io.NewSectionReader(l.f, 0, l.id.size)
	defer l.f.Close()
	l.take(f, info)
	l.named, l.synced = true, l.written
	return l.replaced(content, keep, was)
}

// aside writes content to the file that will trade places with the log.
func (l *logFile) aside(step string, content []byte) (string, error) {
	base := make([]byte, l.id.size)
	if n, err := l.f.ReadAt(base, 0); n < len(base) {
		return "", fmt.Errorf("%w: %s was cut short: %w", ErrChanged, l.path, err)
	}
	temp, err := l.vol.temp(step, l.path, content)
	if err != nil {
		return "", err
	}

	aside, err := stepAside(temp, l.path, base, content)
	if err != nil {
		os.Remove(temp)
		return "", l.vol.classifyName(fmt.Errorf("replace %s: %w", l.path, err))
	}

	return aside, nil
}

// link gives the old file its second name, in a folder that it makes if need be. A name
// that an interrupted rotation left there is that of the same file.
func (l *logFile) link(step, keep string) error {
	folder := filepath.Dir(keep)
	err := l.vol.MkdirAll(folder)
	if err == nil {
		// It may be there and not be durable: a crash came before the sync.
		err = l.vol.SyncDir(step+".dirsync", filepath.Dir(folder))
	}
	if err != nil {
		return err
	}

	err = crash.Do(step+".link", func() error { return os.Link(l.path, keep) })
	if errors.Is(err, fs.ErrExist) {
		info, _ := os.Lstat(keep) // nil, where it cannot be looked at, is the same as nothing
		mine, _ := l.f.Stat()
		if os.SameFile(info, mine) {
			err = nil
		}
	}
	if err != nil {
		return l.vol.classifyName(fmt.Errorf("keep %s as %s: %w", l.path, keep, err))
	}

	return l.vol.SyncDir(step+".dirsync", filepath.Dir(keep))
}

// swap exchanges aside with the log's file and looks at what came out: if it is not
// the file that the last append left, a user's save is put back. The new file is
// looked at before it has the name, when nobody else can write to it.
func (l *logFile) swap(step, aside string, old identity) (f *os.File, ours os.FileInfo, err error) {
	swapped := false
	f, err = os.OpenFile(aside, os.O_RDWR|os.O_APPEND, 0o600)
	if err == nil {
		ours, err = f.Stat()
	}
	if err == nil {
		err = crash.Do(step+".rename", func() (err error) {
			if swapped, err = l.vol.exchange(aside, l.path); err == nil && !swapped {
				err = os.Rename(aside, l.path)
			}
			return err
		})
	}
	if err != nil {
		os.Remove(aside) // still ours
		f.Close()
		if f != nil && errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("%w: %s is gone", ErrChanged, l.path)
		}
		return nil, nil, l.vol.classifyName(fmt.Errorf("replace %s: %w", l.path, err))
	}
	if !swapped {
		return f, ours, nil
	}
	if out, err := os.Lstat(aside); err == nil && sameContent(identify(out), old) {
		os.Remove(aside) // it has its own name, or is done with
		return f, ours, nil
	}

	f.Close()
	if err := l.putBack(aside, identify(ours)); err != nil {
		return nil, nil, l.vol.classifyName(fmt.Errorf("put back %s: %w", l.path, err))
	}

	return nil, nil, fmt.Errorf("%w: %s", ErrChanged, l.path)
}

// putBack swaps what came out in again. If another save landed on ours meanwhile,
// that newer one comes out and is swapped in in turn, and the older one is kept.
func (l *logFile) putBack(aside string, ours identity) error {
	back, err := os.Lstat(aside)
	for want := ours; err == nil; {
		if _, err = l.vol.exchange(aside, l.path); err != nil { // names could be exchanged a moment ago
			break
		}
		var out os.FileInfo
		if out, err = os.Lstat(aside); err != nil {
			break
		}
		if !sameContent(identify(out), want) {
			want, back = identify(back), out
			continue
		}
		if want == ours {
			os.Remove(aside)
		} else {
			l.vol.keep(aside, l.path)
		}
		return nil
	}

	l.vol.keep(aside, l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the log is gone; its owner finds out
	}

	return err
}

// sameContent compares all but the number of names.
func sameContent(a, b identity) bool {
	a.links, b.links = 0, 0
	return a == b
}

// classifyName is judge for steps that make, link or rename a name. Those fail for
// many reasons that say nothing about the disk (a folder that was removed, too
// many open files), so only errors of the device itself count as failure.
func (d *flusher) classifyName(err error) error {
	for _, broken := range []syscall.Errno{syscall.EIO, syscall.EROFS, syscall.ENXIO, syscall.ENODEV, syscall.ESTALE} {
		if errors.Is(err, broken) {
			return d.Fail(err)
		}
	}

	if isFull(err) {
		return d.classify(err)
	}

	return err
}
