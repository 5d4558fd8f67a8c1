package permission

import (
	"fmt"
	"slices"
)

// Ceiling is the set of a list of tags: what people may allow who are no owners.
func Ceiling(tags []string) (s Set, err error) {
	for _, tag := range tags {
		if s, err = s.Grant(Grant{Tag: tag}); err != nil {
			return Set{}, fmt.Errorf("ceiling: %w", err)
		}
	}
	s.Grants = nil

	return s, nil
}

// Covers reports whether an answer to a request gives nothing beyond the set, of all the
// rights that it is for. A command is covered as a whole, and only where a sandbox holds
// it: the tag of its request names its first words alone.
func (s Set) Covers(r Request, d Decision) bool {
	tag := r.Tag
	if d == Prefix {
		tag = r.Prefix
	}
	a, err := Parse(tag)
	if err != nil || r.Sandbox == NoSandbox {
		return false
	}
	if _, exec := a.(Exec); exec && r.Detail.Command != "" && d != Prefix && !r.general() {
		a = Exec{Prefix: r.Detail.Command}
	}

	return s.Allows(a) && !slices.ContainsFunc(r.Also, func(tag string) bool {
		also, err := Parse(tag)
		return err != nil || !s.Allows(also)
	})
}
