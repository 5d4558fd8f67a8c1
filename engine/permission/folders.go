package permission

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// FoldersFile is the name of the file in .daycare that stores Folders.
const FoldersFile = "folders.json"

// Folders remembers which folder each granted path was when it was granted, by device and inode. A
// grant is for that folder only: an agent that can write above it could replace it by a link or
// another folder, and must not gain access to something else that way.
//
// A folder is opened from the outermost folder that some agent can write, name by name, and from
// there on no symbolic link is followed. A path that was never seen is pinned when Know first sees
// it. Only the owner pins it again (Give); the workspace itself is pinned again at each start.
//
// Its methods may be called from any goroutine.
type Folders struct {
	place  workspace.Place
	vol    *disk.Volume // nil: nothing is written
	report func(path string, err error)

	mu    sync.Mutex
	known map[string]pin // by absolute path
}

type pin struct {
	beneath.ID
	Write bool `json:"write,omitempty"` // some agent can write in it
}

// foldersOnDisk is folders.json. Paths in the workspace are relative to it, so that they stay
// right when it is moved.
type foldersOnDisk struct {
	Boot    string         `json:"boot"` // device numbers may change with it
	Root    beneath.ID     `json:"root"`
	Folders map[string]pin `json:"folders"`
}

// A Replaced error says that the folder at a granted path is no longer the one that was granted.
type Replaced struct{ Path, What string }

func (e *Replaced) Error() string {
	return fmt.Sprintf("%s is not the folder that access was granted to: %s\nIf this is intended, grant access to "+
		"the new one: daycare permissions grant AGENT @write:%s",
		e.Path, e.What, e.Path)
}

// NewFolders returns Folders that know only the workspace ("": none) and are not stored.
func NewFolders(dir string) *Folders {
	f := &Folders{report: func(string, error) {}, known: map[string]pin{}}
	if dir == "" {
		return f
	}
	f.place.Dir = filepath.Clean(dir)
	if info, err := os.Stat(f.place.Dir); err == nil {
		f.known[f.place.Dir] = pin{beneath.IDOf(info), true}
	}

	return f
}

// OpenFolders returns the Folders of a workspace. In one that was copied or restored every folder
// has another inode, so all are pinned again. With a nil volume nothing is written. report is
// called with what Open finds: an error, or nil once the folder can be opened again.
func OpenFolders(vol *disk.Volume, at workspace.Place, report func(path string, err error)) (*Folders, error) {
	f := NewFolders(at.Dir)
	f.place.Data, f.vol, f.report = at.Data, vol, report
	data, err := beneath.ReadFile(f.place.Data, FoldersFile, 16<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", FoldersFile, err)
	}

	var kept foldersOnDisk
	if err := json.Unmarshal(data, &kept); err != nil {
		return nil, fmt.Errorf("read %s: %w\ndelete it: daycare then pins every granted folder again", FoldersFile, err)
	}
	booted := kept.Boot != BootID() || kept.Boot == ""
	if root := f.known[f.place.Dir].ID; kept.Root.Ino != root.Ino || !booted && kept.Root.Dev != root.Dev {
		return f, nil
	}

	for path, p := range kept.Folders {
		if booted {
			p.Dev = 0
		}
		if path = f.place.Resolve(path); path != f.place.Dir {
			f.known[path] = p
		}
	}

	return f, nil
}

// BootID changes when the machine starts; "" where the system has none.
func BootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // empty where there is none
	return strings.TrimSpace(string(data))
}

// Know pins the folders of a set that were never pinned. A folder that cannot be opened now is
// tried again the next time.
func (f *Folders) Know(set Set) error {
	changed := false
	for _, write := range []bool{true, false} { // first: they say where links are followed
		roots := set.ReadRoots()
		if write {
			roots = set.WriteRoots()
		}
		for _, path := range roots {
			changed = f.know(path, write) || changed
		}
	}

	if !changed {
		return nil
	}

	return f.save()
}

func (f *Folders) know(path string, write bool) (changed bool) {
	f.mu.Lock()
	p, ok := f.known[path]
	f.mu.Unlock()
	if ok && (p.Write || !write) {
		return false
	}
	if !ok {
		dir, _, err := f.Open(path)
		if err != nil {
			return false
		}
		defer dir.Close()
		info, err := dir.Stat(".")
		if err != nil {
			return false
		}

		p.ID = beneath.IDOf(info)
	}

	p.Write = write
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[path] = p
	return true
}

// Give pins the folder that is at a path now, because its owner granted it, perhaps again. A path
// that is not a folder is not pinned.
func (f *Folders) Give(a Access) error {
	path, write := "", false
	switch a := a.(type) {
	case Read:
		path = a.Path
	case Write:
		path, write = a.Path, true
	default:
		return nil
	}

	f.mu.Lock()
	old, ok := f.known[path]
	delete(f.known, path)
	f.mu.Unlock()
	changed := f.know(path, write || old.Write)
	if !changed && !ok {
		return nil
	}

	return f.save()
}

