// Package disktest has a disk.Replica in memory, for tests of what is kept elsewhere.
package disktest

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"daycare/engine/disk"
)

// A Replica has some files of one folder, in memory.
type Replica struct {
	dir    string
	covers func(rel string) bool
	kept   func(files map[string][]byte) // may be nil

	mu     sync.Mutex
	files  map[string][]byte
	calls  []string
	fenced bool
	away   bool
}

// New makes a replica of the files below dir that covers says, by their paths relative to
// it. kept, which may be nil, is called with all files of each change before the change
// returns; a content of nil was removed.
func New(dir string, covers func(rel string) bool, kept func(files map[string][]byte)) *Replica {
	return &Replica{dir: dir, covers: covers, kept: kept, files: map[string][]byte{}}
}

var _ disk.Replica = (*Replica)(nil)

// Covers reports what the replica has of a file.
func (r *Replica) Covers(path string) (size int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rel, ok := r.rel(path)
	return int64(len(r.files[rel])), ok
}

func (r *Replica) rel(path string) (string, bool) {
	rel, err := filepath.Rel(r.dir, path)
	return rel, err == nil && filepath.IsLocal(rel) && r.covers(rel)
}

// Append adds to a file, and fails if that has another size than the caller believes.
func (r *Replica) Append(path string, at int64, p []byte) error {
	return r.change("append", []disk.Content{{Path: path, Data: p}}, func(rel string, p []byte) ([]byte, error) {
		have := r.files[rel]
		if int64(len(have)) != at {
			return nil, fmt.Errorf("append to %s at %d: the replica has %d bytes", rel, at, len(have))
		}
		return slices.Concat(have, p), nil
	})
}

// Put replaces files.
func (r *Replica) Put(files ...disk.Content) error {
	return r.change("put", files, func(_ string, p []byte) ([]byte, error) { return append([]byte{}, p...), nil })
}

// Remove removes a file.
func (r *Replica) Remove(path string) error {
	return r.change("remove", []disk.Content{{Path: path}}, func(string, []byte) ([]byte, error) { return nil, nil })
}

// Away reports what SetAway said.
func (r *Replica) Away() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.away
}

// change changes files: content returns the new one, nil to remove the file.
func (r *Replica) change(what string, files []disk.Content, content func(rel string, p []byte) ([]byte, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fenced {
		return disk.ErrFenced
	}

	changed := map[string][]byte{}
	for _, f := range files {
		rel, ok := r.rel(f.Path)
		if !ok {
			return fmt.Errorf("%s %s: the replica does not cover it", what, f.Path)
		}
		data, err := content(rel, f.Data)
		if err != nil {
			return err
		}
		changed[rel] = data
		what += " " + rel
	}

	r.calls = append(r.calls, what)
	maps.Copy(r.files, changed)
	maps.DeleteFunc(r.files, func(_ string, data []byte) bool { return data == nil })
	if r.kept != nil {
		r.kept(changed)
	}

	return nil
}

// Fence has every later change fail with disk.ErrFenced.
func (r *Replica) Fence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fenced = true
}

// SetAway says whether the replica can be reached.
func (r *Replica) SetAway(away bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away = away
}

// Files returns what the replica has, by relative path.
func (r *Replica) Files() map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make(map[string]string, len(r.files))
	for rel, data := range r.files {
		list[rel] = string(data)
	}

	return list
}

// Calls returns the changes made so far, such as "append inbox.jsonl".
func (r *Replica) Calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}
