package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// A Mirror keeps what a power cut would leave: of each file the content that its
// last sync covered, of each directory the names. Bytes and names that were never
// synced are not in it, although a process that only dies leaves them behind. So a
// missing barrier can be shown on any machine, without cutting any power.
//
// It is a folder, ID of a file or directory being the name of what is kept of it,
// and outlives the processes that write it one after the other.
type Mirror struct {
	dir string

	mu     sync.Mutex
	kept   map[string]int64 // bytes of files this process has brought up to date
	ticket int64
	names  map[string]int64 // ticket of the names that are kept of a directory
}

// OpenMirror keeps what is durable in the folder dir.
func OpenMirror(dir string) *Mirror {
	return &Mirror{dir: dir, kept: map[string]int64{}, names: map[string]int64{}}
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
		names, ticket, err := m.list(f.Name())
		if err != nil {
			return err
		}
		if err := how(f); err != nil {
			return err
		}
		return m.keepNames(f.Name(), names, ticket)
	}
	if err := how(f); err != nil {
		return err
	}
	return m.keepContent(f, info.Size())
}

// A Name is one entry of a directory.
type Name struct {
	ID  string `json:"id"`
	Dir bool   `json:"dir,omitempty"`
}

// list reads the entries of a directory. Later lists have higher tickets.
func (m *Mirror) list(dir string) (map[string]Name, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, 0, err
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
			return nil, 0, err
		}
		names[e.Name()] = Name{ID: id, Dir: e.IsDir()}
	}
	m.ticket++
	return names, m.ticket, nil
}

func (m *Mirror) keepNames(dir string, names map[string]Name, ticket int64) error {
	id, err := FileID(dir)
	if err != nil {
		return err
	}
	data, err := json.Marshal(names)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.names[id] > ticket {
		return nil // a sync that began later has ended before
	}
	m.names[id] = ticket
	return m.replace(id, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// keepContent brings the copy of f up to size bytes. Most files here only grow, so
// most often the end is appended; a copy that dies on the way is a sync that a
// power cut interrupted.
func (m *Mirror) keepContent(f *os.File, size int64) error {
	id, err := openID(f)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	had, known := m.kept[id]
	if known && had <= size && m.sameEnd(f, id, had) {
		err = m.extend(f, id, had, size)
	} else {
		err = m.replace(id, func(w io.Writer) error {
			_, err := io.Copy(w, io.NewSectionReader(f, 0, size))
			return err
		})
	}
	if err == nil {
		m.kept[id] = size
	}
	return err
}

// sameEnd reports whether the copy still is how the file begins.
func (m *Mirror) sameEnd(f *os.File, id string, had int64) bool {
	copied, err := os.Open(m.Path(id))
	if err != nil {
		return false
	}
	defer copied.Close()
	n := min(had, 64)
	a, b := make([]byte, n), make([]byte, n)
	_, err1 := copied.ReadAt(a, had-n)
	_, err2 := f.ReadAt(b, had-n)
	return err1 == nil && err2 == nil && string(a) == string(b)
}

func (m *Mirror) extend(f *os.File, id string, had, size int64) error {
	if had == size {
		return nil
	}
	copied, err := os.OpenFile(m.Path(id), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(copied, io.NewSectionReader(f, had, size-had))
	return errors.Join(err, copied.Close())
}

// replace makes the copy anew in one step.
func (m *Mirror) replace(id string, fill func(io.Writer) error) error {
	f, err := os.CreateTemp(m.dir, ".tmp-")
	if err != nil {
		return fmt.Errorf("keep a mirror: %w", err)
	}
	err = errors.Join(fill(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), m.Path(id))
	}
	return err
}

// Path is where the content of a file is kept.
func (m *Mirror) Path(id string) string { return filepath.Join(m.dir, id) }

// Names are the durable entries of a directory; none if it was never synced.
func (m *Mirror) Names(id string) (map[string]Name, error) {
	data, err := os.ReadFile(m.Path(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names map[string]Name
	return names, json.Unmarshal(data, &names)
}
