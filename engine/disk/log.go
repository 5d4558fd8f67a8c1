package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"daycare/engine/crash"
)

// identity is what must not have changed between two appends of ours.
type identity struct {
	dev, ino, links uint64
	size            int64
}

// A Log is an append-only file of whole lines. Its methods may be called from
// many goroutines at once.
//
// People edit these files too. Each append therefore checks, before and after,
// that the file at the path is still the one the last append left (device,
// inode, link count, size); if not it returns ErrChanged, and the owner calls
// Reload, compares, and appends again what is missing.
type Log struct {
	vol      *Volume
	path     string
	name     string // prefix of the failpoints: name.write, name.sync
	ballast  bool   // may use the space kept back
	valid    func(line []byte) bool
	syncName string
	writName string

	mu      sync.Mutex
	cond    *sync.Cond
	f       *os.File
	id      identity
	synced  int64 // everything below is durable
	syncing bool
	closed  bool
}

// LogOptions say how a Log is opened.
type LogOptions struct {
	Name string // failpoint prefix: "inbox", "history", …
	// Ballast lets appends use the space that is kept back for a full disk. It
	// is for recording what is already under way, never for accepting more.
	Ballast bool
	// Valid judges a last line without newline: true keeps it (a person's
	// editor left the newline out), false cuts it off as torn.
	Valid func(line []byte) bool
}

// A Torn tells of a last line that a crash had left incomplete: it was cut off
// and kept beside the file.
type Torn struct {
	Offset int64  // where it began
	Bytes  int    // how long it was
	Kept   string // the path of the copy
}

// OpenLog opens or makes the log at path and repairs its tail. torn is nil if
// there was nothing to repair. Until the first Barrier nothing that is read from
// the file counts as durable: it may only be in the page cache.
func (v *Volume) OpenLog(path string, o LogOptions) (l *Log, torn *Torn, err error) {
	if err := v.Err(); err != nil {
		return nil, nil, err
	}
	l = &Log{vol: v, path: path, name: o.Name, ballast: o.Ballast, valid: o.Valid,
		writName: o.Name + ".write", syncName: o.Name + ".sync"}
	l.cond = sync.NewCond(&l.mu)
	if err := l.open(); err != nil {
		return nil, nil, err
	}
	if torn, err = l.repair(); err != nil {
		l.f.Close()
		return nil, nil, err
	}
	return l, torn, nil
}

func (l *Log) open() error {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return err
	}
	if !info.Mode().IsRegular() {
		f.Close()
		return fmt.Errorf("%s is not a regular file", l.path)
	}
	l.f, l.id, l.synced = f, identify(info), 0
	return nil
}

// tailWindow is how much is read at a time when looking for the last newline.
const tailWindow = 64 << 10

func (l *Log) repair() (*Torn, error) {
	start, err := lastLineStart(l.f, l.id.size)
	if err != nil || start == l.id.size {
		return nil, err
	}
	tail := make([]byte, l.id.size-start)
	if _, err := l.f.ReadAt(tail, start); err != nil {
		return nil, fmt.Errorf("read tail of %s: %w", l.path, err)
	}
	if l.valid != nil && l.valid(tail) {
		if _, err := l.write([]byte{'\n'}); err != nil {
			return nil, err
		}
		return nil, nil
	}
	kept := fmt.Sprintf("%s.torn-%d", l.path, start)
	if err := l.vol.writeNew("torn", kept, tail); err != nil {
		return nil, fmt.Errorf("keep torn tail: %w", err)
	}
	if err := crash.Do("torn.truncate", func() error { return l.f.Truncate(start) }); err != nil {
		return nil, l.vol.judge(fmt.Errorf("cut torn tail of %s: %w", l.path, err))
	}
	l.id.size = start
	return &Torn{Offset: start, Bytes: len(tail), Kept: kept}, nil
}

// lastLineStart is the offset behind the last newline of the first size bytes.
func lastLineStart(f io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, min(size, tailWindow))
	for end := size; end > 0; {
		n := min(end, tailWindow)
		chunk := buf[:n]
		if _, err := f.ReadAt(chunk, end-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(chunk, '\n'); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		end -= n
	}
	return 0, nil
}

// Append writes whole lines in one write and returns the offset of the first.
// They are durable after the next Barrier. A write that did not fit is cut back,
// so no half line stays.
func (l *Log) Append(lines []byte) (offset int64, err error) {
	if len(lines) == 0 || lines[len(lines)-1] != '\n' {
		return 0, fmt.Errorf("append to %s: not whole lines", l.path)
	}
	if err := l.vol.Err(); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, fs.ErrClosed
	}
	if err := l.same(); err != nil {
		return 0, err
	}
	offset = l.id.size
	if _, err := l.write(lines); err != nil {
		return 0, err
	}
	// A rename over the path between check and write sends the line to a file
	// that nobody will read again, so the check is made once more.
	return offset, l.same()
}

