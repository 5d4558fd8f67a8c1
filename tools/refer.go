package tools

import (
	"encoding/json"
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// maxApplied is how many schemas are checked one in the other for one value.
const maxApplied = 1000

var errEndless = errors.New("it refers to itself, to too much, or by a name instead of a path")

// A reach is a schema whose references are followed before it is used: one that leads back to where it stands would be
// followed until the stack ends, and the daemon with it.
type reach struct{ root any }

// ends reports whether checking a value ends for a schema and all in it.
func (r reach) ends(v any) bool {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			if !r.ends(one) {
				return false
			}
		}
	case map[string]any:
		left := maxApplied
		if !r.applied(v, &left) {
			return false
		}
		for _, one := range v {
			if !r.ends(one) {
				return false
			}
		}
	}

	return true
}

// applied goes through the schemas that are checked for the same value as s.
func (r reach) applied(s any, left *int) bool {
	m, ok := s.(map[string]any)
	if !ok {
		return true
	}
	if *left--; *left < 0 {
		return false
	}
	all := []any{m["not"], m["if"], m["then"], m["else"]}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[name].([]any)
		all = append(all, list...)
	}
	if by, ok := m["dependentSchemas"].(map[string]any); ok {
		for _, one := range by {
			all = append(all, one)
		}
	}
	if ref, ok := m["$ref"].(string); ok {
		to, ok := r.at(ref)
		if !ok {
			return false
		}
		all = append(all, to)
	}
	if _, named := m["$dynamicRef"].(string); named {
		return false
	}
	for _, one := range all {
		if !r.applied(one, left) {
			return false
		}
	}

	return true
}

// at is what a reference leads to; nil if there is nothing. It is not ok if it is no path in this schema.
func (r reach) at(ref string) (v any, ok bool) {
	path, local := strings.CutPrefix(ref, "#")
	path, err := url.PathUnescape(path)
	if !local || err != nil || path != "" && path[0] != '/' {
		return nil, false
	}
	v = r.root
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if path == "" {
			break
		}
		if list, ok := v.([]any); ok {
			if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(list) {
				v = list[n]
				continue
			}
		}
		m, _ := v.(map[string]any)
		v = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}

	return v, true
}

// checkReferences refuses a schema with which checking arguments might not end.
func checkReferences(schema json.RawMessage) error {
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		return err
	}
	if !(reach{root}).ends(root) {
		return errEndless
	}

	return nil
}
