// Package machine knows which workspaces there are on this machine: each daemon that starts
// notes its own, in a file of the user. Disks are never searched.
//
//	~/.local/state/daycare/workspaces/HASH.json     {"path":"/home/anna/work","startedAt":"…"}
//
// "data" is where daycare's own files of it are, if that is not .daycare in it. HASH is of that folder then, as several may
// be of one workspace. XDG_STATE_HOME moves the notes; with /dev/null nothing is noted. A file has nothing in it that is
// secret, and may be removed at any time: the next start writes it again.
package machine

import (
	"cmp"
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
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/workspace"
)

const (
	step       = "machine" // the failpoint prefix
	maxEntries = 1_000
	maxFile    = 64 << 10 // bytes
)

// An Entry is a workspace whose daemon was started at some time.
type Entry struct {
	Path      string     `json:"path"`
	Data      string     `json:"data,omitempty"` // where its own files are, if outside of it
	StartedAt disk.Stamp `json:"startedAt"`      // when it was started last
}

// Place is where the workspace is.
func (e Entry) Place() workspace.Place {
	if e.Data != "" {
		return workspace.Place{Dir: e.Path, Data: e.Data}
	}
	return workspace.At(e.Path)
}

func (e Entry) key() string { return cmp.Or(e.Data, e.Path) }

// dir is the folder of the notes; "" where nothing is noted, as the user has no home.
func dir() string {
	base := os.Getenv("XDG_STATE_HOME")
	if base == os.DevNull {
		return ""
	}
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil || !disk.Exists(home) {
			return ""
		}
		base = filepath.Join(home, ".local", "state")
	}

	return filepath.Join(base, "daycare", "workspaces")
}

func fileOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8]) + ".json"
}

// Note notes a workspace whose daemon starts. One in the folder for temporary files is not
// noted, and nothing is where the user has no home.
func Note(w workspace.Place, now time.Time) error {
	folder := dir()
	rel, err := filepath.Rel(beneath.Real(os.TempDir()), beneath.Real(w.Dir))
	if folder == "" || err == nil && filepath.IsLocal(rel) {
		return nil
	}

	if err := disk.NewVolume(folder).MkdirAll(folder); err != nil {
		return err
	}
	at, err := beneath.Root(folder)
	if err != nil {
		return err
	}
	defer at.Close()
	if !disk.Exists(filepath.Join(folder, fileOf(w.Key()))) {
		if err := room(at); err != nil {
			return err
		}
	}

	e := Entry{Path: w.Dir, StartedAt: disk.StampOf(now)}
	if w.Elsewhere() {
		e.Data = w.Data
	}
	data, _ := json.Marshal(e) // texts and a time

	return disk.ReplaceIn(step, at, fileOf(w.Key()), append(data, '\n'), disk.InOptions{})
}

// room reports an error if the list is full. The notes are read only where there are enough files for that.
func room(at *os.Root) error {
	f, err := at.Open(".")
	if err != nil {
		return err
	}
	names, err := f.Readdirnames(maxEntries)
	f.Close()
	if len(names) < maxEntries {
		if errors.Is(err, io.EOF) { // the folder is empty
			err = nil
		}
		return err
	}

	all, err := List()
	if err == nil && len(all) >= maxEntries {
		err = fmt.Errorf("the list already has %d workspaces; remove one with: daycare workspaces forget DIR", len(all))
	}

	return err
}

// List lists the workspaces that are known, by path.
func List() (all []Entry, err error) {
	at, err := beneath.Root(dir())
	if errors.Is(err, fs.ErrNotExist) { // nothing was noted yet, or nothing is
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer at.Close()
	names, err := fs.ReadDir(at.FS(), ".")
	if err != nil {
		return nil, err
	}

	for _, n := range names[:min(len(names), 2*maxEntries)] {
		var e Entry
		data, _, err := beneath.Read(at, n.Name(), maxFile)

		// What is no note of a daemon is someone else's.
		if err == nil && json.Unmarshal(data, &e) == nil && filepath.IsAbs(e.Path) && n.Name() == fileOf(e.key()) {
			all = append(all, e)
		}
	}

	slices.SortFunc(all, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Data, b.Data)) })
	return all, nil
}

// Forget removes the entry of a workspace, or that of one of its data folders, and nothing else. known is false without
// such an entry.
func Forget(key string) (known bool, err error) {
	path := filepath.Join(dir(), fileOf(key))
	if dir() == "" || !disk.Exists(path) {
		return false, nil
	}

	return true, disk.NewVolume(filepath.Dir(path)).Remove(step, path)
}

// Files are the paths of all notes, for who removes the program.
func Files() (paths []string) {
	all, _ := List() // what cannot be listed cannot be removed
	for _, e := range all {
		paths = append(paths, filepath.Join(dir(), fileOf(e.key())))
	}

	return paths
}

// Clean is a path as Note has it: absolute, without .. in it.
func Clean(dir string) (string, error) {
	full, err := filepath.Abs(dir)
	return strings.TrimSuffix(full, string(filepath.Separator)+".daycare"), err
}
