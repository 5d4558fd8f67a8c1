// Package tarball reads and writes the archives that daycare makes: exported agents and
// backups. What is read may come from anybody, so only regular files with plain relative
// names pass, each name once, within limits that are checked before the bytes are read.
package tarball

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// An Entry is one file of an archive.
type Entry struct {
	Name    string // slash-separated and relative
	Size    int64  // bytes
	Mode    fs.FileMode
	ModTime time.Time
}

// Limits bound what is read from an archive.
type Limits struct {
	File  int64 // bytes of one file
	Total int64 // bytes of all files
	Files int   // how many there may be
}

// Read calls take for each file of an uncompressed tar, in its order; take may leave content
// unread. Folders are passed over. Links, devices, files with holes, names that lead elsewhere, names
// that come twice and whatever is over a limit are errors, and take does not see them.
func Read(r io.Reader, l Limits, take func(e Entry, content io.Reader) error) error {
	tr := tar.NewReader(r)
	seen := map[string]bool{}
	for total := int64(0); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return unreadable(err)
		}

		e, err := entryOf(h)
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}

		key := strings.ToLower(e.Name) // some file systems see no difference
		total += e.Size
		switch {
		case seen[key]:
			return fmt.Errorf("it contains %q twice", e.Name)
		case e.Size > l.File:
			return fmt.Errorf("%q has %d bytes; allowed: %d", e.Name, e.Size, l.File)
		case total > l.Total:
			return fmt.Errorf("its files have more than %d bytes in total", l.Total)
		case len(seen) >= l.Files:
			return fmt.Errorf("it contains more than %d files", l.Files)
		}

		seen[key] = true
		if err := take(e, tr); err != nil {
			return err
		}
	}
}

// unreadable says what an error of the tar format means.
func unreadable(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it is truncated: %w", err)
	}
	return err
}

func entryOf(h *tar.Header) (Entry, error) {
	name := strings.TrimPrefix(h.Name, "./")
	if h.Typeflag == tar.TypeDir {
		name = strings.TrimSuffix(name, "/")
	}
	e := Entry{Name: name, Size: h.Size, Mode: h.FileInfo().Mode().Perm(), ModTime: h.ModTime}
	switch {
	case h.Typeflag == tar.TypeSymlink || h.Typeflag == tar.TypeLink:
		return e, fmt.Errorf("it contains a link: %q to %q", h.Name, h.Linkname)
	case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir:
		return e, fmt.Errorf("%q is neither a file nor a folder", h.Name)
	case sparse(h):
		return e, fmt.Errorf("%q is stored with holes, as tar --sparse does it", h.Name)
	case name == "" && h.Typeflag == tar.TypeDir: // "./", as tar writes it
	case !Plain(name):
		return e, fmt.Errorf("the name %q points outside of the archive, or is not a plain name", h.Name)
	}

	return e, nil
}

// sparse reports a file of which only a part is in the archive: a few bytes of it could fill a disk. The older kind of them
// has a type of its own.
func sparse(h *tar.Header) bool {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return true
		}
	}

	return false
}

// Plain reports whether a name is relative, has no steps such as "..", and nothing in it that
// a terminal or another system would take for more than a letter.
func Plain(name string) bool {
	return fs.ValidPath(name) && name != "." && utf8.ValidString(name) && !strings.ContainsRune(name, '\\') &&
		!strings.ContainsFunc(name, unicode.IsControl)
}

// Put writes a file of an archive beneath dir, with the folders that it needs. A file that is
// there is an error: fs.ErrExist.
func Put(dir *os.Root, e Entry, content io.Reader) error {
	name := filepath.FromSlash(e.Name)
	if err := dir.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}

	// Nobody else may write it, and no setuid bit comes along.
	f, err := dir.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600|e.Mode&0o755)
	if err != nil {
		return err
	}

	n, err := io.Copy(f, content)
	if err == nil && n < e.Size {
		err = io.ErrUnexpectedEOF
	}
	if err = errors.Join(err, f.Close()); err == nil && !e.ModTime.IsZero() {
		err = dir.Chtimes(name, e.ModTime, e.ModTime)
	}

	return unreadable(err)
}

// A Writer writes a tar.
type Writer struct{ tar *tar.Writer }

// NewWriter writes a tar to w.
func NewWriter(w io.Writer) Writer { return Writer{tar.NewWriter(w)} }

// Add writes a file of exactly e.Size bytes.
func (w Writer) Add(e Entry, content io.Reader) error {
	h := &tar.Header{Name: path.Clean(e.Name), Mode: int64(e.Mode.Perm()), Size: e.Size, ModTime: e.ModTime,
		Format: tar.FormatPAX}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	if n, err := io.CopyN(w.tar, content, e.Size); err != nil {
		return fmt.Errorf("%s: %d of %d bytes could be read: %w", e.Name, n, e.Size, err)
	}

	return nil
}

// Close writes the end of the tar.
func (w Writer) Close() error { return w.tar.Close() }
