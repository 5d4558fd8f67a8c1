package address

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

// A Diff is what a Rescan found different.
type Diff struct {
	Added, Removed, Changed []string              // ids
	Before                  map[string]Descriptor // of those in Changed, as they were
}

// scan is what is remembered from one reading to the next. Files are read without a
// lock that anybody else needs: a reading says against what it was made, and is made
// again if that is not how things are any more when it is taken in.
type scan struct {
	dir     string // .daycare/agents
	log     *slog.Logger
	handles *handles
	known   *listing
	file    *indexFile
	one     sync.Mutex // one Rescan at a time; nobody else waits for it

	// Under the mu of known.
	seen      map[string]sight         // of each descriptor that is active
	told      map[finding.Finding]bool // what was reported
	forgotten int                      // how many agents were forgotten
	met       map[string]bool          // by id: agents of several machines, which need no folder here
}

// A sight is how a descriptor looked when it was read.
type sight struct {
	beneath.Stamp
	lasting bool // whoever writes it changes the stamp
	sound   bool // and nothing was wrong with it
}

// A reading is what one folder gave.
type reading struct {
	id     string
	d      Descriptor
	last   *Descriptor // the last good one, if there is one
	asked  bool        // last was looked for: this one cannot be active, and no other is
	handle string      // "": none yet
	sight  sight
	basis  basis
	found  []finding.Finding
}

// A basis is what was known when a descriptor was read.
type basis struct {
	seen      sight
	forgotten int
}

// basis is what is known of an agent; in force says that a version of it is. l.mu is held.
func (s *scan) basis(id string) (b basis, inForce bool) {
	_, inForce = s.known.byID[id]
	return basis{s.seen[id], s.forgotten}, inForce
}

// Rescan reads the folders of these agents again, without ids those of all: agents that
// were added, changed or removed by hand take effect. A descriptor that is now
// broken leaves the last valid one active. Findings are reported once.
func (x *Index) Rescan(ids ...string) (Diff, []finding.Finding, error) { return x.scan.rescan(ids) }

func (s *scan) rescan(ids []string) (Diff, []finding.Finding, error) {
	s.one.Lock()
	defer s.one.Unlock()
	unread, missing, err := s.folders(ids)
	if err != nil {
		return Diff{}, nil, fmt.Errorf("list agents: %w", err)
	}

	var diff Diff
	var found []finding.Finding
	for try := 0; len(unread) > 0 && try < staleTries; try++ {
		t, err := s.readIn(unread)
		diff.Added, diff.Changed = append(diff.Added, t.added...), append(diff.Changed, t.changed...)
		diff.Before = merged(t.before, diff.Before) // of a file that was read twice the first counts
		found, unread = append(found, t.found...), t.stale
		if err != nil {
			return diff, found, err
		}
	}

	diff.Removed = s.forgetMissing(missing)
	return diff, found, nil
}

// merged is a map with what two have; b counts where both have something.
func merged(a, b map[string]Descriptor) map[string]Descriptor {
	if len(a) == 0 {
		return b
	}
	maps.Copy(a, b)
	return a
}

// folders are the agents whose folders are there, and those that are known without one:
// of these ids, without ids of all.
func (s *scan) folders(ids []string) (there, missing []string, err error) {
	for _, id := range ids {
		if info, err := os.Lstat(filepath.Join(s.dir, id)); err == nil && info.IsDir() && ValidID(id) {
			there = append(there, id)
		} else {
			missing = append(missing, id)
		}
	}

	if len(ids) > 0 {
		return there, missing, nil
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}

	present := map[string]bool{}
	for _, e := range entries {
		if id := e.Name(); e.IsDir() && ValidID(id) {
			present[id] = true
			there = append(there, id)
		}
	}

	s.known.mu.RLock()
	defer s.known.mu.RUnlock()
	s.known.visited.Add(int64(len(s.known.byID)))
	for id := range s.known.byID {
		if !present[id] {
			missing = append(missing, id)
		}
	}

	return there, missing, nil
}

// staleTries is how often a descriptor is read that others read at the same time. They
// have taken in what is there then.
const staleTries = 5

