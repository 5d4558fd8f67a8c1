package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"daycare/engine/crash"
)

// identity is what must not have changed between two appends of ours. The time
// is in it for an edit in place that leaves the length as it was.
type identity struct {
	dev, ino, links uint64
	size            int64
	mtime           int64 // nanoseconds
}

// lookAt returns what is at a path, without following a link. It is done at every append,
// and makes no os.FileInfo.
func lookAt(path string) (identity, error) {
	for {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != unix.EINTR {
			return identityOf(&st, "lstat", path, err)
		}
	}
}

// lookInto is lookAt of a file that is open, wherever it is by now. The system does not search for it, so
// it takes a tenth of the time.
func lookInto(f *os.File) (identity, error) {
	for {
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != unix.EINTR {
			return identityOf(&st, "fstat", f.Name(), err)
		}
	}
}

func identityOf(st *unix.Stat_t, op, path string, err error) (identity, error) {
	if err != nil {
		return identity{}, &fs.PathError{Op: op, Path: path, Err: err}
	}
	return identity{dev: uint64(st.Dev), ino: st.Ino, links: uint64(st.Nlink), size: st.Size, mtime: st.Mtim.Nano()}, nil
}

// A Log is an append-only file of whole lines. Its methods may be called from
// many goroutines at once.
//
// Users edit these files too. Each append therefore checks, before and after,
// that the file at the path is still the one the last append left (device,
// inode, link count, size, time of change); if not it returns ErrChanged, and the owner calls
// Reload, compares, and appends again what is missing.
type Log struct {
	mu   sync.Mutex
	cond *sync.Cond
	logFile
	closed  bool
	synced  int64 // of written
	syncing bool
}

// A logFile is the file that a Log appends to and what our last append left there. The
// Log's lock guards it.
type logFile struct {
	vol   *Volume
	path  string
	opts  LogOptions
	steps struct{ write, sync string } // names of the failpoints

	f  *os.File
	id identity
	// Barriers count bytes over the whole life of the Log, not offsets: a file
	// that becomes shorter by Reload or Replace must not leave anybody waiting
	// for an offset that will not come.
	written int64
	named   bool // the directory entry is durable too

	mirrored
	hectic  time.Time // when Reload last waited in vain for the file to be left alone
	crowded time.Time // when it last waited in vain for others to close it
}

// LogOptions say how a Log is opened.
type LogOptions struct {
	Name string // failpoint prefix: "inbox", "history", …
	// Ballast lets appends use the space that is kept back for a full disk. It
	// is for recording what is already in progress, never for accepting more.
	Ballast bool
	// Valid judges a last line without newline: true keeps it (a user's
	// editor left the newline out), false cuts it off as torn.
	Valid func(line []byte) bool
	// Looks says that the owner asks Changed after each barrier that anything depends on. An append then
	// looks at the path before its write, and after it at the file that it wrote to. A file that was
	// renamed over in between is found at once all the same, for the old one has lost its name; one
	// that was moved away is found by the next look.
	Looks bool
}

// OpenLog opens or makes the log at path and repairs its tail. torn is nil if
// there was nothing to repair. Until the first Barrier nothing that is read from
// the file counts as durable: it may only be in the page cache. A symbolic link
// is refused, because its target could be exchanged unseen.
func (v *Volume) OpenLog(path string, o LogOptions) (l *Log, torn *Torn, err error) {
	if err := v.Err(); err != nil {
		return nil, nil, err
	}
	l = &Log{logFile: logFile{vol: v, path: path, opts: o}}
	l.steps.write, l.steps.sync = o.Name+".write", o.Name+".sync"
	l.cond = sync.NewCond(&l.mu)
	if _, err := l.open(os.O_CREATE, false); err != nil {
		return nil, nil, err
	}
	if torn, err = l.repair(); err == nil {
		err = l.rewriteTail()
	}
	if err != nil {
		l.f.Close()
		return nil, nil, err
	}

	l.mirrored = v.mirror(path, l.id.size)
	return l, torn, nil
}

// open opens the file at the path. With hold others that open it wait until letGo;
// held is false where that is not to be had, or someone has it open all the time.
func (l *logFile) open(flags int, hold bool) (held bool, err error) {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|flags, 0o600)
	if err != nil {
		return false, err
	}
	if hold {
		held = l.waitAlone(f)
	}

	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", l.path)
	}
	if err != nil {
		f.Close()
		return false, err
	}

	l.take(f, info)
	return held, nil
}

// take makes f the file to append to; nothing in it counts as durable.
func (l *logFile) take(f *os.File, info os.FileInfo) {
	l.f, l.id, l.named = f, identify(info), false
	l.written += l.id.size
}

// Append writes whole lines in one write and returns the offset of the first.
// They are durable after the next Barrier. A write that did not fit is cut back,
// so no partial line stays. After ErrChanged the lines may or may not be in the file.
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
	if err := l.same(l.id); err != nil {
		return 0, err
	}

	offset = l.id.size
	if err := l.write(lines, l.opts.Ballast); err != nil {
		return 0, err
	}

	// A rename over the path between check and write sends the line to a file that is
	// not read again, so the check is made once more.
	return offset, l.landed()
}

// same compares the file at the path with what it should be.
func (l *logFile) same(want identity) error {
	there, err := lookAt(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is gone", ErrChanged, l.path)
	}
	if err != nil {
		return err
	}
	if there != want {
		return fmt.Errorf("%w: %s", ErrChanged, l.path)
	}

	return nil
}

// write appends p in one write. On a full disk it is tried once more after the
// space kept back was given up, if ballast says that it may be.
func (l *logFile) write(p []byte, ballast bool) error {
	n, err := crash.Write(l.steps.write, p, l.f.Write)
	if err != nil && isFull(err) && ballast {
		l.vol.release()
		var more int
		more, err = l.f.Write(p[n:])
		n += more
	}
	if err == nil {
		l.id.size += int64(n)
		l.written += int64(n)
		return nil
	}

	err = fmt.Errorf("write %s: %w", l.path, err)
	if n > 0 {
		if cerr := l.cutBack(n); cerr != nil {
			return errors.Join(err, cerr)
		}
	}

	return l.vol.classify(err)
}

// cutBack removes the n bytes of a write that did not fit. If someone else
// wrote to the file meanwhile the half line is left for Reload to put aside,
// because cutting would take the other's text along.
func (l *logFile) cutBack(n int) error {
	info, err := l.f.Stat()
	if err == nil && info.Size() != l.id.size+int64(n) {
		return fmt.Errorf("%w: %s", ErrChanged, l.path)
	}
	if err == nil {
		err = l.f.Truncate(l.id.size)
	}
	if err != nil {
		return l.vol.Fail(fmt.Errorf("cut back half a line of %s: %w", l.path, err))
	}

	l.id.stamp(l.f)

	return nil
}

// landed is same just after a write of ours: it notes when the file was changed.
func (l *logFile) landed() error {
	look := func() (identity, error) { return lookAt(l.path) }
	if l.opts.Looks {
		look = func() (identity, error) { return lookInto(l.f) }
	}
	want := l.id
	if there, err := look(); err == nil {
		want.mtime = there.mtime
		if there == want {
			l.id = want
			return nil
		}
	}

	l.id.stamp(l.f)
	return l.same(l.id)
}

// stamp notes when the file was changed, just after we did so.
func (id *identity) stamp(f *os.File) {
	if info, err := f.Stat(); err == nil {
		id.mtime = info.ModTime().UnixNano()
	}
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

// Changed reports whether another program changed the file since the last append.
func (l *Log) Changed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.closed && l.same(l.id) != nil
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
