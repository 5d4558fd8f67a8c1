// Package follow reads files on as they grow, and waits for changes of folders without
// looking at them by time, but for those of other machines, which give no hint.
package follow

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

	"daycare/engine/watch"
)

// followDebounce is how long changes are gathered before a follower looks: short,
// because someone is watching, and long enough not to look at every byte.
const followDebounce = 50 * time.Millisecond

// A Folders waits for changes of folders.
type Folders struct {
	watcher *watch.Watcher
	changed chan string // a folder
	cancel  context.CancelFunc
	ended   chan struct{}
}

// Watch watches until close. Hints that nobody takes are merged.
func Watch(ctx context.Context) *Folders {
	ctx, cancel := context.WithCancel(ctx)
	f := &Folders{watcher: watch.New(slog.New(slog.DiscardHandler)), changed: make(chan string, 256), cancel: cancel,
		ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		_ = f.watcher.Run(ctx) // it ends with ctx, and only then
	}()

	return f
}

// Add watches a folder; a hint about any file in it counts.
func (f *Folders) Add(dir string) {
	f.watcher.Add(dir, watch.Options{Debounce: followDebounce}, func(h watch.Hint) {
		select {
		case f.changed <- h.Dir:
		default: // there is so much to look at that this will be seen too
		}
	})
}

// Every has Next return "" from time to time as well: what is on another machine changes without a hint.
func (f *Folders) Every(ctx context.Context, d time.Duration) {
	tick := time.NewTicker(d)
	go func() {
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			case <-f.ended:
				return
			}
			select {
			case f.changed <- "":
			default:
			}
		}
	}()
}

// Next waits for a change and says in which folder.
func (f *Folders) Next(ctx context.Context) (dir string, err error) {
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case dir := <-f.changed:
		return dir, nil
	}
}

// Close ends the watching.
func (f *Folders) Close() {
	f.cancel()
	<-f.ended
}

// A File file is read on as it grows. When another file takes its name, the rest
// of the old one is read first.
type File struct {
	Path string
	f    *os.File
	r    *bufio.Reader
	part []byte // of a line whose end has not come yet
}

// Open reads the file of a path, over its replacements.
func Open(path string) *File { return &File{Path: path} }

// Lines calls fn for every whole line of an open file.
func Lines(f *os.File, fn func([]byte) error) error {
	t := &File{f: f, r: bufio.NewReaderSize(f, 64<<10)}
	return t.rest(fn)
}

// Open opens the file that has the name now; there may be none yet.
func (t *File) Open() error {
	f, err := os.Open(t.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}

	t.f, t.r, t.part = f, bufio.NewReaderSize(f, 64<<10), nil

	return nil
}

// Read calls fn for every line that was completed since.
func (t *File) Read(fn func([]byte) error) error {
	for {
		if t.f == nil {
			if err := t.Open(); err != nil || t.f == nil {
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
		now, err := os.Stat(t.Path)
		if err == nil && os.SameFile(mine, now) {
			return nil
		}

		// Its name is another file's: continue with that, after what was written here meanwhile.
		if err := t.rest(fn); err != nil {
			return err
		}
		t.Close()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
}

func (t *File) rest(fn func([]byte) error) error {
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

// Dir is the folder of the file.
func (t *File) Dir() string { return filepath.Dir(t.Path) }

// Is reports whether f is the file that is being read.
func (t *File) Is(f *os.File) bool {
	if t.f == nil {
		return false
	}
	mine, err := t.f.Stat()
	theirs, terr := f.Stat()

	return err == nil && terr == nil && os.SameFile(mine, theirs)
}

// Close closes what is open.
func (t *File) Close() {
	if t.f != nil {
		t.f.Close()
	}
	t.f = nil
}
