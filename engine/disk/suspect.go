package disk

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"daycare/engine/crash"
)

// After a failed sync the kernel may take pages for written that the disk does not have.
// A later sync of them does nothing and succeeds, and what is read comes from memory: a
// process that starts then would acknowledge what the next power cut takes away. So a
// failure is marked with a file, and the end of each log that was last changed before it
// is written once more, which makes its pages dirty again.
//
// The mark needs no barrier, because it is for as long as the page cache lives; it is
// never removed, because a log that was written again is newer than it.

// failureMark is the name of the file whose time is that of the last failure.
const failureMark = ".failed"

// suspectTail bounds how much of a log is written again, bytes. What is appended between
// two barriers is far less.
const suspectTail = 4 << 20

// markFailure notes that the disk failed now. Where that cannot be written, the logs
// cannot either.
func (d *flusher) markFailure() {
	path := filepath.Join(d.dir, failureMark)
	os.Remove(path)
	_ = os.WriteFile(path, nil, 0o600)
}

// rewriteTail writes the end of the log once more if it was last changed before the disk
// failed. While another program has the file open it is left alone: that one may be
// writing.
func (l *logFile) rewriteTail() error {
	mark, err := os.Stat(filepath.Join(l.vol.dir, failureMark))
	if err != nil || l.id.size == 0 || l.id.mtime > mark.ModTime().UnixNano() {
		return nil
	}
	release, alone := l.alone()
	defer release()
	if !alone {
		return nil
	}

	from := max(0, l.id.size-suspectTail)
	tail := make([]byte, l.id.size-from)
	if _, err := l.f.ReadAt(tail, from); err != nil {
		return fmt.Errorf("read the end of %s: %w", l.path, err)
	}

	_, err = crash.Write("log.rewrite", tail, func(p []byte) (int, error) { return overwrite(l.f, p, from) })
	if err != nil {
		return l.vol.classify(fmt.Errorf("write the end of %s again: %w", l.path, err))
	}

	l.id.stamp(l.f)
	return nil
}

// overwrite writes p at an offset of a file that is open for appending.
func overwrite(f *os.File, p []byte, off int64) (n int, err error) {
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if err != nil {
		return 0, err
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETFL, flags&^unix.O_APPEND); err != nil {
		return 0, err
	}

	for err == nil && n < len(p) {
		var wrote int
		wrote, err = unix.Pwrite(int(f.Fd()), p[n:], off+int64(n))
		n += max(0, wrote)
		if err == unix.EINTR {
			err = nil
		}
	}

	_, ferr := unix.FcntlInt(f.Fd(), unix.F_SETFL, flags)
	return n, cmp.Or(err, ferr)
}
