package address

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// A facet is something by which agents are found without a look at all of them: an
// ordered set of (kind, value, id).
type facet struct {
	kind  facetKind
	value string
	id    string
}

type facetKind byte

const (
	byID      facetKind = iota // value is the id: for its prefixes
	byName                     // value is the name
	byParent                   // value is the id of the parent
	byMaker                    // value is the id of who started or made it
	byLive                     // value is a Kind and then the handle; not of agents that have ended
	byRunning                  // value is the id of the parent; of subagents that have not ended
	byFamily                   // value is the family and then the handle; of permanent agents that have not ended
)

func compareFacets(a, b facet) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), strings.Compare(a.value, b.value), strings.Compare(a.id, b.id))
}

// A listing is the agents that are known, and what they are found by.
type listing struct {
	mu     sync.RWMutex
	byID   map[string]*listed
	byKey  map[string]string // key of a descriptor -> id
	sorted []string          // ids by handle; nil: to be made again

	facets   *btree.BTreeG[facet]
	ended    map[string]life   // by id: what is known of it
	families map[string]string // of permanent agents, by id
	visited  atomic.Int64      // see Visited
}

// A listed is what is kept of one agent.
type listed struct {
	id, handle, name string
	descriptor       packed
}

func (l *listed) meta() Meta {
	d, _ := l.descriptor.unpack()
	return Meta{ID: l.id, Handle: l.handle, Name: l.name, Descriptor: d}
}

func newListing() *listing {
	return &listing{byID: map[string]*listed{}, byKey: map[string]string{},
		ended: map[string]life{}, families: map[string]string{},
		facets: btree.NewBTreeGOptions(func(a, b facet) bool { return compareFacets(a, b) < 0 }, btree.Options{NoLocks: true})}
}

// A Kind is agents that are looked for together, as long as they have not ended.
type Kind string

// The kinds of agents that are looked for.
const (
	Subagents  Kind = "subagents"  // started by an agent
	Colleagues Kind = "colleagues" // permanent agents
	Spawn      Kind = "spawn"      // started by /spawn
)

// facetsOf returns the facets of one agent. l.mu is held.
func (l *listing) facetsOf(m Meta) []facet {
	d := m.Descriptor
	list := []facet{{byID, m.ID, m.ID}, {byName, m.Name, m.ID}}
	if d.ParentAgentID != "" {
		list = append(list, facet{byParent, d.ParentAgentID, m.ID})
	}
	if by := m.Maker(); by != "" {
		list = append(list, facet{byMaker, by, m.ID})
	}
	if l.ended[m.ID] == hasEnded {
		return list
	}

	handle := ordered(m.Handle)
	switch {
	case d.Type == Subagent:
		list = append(list, facet{byLive, string(Subagents) + handle, m.ID}, facet{byRunning, d.ParentAgentID, m.ID})
	case d.Type == Permanent:
		list = append(list, facet{byLive, string(Colleagues) + handle, m.ID}, facet{byFamily, l.family(m) + familyEnd + handle, m.ID})
	case d.Spawned:
		list = append(list, facet{byLive, string(Spawn) + handle, m.ID})
	}

	return list
}

// ordered writes a handle so that strings compare as handles do.
func ordered(handle string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimSuffix(handle, "/"), "/") {
		fmt.Fprintf(&b, "\x00%03d%s", len(part), part)
	}

	return b.String()
}

// page is how many entries are read at a time: nothing is called with the lock held.
const page = 32

// walk calls look for the agents with a facet of this kind whose value begins so, in
// order, until it returns false.
func (f *families) walk(kind facetKind, prefix string, look func(Meta) bool) {
	if f.unread.partial() {
		f.unread.all()
	}
	for from := (facet{kind: kind, value: prefix}); ; {
		var some []Meta
		f.known.mu.RLock()
		last := from
		f.known.facets.Ascend(from, func(at facet) bool {
			if at.kind != kind || !strings.HasPrefix(at.value, prefix) || len(some) == page {
				return false
			}
			if at != from {
				some, last = append(some, f.known.byID[at.id].meta()), at
			}

			return true
		})

		f.known.mu.RUnlock()
		for _, m := range some {
			f.known.visited.Add(1)
			if !look(m) {
				return
			}
		}

		if len(some) < page {
			return
		}
		from = last
	}
}

