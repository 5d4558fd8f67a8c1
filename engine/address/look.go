package address

import (
	"log/slog"
	"slices"
	"sync"

	"daycare/engine/finding"
)

// unread is the descriptors that were not read yet, for who looks at one agent while
// nothing runs.
type unread struct {
	scan *scan
	once sync.Once
	done chan struct{} // closed: all are read
	err  error

	mu    sync.Mutex
	found []finding.Finding
}

func (u *unread) add(found []finding.Finding) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.found = append(u.found, found...)
}

// Look is Load for callers that only read files. It reads a descriptor when its agent is requested, and all
// descriptors when all agents are, or one by its name or address.
func Look(root string, log *slog.Logger) (*Index, []finding.Finding, error) {
	return open(nil, root, log)
}

// Whole reads the descriptors that were not read yet, and returns what is wrong with any.
func (x *Index) Whole() ([]finding.Finding, error) { return x.unread.whole() }

func (u *unread) whole() ([]finding.Finding, error) {
	u.once.Do(func() {
		defer close(u.done)
		_, found, err := u.scan.rescan(nil)
		u.add(found)
		u.err = err
	})

	<-u.done
	u.mu.Lock()
	defer u.mu.Unlock()

	return slices.Clone(u.found), u.err
}

// all reads the descriptors that were not read yet.
func (u *unread) all() {
	if _, err := u.whole(); err != nil {
		u.scan.log.Error("cannot read agents", "err", err)
	}
}

// partial reports whether there are descriptors that were not read yet.
func (u *unread) partial() bool {
	select {
	case <-u.done:
		return false
	default:
		return true
	}
}

// get returns an agent by its id, and reads its descriptor on first use.
func (u *unread) get(id string) (Meta, bool) {
	m, ok := u.scan.known.get(id)
	if !ok && u.partial() && ValidID(id) {
		return u.one(id)
	}

	return m, ok
}

// one returns an agent, whose descriptor may not have been read yet.
func (u *unread) one(id string) (Meta, bool) {
	if u.scan.handles.of(id) == "" { // its number follows from those of the others
		u.all()
		return u.scan.known.get(id)
	}
	_, found, err := u.scan.rescan([]string{id})
	u.add(found)
	if err != nil {
		u.scan.log.Error("cannot read agent", "agent", id, "err", err)
	}

	return u.scan.known.get(id)
}

// readChildren reads the descriptors of the agents that were started by another one, as
// their handles say.
func (u *unread) readChildren(parent string) {
	for _, id := range u.scan.handles.children(parent) {
		u.get(id)
	}
}
