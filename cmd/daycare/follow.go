package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/engine/watch"
)

// followDebounce is how long changes are gathered before a follower looks: short,
// because somebody is watching, and long enough not to look at every byte.
const followDebounce = 50 * time.Millisecond

// A follower waits for changes of folders without looking at them by time.
type follower struct {
	watcher *watch.Watcher
	changed chan string // a folder
	cancel  context.CancelFunc
	ended   chan struct{}
}

// newFollower watches until close. Hints that nobody takes are merged.
func newFollower(ctx context.Context) *follower {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{watcher: watch.New(slog.New(slog.DiscardHandler)), changed: make(chan string, 256), cancel: cancel,
		ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		_ = f.watcher.Run(ctx) // it ends with ctx, and only then
	}()
	return f
}

// add watches a folder; a hint about any file in it counts.
func (f *follower) add(dir string) {
	f.watcher.Add(dir, watch.Options{Debounce: followDebounce}, func(h watch.Hint) {
		select {
		case f.changed <- h.Dir:
		default: // there is so much to look at that this will be seen too
		}
	})
}

// next waits for a change and says in which folder.
func (f *follower) next(ctx context.Context) (dir string, err error) {
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case dir := <-f.changed:
		return dir, nil
	}
}

func (f *follower) close() {
	f.cancel()
	<-f.ended
}

// followLog prints what is added to the log until ctx ends, over rotations.
func followLog(ctx context.Context, c *term.App, t *tailed, q *logQuery) error {
	f := newFollower(ctx)
	defer f.close()
	f.add(filepath.Dir(t.path))
	for {
		err := t.read(func(line []byte) error {
			if !q.fits(line) {
				return nil
			}
			return showLog(c, q, line)
		})
		if err != nil {
			return err
		}
		if _, err := f.next(ctx); err != nil {
			return err
		}
	}
}

// A tailed file is read on as it grows. When another file takes its name, the rest
// of the old one is read first.
type tailed struct {
	path string
	f    *os.File
	r    *bufio.Reader
	part []byte // of a line whose end has not come yet
}

// open opens the file that has the name now; there may be none yet.
func (t *tailed) open() error {
	f, err := os.Open(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	t.f, t.r, t.part = f, bufio.NewReaderSize(f, 64<<10), nil
	return nil
}

// read calls fn for every line that was completed since.
func (t *tailed) read(fn func([]byte) error) error {
	for {
		if t.f == nil {
			if err := t.open(); err != nil || t.f == nil {
				return err
			}
		}
		if err := t.rest(fn); err != nil {
			return err
		}
		mine, err := t.f.Stat()
		if err != nil {
			return err
		}
		now, err := os.Stat(t.path)
		if err == nil && os.SameFile(mine, now) {
			return nil
		}
		t.close() // its name is another file's: go on with that
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
}

func (t *tailed) rest(fn func([]byte) error) error {
	for {
		more, err := t.r.ReadBytes('\n')
		t.part = append(t.part, more...)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line := bytes.TrimSpace(t.part)
		t.part = nil
		if len(line) == 0 {
			continue
		}
		if err := fn(line); err != nil {
			return err
		}
	}
}

// is reports whether f is the file that is being read.
func (t *tailed) is(f *os.File) bool {
	if t.f == nil {
		return false
	}
	mine, err := t.f.Stat()
	theirs, terr := f.Stat()
	return err == nil && terr == nil && os.SameFile(mine, theirs)
}

func (t *tailed) close() {
	if t.f != nil {
		t.f.Close()
	}
	t.f = nil
}
