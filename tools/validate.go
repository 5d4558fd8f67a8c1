package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A Checker is the compiled schema of one tool's arguments.
type Checker struct {
	tool     string
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
}

// NewChecker compiles the schema of a tool, which must describe an object.
func NewChecker(spec Spec) (*Checker, error) {
	c := &Checker{tool: spec.Name, schema: &jsonschema.Schema{}}
	if err := json.Unmarshal(spec.Schema, c.schema); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	if c.schema.Type != "object" {
		return nil, errors.New(`read schema: its type must be "object"`)
	}

	if err := checkReferences(spec.Schema); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}

	var err error
	if c.resolved, err = c.schema.Resolve(nil); err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}

	return c, nil
}

// Validate compiles the schema of spec and checks args. Whoever checks often
// keeps a Checker or a Set.
func Validate(spec Spec, args json.RawMessage) error {
	c, err := NewChecker(spec)
	if err != nil {
		return err
	}

	return c.Validate(args)
}

// Validate checks the arguments of a call: a JSON object that fits the schema.
func (c *Checker) Validate(args json.RawMessage) error {
	value, err := decodeObject(args)
	if err != nil {
		return fmt.Errorf("%s: %w", c.tool, err)
	}
	if err := c.fields(value); err != nil {
		return fmt.Errorf("%s: %w", c.tool, err)
	}
	if err := c.resolved.Validate(value); err != nil {
		return fmt.Errorf("%s: %s", c.tool, plain(err))
	}

	return nil
}

func decodeObject(args json.RawMessage) (map[string]any, error) {
	dec := json.NewDecoder(bytes.NewReader(args))
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, fmt.Errorf("arguments are not valid JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("arguments are more than one JSON value")
	}

	object, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("arguments must be a JSON object")
	}

	return object, nil
}

// fields says in plain words the mistakes that models make: a field is missing,
// misspelt, or of another type. What it lets pass, the schema still judges.
func (c *Checker) fields(value map[string]any) error {
	for _, name := range c.schema.Required {
		if _, ok := value[name]; !ok {
			return fmt.Errorf("missing field %q%s", name, c.describe(name))
		}
	}

	for _, name := range slices.Sorted(maps.Keys(value)) {
		prop, ok := c.schema.Properties[name]
		if !ok {
			if c.closed() {
				return fmt.Errorf("unknown field %q; allowed: %s", name, strings.Join(slices.Sorted(maps.Keys(c.schema.Properties)), ", "))
			}
			continue
		}
		if prop.Type != "" && !fits(prop.Type, value[name]) {
			return fmt.Errorf("field %q must be %s, not %s", name, withArticle(prop.Type), withArticle(typeOf(value[name])))
		}
		if len(prop.Enum) > 0 && !slices.ContainsFunc(prop.Enum, func(v any) bool { return jsonschema.Equal(v, value[name]) }) {
			allowed, _ := json.Marshal(prop.Enum)
			return fmt.Errorf("field %q must be one of %s", name, allowed)
		}
		if n, ok := value[name].(float64); ok {
			if prop.Minimum != nil && n < *prop.Minimum || prop.Maximum != nil && n > *prop.Maximum {
				return fmt.Errorf("field %q is %s; allowed: %s", name, number(n), bounds(prop))
			}
		}
	}

	return nil
}

// closed reports whether the schema forbids further fields: additionalProperties
// is false, which the library reads as {"not": {}}.
func (c *Checker) closed() bool {
	a := c.schema.AdditionalProperties
	return a != nil && a.Not != nil
}

func (c *Checker) describe(name string) string {
	prop := c.schema.Properties[name]
	if prop == nil || prop.Type == "" {
		return ""
	}
	s := " (" + prop.Type
	if prop.Description != "" {
		s += ": " + prop.Description
	}

	return s + ")"
}

func bounds(s *jsonschema.Schema) string {
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		return number(*s.Minimum) + " to " + number(*s.Maximum)
	case s.Minimum != nil:
		return number(*s.Minimum) + " or more"
	}

	return number(*s.Maximum) + " or less"
}

// number is a number as users and models write it, never 1.8e+06.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func typeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}

	return "object"
}

func fits(want string, v any) bool {
	got := typeOf(v)
	return got == want || want == "number" && got == "integer"
}

func withArticle(word string) string {
	if word == "null" {
		return word
	}
	if strings.ContainsRune("aeiou", rune(word[0])) {
		return "an " + word
	}

	return "a " + word
}

// plain takes the library's own words off the front of an error.
func plain(err error) string {
	s := err.Error()
	for {
		rest, ok := strings.CutPrefix(s, "validating root: ")
		if !ok {
			return s
		}
		s = rest
	}
}
