package address

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// A Diff is what a Rescan found different.
type Diff struct{ Added, Removed, Changed []string } // ids

// scan is what Rescan remembers from one time to the next.
type scan struct {
	mu   sync.Mutex
	seen map[string]stamp         // of each descriptor that is in force
	told map[finding.Finding]bool // each thing is told once
}

// A stamp tells whether a file was written since.
type stamp struct {
	mod  time.Time
	size int64
}

// A reading is what one folder gave.
type reading struct {
	id     string
	d      Descriptor
	handle string // that it has already
	stamp  stamp
	found  []finding.Finding
}

// Rescan reads the folders again: agents that were added, changed or removed by
// hand count from now on. A descriptor that is now broken leaves the last good one
// in force. Findings are told once.
func (x *Index) Rescan() (Diff, []finding.Finding, error) {
	x.scan.mu.Lock()
	defer x.scan.mu.Unlock()
	entries, err := os.ReadDir(x.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Diff{}, nil, fmt.Errorf("list agents: %w", err)
	}
	present, unread := map[string]bool{}, []string{}
	for _, e := range entries {
		if id := e.Name(); e.IsDir() && ValidID(id) {
			present[id] = true
			unread = append(unread, id)
		}
	}
	diff, found, err := x.takeIn(x.readAll(unread))
	if err = errors.Join(err, x.handles.sync()); err != nil {
		return diff, found, err
	}
	diff.Removed = x.forgetMissing(present)
	return diff, found, nil
}

// readAll reads the descriptors that were written since they were last read.
func (x *Index) readAll(ids []string) []reading {
	read := make([]reading, len(ids))
	var group errgroup.Group
	group.SetLimit(4 * runtime.GOMAXPROCS(0))
	for i, id := range ids {
		group.Go(func() error {
			read[i] = x.read(id)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		x.log.Error("agents not read", "err", err)
	}
	read = slices.DeleteFunc(read, func(r reading) bool { return r.id == "" })
	depth := depths(read)
	for i := range read {
		read[i].handle = x.handles.of(read[i].id)
	}
	slices.SortFunc(read, func(a, b reading) int {
		return cmp.Or(compareHandles(a.handle, b.handle),
			cmp.Compare(depth[a.id], depth[b.id]), a.stamp.mod.Compare(b.stamp.mod), strings.Compare(a.id, b.id))
	})
	return read
}

var errSame = errors.New("as it was")

// readNewer reads a file that was written since known.
func readNewer(path string, known stamp) ([]byte, stamp, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, stamp{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, stamp{}, err
	}
	now := stamp{info.ModTime(), info.Size()}
	if now == known {
		return nil, now, errSame
	}
	data := make([]byte, now.size)
	n, err := io.ReadFull(f, data)
	if err == io.ErrUnexpectedEOF || err == io.EOF { // it became shorter this instant
		err = nil
	}
	return data[:n], now, err
}

// depths is how many parents each agent has among the readings. Agents with a
// handle come first, in its order; then parents before their children, and the
// older before the younger: of two with one address the first keeps it.
func depths(read []reading) map[string]int {
	parent, depth := map[string]string{}, map[string]int{}
	for _, r := range read {
		parent[r.id] = r.d.ParentAgentID
	}
	for id := range parent {
		n := 0
		for up := parent[id]; up != "" && n < len(read); up = parent[up] {
			n++
		}
		depth[id] = n
	}
	return depth
}

// read reads one descriptor. An empty reading: it is as it was.
func (x *Index) read(id string) reading {
	path := filepath.Join(x.dir, id, descriptorFile)
	r := reading{id: id}
	data, st, err := readNewer(path, x.scan.seen[id])
	switch {
	case errors.Is(err, errSame):
		return reading{}
	case err != nil && !disk.Exists(filepath.Dir(path)):
		return reading{} // moved away this instant
	case err != nil:
		r.found = []finding.Finding{{ID: "descriptor-missing", Severity: finding.Error, File: path,
			Reason: "the descriptor cannot be read: " + err.Error(), Remedy: "Restore the file, or move the folder away."}}
		return r
	}
	r.stamp = st
	r.d, r.found = Decode(path, data)
	if finding.Join(r.found) == nil && r.d.ID != "" && r.d.ID != id {
		r.found = append(r.found, finding.Finding{ID: "descriptor-id", Severity: finding.Error, File: path, Line: 1,
			Reason: fmt.Sprintf("id %q is not the name of its folder", r.d.ID), Remedy: "Set it to " + id + "."})
	}
	return r
}

// takeIn makes the readings count.
func (x *Index) takeIn(read []reading) (diff Diff, found []finding.Finding, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.scan.seen == nil {
		x.scan.seen, x.scan.told = map[string]stamp{}, map[finding.Finding]bool{}
	}
	for _, r := range read {
		if other, taken := x.byKey[r.d.key()]; taken && other != r.id && finding.Join(r.found) == nil {
			r.found = append(r.found, finding.Finding{ID: "descriptor-duplicate", Severity: finding.Error,
				File:   filepath.Join(x.dir, r.id, descriptorFile),
				Reason: "agent " + other + " has the same address", Remedy: "Change one of the two, or move a folder away."})
		}
		for _, f := range r.found {
			if !x.scan.told[f] {
				x.scan.told[f] = true
				found = append(found, f)
			}
		}
		if finding.Join(r.found) != nil && !x.fallBack(&r) {
			continue
		}
		if err := x.takeOne(r, &diff); err != nil {
			return diff, found, err
		}
	}
	return diff, found, nil
}

func (x *Index) takeOne(r reading, diff *Diff) error {
	x.scan.seen[r.id] = r.stamp
	known, ok := x.byID[r.id]
	if ok && known.Descriptor == r.d {
		return nil
	}
	if !disk.Exists(filepath.Join(x.dir, r.id)) {
		return nil // removed while the folders were read
	}
	h, err := x.handles.give(r.id, r.d.ParentAgentID, time.Now())
	if err != nil {
		return err
	}
	x.put(r.id, r.d, h)
	if ok {
		diff.Changed = append(diff.Changed, r.id)
	} else {
		diff.Added = append(diff.Added, r.id)
	}
	return nil
}

// forgetMissing forgets the agents whose folders are gone. One that was made while
// the folders were listed is looked for once more.
func (x *Index) forgetMissing(present map[string]bool) (removed []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for id := range x.byID {
		if !present[id] && !disk.Exists(filepath.Join(x.dir, id)) {
			x.drop(id)
			delete(x.scan.seen, id)
			removed = append(removed, id)
		}
	}
	slices.Sort(removed)
	return removed
}
