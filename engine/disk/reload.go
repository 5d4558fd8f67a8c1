package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Reload takes the file at the path, as it is now, as the one to append to and
// returns its content. A file that is gone is an error: fs.ErrNotExist. A last
// line without newline gets one: somebody else left it like that, so it is not cut.
// Nothing in the file counts as durable before the next Barrier.
func (l *Log) Reload() ([]byte, *Torn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, fs.ErrClosed
	}
	l.settle()
	for try := 0; ; try++ {
		l.awaitQuiet()
		data, torn, err := l.reload()
		// io.EOF: somebody truncated it while it was read.
		if !errors.Is(err, io.EOF) || try == reloadTries {
			return data, torn, err
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

func (l *Log) reload() ([]byte, *Torn, error) {
	old := l.f
	if err := l.open(0); err != nil {
		return nil, nil, err
	}
	old.Close()
	torn, err := l.repair(true)
	if err != nil {
		return nil, nil, err
	}
	data := make([]byte, l.id.size)
	if n, err := l.f.ReadAt(data, 0); n < len(data) {
		return nil, nil, fmt.Errorf("read %s: %w", l.path, err)
	}
	return data, torn, nil
}

// awaitQuiet waits while somebody is writing the file in place: what has been
// written so far is not what they mean, and to cut off its last, unfinished line
// would damage the rest. A file that was renamed over the path is complete, if
// its end looks like it.
func (l *Log) awaitQuiet() {
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
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	last := make([]byte, 1)
	n, _ := f.ReadAt(last, max(0, size-1))
	return n == 1 && last[0] == '\n'
}