// readAll reads the descriptors that were written since they were last read.
func (s *scan) readAll(ids []string) []*reading {
	read := make([]*reading, len(ids))
	var group errgroup.Group
	group.SetLimit(4 * runtime.GOMAXPROCS(0))
	for from := 0; from < len(ids); from += together {
		group.Go(func() error {
			for i := from; i < min(from+together, len(ids)); i++ {
				read[i] = s.read(ids[i])
			}
			return nil
		})
	}

	_ = group.Wait() // none of them fails
	read = slices.DeleteFunc(read, func(r *reading) bool { return r == nil })
	depth := depths(read)
	for _, r := range read {
		r.handle = s.handles.of(r.id)
	}

	slices.SortFunc(read, func(a, b *reading) int {
		return cmp.Or(compareHandles(a.handle, b.handle),
			cmp.Compare(depth[a.id], depth[b.id]), cmp.Compare(a.sight.Written, b.sight.Written), strings.Compare(a.id, b.id))
	})
	return read
}

// together is how many descriptors are read one after the other.
const together = 16

var errSame = errors.New("as before")

// readNewer reads a file that was written since known.
func readNewer(path string, known beneath.Stamp) ([]byte, beneath.Stamp, error) {
	if known != (beneath.Stamp{}) {
		if now, err := beneath.StampAt(path); err == nil && now == known {
			return nil, known, errSame
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, beneath.Stamp{}, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: beneath.ErrKind}
	}
	if err != nil {
		return nil, beneath.Stamp{}, err
	}

	now := beneath.StampOf(info)
	if now == known {
		return nil, now, errSame
	}
	data, err := io.ReadAll(io.LimitReader(f, now.Size))

	return data, now, err
}

