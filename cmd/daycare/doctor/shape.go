package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/form"
)

// A shape compares JSON with the type that its schema is made of, and says where the two
// differ.
type shape struct {
	layout
	severity finding.Severity // of what is wrong; an unknown member is worth knowing, and kept
}

// newShape is a shape for files of the form of that name.
func newShape(name string, severity finding.Severity) (*shape, error) {
	all := layouts()
	i := slices.IndexFunc(all, func(f layout) bool { return f.name == name })
	if i < 0 {
		return nil, fmt.Errorf("there is no layout %q", name)
	}

	return &shape{all[i], severity}, nil
}

// lines checks a file of one JSON object a line. skip leaves out those that others
// have complained about.
func (s *shape) lines(path string, data []byte, skip func([]byte) bool) []finding.Finding {
	var all []finding.Finding
	n := 0
	for _, raw := range disk.Lines(data) {
		n++
		if len(bytes.TrimSpace(raw)) == 0 || skip != nil && skip(raw) {
			continue
		}
		for _, f := range s.whole(path, raw) {
			f.Line = n
			all = append(all, f)
		}
	}

	return all
}

// whole checks a file that is one JSON value.
func (s *shape) whole(path string, data []byte) []finding.Finding {
	k := form.Kind{ID: s.name, Unknown: finding.Info, IDs: map[string]string{"wrong-type": "type", "bad-value": "value",
		"unknown-key": "unknown", "duplicate-key": "twice"}}
	f := k.JSON(path, data)
	if s.union == nil {
		f.Check(s.of)
		f.Need(s.need...)
	} else {
		s.variant(f, data)
	}

	for i := range f.Found {
		one := &f.Found[i]
		if one.Severity == finding.Error {
			one.Severity = s.severity
		}
		if one.Severity != finding.Info {
			one.Remedy = "See the allowed values with: daycare schema " + s.name
		}
	}

	return f.Found
}

// variant checks a line by its type.
func (s *shape) variant(f *form.File, data []byte) {
	all := s.union()
	var head struct{ Type any }
	if f.Failed() || json.Unmarshal(data, &head) != nil {
		f.Check(reflect.TypeFor[line]()) // no object: the walk says so
		return
	}

	i := slices.IndexFunc(all, func(v variant) bool { return head.Type == v.kind })
	f.Check(reflect.TypeFor[line](), form.Any)
	if f.Need("type"); i >= 0 {
		f.Check(all[i].of, "type", "seq", "at", "crc")
		f.Need(all[i].need...)
		return
	}

	var kinds []string
	for _, v := range all {
		kinds = append(kinds, v.kind)
	}
	if head.Type != nil {
		f.Bad("type", ": found %q, allowed: %s", fmt.Sprint(head.Type), strings.Join(kinds, ", "))
	}
}
