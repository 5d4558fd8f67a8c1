package shell

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"daycare/tools"
)

const (
	// maxLog is how much of a process's output is kept on disk; when it is passed,
	// the older half goes.
	maxLog = 16 << 20
	// maxPolled is how much of it one call returns, in bytes.
	maxPolled = tools.MaxOutput - 1_000
)

// A jobLog is the newest output of a process, in a file. Positions count from the
// first byte that was ever printed, so that they stay right when the oldest output
// is dropped.
type jobLog struct {
	mu    sync.Mutex
	path  string
	file  *os.File
	first int64 // position of the file's first byte
	size  int64
	also  *capture // the foreground's view; nil: none (any more)
	grown chan struct{}
}

func openJobLog(path string, also *capture) (*jobLog, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep output: %w", err)
	}

	return &jobLog{path: path, file: f, also: also, grown: make(chan struct{}, 1)}, nil
}

// Write never fails: a process is not ended because its output cannot be kept.
func (l *jobLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.also != nil {
		l.also.Write(p)
	}
	if l.file != nil {
		n, _ := l.file.WriteAt(p, l.size) // a full disk shows as output that is missing
		l.size += int64(n)
		if l.size > maxLog {
			l.halve()
		}
	}

	select {
	case l.grown <- struct{}{}:
	default:
	}

	return len(p), nil
}

// halve drops the older half of the file.
func (l *jobLog) halve() {
	keep := int64(maxLog / 2)
	tail := make([]byte, keep)
	n, err := l.file.ReadAt(tail, l.size-keep)
	if err != nil && err != io.EOF {
		return
	}
	if _, err := l.file.WriteAt(tail[:n], 0); err != nil || l.file.Truncate(int64(n)) != nil {
		return
	}

	l.first, l.size = l.first+l.size-int64(n), int64(n)
}

// detach ends the foreground's view and returns its text, as capture.text does.
func (l *jobLog) detach() (text string, whole *tools.Whole) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.also
	l.also = nil
	out.finish()

	return out.text()
}

// read returns output from position from on, at most maxPolled bytes of it, and
// the position after it. skipped is how much was dropped in between.
func (l *jobLog) read(from int64) (text string, next, skipped int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		return readLog(l.file, l.first, l.size, from)
	}

	f, err := os.Open(l.path)
	if err != nil {
		return "", from, 0 // it ended, and was removed as one of the oldest
	}
	defer f.Close()

	return readLog(f, l.first, l.size, from)
}

func readLog(f io.ReaderAt, first, size, from int64) (text string, next, skipped int64) {
	if from < first {
		from, skipped = first, first-from
	}
	from = min(from, first+size)
	buf := make([]byte, min(first+size-from, maxPolled))
	n, _ := f.ReadAt(buf, from-first) // less than there should be is all there is

	return clean(buf[:n]), from + int64(n), skipped
}

// last returns the newest n bytes.
func (l *jobLog) last(n int64) string {
	l.mu.Lock()
	from := l.first + max(0, l.size-n)
	l.mu.Unlock()
	text, _, _ := l.read(from)
	return text
}

// close ends the writing and returns the position of the file's first byte.
func (l *jobLog) close() (first int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close() // what was written is in the page cache; it need not survive more
		l.file = nil
	}

	return l.first
}

func jobPath(dir, id, ext string) string { return filepath.Join(dir, id+ext) }
