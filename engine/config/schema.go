package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"daycare/engine/finding"
)

// A reader walks a YAML tree beside the Go type that it is to become. It collects
// findings and makes a plain value of what is right; unknown keys are left out.
type reader struct {
	file  string
	lines []string // of the file, for columns in bytes; nil: unknown
	found []finding.Finding
	// alien are keys at the top that are somebody else's to read.
	alien []string
	depth int
}

// maxDepth ends the walk of a file that refers to itself.
const maxDepth = 32

var (
	connectorType = reflect.TypeFor[Connector]()
	durationType  = reflect.TypeFor[time.Duration]()
	secretType    = reflect.TypeFor[Secret]()
)

// field is a struct field with what its tags allow.
type field struct {
	reflect.StructField
	key string
}

// fields lists the keys of a struct in order.
func fields(t reflect.Type) []field {
	var all []field
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && key != "" && key != "-" {
			all = append(all, field{f, key})
		}
	}
	return all
}

// read makes a value of n for type t; ok is false if there is nothing to use.
func (r *reader) read(n *yaml.Node, t reflect.Type, path string, tag reflect.StructTag) (v any, ok bool) {
	if r.depth++; r.depth > maxDepth {
		r.depth--
		r.bad(n, "settings-too-deep", path, "is nested too deep")
		return nil, false
	}
	defer func() { r.depth-- }()
	n = resolve(n)
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return nil, false // "log:" with everything below it commented out
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case t == durationType || t == secretType:
		return r.scalar(n, t, path, tag)
	case t.Kind() == reflect.Struct:
		return r.object(n, t, path)
	case t.Kind() == reflect.Slice:
		return r.list(n, t.Elem(), path, tag)
	case t.Kind() == reflect.Map:
		return r.free(n, t, path)
	}
	return r.scalar(n, t, path, tag)
}

// object reads a mapping into the keys of a struct type.
func (r *reader) object(n *yaml.Node, t reflect.Type, path string) (any, bool) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, path, "keys and values")
		return nil, false
	}
	known := fields(t)
	values := map[string]any{}
	r.members(n, path, func(key, value *yaml.Node) {
		i := slices.IndexFunc(known, func(f field) bool { return f.key == key.Value })
		if i < 0 {
			// A connector's own options are read by the connector.
			if t != connectorType && !(r.depth == 1 && slices.Contains(r.alien, key.Value)) {
				r.unknown(key, path, known)
			}
			return
		}
		f := known[i]
		if v, ok := r.read(value, f.Type, join(path, f.key), f.Tag); ok {
			values[f.key] = v
		}
	})
	for _, f := range known {
		if _, ok := values[f.key]; !ok && hasCheck(f.Tag, "required") && !r.complained(join(path, f.key)) {
			r.bad(n, "settings-missing", join(path, f.key), "is missing")
		}
	}
	return values, true
}

// members calls f for each key of a mapping once, merge keys (<<) included.
func (r *reader) members(n *yaml.Node, path string, f func(key, value *yaml.Node)) {
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			continue
		}
		if first, twice := lines[key.Value]; twice {
			r.bad(key, "settings-duplicate-key", join(path, key.Value), fmt.Sprintf("is there twice, first on line %d", first))
			continue
		}
		lines[key.Value] = key.Line
		f(key, value)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() == "!!merge" {
			r.merged(n.Content[i+1], path, lines, f)
		}
	}
}

// merged adds the keys that a merge brings and that are not there already: those
// of one mapping, or of a list of mappings.
func (r *reader) merged(n *yaml.Node, path string, have map[string]int, f func(key, value *yaml.Node)) {
	sources := []*yaml.Node{n}
	if m := resolve(n); m.Kind == yaml.SequenceNode {
		sources = m.Content
	}
	for _, s := range sources {
		m := resolve(s)
		if m.Kind != yaml.MappingNode {
			r.wrong(s, join(path, "<<"), "an alias of keys and values")
			continue
		}
		for i := 0; i+1 < len(m.Content); i += 2 {
			if key := m.Content[i]; have[key.Value] == 0 && key.ShortTag() != "!!merge" {
				have[key.Value] = key.Line
				f(key, m.Content[i+1])
			}
		}
	}
}

