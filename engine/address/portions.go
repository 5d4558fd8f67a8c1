package address

import "slices"

// portion is how many descriptors are held at a time that were read and do not count yet. Tests have fewer.
var portion = 4096

// readIn reads the descriptors of these agents and makes them count, a portion at a time, in the order in which readAll
// has those of one: agents with a handle by it, then the others.
func (s *scan) readIn(ids []string) (all taken, err error) {
	portions := [][]string{ids}
	if len(ids) > portion {
		byHandle := make([]numbered, len(ids))
		for i, id := range ids {
			byHandle[i] = numbered{id, s.handles.of(id)}
		}
		ids = sorted(byHandle)
		last := len(ids)
		for last > 0 && byHandle[last-1].handle == "" {
			last--
		}
		portions = append(slices.Collect(slices.Chunk(ids[:last], portion)), ids[last:])
	}

	for _, some := range portions {
		t, err := s.takeIn(s.readAll(some))
		all.added, all.changed = append(all.added, t.added...), append(all.changed, t.changed...)
		all.found, all.stale = append(all.found, t.found...), append(all.stale, t.stale...)
		all.before = merged(t.before, all.before)
		if err != nil {
			return all, err
		}
	}

	return all, nil
}

// A numbered is an agent with its handle; "": it has none.
type numbered struct{ id, handle string }

// sorted sorts agents by their handles, those without one last, and returns their ids.
func sorted(all []numbered) []string {
	slices.SortFunc(all, func(a, b numbered) int { return compareHandles(a.handle, b.handle) })
	ids := make([]string, len(all))
	for i, a := range all {
		ids[i] = a.id
	}

	return ids
}
