package doctor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"daycare/cmd/daycare/term"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

// A shape holds JSON against the schema that `daycare schema` prints, and says where
// the two differ: a validator of schemas does not know lines and columns. It knows as
// much of JSON Schema as forms use.
type shape struct {
	name     string // of the schema
	schema   *jsonschema.Schema
	severity finding.Severity
	remedy   string

	file  string
	data  []byte
	line  int // of data in the file, from 1
	dec   *json.Decoder
	found []finding.Finding
}

// newShape is a shape for files of the form of that name. severity is that of what is
// wrong; a member that is unknown is worth knowing, and kept.
func newShape(name string, severity finding.Severity) (*shape, error) {
	s, err := SchemaOf(name)
	if err != nil {
		return nil, err
	}
	return &shape{name: name, schema: s, severity: severity, remedy: "What is allowed: daycare schema " + name}, nil
}

// whole checks a file that is one JSON value.
func (s *shape) whole(path string, data []byte) []finding.Finding {
	s.file, s.data, s.line, s.found = path, data, 1, nil
	s.check()
	return s.found
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
		s.file, s.data, s.line, s.found = path, raw, n, nil
		s.check()
		all = append(all, s.found...)
	}
	return all
}

func (s *shape) check() {
	var any json.RawMessage
	if err := json.Unmarshal(s.data, &any); err != nil {
		at := int64(len(s.data))
		if syntax, ok := err.(*json.SyntaxError); ok && syntax.Offset <= at {
			at = max(syntax.Offset-1, 0)
		}
		s.tell(at, s.severity, "syntax", "not JSON: "+err.Error())
		return
	}
	s.dec = json.NewDecoder(bytes.NewReader(s.data))
	s.dec.UseNumber()
	s.value(s.variant(), "")
}

// variant is the schema of a value: in a file of several kinds that of its type.
func (s *shape) variant() *jsonschema.Schema {
	if s.schema.OneOf == nil {
		return s.schema
	}
	var head struct{ Type any }
	if json.Unmarshal(s.data, &head) != nil {
		return s.schema // no object: the walk says so
	}
	for _, one := range s.schema.OneOf {
		if head.Type == *one.Properties["type"].Const {
			return one
		}
	}
	var kinds []string
	for _, one := range s.schema.OneOf {
		kinds = append(kinds, one.Title)
	}
	return &jsonschema.Schema{Type: "object", Required: []string{"type"},
		Properties: map[string]*jsonschema.Schema{"type": {Type: "string", Enum: anys(kinds)}}}
}

func anys(all []string) (list []any) {
	for _, one := range all {
		list = append(list, one)
	}
	return list
}

// value checks the next value of the decoder.
func (s *shape) value(want *jsonschema.Schema, path string) {
	at := s.next()
	token, err := s.dec.Token()
	if err != nil {
		return // it was valid as a whole
	}
	kind := kindOf(token)
	for _, one := range want.AnyOf {
		if one.Type == kind {
			want = one
		}
	}
	fits := s.fits(want, kind, token)
	if !fits {
		s.tell(at, s.severity, "type", fmt.Sprintf("%sfound %s, allowed: %s", label(path), found(token, kind), allowed(want)))
	}
	switch token {
	case json.Delim('{'):
		s.members(want, path, at, fits)
	case json.Delim('['):
		items := want.Items
		for i := 0; s.dec.More(); i++ {
			s.value(either(items, fits), fmt.Sprintf("%s[%d]", path, i))
		}
		s.dec.Token()
	default:
		if fits {
			s.scalar(want, path, at, token)
		}
	}
}

// either is a schema, or one that allows everything where there is none to apply.
func either(want *jsonschema.Schema, apply bool) *jsonschema.Schema {
	if want == nil || !apply {
		return &jsonschema.Schema{}
	}
	return want
}

