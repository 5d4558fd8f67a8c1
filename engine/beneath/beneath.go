package beneath

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

var (
	// ErrLink: there is a symbolic link in the way.
	ErrLink = errors.New("it is a symbolic link, which is not followed here")
	// ErrKind: it is a pipe, a socket, a device or a folder.
	ErrKind = errors.New("it is not a regular file")
	// ErrNames: the file has other names (hard links).
	ErrNames = errors.New("it has several names (hard links)")
	// ErrTooLarge: the file is larger than the caller reads.
	ErrTooLarge = errors.New("it is too large")
	// ErrRace: the path changed while it was opened.
	ErrRace = errors.New("the path changed while it was opened; try again")
)

// An ID says which folder or file it is, whatever its name.
type ID struct {
	Dev uint64 `json:"dev"`
	Ino uint64 `json:"ino"`
}

// IDOf returns the ID of what info describes; the zero ID where the system has none.
func IDOf(info fs.FileInfo) ID {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return ID{Dev: uint64(st.Dev), Ino: st.Ino}
	}
	return ID{}
}

// Links returns how many names the file has.
func Links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// Enter opens the folder name of dir. info is what was seen there before, nil to look now.
func Enter(dir *os.Root, name string, info fs.FileInfo) (*os.Root, error) {
	var err error
	if info == nil {
		if info, err = dir.Lstat(name); err != nil {
			return nil, err
		}
	}

	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrLink}
	case !info.IsDir():
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ENOTDIR}
	}

	sub, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	got, err := sub.Stat(".")
	if err == nil && !os.SameFile(info, got) {
		err = ErrRace
	}
	if err != nil {
		sub.Close()
		return nil, err
	}

	return sub, nil
}

// Root opens a folder by a path that no agent can change: links in it are followed. What is no
// folder is syscall.ENOTDIR.
func Root(path string) (*os.Root, error) {
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, err
	}

	return os.OpenRoot(path)
}

// Dir opens the folder rel beneath the folder root, which is opened as Root does.
func Dir(root, rel string) (*os.Root, error) {
	dir, err := Root(root)
	if err != nil {
		return nil, err
	}
	if rel == "" || rel == "." {
		return dir, nil
	}
	defer dir.Close()

	return Sub(dir, rel)
}

// Sub opens the folder rel beneath an open one, which stays open.
func Sub(dir *os.Root, rel string) (*os.Root, error) {
	if !filepath.IsLocal(rel) {
		return nil, &fs.PathError{Op: "open", Path: rel, Err: fs.ErrInvalid}
	}
	at := dir
	for name := range strings.SplitSeq(filepath.Clean(rel), string(filepath.Separator)) {
		sub, err := Enter(at, name, nil)
		if at != dir {
			at.Close()
		}
		if err != nil {
			return nil, err
		}
		at = sub
	}

	return at, nil
}

// Open opens the regular file name of dir for reading; info is what was seen there before. A
// pipe swapped in does not block.
func Open(dir *os.Root, name string, info fs.FileInfo) (*os.File, error) {
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrLink}
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrKind}
	}

	f, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	got, err := f.Stat()
	if err == nil && !os.SameFile(info, got) {
		err = ErrRace
	}
	if err != nil {
		f.Close()
		return nil, err
	}

	return f, nil
}

// Read reads the file rel beneath dir, at most limit bytes. info is of the file that was read. Of
// a larger one it returns the beginning, with ErrTooLarge.
func Read(dir *os.Root, rel string, limit int64) (data []byte, info fs.FileInfo, err error) {
	if !filepath.IsLocal(rel) {
		return nil, nil, &fs.PathError{Op: "read", Path: rel, Err: fs.ErrInvalid}
	}
	if up := filepath.Dir(rel); up != "." {
		sub, err := Sub(dir, up)
		if err != nil {
			return nil, nil, err
		}
		defer sub.Close()
		dir = sub
	}

	name := filepath.Base(rel)
	if info, err = dir.Lstat(name); err != nil {
		return nil, nil, err
	}
	if info.Mode().IsRegular() && Links(info) > 1 {
		return nil, nil, &fs.PathError{Op: "read", Path: name, Err: ErrNames}
	}

	f, err := Open(dir, name, info)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data, err = within(f, name, limit)

	return data, info, err
}

// ReadFile is Read beneath the folder root, which is opened as Root does.
func ReadFile(root, rel string, limit int64) ([]byte, error) {
	dir, err := Root(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	data, _, err := Read(dir, rel, limit)

	return data, err
}

// Own reads a file of .daycare, where no agent writes: it may be a link that its owner made. Like
// Read it never blocks, and reads at most limit bytes of a regular file.
func Own(path string, limit int64) (data []byte, info fs.FileInfo, err error) {
	f, info, err := OpenOwn(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	data, err = within(f, path, limit)

	return data, info, err
}

// Whole is Own of a file of any size.
func Whole(path string) ([]byte, error) {
	f, info, err := OpenOwn(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content := bytes.NewBuffer(make([]byte, 0, info.Size()+bytes.MinRead))
	_, err = content.ReadFrom(f)

	return content.Bytes(), err
}

// OpenRegular opens a regular file for reading, wherever links lead to it, that an agent may have put there.
// Nothing else is opened: ErrKind.
func OpenRegular(path string) (*os.File, error) { return openRegular(path) }

// Regular reads at most limit bytes of such a file. Of a larger one it returns the beginning, with ErrTooLarge.
func Regular(path string, limit int64) ([]byte, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()

	return within(f, path, limit)
}

// OpenUnheld opens a file of .daycare for reading. It does not wait for the writer of a pipe, but
// a second at most for a file that is held for a moment, as disk.Log.Reload does.
func OpenUnheld(path string) (*os.File, error) {
	for end := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(end) {
			return f, err
		}
	}
}

// OpenOwn opens such a file.
func OpenOwn(path string) (*os.File, fs.FileInfo, error) {
	f, err := OpenUnheld(path)
	if errors.Is(err, syscall.ENXIO) { // a socket
		err = &fs.PathError{Op: "read", Path: path, Err: ErrKind}
	}
	if err != nil {
		return nil, nil, err
	}

	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: ErrKind}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}

	return f, info, nil
}

func within(r io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		data = data[:limit]
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limit)}
	}

	return data, err
}

// Reason returns the cause of a file error without operation and path names, which are relative
// to some folder on the way.
func Reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}

	return err
}
