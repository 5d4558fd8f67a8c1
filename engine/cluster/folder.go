package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"daycare/engine/disk"
)

// markName is the name of the file in a folder that says which state of the unit it is. A folder
// without one is new to the cluster.
const markName = ".replica"

// A mark is what is in it.
type mark struct {
	Seq   uint64           `json:"seq"`             // of the message with which the unit was claimed, or released
	N     uint64           `json:"n"`               // its number
	Files map[string]stamp `json:"files,omitempty"` // what the folder had
	Owned bool             `json:"owned,omitempty"` // it was not released: a process works on it, or died
	Boot  string           `json:"boot,omitempty"`  // of that process
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

// nameIn is the name of a path in a folder that it is in, with slashes.
func nameIn(dir, path string) string {
	rel, _ := filepath.Rel(dir, path) // fails where one of them is relative
	return filepath.ToSlash(rel)
}

// list returns the files of a folder that belong to its unit, by name.
func (w *workingCopy) list(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name := nameIn(dir, path)
		if err != nil || !d.Type().IsRegular() || !w.covers(name) {
			return err
		}
		files[name], err = os.ReadFile(path)

		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}

	return files, nil
}

// readMark reads the mark of a folder; its N is 0 where it is missing or torn.
func readMark(dir string) (m mark, err error) {
	data, err := os.ReadFile(filepath.Join(dir, markName))
	if errors.Is(err, fs.ErrNotExist) || err == nil && json.Unmarshal(data, &m) != nil {
		return mark{}, nil
	}

	return m, err
}

// writeMark notes that a folder is the state of its unit at a place. It makes no barrier: a
// folder without a mark is built again.
func (w *workingCopy) writeMark(agent string, m mark) {
	path := filepath.Join(w.folder(agent), markName)
	if err := w.vol.WriteDraft("claim", path, append(jsonOf(m), '\n')); err != nil {
		w.log.Info("folder not marked", "agent", agent, "err", err)
	}
}

// unmark makes the folder of an agent that was removed, wherever in the trash it is, one that is
// new to the cluster should it come back.
func (w *workingCopy) unmark(agent string) error {
	removed, err := disk.Glob(filepath.Join(w.root, "trash"), "*-"+agent)
	for _, dir := range removed {
		err = errors.Join(err, w.vol.Remove("claim", filepath.Join(dir, markName)))
	}

	return err
}

