package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"daycare/engine/crash"
)

// A Torn reports a last line that a crash left incomplete: it was cut off
// and kept beside the file.
type Torn struct {
	Offset int64  // where it began
	Bytes  int    // how long it was
	Kept   string // the path of the copy
}

// tailWindow is how much is read at a time when looking for the last newline.
const tailWindow = 64 << 10

// repair gives a valid last line its newline and puts any other that has none
// aside. It may use the space that is kept back for a full disk: without it
// nothing that is in progress could be recorded.
//
// To cut is only for what a crash left. Where a program has the file open, more may
// come at any instant, and the cut would take it along. There the line gets a newline,
// which a writer in place writes over, and counts as a broken one.
func (l *logFile) repair() (*Torn, error) {
	start, tail, err := l.lastLine()
	if err != nil || len(tail) == 0 {
		return nil, err
	}
	if l.opts.Valid != nil && l.opts.Valid(tail) {
		return nil, l.endLine()
	}
	if crash.Bug("torntail") {
		return nil, nil
	}

	release, alone := l.alone()
	defer release()
	if !alone {
		return nil, l.endLine()
	}

	kept, err := l.vol.keepTorn(fmt.Sprintf("%s.torn-%d", l.path, start), tail)
	if err != nil {
		return nil, fmt.Errorf("keep torn tail: %w", err)
	}
	if err := crash.Do("torn.truncate", func() error { return l.f.Truncate(start) }); err != nil {
		return nil, l.vol.classify(fmt.Errorf("cut torn tail of %s: %w", l.path, err))
	}

	l.written -= int64(len(tail))
	l.id.size = start
	l.id.stamp(l.f)
	return &Torn{Offset: start, Bytes: len(tail), Kept: kept}, nil
}

// lastLine is the last line where it has no newline, and where it begins.
func (l *logFile) lastLine() (start int64, line []byte, err error) {
	if start, err = lastLineStart(l.f, l.id.size); err == nil {
		line = make([]byte, l.id.size-start)
		_, err = l.f.ReadAt(line, start)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("read tail of %s: %w", l.path, err)
	}

	return start, line, nil
}

// endLine writes the newline that the last line has not.
func (l *logFile) endLine() error {
	defer l.id.stamp(l.f)
	return l.write([]byte{'\n'}, true)
}

// alone waits until no other program has the file open, and keeps others from opening
// it until release is called. It waits a second at most.
func (l *logFile) alone() (release func(), alone bool) {
	for end := time.Now().Add(writing); ; time.Sleep(writing / 200) {
		if holdAlone(l.f) {
			break
		}
		if time.Now().After(end) {
			return func() {}, false
		}
	}

	info, err := l.f.Stat()

	return func() { letGo(l.f) }, err == nil && info.Size() == l.id.size
}

// keepTorn writes tail to path, or to path-2, path-3 … where another torn tail
// was kept before. What an interrupted attempt left is overwritten.
func (v *Volume) keepTorn(path string, tail []byte) (string, error) {
	name := path
	for n := 2; ; n++ {
		had, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) || (err == nil && bytes.HasPrefix(tail, had)) {
			break
		}
		if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s-%d", path, n)
	}

	err := v.writeNew("torn", name, tail)
	if errors.Is(err, ErrFull) {
		v.release()
		err = v.writeNew("torn", name, tail)
	}
	if err != nil {
		return "", err
	}

	return name, v.SyncDir("torn.dirsync", filepath.Dir(name))
}

// lastLineStart is the offset behind the last newline of the first size bytes.
func lastLineStart(f io.ReaderAt, size int64) (int64, error) {
	buf := make([]byte, 1) // the newline is the last byte, as a rule
	for end := size; end > 0; {
		n := min(end, int64(len(buf)))
		chunk := buf[:n]
		if got, err := f.ReadAt(chunk, end-n); got < len(chunk) {
			return 0, err
		}
		if i := bytes.LastIndexByte(chunk, '\n'); i >= 0 {
			return end - n + int64(i) + 1, nil
		}
		if end -= n; len(buf) == 1 {
			buf = make([]byte, min(size, tailWindow))
		}
	}

	return 0, nil
}
