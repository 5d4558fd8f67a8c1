package crash

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// A Mirror keeps what a power cut would leave: of each file the content that its
// last sync covered, of each directory the names. Bytes and names that were never
// synced are not in it, although a process that only dies leaves them behind. So a
// missing barrier can be shown on any machine, without cutting any power.
//
// It is a folder in which the ID of a file names what is kept of it, and outlives the processes that write it one after the other.
type Mirror struct {
	dir string

	mu   sync.Mutex
	kept map[string]int64 // bytes of files this process has brought up to date

	// What this process wrote last of all names, and the file, which is open: so no other one gets its inode.
	names   listings
	written *os.File // nil: nothing yet
}

// OpenMirror keeps what is durable in the folder dir.
func OpenMirror(dir string) *Mirror {
	return &Mirror{dir: dir, kept: map[string]int64{}}
}

// mirror is the one that DAYCARE_FAILPOINT_MIRROR names; nil: none.
var mirror = sync.OnceValue(func() *Mirror {
	dir := os.Getenv("DAYCARE_FAILPOINT_MIRROR")
	if dir == "" {
		return nil
	}
	return OpenMirror(dir)
})

// Sync syncs f, which may be a directory, by calling how. Every sync of the
// program goes through here.
func Sync(f *os.File, how func(*os.File) error) error {
	m := mirror()
	if m == nil {
		return how(f)
	}

	return m.Sync(f, how)
}

// Sync calls how and then keeps what f held before: what came while it ran may not
// be covered.
func (m *Mirror) Sync(f *os.File, how func(*os.File) error) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return m.syncNames(f, how)
	}
	if err := how(f); err != nil {
		return err
	}

	return m.keepContent(f, info)
}

// A Name is one entry of a directory.
type Name struct {
	ID  string `json:"id"`
	Dir bool   `json:"dir,omitempty"`
}

// syncNames syncs a directory. From the reading of its names until they are kept no other
// process syncs one: it could keep older names for newer ones.
func (m *Mirror) syncNames(f *os.File, how func(*os.File) error) error {
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	defer unlock()
	names, err := List(f.Name())
	if err != nil {
		return err
	}
	if err := how(f); err != nil {
		return err
	}

	return m.keepNames(f.Name(), names)
}

// List is what a directory holds now: files and directories, by name.
func List(dir string) (map[string]Name, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := map[string]Name{}
	for _, e := range entries {
		if !e.IsDir() && !e.Type().IsRegular() {
			continue
		}
		id, err := FileID(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}

		names[e.Name()] = Name{ID: id, Dir: e.IsDir()}
	}

	return names, nil
}

func (m *Mirror) keepNames(dir string, names map[string]Name) error {
	id, err := FileID(dir)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	all, err := m.current()
	if err != nil {
		return err
	}
	if had, ok := all[id]; ok && had.Path == path && maps.Equal(had.Names, names) && maps.Equal(had.Own, names) {
		return nil
	}
	all.move(id, names)
	all[id] = listing{path, names, maps.Clone(names)}
	data, _ := json.Marshal(all) // strings and booleans always can be
	if m.written != nil {
		m.written.Close()
		m.written = nil
	}
	if err := m.replace(namesFile, bytes.NewReader(data)); err != nil {
		return err
	}

	m.names = all
	m.written, err = os.Open(m.Path(namesFile))

	return err
}

// current are the listings that this process wrote last, if no other one has written since.
func (m *Mirror) current() (listings, error) {
	if m.written != nil {
		mine, err := m.written.Stat()
		there, _ := os.Stat(m.Path(namesFile)) // what is not there is not the same
		if err == nil && os.SameFile(mine, there) {
			return m.names, nil
		}
	}

	return m.listings()
}

// A listing is what is kept of a directory.
type listing struct {
	Path  string          `json:"path"` // where it was when it was synced
	Names map[string]Name `json:"names"`
	// Own are the names that its own syncs covered. A journal that writes a rename in both
	// directories at once keeps Names; a file system without one keeps no more than Own.
	Own map[string]Name `json:"own"`
}

// listings are all directories, by ID. They are in one file, because a rename
// between two directories happens in both or in none.
type listings map[string]listing

const namesFile = "names.json"

// move brings the other directories in line with the new names of the directory
// id: what was renamed from one of them into it, or from it into one of them, is
// durable there too.
func (all listings) move(id string, names map[string]Name) {
	arrived, departed := idsOf(names), idsOf(all[id].Names)
	for file := range idsOf(names) {
		if departed[file] { // it was there and still is
			delete(arrived, file)
			delete(departed, file)
		}
	}

	for other, l := range all {
		// Of a directory that is not where it was nothing can be said.
		if now, _ := FileID(l.Path); other == id || now != other { // "" where none is
			continue
		}
		l.lose(arrived)
		l.gain(departed)
	}
}

