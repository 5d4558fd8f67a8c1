// Package logfile is the log of a daemon on disk: one file that is rotated by size.
package logfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"daycare/engine/config"
)

// The log is kept in Kept files of at most Bytes bytes each: daycare.jsonl is the
// newest, daycare.jsonl.1 the one before, and so on.
const (
	Bytes = 10 << 20
	Kept  = 5
)

// A File is the log, rotated by size. Only the process that holds the lock has
// one. A write that fails is dropped: the log is the last thing that work may wait
// for, and a full disk is reported elsewhere.
type File struct {
	path  string
	bytes int64 // of one file
	files int

	mu   sync.Mutex
	f    *os.File
	size int64
	torn bool // the last write stopped inside a line
}

// Open opens the log for appending, and makes it if need be.
func Open(path string, bytes int64, files int) (*File, error) {
	l := &File{path: path, bytes: bytes, files: files}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}

	return l, nil
}

func (l *File) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|syscall.O_NONBLOCK, 0o600) // a pipe needs a reader
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}

	l.f, l.size = f, info.Size()

	return nil
}

// Write appends one line or more. It never fails.
func (l *File) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(p)) > l.bytes {
		l.rotate()
	}
	if l.f == nil && l.open() != nil {
		return len(p), nil
	}

	line := p
	if l.torn {
		line = append([]byte{'\n'}, p...)
	}
	n, err := l.f.Write(line)
	l.size += int64(n)
	if n > 0 {
		l.torn = err != nil
	}

	return len(p), nil
}

// rotate moves every file one number up; the oldest goes. Where a file cannot be
// moved, writing continues in the one that is open.
func (l *File) rotate() {
	for n := l.files - 2; n >= 0; n-- {
		err := os.Rename(Numbered(l.path, n), Numbered(l.path, n+1))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}

	if l.f != nil {
		l.f.Close()
	}
	l.f, l.torn = nil, false
	_ = l.open() // else the next write tries again
}

// Numbered is the name of the file n rotations ago.
func Numbered(path string, n int) string {
	if n == 0 {
		return path
	}
	return path + "." + strconv.Itoa(n)
}

// Close closes the file.
func (l *File) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}

	return l.f.Close()
}

// Path is where the settings put the log, "" for nowhere.
func Path(root string, c *config.Config) string {
	path := c.Log.File
	if path == "" || filepath.IsAbs(path) {
		return path
	}

	return filepath.Join(root, path)
}