// depths is how many parents each agent has among the readings. Agents with a
// handle come first, in its order; then parents before their children, and the
// older before the younger: of two with one address the first keeps it.
func depths(read []*reading) map[string]int {
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

// read reads one descriptor; nil: it is as it was.
func (s *scan) read(id string) *reading {
	s.known.mu.RLock()
	basis, inForce := s.basis(id)
	s.known.mu.RUnlock()
	path := filepath.Join(s.dir, id, descriptorFile)
	if r := s.indexed(path, id, basis); r != nil {
		return r
	}

	begun := time.Now()
	var known beneath.Stamp // one that another write may have left as it is says nothing
	if basis.seen.lasting {
		known = basis.seen.Stamp
	}
	r, ok := readDescriptor(path, id, known)
	if !ok {
		return nil
	}
	s.file.renewed(id)
	r.sight.lasting = r.sight.Lasts(begun)
	r.sight.sound = len(r.found) == 0 && r.sight.lasting

	r.basis = basis
	s.known.mu.RLock()
	_, good := s.choose(&r, nil)
	s.known.mu.RUnlock()
	if !good && !inForce {
		r.last, r.asked = s.lastGood(id), true
	}

	return &r
}

// indexed is the reading of a descriptor that was not read in this process and is as the
// index file has it; nil: it is to be read.
func (s *scan) indexed(path, id string, basis basis) *reading {
	if basis.seen != (sight{}) || !s.file.has(id) {
		return nil
	}
	now, err := beneath.StampAt(path)
	if err != nil {
		return nil
	}
	d, ok := s.file.descriptor(id, now)
	if !ok {
		return nil
	}

	return &reading{id: id, d: d, sight: sight{now, true, true}, basis: basis}
}

// readDescriptor reads the descriptor of an agent if it was written since known; false:
// it was not, or its folder was moved away this instant.
func readDescriptor(path, id string, known beneath.Stamp) (r reading, ok bool) {
	r.id = id
	data, st, err := readNewer(path, known)
	switch {
	case errors.Is(err, errSame):
		return r, false
	case err != nil && !disk.Exists(filepath.Dir(path)):
		return r, false
	case err != nil:
		r.found = []finding.Finding{{ID: "descriptor-missing", Severity: finding.Error, File: path,
			Reason: "the descriptor cannot be read: " + err.Error(), Remedy: "Restore the file, or move the folder away."}}
		return r, true
	}

	r.sight.Stamp = st
	r.d, r.found = Decode(path, data)
	if finding.Join(r.found) == nil && r.d.ID != "" && r.d.ID != id {
		r.found = append(r.found, finding.Finding{ID: "descriptor-id", Severity: finding.Error, File: path, Line: 1,
			Reason: fmt.Sprintf("id %q differs from the name of its folder", r.d.ID), Remedy: "Set it to " + id + "."})
	}

	return r, true
}

// taken is the result of readings.
type taken struct {
	added, changed []string
	before         map[string]Descriptor // of those in changed
	found          []finding.Finding
	stale          []string // to be read again
}

// takeIn makes the readings count.
func (s *scan) takeIn(read []*reading) (t taken, err error) {
	t.before = map[string]Descriptor{}
	if err := s.number(read); err != nil {
		return t, err
	}
	s.known.mu.Lock()
	defer s.known.mu.Unlock()

	for _, r := range read {
		if basis, _ := s.basis(r.id); basis != r.basis {
			t.stale = append(t.stale, r.id)
			continue
		}
		found, good := s.choose(r, nil)
		known, inForce := s.known.meta(r.id)
		if !inForce && (good && r.handle == "" || !good && !r.asked) {
			t.stale = append(t.stale, r.id) // its address was free, or was not, when it was looked at
			continue
		}

		for _, f := range found {
			if !s.told[f] {
				s.told[f] = true
				t.found = append(t.found, f)
			}
		}

		if !good {
			continue
		}
		s.seen[r.id] = r.sight

		switch {
		case !inForce:
			s.known.put(r.id, r.d, r.handle)
			t.added = append(t.added, r.id)
		case known.Descriptor != r.d:
			s.known.put(r.id, r.d, known.Handle)
			t.changed, t.before[r.id] = append(t.changed, r.id), known.Descriptor
		}
	}

	return t, nil
}

// number gives the agents among the readings that come to be active their handles,
// durably. It writes, so it is done before the index is locked.
func (s *scan) number(read []*reading) error {
	claimed := map[string]string{} // address -> id
	fresh := map[*reading]string{} // -> parent
	s.known.mu.RLock()
	for _, r := range read {
		tried := *r
		if _, good := s.choose(&tried, claimed); !good {
			continue
		}
		if k := tried.d.Key(); k != "" {
			claimed[k] = r.id
		}
		if _, inForce := s.known.byID[r.id]; !inForce {
			fresh[r] = tried.d.ParentAgentID
		}
	}

	s.known.mu.RUnlock()
	for _, r := range read {
		parent, ok := fresh[r]
		if !ok {
			continue
		}
		var err error
		if r.handle, err = s.handles.give(r.id, parent, time.Now()); err != nil {
			return err
		}
	}

	if len(fresh) == 0 {
		return nil
	}

	return s.handles.sync()
}

// choose decides about a reading: whether its descriptor, or the last good one in its
// place, can be active, and what is wrong. claimed are addresses that others get
// before it. l.mu is held.
func (s *scan) choose(r *reading, claimed map[string]string) (found []finding.Finding, good bool) {
	found = r.found
	if finding.Join(found) == nil {
		other := s.known.owner(r.d, claimed)
		if other == "" || other == r.id {
			return found, true
		}
		found = append(slices.Clip(found), finding.Finding{ID: "descriptor-duplicate", Severity: finding.Error,
			File:   filepath.Join(s.dir, r.id, descriptorFile),
			Reason: "agent " + other + " has the same address", Remedy: "Change one of the two, or move a folder away."})
	}
	if _, inForce := s.known.byID[r.id]; inForce || r.last == nil {
		return found, false
	}
	if other := s.known.owner(*r.last, claimed); other != "" && other != r.id {
		return found, false
	}

	r.d, r.sight = *r.last, sight{} // no stamp: the file is looked at again each time
	return found, true
}

// owner is the agent that has the address of a descriptor. l.mu is held.
func (l *listing) owner(d Descriptor, claimed map[string]string) string {
	if id := l.byKey[d.Key()]; id != "" {
		return id
	}
	return claimed[d.Key()]
}

// forgetMissing forgets the agents whose folders are gone. One that was made while
// the folders were listed is looked for once more.
func (s *scan) forgetMissing(missing []string) (removed []string) {
	missing = slices.DeleteFunc(missing, func(id string) bool { return disk.Exists(filepath.Join(s.dir, id)) })
	s.known.mu.Lock()
	defer s.known.mu.Unlock()
	for _, id := range missing {
		if _, inForce := s.known.byID[id]; inForce && !s.met[id] {
			s.forget(id)
			removed = append(removed, id)
		}
	}

	slices.Sort(removed)

	return removed
}

// forget drops an agent and what was seen of it. l.mu is held.
func (s *scan) forget(id string) {
	s.known.drop(id)
	delete(s.known.ended, id)
	delete(s.seen, id)
	s.file.forget(id)
	delete(s.met, id)
	s.forgotten++
}