func stamps(files map[string]*copied) map[string]stamp {
	noted := make(map[string]stamp, len(files))
	for name, c := range files {
		noted[name] = stamp{c.size, c.sum()}
	}

	return noted
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
func (w *workingCopy) build(ctx context.Context, s store, agent string, files map[string]file, old mark) (map[string]*copied, error) {
	temp, dir := filepath.Join(w.root, "agents", ".new-claim-"+agent), w.folder(agent)
	err := w.vol.RemoveAll("claim", temp)
	if err == nil {
		err = w.vol.MkdirAll(temp)
	}
	if err != nil {
		return nil, err
	}
	defer w.vol.RemoveAll("claim", temp) // it has its place by then, or is of no use

	have := map[string]*copied{}
	for name, f := range files {
		data, err := f.bytes(ctx, s)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(temp, filepath.FromSlash(name))
		if err = w.vol.MkdirAll(filepath.Dir(path)); err == nil {
			err = w.vol.WriteDraft("claim", path, data)
		}
		if err != nil {
			return nil, fmt.Errorf("build the folder of %s: %w", agent, err)
		}
		have[name] = newCopied(data)
	}
	if err := w.sync(temp, slices.Collect(maps.Keys(files))); err != nil {
		return nil, err
	}

	return have, w.publish(agent, temp, dir, []map[string]stamp{stamps(have), old.Files})
}

// sync makes files of a folder durable before its mark says that they are there. What a power cut took of them would count as
// an edit by hand once the folder is given up.
func (w *workingCopy) sync(temp string, files []string) error {
	dirs := map[string]bool{temp: true}
	for _, name := range files {
		path := filepath.Join(temp, filepath.FromSlash(name))
		if err := w.vol.SyncFile("claim.sync", path); err != nil {
			return err
		}
		dirs[filepath.Dir(path)] = true
	}
	for dir := range dirs {
		if err := w.vol.SyncDir("claim.dirsync", dir); err != nil {
			return err
		}
	}

	return nil
}

// publish puts a folder that was built in the place of the one that is there, in one step
// where the file system can: the engine must not see that the agent has none. With that step the
// old one is in away/, so that neither a kill nor an error loses what is new in it: what is in
// none of the states that the log has.
func (w *workingCopy) publish(agent, temp, dir string, states []map[string]stamp) error {
	if !disk.Exists(dir) {
		return w.vol.Rename("claim", temp, dir)
	}
	aside := filepath.Join(w.root, "away", agent+".claimed")
	err := w.vol.MkdirAll(filepath.Dir(aside))
	if err == nil && disk.Exists(aside) { // of a claim that was cut
		err = w.setAside(agent, aside, states)
	}
	if err == nil {
		err = w.vol.Shift("claim", temp, aside)
	}
	if err != nil {
		return err
	}
	swapped, err := w.vol.Swap("claim", aside, dir)
	if err == nil && !swapped { // the file system cannot
		err = errors.Join(w.vol.Shift("claim", aside, temp), w.vol.Shift("claim", dir, aside), w.vol.Rename("claim", temp, dir))
	}
	if err != nil {
		return err
	}

	if err := w.setAside(agent, aside, states); err != nil {
		w.log.Warn("an old folder of an agent is not set aside yet", "agent", agent, "folder", aside, "err", err)
	}

	return nil
}

// setAside keeps the old folder of an agent, or removes it if nothing in it is new.
func (w *workingCopy) setAside(agent, dir string, states []map[string]stamp) error {
	found, err := w.list(dir)
	if err == nil && slices.ContainsFunc(states, func(noted map[string]stamp) bool { return sameAs(found, noted) }) {
		return w.vol.RemoveAll("claim", dir)
	}

	return w.moveAway(agent, dir)
}

// awayKept is how many folders of an agent are kept in away/: AGENT is the newest one, AGENT.1 the one before.
const awayKept = 5

// moveAway keeps a folder of an agent that is not the agent's any more.
func (w *workingCopy) moveAway(agent, dir string) error {
	away := filepath.Join(w.root, "away", agent)
	kept := []string{away}
	for n := 1; n < awayKept && disk.Exists(kept[n-1]); n++ {
		kept = append(kept, fmt.Sprintf("%s.%d", away, n))
	}
	err := w.vol.MkdirAll(filepath.Dir(away))
	if err == nil {
		err = w.vol.RemoveAll("claim", kept[len(kept)-1])
	}
	for n := len(kept) - 1; n > 0 && err == nil; n-- {
		err = w.vol.Shift("claim", kept[n-1], kept[n])
	}
	if err == nil {
		err = w.vol.Shift("claim", dir, away)
	}
	if err != nil {
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

// Removed reports whether an agent was removed on another machine, while this one had a folder of
// it and was off; the folder is moved away then. One without a mark was put there since: it is a new
// agent.
func (n *Node) Removed(ctx context.Context, agent string) (bool, error) {
	head, err := n.store.last(ctx, agent)
	if err != nil {
		return false, err
	}

	return n.outlived(agent, head)
}

// outlived is Removed of an agent whose log ends with head.
func (w *workingCopy) outlived(agent string, head logged) (bool, error) {
	if !head.retired {
		return false, nil
	}
	old, err := readMark(w.folder(agent))
	if err != nil || old.N == 0 || old.N >= head.n {
		return false, err
	}

	return true, w.moveAway(agent, w.folder(agent))
}
