package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"daycare/engine/config"
)

// The log is kept in logFiles files of logBytes at most: daycare.jsonl is the
// newest, daycare.jsonl.1 the one before, and so on.
const (
	logBytes = 10 << 20
	logFiles = 5
)

// A logFile is the log, rotated by size. Only the process that holds the lock has
// one. A write that fails is dropped: the log is the last thing that work may wait
// for, and a full disk is told elsewhere.
type logFile struct {
	path  string
	bytes int64 // of one file
	files int

	mu   sync.Mutex
	f    *os.File
	size int64
	torn bool // the last write stopped inside a line
}

// openLogFile opens the log for appending, and makes it if need be.
func openLogFile(path string, bytes int64, files int) (*logFile, error) {
	l := &logFile{path: path, bytes: bytes, files: files}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return l, nil
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
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
func (l *logFile) Write(p []byte) (int, error) {
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
// moved, writing goes on in the one that is open.
func (l *logFile) rotate() {
	for n := l.files - 2; n >= 0; n-- {
		err := os.Rename(numbered(l.path, n), numbered(l.path, n+1))
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

// numbered is the name of the file n rotations ago.
func numbered(path string, n int) string {
	if n == 0 {
		return path
	}
	return path + "." + strconv.Itoa(n)
}

// Close closes the file.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.f == nil {
		return nil
	}
	return l.f.Close()
}

// logPath is where the settings put the log, "" for nowhere.
func logPath(root string, c *config.Config) string {
	path := c.Log.File
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, path)
}
