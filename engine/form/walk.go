package form

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"daycare/engine/finding"
)

// A reader walks a tree of nodes beside the Go type that it is to become. It adds
// findings and makes a plain value of what is right; unknown keys are left out.
type reader struct {
	*File
	foreign []string // top-level keys that another reader reads
	depth   int
}

// maxDepth ends the walk of a file that refers to itself.
const maxDepth = 32

var (
	durationType = reflect.TypeFor[time.Duration]()
	timeType     = reflect.TypeFor[time.Time]()
	bytesType    = reflect.TypeFor[[]byte]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonType     = reflect.TypeFor[json.Unmarshaler]()
)

// maxShared bounds what the aliases of a file stand for, in bytes: a few lines of them could stand for gigabytes.
const maxShared = 1 << 20

// affords takes from left what the aliases in n stand for, and reports whether there is room for it. shared: n itself
// stands below an alias.
func affords(n *yaml.Node, shared bool, left *int) bool {
	const node = 16 // bytes beside its text: it has to be more than none
	if n.Kind == yaml.AliasNode {
		n, shared = n.Alias, true
	}
	if shared {
		*left -= node + len(n.Value)
	}
	for _, part := range n.Content {
		if *left < 0 || !affords(part, shared, left) {
			return false
		}
	}

	return *left >= 0
}

