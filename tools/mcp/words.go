package mcp

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"daycare/engine/permission"
)

// What a server says of its tools is a stranger's text in the prompts of agents: each piece is
// named as the server's words, cut, and has every character spelled out that people cannot see.

const (
	// maxDescription bounds one description of a server, in characters.
	maxDescription = 1000
	// maxSchemaText bounds all descriptions in one schema together, in characters.
	maxSchemaText = 8000
	// maxAnnotation bounds a default and the examples of a schema, in bytes.
	maxAnnotation = 500
)

// told is the description for models.
func (d Definition) told(server string) string {
	return strings.TrimSpace("Of the MCP server " + server + ", in its words: " + cleaned(d.Description, maxDescription))
}

// cleaned is a text of a server as prompts have it, at most limit characters of it.
func cleaned(text string, limit int) string {
	text = strings.TrimSpace(permission.Visible(text))
	if utf8.RuneCountInString(text) > limit {
		text = string([]rune(text)[:limit]) + "…"
	}

	return text
}

// schema is the schema as every vendor takes it: an object has properties.
func (d Definition) schema() json.RawMessage {
	if gjson.ValidBytes(d.Schema) && !gjson.GetBytes(d.Schema, "properties").IsObject() {
		if whole, err := sjson.SetRawBytes(d.Schema, "properties", []byte("{}")); err == nil {
			return whole
		}
	}

	return d.Schema
}

// shown is the schema as models are given it: what arguments it allows is the same, its texts
// are cleaned.
func (d Definition) shown() json.RawMessage {
	raw := d.schema()
	from := json.NewDecoder(bytes.NewReader(raw))
	from.UseNumber()
	var schema any
	if from.Decode(&schema) != nil {
		return raw // it is not usable, and no agent has it
	}
	left := maxSchemaText
	data, err := json.Marshal(inSchema(schema, &left))
	if err != nil {
		return raw
	}

	return data
}

// The members of a schema that are not schemas themselves (JSON Schema 2020-12, and what earlier
// drafts had in their place).
var (
	// values are data: a member "description" in them is not one of the schema.
	values = map[string]bool{"const": true, "enum": true, "required": true, "dependentRequired": true}
	// annotations are data that no argument is checked against: they are left out where they are
	// long, or people cannot see all of them.
	annotations = map[string]bool{"default": true, "examples": true}
	// named are schemas by a name that the server chose.
	named = map[string]bool{"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true}
)

// inSchema cleans the texts of a schema; left is how many characters they may still have.
func inSchema(schema any, left *int) any {
	switch s := schema.(type) {
	case []any:
		for i := range s {
			s[i] = inSchema(s[i], left)
		}
	case map[string]any:
		delete(s, "$comment") // for whoever maintains the schema (2020-12, 8.3)
		for _, name := range slices.Sorted(maps.Keys(s)) {
			if s[name] = inMember(name, s[name], left); s[name] == nil && annotations[name] {
				delete(s, name)
			}
		}
	}

	return schema
}

// inMember cleans one member of a schema.
func inMember(name string, value any, left *int) any {
	text, isText := value.(string)
	switch {
	case (name == "description" || name == "title") && isText:
		if *left == 0 {
			return ""
		}
		text = cleaned(text, min(maxDescription, *left))
		*left = max(0, *left-utf8.RuneCountInString(text))
		if name == "title" || text == "" {
			return text
		}
		return "the server says: " + text
	case annotations[name]:
		if data, err := json.Marshal(value); err != nil || len(data) > maxAnnotation || permission.Visible(string(data)) != string(data) {
			return nil
		}
		return value
	case values[name]:
		return value
	case named[name]:
		if by, ok := value.(map[string]any); ok {
			for _, key := range slices.Sorted(maps.Keys(by)) {
				by[key] = inSchema(by[key], left)
			}
		}
		return value
	}

	return inSchema(value, left)
}
