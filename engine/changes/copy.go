package changes

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/sensitive"
	"daycare/engine/workspace"
)

// A Copy is a folder that an agent works in instead of another one.
type Copy struct {
	Dir   string     `json:"-"`     // holds the files of the copy
	Of    string     `json:"of"`    // the folder that was copied: absolute, without symbolic links
	Agent string     `json:"agent"` // the agent that it was made for
	At    disk.Stamp `json:"at"`
}

const (
	infoName = "copy.json"
	baseName = "base.jsonl"
	treeName = "tree"
	textsDir = "base"
	newName  = ".new-" // of a copy in the making

	maxEntries = 500_000
	maxText    = 256 << 10 // of a text that is kept for merging, in bytes
	leftFree   = 64 << 20  // bytes of the disk that a copy leaves free
)

// Tree is the copied folder itself.
func (c Copy) Tree() string { return filepath.Join(c.Dir, treeName) }

// errHomeless: a user without a home folder has no copies.
var errHomeless = errors.New("there is no folder for copies: set HOME, or XDG_STATE_HOME")

// Home is the folder of the copies of a workspace: in the state folder of its user, because no
// agent reaches into .daycare. XDG_STATE_HOME moves it. Errors: errHomeless.
func Home(at workspace.Place) (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) || base == os.DevNull {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errHomeless
		}
		base = filepath.Join(home, ".local", "state")
	}
	sum := sha256.Sum256([]byte(beneath.Real(at.Key())))

	return filepath.Join(base, "daycare", "copies", hex.EncodeToString(sum[:6])), nil
}

// Of returns the copy whose tree is a folder, and that it is one.
func Of(tree string) (Copy, bool) {
	if filepath.Base(tree) != treeName {
		return Copy{}, false
	}
	c, err := read(filepath.Dir(tree))
	return c, err == nil
}

// Inside returns where a path of the copied folder is in the copy whose tree is a folder, and any
// other path as it is.
func Inside(tree, path string) string {
	rel, err := filepath.Rel(tree, path)
	if err == nil && filepath.IsLocal(rel) {
		return path
	}
	c, _ := Of(tree) // in none no path is
	if rel, err = filepath.Rel(c.Of, path); err != nil || !filepath.IsLocal(rel) {
		return path
	}

	return filepath.Join(tree, rel)
}

func read(dir string) (c Copy, err error) {
	data, _, err := beneath.Own(filepath.Join(dir, infoName), 1<<20)
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err == nil && !filepath.IsAbs(c.Of) {
		err = errors.New("the path of the folder is missing")
	}
	if err != nil {
		return c, fmt.Errorf("read %s: %w", filepath.Join(dir, infoName), err)
	}
	c.Dir = dir

	return c, nil
}

// A Shelf is what is in the folder of the copies of a workspace.
type Shelf struct {
	Copies []Copy   // the newest first
	Broken []error  // why others cannot be used; each names its file
	Halves []string // absolute paths of copies in the making, or being removed, which a crash may have left
}

// List returns the copies of a workspace: none where there can be none.
func List(at workspace.Place) (s Shelf, err error) {
	home, err := Home(at)
	if err != nil {
		return s, nil
	}
	dir, err := beneath.Root(home)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("list copies: %w", err)
	}
	defer dir.Close()
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return s, fmt.Errorf("list copies: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(home, e.Name())
		if strings.HasPrefix(e.Name(), newName) {
			s.Halves = append(s.Halves, path)
			continue
		}
		c, err := read(path)
		switch {
		case err == nil:
			s.Copies = append(s.Copies, c)
		case lacking(err):
			return Shelf{}, err
		default:
			s.Broken = append(s.Broken, err)
		}
	}
	slices.SortFunc(s.Copies, func(a, b Copy) int {
		return cmp.Or(b.At.Compare(a.At.Time), strings.Compare(a.Dir, b.Dir))
	})

	return s, nil
}

// lacking reports whether an error says nothing about a copy: the system lacks something now.
func lacking(err error) bool {
	known := errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.ENOTDIR)
	return !known && errors.As(err, new(syscall.Errno))
}

// RemoveAll removes all copies of a workspace that is removed itself.
func RemoveAll(at workspace.Place) error {
	home, err := Home(at)
	if err != nil {
		return nil
	}

	return Discard(home)
}

