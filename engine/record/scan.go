package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/lazyregexp"
)

const (
	historyName = "history.jsonl"
	closedDir   = "history" // rotated files: 000001.jsonl, 000002.jsonl, …
)

// A source is one file of history to read backward.
type source struct {
	path string
	r    io.ReaderAt
	size int64

	counted int64 // offset of the line that was counted last
	lines   int   // how many are before it
}

// A rawLine is a line with its place.
type rawLine struct {
	src  *source
	off  int64
	text []byte
}

// lineNumber counts the lines before this one. It reads the file between this one and the one that was counted last, so
// it is asked for only when something is to be reported.
func (l rawLine) lineNumber() int {
	s := l.src
	if between := s.breaks(min(s.counted, l.off), max(s.counted, l.off)); l.off < s.counted {
		s.lines -= between
	} else {
		s.lines += between
	}
	s.counted = l.off

	return s.lines + 1
}

// breaks counts the ends of lines between two offsets.
func (s *source) breaks(from, to int64) (n int) {
	buf := make([]byte, min(64<<10, to-from))
	for at := from; at < to; {
		got, err := s.r.ReadAt(buf[:min(int64(len(buf)), to-at)], at)
		n += bytes.Count(buf[:got], []byte{'\n'})
		if at += int64(got); err != nil {
			break
		}
	}

	return n
}

// finding places an error of Decode.
func (l rawLine) finding(err error) finding.Finding {
	var f finding.Finding
	if !errors.As(err, &f) {
		f = finding.Finding{ID: "history-bad-line", Severity: finding.Warning, Reason: err.Error()}
	}
	f.File, f.Line = l.src.path, l.lineNumber()

	return f
}

// back calls fn with the lines of the source from the last to the first, blank
// ones left out, until fn returns false; done says that it did.
func (s *source) back(fn func(rawLine) bool) (done bool, err error) {
	for off, line := range disk.Backward(s.r, s.size, &err) {
		if len(bytes.TrimSpace(line)) > 0 && !fn(rawLine{s, off, line}) {
			return true, nil
		}
	}

	if err != nil {
		return false, fmt.Errorf("read %s: %w", s.path, err)
	}

	return false, nil
}

// closedFiles lists the rotated files of an agent's folder, newest first.
func closedFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, closedDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var paths []string
	for _, e := range entries {
		if closedName.MatchString(e.Name()) {
			paths = append(paths, filepath.Join(dir, closedDir, e.Name()))
		}
	}

	slices.Reverse(paths)

	return paths, nil
}

var closedName = lazyregexp.New(`^[0-9]{6}\.jsonl$`)

// openSource opens a file of history as it is now; the caller closes it.
func openSource(path string) (*source, io.Closer, error) {
	f, err := beneath.OpenUnheld(path)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, nil, err
	}

	return &source{path: path, r: f, size: info.Size()}, f, nil
}

// backFiles reads the whole history of a folder backward from its files, with the
// runtime running or not. What a rotation carried over is seen once, in the newer
// file.
func backFiles(dir string, fn func(rawLine) bool) error {
	lowest := int64(0)
	src, file, err := openSource(filepath.Join(dir, historyName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		defer file.Close()
		done, err := src.back(func(l rawLine) bool {
			lowest = lower(lowest, seqOf(l.text), l.off)
			return fn(l)
		})
		if done || err != nil {
			return err
		}
	}

	return backClosed(dir, lowest, fn)
}

// lower is the lowest seq seen. The record that opens a file is left out: after a
// rotation it bears the number of the record before it, which the closed file has.
func lower(lowest, seq, off int64) int64 {
	if seq == 0 || off == 0 || (lowest > 0 && lowest < seq) {
		return lowest
	}
	return seq
}

// backClosed reads the rotated files backward, beginning below seq lowest (0: with
// everything).
func backClosed(dir string, lowest int64, fn func(rawLine) bool) error {
	paths, err := closedFiles(dir)
	if err != nil {
		return err
	}

	for _, path := range paths {
		done, low, err := backOne(path, lowest, fn)
		if done || err != nil {
			return err
		}
		lowest = low
	}

	return nil
}

func backOne(path string, lowest int64, fn func(rawLine) bool) (done bool, low int64, err error) {
	src, file, err := openSource(path)
	if err != nil {
		return false, lowest, err
	}
	defer file.Close()
	skip, low := lowest > 0, lowest
	done, err = src.back(func(l rawLine) bool {
		seq := seqOf(l.text)
		if seq > 0 && seq < lowest {
			skip = false
		}
		if skip {
			return true
		}

		low = lower(low, seq, l.off)

		return fn(l)
	})

	return done, low, err
}
