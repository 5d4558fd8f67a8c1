package permission

import (
	"fmt"
	"slices"
)

// Ceiling returns the set of a list of tags: the most that users who are not owners can approve.
func Ceiling(tags []string) (s Set, err error) {
	for _, tag := range tags {
		if s, err = s.Grant(Grant{Tag: tag}); err != nil {
			return Set{}, fmt.Errorf("ceiling: %w", err)
		}
	}
	s.Grants = nil

	return s, nil
}

// Covers reports whether an answer to a request, with all permissions that it needs, grants nothing
// beyond the set. A command is covered only as a whole and only in a sandbox, because the tag of
// its request contains only its first words.
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
