package record

import (
	"bytes"
	"encoding/json"
	"slices"
)

// An object is a JSON object with its members in the order of the text.
type object struct{ members []member }

type member struct {
	key string
	raw json.RawMessage
}

func (o *object) index(key string) int {
	return slices.IndexFunc(o.members, func(m member) bool { return m.key == key })
}

// parseObject splits a text into members. ok is false if it is not an object.
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

		m := member{key: key.(string), raw: v}
		if i := o.index(m.key); i >= 0 {
			o.members[i] = m // as encoding/json has it: the last one counts
		} else {
			o.members = append(o.members, m)
		}
	}

	_, err = dec.Token()
	return o, true, err
}

func (o *object) encode() []byte {
	buf := []byte{'{'}
	for i, m := range o.members {
		key, _ := marshal(m.key) // a string
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = append(append(append(buf, key...), ':'), m.raw...)
	}

	return append(buf, '}')
}

// merge applies to raw what differs between the objects old and updated. What does
// not differ, and what neither of them knows, stays as it is in raw.
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

	return doc.encode(), nil
}

func isObject(raw []byte) bool { return len(raw) > 0 && raw[0] == '{' }
