// Package schema makes JSON Schemas of the structs that engine/form reads files into, by
// the same tags, so that editors complain about what daycare would complain about.
//
// The tag jsonschema describes a key.
package schema

import (
	"encoding"
	"encoding/json"
	"reflect"

	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"daycare/engine/form"
)

// For is the schema of a Go type. Of a loose one unknown keys are allowed, and null is as
// good as nothing.
func For(t reflect.Type, loose bool) *jsonschema.Schema { return builder{loose}.of(t, "") }

type builder struct{ loose bool }

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// of is the schema of a value of type t whose field has these tags.
func (b builder) of(t reflect.Type, tag reflect.StructTag) *jsonschema.Schema {
	switch t.Kind() {
	case reflect.Pointer:
		return b.nullable(b.of(t.Elem(), tag))
	case reflect.Slice:
		if t != reflect.TypeFor[json.RawMessage]() && t.Elem().Kind() != reflect.Uint8 {
			return b.nullable(&jsonschema.Schema{Type: "array", Items: b.of(t.Elem(), tag)})
		}
	case reflect.Map:
		return b.nullable(&jsonschema.Schema{Type: "object", AdditionalProperties: b.of(t.Elem(), "")})
	}

	switch {
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return &jsonschema.Schema{}
	case t == reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{Type: "string", Description: "a duration like 30s, 10m, 24h"}
	case form.IsTime(t):
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case reflect.PointerTo(t).Implements(textType), t.Kind() == reflect.Slice:
		return &jsonschema.Schema{Type: "string"}
	case t.Kind() == reflect.Struct:
		return b.object(t, tag)
	}

	return scalar(t, tag)
}

// nullable allows null in loose files.
func (b builder) nullable(s *jsonschema.Schema) *jsonschema.Schema {
	if b.loose && s.Type != "" {
		s.Types, s.Type = []string{"null", s.Type}, ""
		if s.Enum != nil {
			s.Enum = append([]any{nil}, s.Enum...)
		}
	}

	return s
}

func (b builder) object(t reflect.Type, tag reflect.StructTag) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	if !b.loose && !form.HasCheck(tag, "open") {
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}

	for _, f := range form.Fields(t) {
		p := b.of(f.Type, f.Tag)
		if text := f.Tag.Get("jsonschema"); text != "" {
			p.Description = text
		}
		if form.HasCheck(f.Tag, "required") {
			s.Required = append(s.Required, f.Key)
		}
		if short := f.Tag.Get("short"); short != "" {
			of := &p
			if p.Items != nil { // each entry of a list
				of = &p.Items
			}
			*of = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{{Type: "string", Description: "the " + short}, *of}}
		}

		s.Properties[f.Key] = p
		s.PropertyOrder = append(s.PropertyOrder, f.Key)
	}

	return s
}

// scalar is the schema of a text, a number or a flag.
func scalar(t reflect.Type, tag reflect.StructTag) *jsonschema.Schema {
	s := &jsonschema.Schema{Pattern: tag.Get("pattern")}
	switch t.Kind() {
	case reflect.String:
		s.Type = "string"
	case reflect.Bool:
		s.Type = "boolean"
	case reflect.Float64, reflect.Float32:
		s.Type = "number"
	default:
		s.Type = "integer"
	}

	if allow := tag.Get("allow"); allow != "" {
		for v := range strings.SplitSeq(allow, "|") {
			s.Enum = append(s.Enum, v)
		}
	}

	s.Minimum, s.Maximum = bound(tag, "min"), bound(tag, "max")
	return s
}

func bound(tag reflect.StructTag, name string) *float64 {
	if f, err := strconv.ParseFloat(tag.Get(name), 64); err == nil {
		return &f
	}
	return nil
}
