package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/disk"
)

// markName is the name of the file in a folder that says which state of the unit it is. It
// is there only while nobody on this machine owns the unit.
const markName = ".replica"

// A mark is what is in it.
type mark struct {
	Seq   uint64           `json:"seq"`   // of the message with which the unit was released
	N     uint64           `json:"n"`     // its number
	Files map[string]stamp `json:"files"` // what the folder had
}

// A stamp is a content, by its size in bytes and its SHA-256.
type stamp struct {
	Size int64  `json:"size"`
	SHA  string `json:"sha"`
}

// A workingCopy has the folders of agents on this machine.
type workingCopy struct {
	root   string // .daycare
	vol    *disk.Volume
	covers func(name string) bool
	log    *slog.Logger
}

func (w *workingCopy) folder(agent string) string { return filepath.Join(w.root, "agents", agent) }

// list returns the files of a folder that belong to its unit, by name.
func (w *workingCopy) list(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		rel, rerr := filepath.Rel(dir, path)
		if err = errors.Join(err, rerr); err != nil || !d.Type().IsRegular() || !w.covers(filepath.ToSlash(rel)) {
			return err
		}
		data, err := os.ReadFile(path)
		files[filepath.ToSlash(rel)] = data

		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}

	return files, nil
}

// readMark reads the mark of a folder and removes it; ok is false if there is none.
func (w *workingCopy) readMark(dir string) (m mark, ok bool, err error) {
	path := filepath.Join(dir, markName)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return mark{}, false, nil
	}
	if err != nil {
		return mark{}, false, err
	}
	if err := w.vol.Remove("claim", path); err != nil {
		return mark{}, false, err
	}

	return m, json.Unmarshal(data, &m) == nil, nil
}

// writeMark notes that a folder is the state of its unit at a place. It makes no barrier: a
// folder without a mark is built again.
func (w *workingCopy) writeMark(dir string, at place, files map[string]*copied) error {
	m := mark{Seq: at.last, N: at.n, Files: map[string]stamp{}}
	for name, c := range files {
		m.Files[name] = stamp{c.size, c.sum()}
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}

	return w.vol.WriteDraft("claim", filepath.Join(dir, markName), append(data, '\n'))
}

// differences are the segments that bring the log of a unit to what its folder has.
func differences(have map[string]*copied, folder map[string][]byte) (segments []segment) {
	for name, data := range folder {
		c := have[name]
		switch {
		case c != nil && c.size == int64(len(data)) && c.sum() == sum(data):
		case c != nil && c.size >= 0 && c.size < int64(len(data)) && int64(len(data))-c.size <= appendMost &&
			c.sum() == sum(data[:c.size]):
			segments = append(segments, content(opAppend, name, c.size, data[c.size:]))
		default:
			segments = append(segments, content(opPut, name, 0, data))
		}
	}
	for name := range have {
		if _, ok := folder[name]; !ok {
			segments = append(segments, segment{Op: opRemove, File: name})
		}
	}

	slices.SortFunc(segments, func(a, b segment) int { return strings.Compare(a.File, b.File) })
	return segments
}

// build makes the folder of an agent from its log and puts it in the place of the one that is
// there. That one is kept in away/ if it has anything that it had not when it was last given
// up: an edit, or what a process that died had not yet replicated.
func (w *workingCopy) build(ctx context.Context, s store, agent string, files map[string]file, old mark, marked bool) (
	map[string]*copied, error,
) {
	temp, dir := filepath.Join(w.root, "agents", ".new-claim-"+agent), w.folder(agent)
	if err := w.vol.RemoveAll("claim", temp); err != nil {
		return nil, err
	}
	if err := w.vol.MkdirAll(temp); err != nil {
		return nil, err
	}
	defer w.vol.RemoveAll("claim", temp) // it has its name by then, or is of no use

	have := map[string]*copied{}
	for name, f := range files {
		data, err := f.bytes(ctx, s)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(temp, filepath.FromSlash(name))
		if err := w.vol.MkdirAll(filepath.Dir(path)); err != nil {
			return nil, err
		}
		if err := w.vol.WriteDraft("claim", path, data); err != nil {
			return nil, fmt.Errorf("build the folder of %s: %w", agent, err)
		}
		have[name] = newCopied(data)
	}

	return have, w.publish(agent, temp, dir, old, marked)
}

// publish puts a folder that was built in the place of the one that is there, in one step
// where the file system can: the engine must not see that the agent has none.
func (w *workingCopy) publish(agent, temp, dir string, old mark, marked bool) error {
	if disk.Exists(dir) {
		swapped, err := w.vol.Swap("claim", temp, dir)
		if err != nil {
			return err
		}
		if swapped {
			return w.setAside(agent, temp, old, marked)
		}
		if err := w.setAside(agent, dir, old, marked); err != nil {
			return err
		}
	}

	return w.vol.Rename("claim", temp, dir)
}

// setAside moves the old folder of an agent away, or removes it if nothing in it is new.
func (w *workingCopy) setAside(agent, dir string, old mark, marked bool) error {
	found, err := w.list(dir)
	if err != nil {
		return err
	}
	if marked && sameAs(found, old.Files) {
		return w.vol.RemoveAll("claim", dir)
	}

	return w.moveAway(agent, dir)
}

// moveAway keeps a folder of an agent that is not the agent's any more.
func (w *workingCopy) moveAway(agent, dir string) error {
	away := filepath.Join(w.root, "away", agent)
	if err := w.vol.MkdirAll(filepath.Dir(away)); err != nil {
		return err
	}
	if err := w.vol.RemoveAll("claim", away); err != nil {
		return err
	}
	if err := w.vol.Shift("claim", dir, away); err != nil {
		return err
	}

	w.log.Info("an old folder of an agent was set aside", "agent", agent, "folder", away)
	return nil
}

// sameAs reports whether files are those that were noted.
func sameAs(files map[string][]byte, noted map[string]stamp) bool {
	for name, data := range files {
		if noted[name] != (stamp{int64(len(data)), sum(data)}) {
			return false
		}
	}
	return len(files) == len(noted)
}

// part moves the folder of an agent away that another machine has removed.
func (n *Node) part(agent string) {
	n.units.mu.Lock()
	_, owned := n.owned[agent]
	n.units.mu.Unlock()
	dir := n.folder(agent)
	if owned || !disk.Exists(dir) {
		return
	}
	if err := n.moveAway(agent, dir); err != nil {
		n.log.Warn("the folder of a removed agent is still there", "agent", agent, "folder", dir, "err", err)
	}
}