// read makes a value of n for type t; ok is false if there is nothing to use.
func (r *reader) read(n *yaml.Node, t reflect.Type, path string, tag reflect.StructTag) (v any, ok bool) {
	if r.depth++; r.depth > maxDepth {
		r.depth--
		r.bad(n, "too-deep", path, "is nested too deep")
		return nil, false
	}
	defer func() { r.depth-- }()
	n = resolve(n)
	r.places[path] = n
	if isNull(n) {
		return nil, false // "log:" with everything below it commented out
	}
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	own := reflect.PointerTo(t)
	switch {
	case t == durationType, own.Implements(textType), t == bytesType:
		return r.scalar(n, t, path, tag)
	case own.Implements(jsonType):
		return r.custom(n, t, path)
	case t.Kind() == reflect.Struct:
		if key := tag.Get("short"); key != "" && n.Kind == yaml.ScalarNode {
			return r.short(n, t, key, path)
		}
		return r.object(n, t, path, tag)
	case t.Kind() == reflect.Slice:
		return r.list(n, t.Elem(), path, tag)
	case t.Kind() == reflect.Map:
		return r.free(n, t, path)
	case t.Kind() == reflect.Interface:
		return r.custom(n, t, path)
	}

	return r.scalar(n, t, path, tag)
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// object reads a mapping into the keys of a struct type.
func (r *reader) object(n *yaml.Node, t reflect.Type, path string, tag reflect.StructTag) (any, bool) {
	if n.Kind != yaml.MappingNode {
		r.unfit(n, path, r.anObject())
		return nil, false
	}
	known := Fields(t)
	values := map[string]any{}
	r.members(n, path, func(key, value *yaml.Node) {
		i := slices.IndexFunc(known, func(f Field) bool { return f.Key == key.Value })
		if i < 0 && r.json { // as encoding/json has it
			i = slices.IndexFunc(known, func(f Field) bool { return strings.EqualFold(f.Key, key.Value) })
		}
		if i < 0 {
			if !HasCheck(tag, "open") && !r.others(path, key.Value) {
				r.unknown(key, path, known)
			}
			return
		}

		f, before := known[i], len(r.Found)
		v, ok := r.read(value, f.Type, Join(path, f.Key), f.Tag)
		if r.json && path == "" && finding.Join(r.Found[before:]) != nil {
			ok = false // half a set of rights is not what anybody meant
		}
		if ok {
			values[f.Key] = v
		}
	})

	for _, f := range known {
		if _, ok := values[f.Key]; ok || !f.required {
			continue
		}
		if at := Join(path, f.Key); r.places[at] == nil || isNull(r.places[at]) {
			r.bad(n, "missing", at, "is missing")
		}
	}

	return values, true
}

// others reports whether another reader reads a key.
func (r *reader) others(path, key string) bool {
	return path == "" && (slices.Contains(r.foreign, key) || slices.Contains(r.foreign, Any))
}

// short reads a single text as the one key of a struct that it is short for.
func (r *reader) short(n *yaml.Node, t reflect.Type, key, path string) (any, bool) {
	for _, f := range Fields(t) {
		if f.Key == key && n.Value != "" {
			v, ok := r.read(n, f.Type, path, f.Tag)
			return map[string]any{key: v}, ok
		}
	}

	return nil, false
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
			r.bad(key, "duplicate-key", Join(path, key.Value), fmt.Sprintf("appears twice, first on line %d", first))
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
			r.unfit(s, Join(path, "<<"), "an alias of keys and values")
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

// list reads a list. Its values are typed, because viper lower-cases the keys of plain
// maps; an entry that is wrong leaves its place empty, so that the others keep theirs.
func (r *reader) list(n *yaml.Node, elem reflect.Type, path string, tag reflect.StructTag) (any, bool) {
	if n.Kind == yaml.ScalarNode && r.kind.Loose {
		if n.Value == "" {
			return nil, false
		}
		n = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{n}}
	}
	if n.Kind != yaml.SequenceNode {
		r.unfit(n, path, r.aList())
		return nil, false
	}
	if r.json && len(n.Content) == 0 {
		return []any{}, true // which is not the same as no list
	}

	var objects []map[string]any
	var texts []string
	var others []any
	for i, e := range n.Content {
		at := fmt.Sprintf("%s[%d]", path, i)
		v, ok := r.read(e, elem, at, tag)
		if !ok && e.ShortTag() == "!!null" && !r.json {
			r.unfit(e, at, "a value")
		}

		switch v := v.(type) {
		case map[string]any:
			objects = append(objects, v)
		case string:
			texts = append(texts, v)
		case nil:
			objects = append(objects, map[string]any{})
		default:
			others = append(others, v)
		}
	}

	if elem.Kind() == reflect.Pointer {
		elem = elem.Elem()
	}
	switch elem.Kind() {
	case reflect.Struct:
		switch { // with a reading of its own
		case len(others) > 0:
			return others, true
		case len(texts) > 0:
			return texts, true
		}
		return objects, true
	case reflect.String:
		return texts, true
	}

	return others, true
}

func (r *reader) anObject() string {
	if r.json {
		return "an object"
	}
	return "keys and values"
}

func (r *reader) aList() string {
	if r.json {
		return "a list"
	}
	return "a list: each entry on a line that begins with \"- \""
}

// free reads a mapping whose keys are not ours.
func (r *reader) free(n *yaml.Node, t reflect.Type, path string) (any, bool) {
	if n.Kind != yaml.MappingNode {
		r.unfit(n, path, r.anObject())
		return nil, false
	}

	switch t.Elem().Kind() {
	case reflect.Interface:
		values := reflect.New(t)
		if err := n.Decode(values.Interface()); err != nil {
			r.bad(n, "wrong-type", path, "cannot be read: "+strings.TrimPrefix(err.Error(), "yaml: "))
			return nil, false
		}
		return values.Elem().Interface(), true
	case reflect.String:
		values := map[string]string{}
		r.members(n, path, func(key, value *yaml.Node) {
			if v, ok := r.read(value, t.Elem(), Join(path, key.Value), ""); ok {
				values[key.Value] = v.(string)
			}
		})
		return values, true
	}

	values := map[string]any{}
	r.members(n, path, func(key, value *yaml.Node) {
		if v, ok := r.read(value, t.Elem(), Join(path, key.Value), ""); ok {
			values[key.Value] = v
		}
	})

	return values, true
}

// custom reads a value of a type that has a reading of JSON of its own.
func (r *reader) custom(n *yaml.Node, t reflect.Type, path string) (any, bool) {
	var plain any
	err := n.Decode(&plain)
	var data json.RawMessage
	if err == nil {
		data, err = json.Marshal(plain)
	}
	if err == nil {
		err = json.Unmarshal(data, reflect.New(t).Interface())
	}
	if err != nil {
		r.bad(n, "wrong-type", path, "cannot be read: "+strings.TrimPrefix(err.Error(), "json: "))
		return nil, false
	}

	return data, true
}

// bad adds a finding about a value that is not used.
func (r *reader) bad(n *yaml.Node, id, path, reason string) {
	r.add(n, r.wrong(), id, strings.TrimSpace(path+" "+reason), "")
}

// unfit adds the finding that a value is of the wrong kind.
func (r *reader) unfit(n *yaml.Node, path, allowed string) {
	switch {
	case path == "" && r.json:
		r.add(n, finding.Error, "syntax", fmt.Sprintf("found %s, allowed: one JSON object", r.describe(n)), "")
		return
	case path == "":
		path = "the file"
	}
	r.add(n, r.wrong(), "wrong-type", fmt.Sprintf("%s: found %s, allowed: %s", path, r.describe(n), allowed), "")
}

func (r *reader) unknown(key *yaml.Node, path string, known []Field) {
	if path == "" && key.Value == "$schema" {
		return // it is for editors
	}
	names := make([]string, len(known))
	for i, f := range known {
		names[i] = f.Key
	}

	name, remedy := Join(path, key.Value), "known here: "+strings.Join(names, ", ")
	if r.kind.Unknown == finding.Info {
		remedy = "" // it may well be meant
	}
	if near := Nearest(key.Value, names); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	}

	switch r.kind.Unknown {
	case finding.Info:
		r.add(key, finding.Info, "unknown-key", fmt.Sprintf("unknown member %q is kept but ignored", name), remedy)
	case finding.Error:
		r.add(key, finding.Error, "unknown-key", name+" is unknown", remedy)
	default:
		r.add(key, finding.Warning, "unknown-key", name+" is unknown and ignored", remedy)
	}
}

// describe says what is in the file, in words for users.
func (r *reader) describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return r.anObject()
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}

	switch {
	case r.kind.Secret:
		return "something else"
	case isNull(n):
		return "nothing"
	case n.ShortTag() == "!!str":
		return fmt.Sprintf("the text %q", Short(n.Value))
	}

	return Short(n.Value)
}

// Short keeps what a finding quotes on one line.
func Short(s string) string {
	if utf8.RuneCountInString(s) <= 40 {
		return s
	}
	return string([]rune(s)[:39]) + "…"
}

// Join is the path of a key in the value at a path.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
