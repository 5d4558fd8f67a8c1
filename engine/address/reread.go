package address

import (
	"bytes"
	"encoding/json"
	"slices"

	"daycare/engine/finding"
)

// A Change is what a Reread found of one agent.
type Change struct {
	Members []string // of its descriptor that are different now, sorted; none: it is as it was
	Found   []finding.Finding
	// Broken: the file is not active as it stands. The last good version is.
	Broken bool
}

// Reread reads one agent's descriptor again, if it was written since. What is good
// applies from now on. Findings of a broken file are reported once, and only if
// last is set: an editor may be in the middle of it, and the caller looks again.
func (x *Index) Reread(id string, last bool) (Change, error) {
	for range staleTries {
		before, known := x.Get(id)
		if !known {
			return Change{}, nil
		}
		r := x.scan.read(id)
		if r == nil {
			return Change{}, nil
		}

		broken := finding.Join(r.found) != nil
		if broken && !last {
			return Change{Broken: true}, nil
		}
		t, err := x.scan.takeIn([]*reading{r})
		if err != nil {
			return Change{}, err
		}
		if len(t.stale) > 0 {
			continue
		}

		now, _ := x.Get(id)
		return Change{Members: Changed(before.Descriptor, now.Descriptor), Found: t.found,
			Broken: broken || finding.Join(t.found) != nil}, nil
	}

	return Change{}, nil // others read it all the time, and took in what is there
}

// Changed names the members in which two descriptors differ, sorted.
func Changed(a, b Descriptor) (names []string) {
	was, is := members(a), members(b)
	for name, value := range is {
		if !bytes.Equal(was[name], value) {
			names = append(names, name)
		}
	}

	for name := range was {
		if _, kept := is[name]; !kept {
			names = append(names, name)
		}
	}

	slices.Sort(names)
	return names
}

func members(d Descriptor) (m map[string]json.RawMessage) {
	data, _ := json.Marshal(d) // strings always can be
	_ = json.Unmarshal(data, &m)

	return m
}

// Handle is the handle that an id was given, also if its agent is gone; "" if none.
func (x *Index) Handle(id string) string { return x.scan.handles.of(id) }
