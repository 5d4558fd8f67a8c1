package record

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"
)

// An object is a JSON object with its members in the order of the text.
type object struct{ members []member }

type member struct {
	key string
	raw []byte
}

func (o *object) index(key string) int {
	return slices.IndexFunc(o.members, func(m member) bool { return m.key == key })
}

// parseObject splits the text of a JSON object into members.
func parseObject(raw []byte) (o object) {
	gjson.ParseBytes(raw).ForEach(func(key, value gjson.Result) bool {
		m := member{key: key.String(), raw: []byte(value.Raw)}
		if i := o.index(m.key); i >= 0 {
			o.members[i] = m // as encoding/json has it: the last one counts
		} else {
			o.members = append(o.members, m)
		}
		return true
	})

	return o
}

func (o *object) encode() []byte {
	buf := []byte{'{'}
	for i, m := range o.members {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(append(append(buf, encoded(m.key)...), ':'), m.raw...)
	}

	return append(buf, '}')
}

// merge applies to raw what differs between old and updated; all three are JSON objects. What
// does not differ, and what neither of the two knows, stays as it is in raw.
func merge(raw, old, updated []byte) []byte {
	doc, was, is := parseObject(raw), parseObject(old), parseObject(updated)
	for _, m := range is.members {
		i, j := doc.index(m.key), was.index(m.key)
		switch {
		case j >= 0 && bytes.Equal(was.members[j].raw, m.raw):
			continue
		case i < 0:
			doc.members = append(doc.members, m)
		case j >= 0 && isObject(doc.members[i].raw) && isObject(m.raw) && isObject(was.members[j].raw):
			doc.members[i].raw = merge(doc.members[i].raw, was.members[j].raw, m.raw)
		default:
			doc.members[i].raw = m.raw
		}
	}

	doc.members = slices.DeleteFunc(doc.members, func(m member) bool {
		return was.index(m.key) >= 0 && is.index(m.key) < 0
	})

	return doc.encode()
}

// isObject reports whether a JSON value is an object.
func isObject(raw []byte) bool { return raw[0] == '{' }
