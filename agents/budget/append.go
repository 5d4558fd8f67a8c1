package budget

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// A dayFile appends lines to the file of a day. It stays open as long as the path leads to it and it
// ends where the last line of ours ended; else it is opened anew. The zero dayFile is closed.
type dayFile struct {
	f    *os.File // nil: none is open
	info os.FileInfo
	size int64
}

// append adds a line to the file at the path, in one write.
func (d *dayFile) append(path string, one line) error {
	data, err := json.Marshal(one)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if !d.at(path) {
		whole, err := d.open(path)
		if err != nil {
			return err
		}
		if !whole {
			data = append([]byte{'\n'}, data...)
		}
	}

	n, err := d.f.Write(data)
	if d.size += int64(n); err != nil {
		return errors.Join(err, d.close()) // perhaps half a line was written
	}

	return nil
}

// at reports whether the file at the path is open, as we left it.
func (d *dayFile) at(path string) bool {
	info, err := os.Stat(path)
	return err == nil && os.SameFile(info, d.info) && info.Size() == d.size
}

// open opens or makes the file at the path. whole is false if it ends with half a line, which a crash
// left: it gets a line of its own, so that the next one can be read.
func (d *dayFile) open(path string) (whole bool, err error) {
	before := errors.Join(d.close(), os.MkdirAll(filepath.Dir(path), 0o700))
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return false, errors.Join(before, err)
	}
	info, err := f.Stat()
	if err != nil {
		return false, errors.Join(err, f.Close())
	}

	d.f, d.info, d.size = f, info, info.Size()
	last := []byte{'\n'}
	if d.size > 0 {
		last[0] = 0 // what cannot be read may be half a line
		_, _ = f.ReadAt(last, d.size-1)
	}

	return last[0] == '\n', nil
}

func (d *dayFile) close() error {
	if d.f == nil {
		return nil
	}
	f := d.f
	*d = dayFile{}

	return f.Close()
}
