package beneath

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Stamp tells whether a file was written or replaced since. Whatever changes a file changes
// one of its members: no program can set Changed. The zero Stamp is of no file.
type Stamp struct {
	Changed, Written int64 // ns since 1970
	Size             int64
	Ino              uint64 // two saves may come within one tick of the file system's clock
}

// Tick is longer than a file system that counts parts of a second takes from one time to the next.
// Others count seconds (HFS+, old inodes of ext4) or every other one (FAT). Two writes within it may
// leave one stamp.
const (
	Tick   = 100 * time.Millisecond
	coarse = 2*time.Second + Tick
)

// StampOf returns the Stamp of what info describes.
func StampOf(info fs.FileInfo) Stamp {
	s := Stamp{Changed: ChangedAt(info).UnixNano(), Written: info.ModTime().UnixNano(), Size: info.Size()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Ino = st.Ino
	}

	return s
}

// StampAt returns the Stamp of the file at a path. Links are followed. A start looks at the files of all agents this way,
// so it makes no FileInfo.
func StampAt(path string) (Stamp, error) {
	for {
		var st unix.Stat_t
		switch err := unix.Stat(path, &st); err {
		case nil:
			return Stamp{Changed: st.Ctim.Nano(), Written: st.Mtim.Nano(), Size: st.Size, Ino: st.Ino}, nil
		case unix.EINTR:
		default:
			return Stamp{}, &fs.PathError{Op: "stat", Path: path, Err: err}
		}
	}
}

// Lasts reports whether a file that looks so at a time must look different after another write.
func (s Stamp) Lasts(looked time.Time) bool {
	least := Tick
	if s.Changed%int64(time.Second) == 0 {
		least = coarse
	}

	return looked.UnixNano()-s.Changed > int64(least)
}

// Look returns the Stamp of the file at a path, without following a link; the zero one if there is nothing.
// ok is false where that tells nothing of its content: what is there is no file, or it cannot be looked at.
func Look(path string) (s Stamp, ok bool) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Stamp{}, true
	}
	if err != nil || !info.Mode().IsRegular() {
		return Stamp{}, false
	}

	return StampOf(info), true
}
