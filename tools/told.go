package tools

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"
)

// told is a schema as a model gets it: what costs tokens with every call and
// tells it nothing is left out. Arguments are checked against the whole schema all
// the same. The order of members stays, because it is part of the prompt's prefix.
func told(schema json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	tellSchema(&b, gjson.ParseBytes(schema))
	return b.Bytes()
}

func tellSchema(b *bytes.Buffer, v gjson.Result) {
	tellObject(b, v, func(key, value gjson.Result) {
		switch key.Str {
		case "properties", "$defs", "definitions", "patternProperties":
			tellObject(b, value, func(_, each gjson.Result) { tellSchema(b, each) }, nil)
		case "items", "not", "additionalProperties":
			tellSchema(b, value)
		case "anyOf", "oneOf", "allOf":
			b.WriteByte('[')
			for i, each := range value.Array() {
				if i > 0 {
					b.WriteByte(',')
				}
				tellSchema(b, each)
			}
			b.WriteByte(']')
		default:
			b.WriteString(value.Get("@ugly").Raw)
		}
	}, func(key, value gjson.Result) bool {
		switch key.Str {
		case "additionalProperties":
			return value.Type == gjson.False
		case "minLength", "minimum":
			return value.Num <= 1 // an empty string, or 0 days, gets an error from the tool itself
		case "maxLength":
			return true
		}

		return false
	})
}

// tellObject writes the members of an object that skip does not name. What is no
// object is written as it is.
func tellObject(b *bytes.Buffer, v gjson.Result, write func(key, value gjson.Result), skip func(key, value gjson.Result) bool) {
	if !v.IsObject() {
		b.WriteString(v.Get("@ugly").Raw)
		return
	}
	b.WriteByte('{')
	first := true
	v.ForEach(func(key, value gjson.Result) bool {
		if skip != nil && skip(key, value) {
			return true
		}
		if !first {
			b.WriteByte(',')
		}

		first = false
		b.WriteString(key.Raw)
		b.WriteByte(':')
		write(key, value)

		return true
	})

	b.WriteByte('}')
}
