package openapi

import (
	_ "embed"
	"encoding/json"
	"path"
	"reflect"
	"strings"
	"sync"
	"time"

	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
)

// A schema is what JSON Schema says of a value.
type schema struct {
	Ref             string          `json:"$ref,omitempty"`
	Description     string          `json:"description,omitempty"`
	Type            any             `json:"type,omitempty"` // a name or several
	Format          string          `json:"format,omitempty"`
	ContentEncoding string          `json:"contentEncoding,omitempty"`
	Enum            []string        `json:"enum,omitempty"`
	Default         json.RawMessage `json:"default,omitempty"`
	Items           *schema         `json:"items,omitempty"`
	AnyOf           []*schema       `json:"anyOf,omitempty"`
	bounds
	object
}

// bounds are of a number.
type bounds struct {
	Minimum *int64 `json:"minimum,omitempty"`
	Maximum *int64 `json:"maximum,omitempty"`
}

// object is what a schema says of the members of an object.
type object struct {
	Properties map[string]*schema `json:"properties,omitempty"`
	Required   []string           `json:"required,omitempty"`
	Additional *schema            `json:"additionalProperties,omitempty"`
}

// enums are the values of types with a closed set of them.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[event.State](): {string(event.Idle), string(event.Queued), string(event.Thinking), string(event.UsingTool),
		string(event.WaitingPermission), string(event.WaitingAgent), string(event.Retrying), string(event.Paused),
		string(event.Failing), string(event.Ended)},
	reflect.TypeFor[message.Queue](): {string(message.Steer), string(message.Followup)},
	reflect.TypeFor[message.Kind](): {string(message.Text), string(message.System), string(message.Reset), string(message.Compact),
		string(message.Rewind), string(message.Mark)},
	reflect.TypeFor[finding.Severity](): {string(finding.Error), string(finding.Warning), string(finding.Info)},
}

// of is the schema of a Go type as encoding/json writes it. A struct with a name becomes a
// component, and the schema a reference to it.
func (b builder) of(t reflect.Type) *schema {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[disk.Stamp]():
		return &schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return &schema{Description: "any JSON"}
	case reflect.TypeFor[[]byte]():
		return &schema{Type: "string", ContentEncoding: "base64"}
	}

	switch t.Kind() {
	case reflect.Pointer:
		return b.of(t.Elem())
	case reflect.Slice:
		return &schema{Type: "array", Items: b.of(t.Elem())}
	case reflect.Map:
		return &schema{Type: "object", object: object{Additional: b.of(t.Elem())}}
	case reflect.Struct:
		return b.component(t)
	case reflect.String:
		return &schema{Type: "string", Enum: enums[t]}
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Float64:
		return &schema{Type: "number"}
	case reflect.Interface:
		return &schema{Description: "any JSON"}
	}

	return &schema{Type: "integer"}
}

// component makes the schema of a struct, once.
func (b builder) component(t reflect.Type) *schema {
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if other, ok := b.types[name]; ok && other != t {
		name = path.Base(t.PkgPath()) + name
	}
	ref := &schema{Ref: "#/components/schemas/" + name}
	if b.schemas[name] != nil {
		return ref
	}

	b.types[name] = t
	s := &schema{Type: "object", Description: comment(t, ""), object: object{Properties: map[string]*schema{}}}
	b.schemas[name] = s
	b.members(s, t)
	return ref
}

// members adds the members of a struct, and those of structs embedded in it.
func (b builder) members(s *schema, t reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			b.members(s, f.Type)
			continue
		}
		if name == "-" || !f.IsExported() {
			continue
		}

		p := b.of(f.Type)
		if allow := f.Tag.Get("allow"); allow != "" {
			p.Enum = strings.Split(allow, "|")
		}
		optional := strings.Contains(options, "omit")
		if !optional {
			s.Required = append(s.Required, name)
		}
		if f.Type.Kind() == reflect.Pointer && !optional {
			p = &schema{AnyOf: []*schema{p, {Type: "null"}}}
		}
		if text := comment(t, f.Name); text != "" {
			p.Description = text
		}

		s.Properties[name] = p
	}
}

//go:embed comments.json
var written []byte

// comments are the comments of types and their members, as PACKAGE.TYPE and PACKAGE.TYPE.MEMBER.
var comments = sync.OnceValue(func() map[string]string {
	var m map[string]string
	_ = json.Unmarshal(written, &m) // a test holds the file
	return m
})

func comment(t reflect.Type, member string) string {
	key := path.Base(t.PkgPath()) + "." + t.Name()
	if member != "" {
		key += "." + member
	}

	return comments()[key]
}