// members checks an object after its brace, which is at.
func (s *shape) members(want *jsonschema.Schema, path string, at int64, apply bool) {
	seen := map[string]bool{}
	for s.dec.More() {
		place := s.next()
		token, err := s.dec.Token()
		if err != nil {
			return
		}
		key, _ := token.(string)
		one, known := want.Properties[key]
		switch {
		case !apply:
		case seen[key]:
			s.tell(place, s.severity, "twice", fmt.Sprintf("%sis there twice; the last one counts", label(member(path, key))))
		case !known && want.Properties != nil && want.AdditionalProperties == nil:
			s.tell(place, finding.Info, "unknown", fmt.Sprintf("unknown member %q is kept and not used", member(path, key)))
		case !known && want.PropertyNames != nil && !regexp.MustCompile(want.PropertyNames.Pattern).MatchString(key):
			s.tell(place, s.severity, "name", fmt.Sprintf("found the name %q, allowed: %s", key, want.PropertyNames.Pattern))
		}
		seen[key] = true
		if !known {
			one = want.AdditionalProperties
		}
		s.value(either(one, apply), member(path, key))
	}
	s.dec.Token()
	for _, key := range want.Required {
		if apply && !seen[key] {
			s.tell(at, s.severity, "missing", fmt.Sprintf("%q is missing", member(path, key)))
		}
	}
}

func member(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func label(path string) string {
	if path == "" {
		return ""
	}
	return path + ": "
}

// next is where the next value begins.
func (s *shape) next() int64 {
	at := s.dec.InputOffset()
	for int(at) < len(s.data) && strings.IndexByte(" \t\r\n,:", s.data[at]) >= 0 {
		at++
	}
	return at
}

// kindOf is what JSON Schema calls a value that begins with a token.
func kindOf(token json.Token) string {
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return "object"
		}
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case json.Number:
		if strings.ContainsAny(t.String(), ".eE") {
			return "number"
		}
		return "integer"
	}
	return "null"
}

// fits reports whether a value is of an allowed type. null is a member left out.
func (s *shape) fits(want *jsonschema.Schema, kind string, token json.Token) bool {
	types := want.Types
	if want.Type != "" {
		types = []string{want.Type}
	}
	if want.Const != nil {
		return *want.Const == token
	}
	return len(types) == 0 || kind == "null" || slices.Contains(types, kind) || kind == "integer" && slices.Contains(types, "number")
}

// scalar checks what a text or number may be.
func (s *shape) scalar(want *jsonschema.Schema, path string, at int64, token json.Token) {
	text, isText := token.(string)
	wrong := func() {
		s.tell(at, s.severity, "value", fmt.Sprintf("%sfound %s, allowed: %s", label(path), found(token, kindOf(token)), allowed(want)))
	}
	switch {
	case token == nil:
	case want.Enum != nil && !slices.ContainsFunc(want.Enum, func(v any) bool { return fmt.Sprint(v) == fmt.Sprint(token) }):
		wrong()
	case isText && want.Pattern != "" && text != "" && !regexp.MustCompile(want.Pattern).MatchString(text):
		wrong()
	case isText && want.Format == "date-time":
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			wrong()
		}
	case want.Minimum != nil:
		if n, ok := token.(json.Number); ok {
			if f, err := n.Float64(); err != nil || f < *want.Minimum {
				wrong()
			}
		}
	}
}

// allowed says what a schema allows, in words for people.
func allowed(want *jsonschema.Schema) string {
	switch {
	case want.Enum != nil:
		var words []string
		for _, v := range want.Enum {
			if v != nil && v != "" {
				words = append(words, fmt.Sprint(v))
			}
		}
		return strings.Join(words, ", ")
	case want.Format == "date-time":
		return "a time as in RFC 3339, such as 2026-12-01T09:00:00Z"
	case want.Pattern != "":
		return "what fits " + want.Pattern
	case want.Minimum != nil:
		return fmt.Sprintf("%s from %v", want.Type, *want.Minimum)
	case want.Type != "":
		return want.Type
	case len(want.AnyOf) > 0:
		var words []string
		for _, one := range want.AnyOf {
			words = append(words, one.Type)
		}
		return strings.Join(words, " or ")
	}
	return strings.Join(slices.DeleteFunc(slices.Clone(want.Types), func(t string) bool { return t == "null" }), " or ")
}

// found says what stands there. A text is quoted, but never from a file of secrets.
func found(token json.Token, kind string) string {
	switch t := token.(type) {
	case string:
		return fmt.Sprintf("the text %q", term.OneLine(t, 40))
	case json.Number:
		return t.String()
	case bool:
		return fmt.Sprint(t)
	}
	return map[string]string{"object": "an object", "array": "a list", "null": "null"}[kind]
}

func (s *shape) tell(at int64, severity finding.Severity, id, reason string) {
	f := finding.Finding{ID: s.name + "-" + id, Severity: severity, File: s.file, Reason: reason, Remedy: s.remedy}
	f.Line, f.Column = finding.Position(s.data, at)
	f.Line += s.line - 1
	s.found = append(s.found, f)
}
