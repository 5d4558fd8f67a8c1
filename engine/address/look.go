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

// Look is Load for who only looks at files: a descriptor is read when its agent is asked
// for, and those of all when all are, or an agent by its name or address.
func Look(root string, log *slog.Logger) (*Index, []finding.Finding, error) {
	return open(nil, root, log)
}

// Whole reads the descriptors that were not read yet, and returns what is wrong with any.
func (x *Index) Whole() ([]finding.Finding, error) {
	x.unread.once.Do(func() {
		defer close(x.unread.done)
		_, found, err := x.Rescan()
		x.unread.add(found)
		x.unread.err = err
	})
	<-x.unread.done
	x.unread.mu.Lock()
	defer x.unread.mu.Unlock()
	return slices.Clone(x.unread.found), x.unread.err
}

// all reads the descriptors that were not read yet.
func (x *Index) all() {
	if _, err := x.Whole(); err != nil {
		x.log.Error("agents cannot be read", "err", err)
	}
}

// partial reports whether there are descriptors that were not read yet.
func (x *Index) partial() bool {
	select {
	case <-x.unread.done:
		return false
	default:
		return true
	}
}

// one returns an agent, whose descriptor may not have been read yet.
func (x *Index) one(id string) (Meta, bool) {
	if x.handles.of(id) == "" { // its number follows from those of the others
		x.all()
		return x.Get(id)
	}
	_, found, err := x.Rescan(id)
	x.unread.add(found)
	if err != nil {
		x.log.Error("agent cannot be read", "agent", id, "err", err)
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	m, ok := x.byID[id]
	return m, ok
}

// readChildren reads the descriptors of the agents that were started by another one, as
// their handles say.
func (x *Index) readChildren(parent string) {
	for _, id := range x.handles.children(parent) {
		x.Get(id)
	}
}