// Discard removes the folder of a copy, or of all copies, also what a copied mode, or a command, made read-only.
func Discard(dir string) error {
	writable(dir)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the copy: %w", err)
	}

	return nil
}

// Make copies a folder for an agent. What daycare keeps (.daycare), sockets, devices and names that
// are no UTF-8 are left out. A copy that cannot be made whole leaves nothing. Errors: *NoRoom.
func Make(ctx context.Context, w workspace.Place, of, agent string, at disk.Stamp) (c Copy, err error) {
	home, err := Home(w)
	if err != nil {
		return c, err
	}
	vol := disk.NewVolume(home)
	if err := vol.MkdirAll(home); err != nil {
		return c, fmt.Errorf("copy %s: %w", of, err)
	}
	final := filepath.Join(home, rand.Text())
	c = Copy{Dir: filepath.Join(home, newName+filepath.Base(final)), Of: beneath.Real(of), Agent: agent, At: at}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("copy %s: %w", of, err), os.RemoveAll(c.Dir))
		}
	}()
	from, err := beneath.Root(c.Of)
	if err != nil {
		return c, err
	}
	defer from.Close()
	m := maker{home: home, c: c}
	if err := m.room(ctx, from); err != nil {
		return c, err
	}
	if err := errors.Join(os.Mkdir(c.Dir, 0o700), os.Mkdir(c.Tree(), 0o700), os.Mkdir(filepath.Join(c.Dir, textsDir), 0o700)); err != nil {
		return c, err
	}
	if err := m.copy(ctx, from); err != nil {
		return c, err
	}
	data, err := json.Marshal(c)
	if err == nil {
		err = vol.WriteFile("changes", filepath.Join(c.Dir, infoName), append(data, '\n'))
	}
	if err == nil {
		err = c.writeBase(vol, m.files)
	}
	if err == nil { // a file that a power cut emptied would be a change of the agent's
		err = disk.SyncAll("changes.copied", c.Dir)
	}
	if err == nil {
		err = vol.Rename("changes", c.Dir, final)
	}
	if err == nil {
		c.Dir = final
	}

	return c, err
}

// Remove removes the copy with all that is in it.
func (c Copy) Remove() error {
	aside := filepath.Join(filepath.Dir(c.Dir), newName+filepath.Base(c.Dir))
	if err := os.Rename(c.Dir, aside); err != nil {
		return fmt.Errorf("remove the copy: %w", err)
	}

	return Discard(aside)
}

// writable lets what is in folders be removed that a copied mode, or a command, made read-only.
func writable(dir string) {
	root, err := beneath.Root(dir)
	if err != nil {
		return
	}
	defer root.Close()
	_ = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = root.Chmod(path, 0o700) // what stays is reported by the removal
		}
		return nil
	})
}

// A NoRoom error says that the disk has too little space for a copy.
type NoRoom struct{ Need, Free int64 } // bytes

func (e *NoRoom) Error() string {
	return fmt.Sprintf("the copy needs %d MB and the disk has %d MB to spare", e.Need>>20+1, max(e.Free, 0)>>20)
}

// A file is one of the base.
type file struct {
	Path    string      `json:"path"` // with slashes
	SHA256  string      `json:"sha256,omitempty"`
	Link    string      `json:"link,omitempty"` // of a symbolic link: where it leads
	Mode    fs.FileMode `json:"mode,omitempty"`
	Size    int64       `json:"size,omitempty"`
	Changed int64       `json:"changed,omitempty"` // when the copy was changed last, in ns
}

func (f file) state() State {
	if f.Link != "" {
		return State{Other: beneath.ErrLink.Error()}
	}
	return State{SHA256: f.SHA256, Mode: f.Mode}
}

// A maker makes a copy.
type maker struct {
	home  string // is left out, should it be in the folder
	files []file
	c     Copy
}

// left reports whether a name is left out of copies.
func left(name string) bool { return sensitive.Fold(name) == sensitive.Data || !utf8.ValidString(name) }

