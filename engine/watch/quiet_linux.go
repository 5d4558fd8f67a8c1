package watch

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// leaves are the events that say that a path leads elsewhere now.
	leaves = unix.IN_MOVE_SELF | unix.IN_DELETE_SELF | unix.IN_UNMOUNT
	// inside are those of what is in a folder.
	inside = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB
)

// An inotify is the queue of Linux. Its descriptor is never waited for.
type inotify struct {
	fd      int
	folders map[int32]*folder // by watch
	buf     []byte
}

// A folder is one that is watched, as a place or as one above a place.
type folder struct {
	above map[string]bool          // entries on the way to places
	names []func(name string) bool // entries that matter; nil among them: all do
}

func (f *folder) matters(name string) bool {
	if f.above[name] || name == "" {
		return true
	}
	for _, of := range f.names {
		if of == nil || of(name) {
			return true
		}
	}

	return false
}

func openQueue() (queue, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watch for changes: %w", err)
	}

	return &inotify{fd: fd, folders: map[int32]*folder{}, buf: make([]byte, 64<<10)}, nil
}

// add watches every folder on the way for being moved, the last one that exists for its next one to
// appear, and the place itself. A link on the way cannot be watched: what it names may change.
func (q *inotify) add(p Place) error {
	dir := filepath.Clean(p.Dir)
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("watch %s: %w", dir, fs.ErrInvalid)
	}

	at := "/"
	for next := range strings.FieldsFuncSeq(dir, func(r rune) bool { return r == '/' }) {
		f, err := q.watch(at, unix.IN_CREATE|unix.IN_MOVED_TO|unix.IN_MOVED_FROM|unix.IN_DELETE)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the folder above tells when it appears
		}
		if err != nil {
			return err
		}
		f.above[next] = true
		at = filepath.Join(at, next)
	}

	f, err := q.watch(at, inside)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	f.names = append(f.names, p.Names)

	return nil
}

// watch adds events to those of one folder.
func (q *inotify) watch(dir string, events uint32) (*folder, error) {
	wd, err := unix.InotifyAddWatch(q.fd, dir, events|leaves&^unix.IN_UNMOUNT|unix.IN_ONLYDIR|unix.IN_DONT_FOLLOW|unix.IN_MASK_ADD)
	if err != nil {
		return nil, &fs.PathError{Op: "watch", Path: dir, Err: err}
	}
	f := q.folders[int32(wd)]
	if f == nil {
		f = &folder{above: map[string]bool{}}
		q.folders[int32(wd)] = f
	}

	return f, nil
}

func (q *inotify) changes() (some, moved bool) {
	for {
		n, err := unix.Read(q.fd, q.buf)
		if errors.Is(err, unix.EAGAIN) {
			return some, moved
		}
		if err != nil { // nothing is known any more
			return true, true
		}

		for rest := q.buf[:n]; len(rest) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(rest)), binary.NativeEndian.Uint32(rest[4:])
			end := min(unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(rest[12:])), len(rest))
			name, _, _ := strings.Cut(string(rest[unix.SizeofInotifyEvent:end]), "\x00")
			rest = rest[end:]
			switch f := q.folders[wd]; {
			case mask&unix.IN_Q_OVERFLOW != 0:
				some = true
			case f == nil: // its watch was removed
			case mask&(leaves|unix.IN_IGNORED) != 0:
				some, moved = true, true
			case f.matters(name):
				some = true
				moved = moved || f.above[name]
			}
		}
	}
}

func (q *inotify) close() { _ = unix.Close(q.fd) }

func noQueue() (queue, error) { return nil, errors.ErrUnsupported }
