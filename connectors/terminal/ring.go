package terminal

import "slices"

// A ring is the order in which one switches: the agents that were visited, in the
// order of their first visit, then the siblings of the one that is shown. Moving
// along the ring does not change it, so that left undoes right.
type ring struct{ visited []string }

// visit notes that an agent is shown.
func (r *ring) visit(id string) {
	if !slices.Contains(r.visited, id) {
		r.visited = append(r.visited, id)
	}
}

// forget takes an agent out that is gone.
func (r *ring) forget(id string) {
	r.visited = slices.DeleteFunc(r.visited, func(v string) bool { return v == id })
}

// list is the whole ring around the agent that is shown.
func (r *ring) list(w *world, shown string) []string {
	var ids []string
	for _, id := range r.visited {
		if a := w.get(id); id == "" || a != nil && (a.rank() != ended || id == shown) {
			ids = append(ids, id)
		}
	}
	parent := ""
	if a := w.get(shown); a != nil {
		parent = a.ParentAgentID
	}
	for _, a := range w.order {
		if a.ParentAgentID == parent && a.rank() != ended && !slices.Contains(ids, a.ID) {
			ids = append(ids, a.ID)
		}
	}

	return ids
}

// next is the agent n places further; the ring wraps around.
func (r *ring) next(w *world, shown string, n int) string {
	ids := r.list(w, shown)
	if len(ids) == 0 {
		return shown
	}
	i := slices.Index(ids, shown)
	if i < 0 {
		return ids[0]
	}

	return ids[((i+n)%len(ids)+len(ids))%len(ids)]
}

// before is where to go when the agent that is shown is gone: the one visited
// before it.
func (r *ring) before(w *world, gone string) string {
	i := slices.Index(r.visited, gone)
	for k := i - 1; k >= 0; k-- {
		if a := w.get(r.visited[k]); a != nil && a.rank() != ended {
			return r.visited[k]
		}
	}
	for _, a := range w.order {
		if a.ID != gone && a.rank() != ended {
			return a.ID
		}
	}

	return ""
}
