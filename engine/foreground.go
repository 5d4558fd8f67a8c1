package engine

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/btree"

	"daycare/engine/address"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// Foreground is the most recent foreground agent: the user agent with the newest
// message of a user on disk, whether it is in memory or not. An owner's comes before
// those of others.
func (s *System) Foreground() (id string, ok bool) { return s.recent.foreground() }

// OwnersChanged says that Options.Owns answers differently from now on.
func (s *System) OwnersChanged() { s.recent.forget() }

// recent is who wrote last. The files are looked at once, when someone first asks; from
// then on messages and agents that come and go keep it right.
type recent struct {
	place
	owns  func(address.Descriptor) bool // nil: everybody is an owner
	ended func(id string) bool

	mu     sync.Mutex
	read   bool
	by     map[string]spoken // by agent
	owners *btree.BTreeG[spoken]
	others *btree.BTreeG[spoken]
}

// spoken is when a user last wrote to an agent. Until that is read from the inbox it is
// when the file was last written, which is later or the same.
type spoken struct {
	at    time.Time
	agent string
	owner bool
	exact bool
}

// forget has the files looked at again when someone asks.
func (r *recent) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.read = false
}

// wrote says that a user wrote to an agent.
func (r *recent) wrote(meta address.Meta, kind message.Kind, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.read && kind == message.Text && meta.Descriptor.Type == address.User {
		r.set(spoken{at: at, agent: meta.ID, owner: r.isOwner(meta), exact: true})
	}
}

// look takes in what the files of an agent say that came, was changed or is gone.
func (r *recent) look(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.read {
		return
	}
	r.drop(id)
	if meta, ok := r.index.Get(id); ok {
		r.stat(meta)
	}
}

// foreground is the agent of System.Foreground.
func (r *recent) foreground() (id string, ok bool) {
	if id, ok = r.newest(true); ok {
		return id, ok
	}
	return r.newest(false)
}

// newest is the agent that a user wrote to last, among those of owners or of others.
func (r *recent) newest(owners bool) (id string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.read {
		r.readAll()
	}

	tree := r.others
	if owners {
		tree = r.owners
	}

	for {
		last, ok := tree.Max()
		if !ok {
			return "", false
		}
		if r.ended(last.agent) {
			r.drop(last.agent)
			continue
		}
		if last.exact {
			return last.agent, true
		}

		r.drop(last.agent)
		if at, found := inbox.LastMessage(r.folder(last.agent)); found {
			last.at, last.exact = at, true
			r.set(last)
		}
	}
}

func (r *recent) readAll() {
	byTime := func(a, b spoken) bool {
		if c := a.at.Compare(b.at); c != 0 {
			return c < 0
		}
		return strings.Compare(a.agent, b.agent) > 0
	}
	r.by = map[string]spoken{}
	r.owners = btree.NewBTreeGOptions(byTime, btree.Options{NoLocks: true})
	r.others = btree.NewBTreeGOptions(byTime, btree.Options{NoLocks: true})
	for _, meta := range r.index.All() {
		r.stat(meta)
	}

	r.read = true
}

// stat takes in when the inbox of an agent was written. r.mu is held.
func (r *recent) stat(meta address.Meta) {
	if meta.Descriptor.Type != address.User {
		return
	}
	if info, err := os.Stat(filepath.Join(r.folder(meta.ID), inbox.FileName)); err == nil {
		r.set(spoken{at: info.ModTime(), agent: meta.ID, owner: r.isOwner(meta)})
	}
}

func (r *recent) isOwner(meta address.Meta) bool {
	return r.owns == nil || r.owns(meta.Descriptor)
}

func (r *recent) set(now spoken) {
	r.drop(now.agent)
	r.by[now.agent] = now
	r.tree(now).Set(now)
}

func (r *recent) drop(agent string) {
	if before, ok := r.by[agent]; ok {
		r.tree(before).Delete(before)
		delete(r.by, agent)
	}
}

func (r *recent) tree(of spoken) *btree.BTreeG[spoken] {
	if of.owner {
		return r.owners
	}
	return r.others
}