// resolve is what an alias stands for.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func (r *reader) list(n *yaml.Node, elem reflect.Type, path string, tag reflect.StructTag) (any, bool) {
	if n.Kind != yaml.SequenceNode {
		r.wrong(n, path, "a list: each entry on a line that begins with \"- \"")
		return nil, false
	}
	// Typed, so that viper leaves the keys inside as they are.
	var objects []map[string]any
	var scalars []string
	for i, e := range n.Content {
		v, ok := r.read(e, elem, fmt.Sprintf("%s[%d]", path, i), tag)
		switch v := v.(type) {
		case map[string]any:
			objects = append(objects, v)
		case string:
			scalars = append(scalars, v)
		default:
			if !ok && e.ShortTag() == "!!null" {
				r.wrong(e, fmt.Sprintf("%s[%d]", path, i), "a value")
			}
		}
	}
	if elem.Kind() == reflect.Struct {
		return objects, true
	}
	return scalars, true
}

// free reads a mapping whose keys are not ours.
func (r *reader) free(n *yaml.Node, t reflect.Type, path string) (any, bool) {
	if n.Kind != yaml.MappingNode {
		r.wrong(n, path, "keys and values")
		return nil, false
	}
	if t.Elem().Kind() == reflect.String {
		values := map[string]string{}
		r.members(n, path, func(key, value *yaml.Node) {
			if v, ok := r.read(value, t.Elem(), join(path, key.Value), ""); ok {
				values[key.Value] = v.(string)
			}
		})
		return values, true
	}
	var values Options
	if err := n.Decode(&values); err != nil {
		r.bad(n, "settings-wrong-type", path, "cannot be read: "+strings.TrimPrefix(err.Error(), "yaml: "))
		return nil, false
	}
	return values, true
}

// bad adds an error finding about a setting.
func (r *reader) bad(n *yaml.Node, id, path, reason string) {
	r.add(n, finding.Error, id, strings.TrimSpace(path+" "+reason), "")
}

// wrong adds the finding that a value is of the wrong kind.
func (r *reader) wrong(n *yaml.Node, path, allowed string) {
	if path == "" {
		path = "the file"
	}
	r.add(n, finding.Error, "settings-wrong-type", fmt.Sprintf("%s: found %s, allowed: %s", path, describe(n), allowed), "")
}

func (r *reader) unknown(key *yaml.Node, path string, known []field) {
	if path == "" && key.Value == "$schema" {
		return // it is for editors
	}
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.key
	}
	remedy := "known here: " + strings.Join(names, ", ")
	if near := nearest(key.Value, names); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	}
	r.add(key, finding.Warning, "settings-unknown-key", join(path, key.Value)+" is unknown and not used", remedy)
}

func (r *reader) add(n *yaml.Node, s finding.Severity, id, reason, remedy string) {
	r.found = append(r.found, finding.Finding{ID: id, Severity: s, File: r.file,
		Line: n.Line, Column: r.column(n), Reason: reason, Remedy: remedy})
}

// complained reports whether there is a finding about the setting already, so
// that a wrong value is not also called missing.
func (r *reader) complained(path string) bool {
	return slices.ContainsFunc(r.found, func(f finding.Finding) bool {
		rest, ok := strings.CutPrefix(f.Reason, path)
		return ok && (rest == "" || rest[0] == ':' || rest[0] == ' ')
	})
}

// column turns the column of a node, in characters, into bytes.
func (r *reader) column(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(r.lines) || n.Column < 1 {
		return n.Column
	}
	line, col := r.lines[n.Line-1], 0
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(line[col:])
		col += size
	}
	return col + 1
}

// describe says what stands in the file, in words for people.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!null":
		return "nothing"
	case "!!str":
		return fmt.Sprintf("the text %q", short(n.Value))
	}
	return short(n.Value)
}

// short keeps a finding on one line.
func short(s string) string {
	if utf8.RuneCountInString(s) <= 40 {
		return s
	}
	return string([]rune(s)[:39]) + "…"
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// nearest is the name that s was probably meant to be, or "".
func nearest(s string, names []string) string {
	best, dist := "", 3 // up to two wrong letters
	for _, n := range names {
		if strings.EqualFold(n, s) || len(n) > 2 && strings.HasPrefix(s, n) {
			return n
		}
		if d := distance(strings.ToLower(s), strings.ToLower(n)); d < dist && d < len(n) {
			best, dist = n, d
		}
	}
	return best
}

// distance is that of Levenshtein; long words are not compared.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
