package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"daycare/engine/finding"
)

// An object is a JSON object with its members in the order of the text.
type object struct{ members []member }

type member struct {
	key string
	at  int64 // offset of the value in the text
	raw json.RawMessage
}

func (o *object) index(key string) int {
	return slices.IndexFunc(o.members, func(m member) bool { return m.key == key })
}

// parseObject splits a text into members. ok is false if it is no object.
func parseObject(raw []byte) (o object, ok bool, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	tok, err := dec.Token()
	if err != nil {
		return o, false, err
	}
	if tok != json.Delim('{') {
		return o, false, nil
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return o, true, err
		}
		var v json.RawMessage
		if err := dec.Decode(&v); err != nil {
			return o, true, err
		}
		m := member{key: key.(string), at: dec.InputOffset() - int64(len(v)), raw: v}
		if i := o.index(m.key); i >= 0 {
			o.members[i] = m // as encoding/json has it: the last one counts
		} else {
			o.members = append(o.members, m)
		}
	}
	_, err = dec.Token()
	return o, true, err
}

func (o *object) encode() ([]byte, error) {
	buf := []byte{'{'}
	for i, m := range o.members {
		key, err := marshal(m.key)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(append(append(buf, key...), ':'), m.raw...)
	}
	return append(buf, '}'), nil
}

// merge applies to raw what differs between the objects old and updated. What does
// not differ, and what neither of them knows, stays as it stands in raw.
func merge(raw, old, updated []byte) ([]byte, error) {
	doc, ok, err := parseObject(raw)
	if err != nil || !ok {
		return updated, err
	}
	was, okOld, err := parseObject(old)
	if err != nil {
		return nil, err
	}
	is, okNew, err := parseObject(updated)
	if err != nil || !okOld || !okNew {
		return updated, err
	}
	for _, m := range is.members {
		i, j := doc.index(m.key), was.index(m.key)
		switch {
		case j >= 0 && bytes.Equal(was.members[j].raw, m.raw):
			continue
		case i < 0:
			doc.members = append(doc.members, m)
		case j >= 0 && isObject(doc.members[i].raw) && isObject(m.raw) && isObject(was.members[j].raw):
			if doc.members[i].raw, err = merge(doc.members[i].raw, was.members[j].raw, m.raw); err != nil {
				return nil, err
			}
		default:
			doc.members[i].raw = m.raw
		}
	}
	doc.members = slices.DeleteFunc(doc.members, func(m member) bool {
		return was.index(m.key) >= 0 && is.index(m.key) < 0
	})
	return doc.encode()
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }

// A parser reads a JSON document that a person may have written and says where it
// is wrong.
type parser struct {
	path  string
	raw   []byte
	found []finding.Finding
}

func (p *parser) tell(s finding.Severity, id string, offset int64, reason string) {
	f := finding.Finding{ID: id, Severity: s, File: p.path, Reason: reason}
	f.Line, f.Column = finding.Position(p.raw, offset)
	if s == finding.Error {
		f.Remedy = "Until it is corrected the last good version stays in force."
	}
	p.found = append(p.found, f)
}

// document reads the outermost object.
func (p *parser) document() (object, bool) {
	// Unmarshal, because its errors know their place.
	var whole json.RawMessage
	if err := json.Unmarshal(p.raw, &whole); err != nil {
		offset := int64(len(p.raw))
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			offset = max(syntax.Offset-1, 0)
		}
		p.tell(finding.Error, "state-syntax", offset, err.Error())
		return object{}, false
	}
	doc, ok, err := parseObject(p.raw)
	if err != nil || !ok {
		p.tell(finding.Error, "state-syntax", 0, "it must be one JSON object")
		return object{}, false
	}
	return doc, true
}

// value reads one member into target; on an error target keeps its zero value.
func (p *parser) value(m member, target any) {
	fresh := reflect.New(reflect.TypeOf(target).Elem())
	err := json.Unmarshal(m.raw, fresh.Interface())
	if err == nil {
		reflect.ValueOf(target).Elem().Set(fresh.Elem())
		p.unknown(m, fresh.Interface())
		return
	}
	offset, reason := m.at, err.Error()
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		offset += valueStart(m.raw, kind.Offset)
		name := m.key
		if kind.Field != "" {
			name += "." + kind.Field
		}
		reason = fmt.Sprintf("%s is a %s; it must be %s", name, kind.Value, kindName(kind.Type.String()))
	}
	p.tell(finding.Error, "state-wrong-type", offset, reason)
}

// valueStart is where the value begins that ends at offset end. encoding/json says
// only where it ends; of an object or a list, where it begins.
func valueStart(raw []byte, end int64) int64 {
	at := min(max(end, 1), int64(len(raw))) - 1
	switch raw[at] {
	case '{', '[':
		return at
	case '"':
		for at--; at > 0 && (raw[at] != '"' || raw[at-1] == '\\'); at-- {
		}
		return max(at, 0)
	}
	for at > 0 && !bytes.ContainsRune([]byte(" \t\r\n:,[{"), rune(raw[at-1])) {
		at--
	}
	return at
}

// kindName is a Go type in the words of JSON.
func kindName(t string) string {
	switch t {
	case "string", "bool":
		return "a " + t
	case "int", "int64", "float64":
		return "a number"
	case "[]string":
		return "a list of strings"
	case "time.Time":
		return "a time like 2026-01-02T15:04:05.000Z"
	default:
		return "an object or list (" + t + ")"
	}
}

// unknown tells of members inside a member that none of our types has: most often
// a slip of the pen.
func (p *parser) unknown(m member, target any) {
	if !isObject(m.raw) {
		return
	}
	dec := json.NewDecoder(bytes.NewReader(m.raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(target); err == nil {
		return
	} else if name, ok := unknownField(err); ok {
		at := m.at + int64(max(bytes.Index(m.raw, []byte(name)), 0))
		p.tell(finding.Info, "state-unknown-key", at, fmt.Sprintf("unknown member %s in %q is kept and not used", name, m.key))
	}
}

// unknownField takes the name out of encoding/json's error, which has no type of
// its own.
func unknownField(err error) (string, bool) {
	_, name, ok := bytes.Cut([]byte(err.Error()), []byte("unknown field "))
	return string(name), ok
}