// same compares the file at the path with what the last append left.
func (l *Log) same() error {
	info, err := os.Lstat(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is gone", ErrChanged, l.path)
	}
	if err != nil {
		return err
	}
	if identify(info) != l.id {
		return fmt.Errorf("%w: %s", ErrChanged, l.path)
	}
	return nil
}

func (l *Log) write(p []byte) (int, error) {
	n, err := crash.Write(l.writName, p, l.f.Write)
	if err != nil && isFull(err) && l.ballast && l.vol.release() {
		l.vol.full.Store(true)
		var more int
		more, err = l.f.Write(p[n:])
		n += more
	}
	if err == nil {
		l.id.size += int64(n)
		return n, nil
	}
	err = fmt.Errorf("write %s: %w", l.path, err)
	if n > 0 {
		if terr := l.f.Truncate(l.id.size); terr != nil {
			return 0, l.vol.fail(fmt.Errorf("%w; cut back the half line: %w", err, terr))
		}
	}
	return 0, l.vol.judge(err)
}

// Barrier returns when everything appended before the call is durable. Callers
// that wait at the same time share one sync.
func (l *Log) Barrier() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for goal := l.id.size; l.synced < goal; {
		if err := l.vol.Err(); err != nil {
			return err
		}
		if l.closed {
			return fs.ErrClosed
		}
		if l.syncing {
			l.cond.Wait()
			continue
		}
		l.syncing = true
		covers, f := l.id.size, l.f
		l.mu.Unlock()
		err := l.vol.sync(l.syncName, f)
		l.mu.Lock()
		l.syncing = false
		l.cond.Broadcast()
		if err != nil {
			return err
		}
		if f == l.f {
			l.synced = max(l.synced, covers)
		}
	}
	return l.vol.Err()
}

// Durable reports whether everything appended is behind a barrier.
func (l *Log) Durable() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.synced >= l.id.size
}

// Size is the length of the file in bytes as the last append left it.
func (l *Log) Size() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id.size
}

// ReadAt reads from the file that the log appends to.
func (l *Log) ReadAt(p []byte, off int64) (int, error) {
	l.mu.Lock()
	f := l.f
	l.mu.Unlock()
	return f.ReadAt(p, off)
}

// Changed reports whether somebody else changed the file since the last append.
func (l *Log) Changed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed && l.same() != nil
}

// Reload takes the file at the path, as it is now, as the one to append to and
// returns its content. A file that is gone is an error: fs.ErrNotExist. A last
// line without newline gets one if it is valid, and is kept aside if not.
func (l *Log) Reload() ([]byte, *Torn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, fs.ErrClosed
	}
	l.settle()
	if _, err := os.Lstat(l.path); err != nil {
		return nil, nil, err
	}
	old := l.f
	if err := l.open(); err != nil {
		return nil, nil, err
	}
	old.Close()
	torn, err := l.repair()
	if err != nil {
		return nil, nil, err
	}
	data := make([]byte, l.id.size)
	if _, err := l.f.ReadAt(data, 0); err != nil && err != io.EOF {
		return nil, nil, fmt.Errorf("read %s: %w", l.path, err)
	}
	return data, torn, nil
}

// settle waits for a sync under way, so that its file can be closed.
func (l *Log) settle() {
	for l.syncing {
		l.cond.Wait()
	}
}

// Replace puts content in place of the log: temp file, sync, rename, directory
// sync. With keep set the old file gets that name first (a hard link, so that
// there is no moment without a log). Failpoints are name.rotate.*.
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
	if err := l.same(); err != nil {
		return err
	}
	step := l.name + ".rotate"
	temp, err := l.vol.temp(step, l.path, content)
	if err != nil {
		return err
	}
	if keep != "" {
		err = crash.Do(step+".link", func() error { return os.Link(l.path, keep) })
		if err == nil {
			err = l.vol.SyncDir(step+".dirsync", filepath.Dir(keep))
		}
	}
	if err == nil {
		err = crash.Do(step+".rename", func() error { return os.Rename(temp, l.path) })
	}
	if err != nil {
		os.Remove(temp)
		return l.vol.judge(fmt.Errorf("replace %s: %w", l.path, err))
	}
	if err := l.vol.SyncDir(step+".dirsync", filepath.Dir(l.path)); err != nil {
		return err
	}
	old := l.f
	if err := l.open(); err != nil {
		return l.vol.fail(fmt.Errorf("open %s after replacing it: %w", l.path, err))
	}
	old.Close()
	l.synced = l.id.size
	return nil
}

// Close ends the log without a barrier.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.settle()
	l.closed = true
	l.cond.Broadcast()
	return l.f.Close()
}