// having returns the agents with a facet of this kind whose value fits, which begin at
// from. l.mu is held.
func (l *listing) having(kind facetKind, from string, fits func(value string) bool) (list []Meta) {
	l.facets.Ascend(facet{kind: kind, value: from}, func(f facet) bool {
		if f.kind != kind || !fits(f.value) {
			return false
		}
		list = append(list, l.byID[f.id].meta())
		return true
	})

	l.visited.Add(int64(len(list)))
	slices.SortFunc(list, func(a, b Meta) int { return compareHandles(a.Handle, b.Handle) })

	return list
}

// exactly is having of one value.
func (l *listing) exactly(kind facetKind, value string) []Meta {
	return l.having(kind, value, func(v string) bool { return v == value })
}

// Children returns the agents that an agent started, in the order of their handles.
func (f *families) Children(parent string) []Meta { return f.below(byParent, parent) }

// Made returns the agents that an agent started or made, in the order of their handles.
func (f *families) Made(maker string) []Meta {
	if f.unread.partial() {
		f.unread.all()
	}
	return f.below(byMaker, maker)
}

// Running returns the subagents of an agent that have not ended.
func (f *families) Running(parent string) []Meta { return f.below(byRunning, parent) }

func (f *families) below(kind facetKind, id string) []Meta {
	if id == "" {
		return nil
	}
	if f.unread.partial() {
		f.unread.readChildren(id)
	}

	f.known.mu.RLock()
	defer f.known.mu.RUnlock()

	return f.known.exactly(kind, id)
}

// Live calls look for the agents of a kind that have not ended, in the order of their
// handles, until it returns false.
func (f *families) Live(kind Kind, look func(Meta) bool) { f.walk(byLive, string(kind), look) }

// Colleagues is Live for the permanent agents of one family; House is that of the workspace itself.
func (f *families) Colleagues(family string, look func(Meta) bool) {
	f.walk(byFamily, family+familyEnd, look)
}

// Visited is how many agents were looked at so far. What is done for one agent must not
// look at more of them the more there are; a test compares.
func (f *families) Visited() int64 { return f.known.visited.Load() }

// get returns an agent.
func (l *listing) get(id string) (Meta, bool) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.meta(id)
}

// meta is get with l.mu held.
func (l *listing) meta(id string) (Meta, bool) {
	if known := l.byID[id]; known != nil {
		return known.meta(), true
	}
	return Meta{}, false
}

// ids are those of all agents in the order of their handles.
func (l *listing) ids() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sorted == nil {
		all := make([]numbered, 0, len(l.byID))
		for id, known := range l.byID {
			all = append(all, numbered{id, known.handle})
		}
		l.sorted = sorted(all)
	}

	l.visited.Add(int64(len(l.sorted)))
	return l.sorted // nobody changes it: it is made again
}

// put makes an agent known. l.mu is held.
func (l *listing) put(id string, d Descriptor, handle string) Meta {
	l.drop(id)
	m := Meta{ID: id, Handle: handle, Name: NameOf(d), Descriptor: d}
	l.byID[id] = &listed{id, handle, m.Name, pack(d)}
	if k := d.Key(); k != "" {
		l.byKey[k] = id
	}

	l.list(m)
	l.found(id)
	l.sorted = nil

	return m
}

// drop forgets an agent; its handle stays its own. l.mu is held.
func (l *listing) drop(id string) {
	m, ok := l.meta(id)
	if !ok {
		return
	}
	delete(l.byID, id)
	if k := m.Descriptor.Key(); l.byKey[k] == id {
		delete(l.byKey, k)
	}

	l.unlist(m)
	delete(l.families, id)
	l.sorted = nil
}
