package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"
)

// Reload takes the file at the path, as it is now, as the one to append to and
// returns its content. A file that is gone is an error: fs.ErrNotExist. A last
// line without newline gets one: another program wrote it that way, so it is not cut.
// Nothing in the file counts as durable before the next Barrier.
//
// It is done at a moment when no other program has the file open, and others cannot open it
// until release is called, which is called in any case: what is appended in between cannot
// come between two pieces of a save in place. It waits a second at most for such a moment,
// and once in five seconds.
func (l *Log) Reload() (content []byte, release func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	release = func() {}
	if l.closed {
		return nil, release, fs.ErrClosed
	}

	l.settle()
	for try := 0; ; try++ {
		l.awaitQuiet()
		var held bool
		content, held, err = l.reload()
		if f := l.f; held {
			release = sync.OnceFunc(func() { letGo(f) })
		}

		if err == nil {
			l.mirrored.whole = l.mirrored.on
		}

		// io.EOF: the file was truncated while it was read.
		if !errors.Is(err, io.EOF) || try == reloadTries {
			return content, release, err
		}
	}
}

const (
	// A file that changed within the last freshness may be in the middle of being
	// written; Reload waits for that at most patience.
	// After it waited in vain it does not wait again for a while: then it is a
	// program that writes all the time.
	freshness   = 30 * time.Millisecond
	patience    = 300 * time.Millisecond
	impatience  = 5 * time.Second
	reloadTries = 20
)

func (l *logFile) reload() (data []byte, held bool, err error) {
	if held, err = l.reopen(); err != nil {
		return nil, false, err
	}
	_, line, err := l.lastLine()
	if err == nil && len(line) > 0 {
		err = l.endLine()
	}
	if err != nil {
		return nil, held, err
	}

	data = make([]byte, l.id.size)
	if n, err := l.f.ReadAt(data, 0); n < len(data) {
		return nil, held, fmt.Errorf("read %s: %w", l.path, err)
	}

	return data, held, nil
}

// reopen takes the file at the path. The one that is open is kept if it is the same:
// opened twice, it would never be alone.
func (l *logFile) reopen() (held bool, err error) {
	there, _ := os.Lstat(l.path) // what is not there cannot be opened either
	if mine, err := l.f.Stat(); err == nil && os.SameFile(mine, there) {
		held = l.waitAlone(l.f)
		if mine, err = l.f.Stat(); err == nil {
			l.take(l.f, mine)
		}
		return held, err
	}

	old := l.f
	if held, err = l.open(0, true); err == nil {
		old.Close()
	}

	return held, err
}

// waitAlone waits until no other program has the file open, and holds it. After it
// waited in vain it does not wait again for a while.
func (l *logFile) waitAlone(f *os.File) bool {
	for end := time.Now().Add(writing); ; time.Sleep(writing / 500) {
		if holdAlone(f) {
			return true
		}
		if now := time.Now(); now.After(end) || now.Sub(l.crowded) < impatience {
			l.crowded = now
			return false
		}
	}
}

// awaitQuiet waits while someone is writing the file in place: what has been
// written so far is not what they mean, and to cut off its last, unfinished line
// would damage the rest. A file that was renamed over the path is complete, if
// its end looks like it.
func (l *logFile) awaitQuiet() {
	begin := time.Now()
	if begin.Sub(l.hectic) < impatience {
		return
	}

	for ; time.Since(begin) < patience; time.Sleep(freshness / 6) {
		info, err := os.Lstat(l.path)
		if err != nil || !info.Mode().IsRegular() {
			return
		}
		age := time.Since(info.ModTime())
		if age < 0 || age > freshness {
			return
		}
		if identify(info).ino != l.id.ino && endsLine(l.path, info.Size()) {
			return
		}
	}

	l.hectic = time.Now()
}

// endsLine reports whether the last byte of the file is a newline.
func endsLine(path string, size int64) bool {
	f, _ := os.Open(path) // of none nothing is read
	defer f.Close()
	last := make([]byte, 1)
	n, _ := f.ReadAt(last, max(0, size-1))

	return n == 1 && last[0] == '\n'
}
