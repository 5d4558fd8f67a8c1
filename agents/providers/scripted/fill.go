package scripted

import (
	"errors"
	"strings"
	"text/template"

	"daycare/engine/plain"
)

// filled is a text that a View fills in.
type filled struct {
	fixed string
	tmpl  *template.Template
}

// String fills the text in.
func (f filled) String(v View) (string, error) {
	if f.tmpl == nil {
		return f.fixed, nil
	}
	var b strings.Builder
	err := f.tmpl.Execute(&b, v)

	return b.String(), err
}

// functions are what templates can call beside those of text/template.
var functions = template.FuncMap{"fence": fence}

// maxFenced is how many characters of a text fence shows.
const maxFenced = 4000

// fence makes a code block of a text, whatever is in it, and shortens a long one.
func fence(text string) string {
	if n := prefix(text, maxFenced); n < len(text) {
		text = text[:n] + "…"
	}
	return plain.Fenced(text)
}

func fill(text string) (filled, error) {
	if !strings.Contains(text, "{{") {
		return filled{fixed: text}, nil
	}
	t, err := template.New("").Funcs(functions).Option("missingkey=zero").Parse(text)
	return filled{tmpl: t}, err
}

// fillTree compiles every string of a YAML value. fixed: there is nothing to fill in.
func fillTree(value any) (build func(View) (any, error), fixed bool, err error) {
	switch value := value.(type) {
	case string:
		f, err := fill(value)
		return func(v View) (any, error) { return f.String(v) }, f.tmpl == nil, err
	case []any:
		return fillList(value)
	case map[string]any:
		return fillMap(value)
	case map[any]any:
		return nil, false, errors.New("keys must be strings")
	}

	return func(View) (any, error) { return value, nil }, true, nil
}

func fillList(list []any) (func(View) (any, error), bool, error) {
	parts, fixed := make([]func(View) (any, error), len(list)), true
	for i, item := range list {
		part, same, err := fillTree(item)
		if err != nil {
			return nil, false, err
		}
		parts[i], fixed = part, fixed && same
	}

	return func(v View) (any, error) {
		out := make([]any, len(parts))
		for i, part := range parts {
			var err error
			if out[i], err = part(v); err != nil {
				return nil, err
			}
		}

		return out, nil
	}, fixed, nil
}

func fillMap(m map[string]any) (func(View) (any, error), bool, error) {
	parts, fixed := make(map[string]func(View) (any, error), len(m)), true
	for key, item := range m {
		part, same, err := fillTree(item)
		if err != nil {
			return nil, false, err
		}
		parts[key], fixed = part, fixed && same
	}

	return func(v View) (any, error) {
		out := make(map[string]any, len(parts))
		for key, part := range parts {
			var err error
			if out[key], err = part(v); err != nil {
				return nil, err
			}
		}

		return out, nil
	}, fixed, nil
}
