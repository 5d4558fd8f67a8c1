package tools

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/tidwall/gjson"

	"daycare/engine/lazyregexp"
)

// nameRule is what every vendor allows in the name of a tool. The length is not in it: {1,64} takes as long to compile as 64
// expressions.
var nameRule = lazyregexp.New(`^[a-zA-Z0-9_-]+$`)

// longestName is how many characters they allow.
const longestName = 64

// A Set is the tools of one agent, in the order in which a model gets
// them. It is not changed once made and may be used from many goroutines.
type Set struct {
	names  []string
	byName map[string]entry
	family map[string]string // of the tools behind a search; see Behind
}

type entry struct {
	tool    Tool
	spec    Spec
	checker func() (*Checker, error) // compiled at the first call
}

// NewSet makes a set. The specs that it gives have their schemas as a model is to be
// told of them. A schema is compiled once, when its tool is called for the first time:
// a program that starts must not wait for all of them. Two tools of one name, a
// name that a vendor would refuse and a schema that is not one of an object are errors.
func NewSet(list ...Tool) (*Set, error) { return new(Set).With(list...) }

// With is the set and further tools behind its own, under the rules of NewSet.
func (s *Set) With(list ...Tool) (*Set, error) {
	s = &Set{names: slices.Clone(s.names), byName: maps.Clone(s.byName)}
	if s.byName == nil {
		s.byName = make(map[string]entry, len(list))
	}

	for _, t := range list {
		spec := t.Spec()
		if !nameRule.MatchString(spec.Name) || len(spec.Name) > longestName {
			return nil, fmt.Errorf("add tool %q: the name must match %s and have at most %d characters", spec.Name, nameRule, longestName)
		}
		if _, ok := s.byName[spec.Name]; ok {
			return nil, fmt.Errorf("add tool %q: there is one of that name", spec.Name)
		}

		switch spec.Replay {
		case ReadOnly, Idempotent, Once:
		default:
			return nil, fmt.Errorf("add tool %q: replay class %q is not one of %s, %s, %s", spec.Name, spec.Replay,
				ReadOnly, Idempotent, Once)
		}

		if !gjson.ValidBytes(spec.Schema) || gjson.GetBytes(spec.Schema, "type").Str != "object" {
			return nil, fmt.Errorf(`add tool %q: its schema must be JSON of the type "object"`, spec.Name)
		}
		whole := spec
		spec.Schema = told(spec.Schema)
		s.names = append(s.names, spec.Name)
		s.byName[spec.Name] = entry{t, spec, sync.OnceValues(func() (*Checker, error) { return NewChecker(whole) })}
	}

	return s, nil
}

// Len is how many tools the set has.
func (s *Set) Len() int { return len(s.names) }

// All yields the tools with their specs, in order.
func (s *Set) All() iter.Seq2[Spec, Tool] {
	return func(yield func(Spec, Tool) bool) {
		for _, name := range s.names {
			if e := s.byName[name]; !yield(e.spec, e.tool) {
				return
			}
		}
	}
}

// Names are the names of the tools, in order.
func (s *Set) Names() []string { return slices.Clone(s.names) }

// Get finds a tool by its name.
func (s *Set) Get(name string) (Tool, Spec, bool) {
	e, ok := s.byName[name]
	return e.tool, e.spec, ok
}

// Validate checks the arguments of a call against the tool's schema. Its error
// is for the model: it names the field and what is allowed.
func (s *Set) Validate(name string, args []byte) error {
	e, ok := s.byName[name]
	if !ok {
		return fmt.Errorf("tool not found: %s", name)
	}
	c, err := e.checker()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}

	if err := c.Validate(args); err != nil && s.family[name] != "" { // the model may not have seen it
		return fmt.Errorf("%w\nits arguments: %s", err, e.spec.Schema)
	} else if err != nil {
		return err
	}

	return nil
}

// Only is the subset of the named tools, in the set's order; names that it does
// not have are returned too.
func (s *Set) Only(names ...string) (sub *Set, missing []string) {
	sub = &Set{byName: make(map[string]entry, len(names))}
	for _, name := range s.names {
		if slices.Contains(names, name) {
			sub.names = append(sub.names, name)
			sub.byName[name] = s.byName[name]
		}
	}

	for _, name := range names {
		if _, ok := s.byName[name]; !ok {
			missing = append(missing, name)
		}
	}

	return sub, missing
}
