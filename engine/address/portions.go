package address

import "slices"

// portion is how many descriptors are held at a time that were read and do not count yet. Tests have fewer.
var portion = 4096

// readIn reads the descriptors of these agents and makes them count, a portion at a time, in the order in which readAll
// has those of one: agents with a handle by it, then the others.
func (s *scan) readIn(ids []string) (all taken, err error) {
	portions := [][]string{ids}
	if len(ids) > portion {
		handles := make(map[string]string, len(ids))
		for _, id := range ids {
			handles[id] = s.handles.of(id)
		}
		ids = slices.SortedFunc(slices.Values(ids), func(a, b string) int { return compareHandles(handles[a], handles[b]) })
		numbered := len(ids)
		for numbered > 0 && handles[ids[numbered-1]] == "" {
			numbered--
		}
		portions = append(slices.Collect(slices.Chunk(ids[:numbered], portion)), ids[numbered:])
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