func idsOf(names map[string]Name) map[string]bool {
	ids := make(map[string]bool, len(names))
	for _, n := range names {
		ids[n.ID] = true
	}

	return ids
}

// lose takes the names of files out that are no longer there.
func (l listing) lose(files map[string]bool) {
	for name, n := range l.Names {
		if !files[n.ID] {
			continue
		}
		if now, _ := FileID(filepath.Join(l.Path, name)); now != n.ID { // "" where none is
			delete(l.Names, name)
		}
	}
}

// gain puts the names of files in that are there by now.
func (l listing) gain(files map[string]bool) {
	if len(files) == 0 {
		return
	}
	entries, _ := os.ReadDir(l.Path) // empty where it is gone

	for _, e := range entries {
		if id, err := FileID(filepath.Join(l.Path, e.Name())); err == nil && files[id] {
			l.Names[e.Name()] = Name{ID: id, Dir: e.IsDir()}
		}
	}
}

// lock keeps other processes out while the listings are changed.
func (m *Mirror) lock() (unlock func(), err error) {
	f, err := os.Open(m.dir)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; err == syscall.EINTR; {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return nil, fmt.Errorf("lock the mirror: %w", err)
	}

	return func() { f.Close() }, nil
}

func (m *Mirror) listings() (listings, error) {
	all := listings{}
	data, err := os.ReadFile(m.Path(namesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &all)
	}

	return all, err
}

// keepContent brings the copy of f up to what info says of it. Most files here only grow, so
// most often the end is appended; a copy that dies on the way is a sync that a
// power cut interrupted.
func (m *Mirror) keepContent(f *os.File, info fs.FileInfo) error {
	id, err := openID(f)
	if err != nil {
		return err
	}
	from, err := readable(f, id)
	if err != nil {
		return err
	}
	defer from.Close()
	m.mu.Lock()
	defer m.mu.Unlock()

	extended, size := false, info.Size()
	if had, known := m.kept[id]; known && had <= size {
		extended, err = m.extend(from, id, had, size)
	}
	if !extended {
		err = m.replace(id, io.NewSectionReader(from, 0, size))
	}
	if err != nil {
		return err
	}

	m.kept[id] = size
	// The time of the last save is durable with the content.
	return os.Chtimes(m.Path(id), time.Time{}, info.ModTime())
}

// readable opens f once more, since it may be open for writing only: by its name,
// or by its descriptor where the name is another's by now.
func readable(f *os.File, id string) (*os.File, error) {
	if named, err := FileID(f.Name()); err == nil && named == id {
		return os.Open(f.Name())
	}
	return os.Open(fmt.Sprintf("/dev/fd/%d", f.Fd()))
}

// extend appends what came to f behind the bytes that its copy has. It returns false if the copy
// is not how the file begins.
func (m *Mirror) extend(f io.ReaderAt, id string, had, size int64) (bool, error) {
	copied, err := os.OpenFile(m.Path(id), os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return false, nil
	}
	n := min(had, 64)
	a, b := make([]byte, n), make([]byte, n)
	_, err1 := copied.ReadAt(a, had-n)
	_, err2 := f.ReadAt(b, had-n)
	if err := errors.Join(err1, err2); err != nil || string(a) != string(b) {
		return false, copied.Close()
	}

	err = copied.Truncate(had) // what is behind it is of a sync that failed
	if err == nil {
		_, err = io.Copy(copied, io.NewSectionReader(f, had, size-had))
	}

	return true, errors.Join(err, copied.Close())
}

// replace makes the copy anew in one step.
func (m *Mirror) replace(id string, content io.Reader) error {
	f, err := os.CreateTemp(m.dir, ".tmp-")
	if err != nil {
		return fmt.Errorf("keep a mirror: %w", err)
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), m.Path(id))
	}

	return err
}

// Path is where the content of a file is kept.
func (m *Mirror) Path(id string) string { return filepath.Join(m.dir, id) }

// Names are the durable entries of a directory; none if it was never synced.
func (m *Mirror) Names(id string) (map[string]Name, error) {
	all, err := m.listings()
	return all[id].Names, err
}

// OwnNames are the entries of a directory that are durable by its own syncs alone. What was
// renamed since may be there under both names, or under none.
func (m *Mirror) OwnNames(id string) (map[string]Name, error) {
	all, err := m.listings()
	return all[id].Own, err
}