// room checks that the disk has room for the copy of an open folder.
func (m *maker) room(ctx context.Context, from *os.Root) error {
	var need int64
	n := 0
	err := fs.WalkDir(from.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // removed meanwhile
		case err != nil:
			return err
		case path != "." && left(d.Name()), filepath.Join(m.c.Of, path) == m.home:
			return skip(d)
		}
		if n++; n > maxEntries {
			return fmt.Errorf("it has more than %d files and folders; let the agent work in a smaller folder", maxEntries)
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			need += info.Size()
		}
		return ctx.Err()
	})
	var st syscall.Statfs_t
	if err == nil {
		err = syscall.Statfs(m.home, &st)
	}
	if free := int64(st.Bavail)*int64(st.Bsize) - leftFree; err == nil && free < need {
		return &NoRoom{need, free}
	}

	return err
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func (m *maker) copy(ctx context.Context, from *os.Root) error {
	to, err := beneath.Root(m.c.Tree())
	if err != nil {
		return err
	}
	defer to.Close()

	return m.folder(ctx, from, to, "")
}

func (m *maker) folder(ctx context.Context, from, to *os.Root, rel string) error {
	entries, err := fs.ReadDir(from.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(rel, e.Name())
		if left(e.Name()) || filepath.Join(m.c.Of, path) == m.home {
			continue
		}
		info, err := from.Lstat(e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err == nil {
			err = m.entry(ctx, from, to, path, info)
		}
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}

	return nil
}

func (m *maker) entry(ctx context.Context, from, to *os.Root, path string, info fs.FileInfo) error {
	name := info.Name()
	switch {
	case info.IsDir():
		return m.below(ctx, from, to, path, info)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := from.Readlink(name)
		m.files = append(m.files, file{Path: filepath.ToSlash(path), Link: target})
		return cmp.Or(err, to.Symlink(target, name))
	case info.Mode().IsRegular():
		f, err := m.file(from, to, name, info)
		f.Path = filepath.ToSlash(path)
		m.files = append(m.files, f)
		return err
	}

	return nil
}

// below copies a folder. It gets its mode last: it may be one that cannot be written.
func (m *maker) below(ctx context.Context, from, to *os.Root, path string, info fs.FileInfo) error {
	source, err := beneath.Enter(from, info.Name(), info)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := to.Mkdir(info.Name(), 0o700); err != nil {
		return err
	}
	target, err := to.OpenRoot(info.Name())
	if err != nil {
		return err
	}
	defer target.Close()

	return cmp.Or(m.folder(ctx, source, target, path), to.Chmod(info.Name(), info.Mode().Perm()|0o700))
}

// file copies a file: as a reference to the same blocks, where the file system can do that.
func (m *maker) file(from, to *os.Root, name string, info fs.FileInfo) (f file, err error) {
	in, err := beneath.Open(from, name, info)
	if err != nil {
		return f, err
	}
	defer in.Close()
	out, err := to.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	if err == nil {
		err = out.Chmod(info.Mode().Perm())
	}
	if err == nil {
		_, err = out.Seek(0, io.SeekStart)
	}
	if err == nil {
		f.SHA256, err = m.sum(out)
	}
	if err == nil {
		info, err = out.Stat()
	}
	if err == nil {
		f.Mode, f.Size, f.Changed = info.Mode().Perm(), info.Size(), beneath.ChangedAt(info).UnixNano()
	}

	return f, err
}

// sum hashes a copied file, and keeps what it holds if it is a text that can be merged later.
func (m *maker) sum(f *os.File) (string, error) {
	head := make([]byte, maxText+1)
	n, err := io.ReadFull(f, head)
	if err == nil { // longer
		return sum(io.MultiReader(strings.NewReader(string(head)), f))
	}
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	s := StateOf(head[:n], 0)
	if utf8.Valid(head[:n]) {
		err = os.WriteFile(filepath.Join(m.c.Dir, textsDir, s.SHA256), head[:n], 0o600)
	} else {
		err = nil
	}

	return s.SHA256, err
}

// writeBase writes what the files were.
func (c Copy) writeBase(vol *disk.Volume, files []file) error {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	for _, f := range files {
		_ = encoder.Encode(f) // strings and numbers
	}

	return vol.WriteFile("changes", filepath.Join(c.Dir, baseName), []byte(b.String()))
}

// base reads what the files were, by path.
func (c Copy) base() (map[string]file, error) {
	path := filepath.Join(c.Dir, baseName)
	f, _, err := beneath.OpenOwn(path)
	if err != nil {
		return nil, fmt.Errorf("read the copy: %w", err)
	}
	defer f.Close()
	files := map[string]file{}
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		var one file
		if err := json.Unmarshal(in.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		files[one.Path] = one
	}

	return files, in.Err()
}
