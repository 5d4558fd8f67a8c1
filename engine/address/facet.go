package address

import (
	"cmp"
	"slices"
	"strings"

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
	byID     facetKind = iota // value is the id: for its prefixes
	byName                    // value is the name
	byParent                  // value is the id of the parent
	byType                    // value is the type, of agents that others are told of
)

func compareFacets(a, b facet) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), strings.Compare(a.value, b.value), strings.Compare(a.id, b.id))
}

func newFacets() *btree.BTreeG[facet] {
	return btree.NewBTreeGOptions(func(a, b facet) bool { return compareFacets(a, b) < 0 }, btree.Options{NoLocks: true})
}

// facets are those of one agent.
func (m Meta) facets() []facet {
	list := []facet{{byID, m.ID, m.ID}, {byName, m.Name, m.ID}}
	if parent := m.Descriptor.ParentAgentID; parent != "" {
		list = append(list, facet{byParent, parent, m.ID})
	}
	if m.Descriptor.Type == Permanent {
		list = append(list, facet{byType, string(Permanent), m.ID})
	}
	return list
}

// having returns the agents with a facet of this kind whose value fits, which begin at
// from. x.mu is held.
func (x *Index) having(kind facetKind, from string, fits func(value string) bool) (list []Meta) {
	x.facets.Ascend(facet{kind: kind, value: from}, func(f facet) bool {
		if f.kind != kind || !fits(f.value) {
			return false
		}
		list = append(list, x.byID[f.id])
		return true
	})
	slices.SortFunc(list, func(a, b Meta) int { return compareHandles(a.Handle, b.Handle) })
	return list
}

// exactly is having of one value.
func (x *Index) exactly(kind facetKind, value string) []Meta {
	return x.having(kind, value, func(v string) bool { return v == value })
}

// Children returns the agents that an agent started, in the order of their handles.
func (x *Index) Children(parent string) []Meta {
	if parent == "" {
		return nil
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.exactly(byParent, parent)
}

// Permanent returns the permanent agents, in the order of their handles.
func (x *Index) Permanent() []Meta {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.exactly(byType, string(Permanent))
}