func (f *Folders) save() error {
	if f.vol == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := foldersOnDisk{Boot: BootID(), Root: f.known[f.place.Dir].ID, Folders: map[string]pin{}}
	for path, p := range f.known {
		kept.Folders[f.place.Store(path)] = p
	}

	data, err := json.MarshalIndent(kept, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", FoldersFile, err)
	}

	return f.vol.WriteFile("folders", filepath.Join(f.place.Data, FoldersFile), append(data, '\n'))
}

// Open opens a granted folder. real is its path without symbolic links. Errors: *Replaced, those
// of the file system.
func (f *Folders) Open(path string) (dir *os.Root, real string, err error) {
	path = filepath.Clean(path)
	dir, real, err = f.open(path)
	var other *Replaced
	if err == nil || errors.As(err, &other) {
		f.report(path, err)
	}

	return dir, real, err
}

func (f *Folders) open(path string) (*os.Root, string, error) {
	base := f.outermost(path)
	real, err := filepath.EvalSymlinks(base)
	if err != nil {
		return nil, "", err
	}

	dir, err := beneath.Root(real)
	if err != nil {
		return nil, "", err
	}
	if err := f.same(base, dir); err != nil {
		dir.Close()
		return nil, "", err
	}
	if base == path {
		return dir, real, nil
	}
	defer dir.Close()
	rel, _ := filepath.Rel(base, path) // base is around path
	sub, err := beneath.Sub(dir, rel)
	if errors.Is(err, beneath.ErrLink) {
		return nil, "", &Replaced{path, "it, or a folder above it, is now a symbolic link"}
	}
	if err != nil {
		return nil, "", err
	}
	if err := f.same(path, sub); err != nil {
		sub.Close()
		return nil, "", err
	}

	return sub, filepath.Join(real, rel), nil
}

// outermost returns the outermost folder around path that some agent can write, path itself if
// there is none: only the owner changes what is above it.
func (f *Folders) outermost(path string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	base := path
	for root, p := range f.known {
		if p.Write && Beneath(root, path) && len(root) < len(base) {
			base = root
		}
	}

	return base
}

// same compares an open folder with what its path was pinned to.
func (f *Folders) same(path string, dir *os.Root) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.known[path]
	if !ok {
		return nil
	}

	info, err := dir.Stat(".")
	if err != nil {
		return err
	}
	now := beneath.IDOf(info)
	if p.Dev == 0 { // of an earlier boot
		p.Dev = now.Dev
	}
	if p.ID != now {
		return &Replaced{path, "another folder now has its name"}
	}

	f.known[path] = p
	return nil
}

// Around opens a granted folder; for a granted file, or a path that does not exist yet, the folder
// around it. at is the path of the opened folder. A folder that was pinned and no longer exists is
// fs.ErrNotExist.
func (f *Folders) Around(path string) (dir *os.Root, at, real string, err error) {
	path = filepath.Clean(path)
	dir, real, err = f.Open(path)
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) || f.pinned(path) {
		return dir, path, real, err
	}
	at = filepath.Dir(path)
	dir, real, err = f.Open(at)

	return dir, at, real, err
}

func (f *Folders) pinned(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.known[path]
	return ok
}

// Locate returns the path of a granted folder or file without symbolic links, and the device and
// inode that it has now.
func (f *Folders) Locate(path string) (real string, id beneath.ID, err error) {
	dir, at, real, err := f.Around(path)
	if err != nil {
		return "", beneath.ID{}, err
	}
	defer dir.Close()
	name, _ := filepath.Rel(at, filepath.Clean(path)) // at is path or its folder
	info, err := dir.Lstat(name)
	if err != nil {
		return "", beneath.ID{}, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return "", beneath.ID{}, &fs.PathError{Op: "open", Path: path, Err: beneath.ErrLink}
	}

	return filepath.Join(real, name), beneath.IDOf(info), nil
}

// Writable reports whether some agent can write at a path.
func (f *Folders) Writable(path string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for root, p := range f.known {
		if p.Write && Beneath(root, path) {
			return true
		}
	}

	return false
}

// Check looks at every pinned folder that exists and returns those that were replaced, sorted by
// path.
func (f *Folders) Check() (replaced []*Replaced) {
	f.mu.Lock()
	paths := make([]string, 0, len(f.known))
	for path := range f.known {
		paths = append(paths, path)
	}

	f.mu.Unlock()

	for _, path := range paths {
		dir, _, err := f.open(path)
		var other *Replaced
		if errors.As(err, &other) {
			replaced = append(replaced, other)
		}
		if err == nil {
			dir.Close()
		}
	}

	slices.SortFunc(replaced, func(a, b *Replaced) int { return cmp.Compare(a.Path, b.Path) })
	return replaced
}
