package config

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// An entry that is added to a list changes not a character beside it, whatever way the file
// is written in.
func TestAppend(t *testing.T) {
	const entry = "id: new\ntype: x\n"
	for name, tt := range map[string]struct{ before, keys, item, after string }{
		"no file":       {"", "connectors", entry, "connectors:\n  - id: new\n    type: x\n"},
		"only comments": {"# mine", "connectors", entry, "# mine\nconnectors:\n  - id: new\n    type: x\n"},
		"before its example": {"# Where from.\n#connectors:\n#  - id: a\n\n#log:\n", "connectors", entry,
			"# Where from.\nconnectors:\n  - id: new\n    type: x\n\n#connectors:\n#  - id: a\n\n#log:\n"},
		"an example inside another value": {"agents:\n#connectors:\n  queue: steer\n", "connectors", entry,
			"agents:\n#connectors:\n  queue: steer\nconnectors:\n  - id: new\n    type: x\n"},
		"an example before dashes": {"hooks:\n#connectors:\n- x\n", "connectors", entry,
			"hooks:\n#connectors:\n- x\nconnectors:\n  - id: new\n    type: x\n"},
		"behind the last": {"connectors: # why\n  - id: a\n    allow:\n      - x # ada\n\n# next\nlog: {}\n", "connectors", entry,
			"connectors: # why\n  - id: a\n    allow:\n      - x # ada\n  - id: new\n    type: x\n\n# next\nlog: {}\n"},
		"dashes below their key": {"connectors:\n- id: a\nlog: {}\n", "connectors", entry,
			"connectors:\n- id: a\n- id: new\n  type: x\nlog: {}\n"},
		"a key and no more": {"connectors: # none\nlog: {}\n", "connectors", entry,
			"connectors: # none\n  - id: new\n    type: x\nlog: {}\n"},
		"brackets": {"connectors: [ {id: a} ]\n", "connectors", entry, "connectors: [ {id: a}, {id: new, type: x} ]\n"},
		"an item with room in it": {"connectors: [ {id: a} ] # why\n", "connectors", "{ id: new }",
			"connectors: [ {id: a}, { id: new } ] # why\n"},
		"empty brackets": {"connectors: [] # none\n", "connectors", entry, "connectors: [{id: new, type: x}] # none\n"},
		"all in braces":  {"{log: {}}\n", "connectors", entry, "{ connectors: [{id: new, type: x}],log: {}}\n"},
		"a text to a list of an entry": {"connectors:\n  - id: a\n    allow: [\"1\"] # me\n", "connectors.a.allow", `"2"`,
			"connectors:\n  - id: a\n    allow: [\"1\", \"2\"] # me\n"},
		"a text below others": {"connectors:\n  - id: a\n    allow:\n      - \"1\" # me\n    queue: steer\n", "connectors.a.allow", `"2"`,
			"connectors:\n  - id: a\n    allow:\n      - \"1\" # me\n      - \"2\"\n    queue: steer\n"},
		"a list that an entry lacks": {"connectors:\n  - id: a\n", "connectors.a.allow", `"2"`,
			"connectors:\n  - id: a\n    allow: [\"2\"]\n"},
		"an entry in braces": {"connectors:\n  - { id: a, allow: [] }\n", "connectors.a.allow", `"2"`,
			"connectors:\n  - { id: a, allow: [\"2\"] }\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Append([]byte(tt.before), tt.item, strings.Split(tt.keys, ".")...)
			if err != nil || string(got) != tt.after {
				t.Errorf("got %q, %v\nwant %q", got, err, tt.after)
			}
			if err := yaml.Unmarshal(got, &map[string]any{}); err != nil {
				t.Errorf("it is no longer YAML: %v", err)
			}
		})
	}
}

// A list that only an editor can change is left alone, and the error says what to do.
func TestAppendRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ before, keys, want string }{
		"a list used twice":   {"a: &x [1]\nb: *x\n", "b", "daycare config edit"},
		"comments inside":     {"a: [\n 1, # one\n]\n", "a", "daycare config edit"},
		"a comma at the end":  {"a: [1,]\n", "a", "daycare config edit"},
		"what an alias takes": {"a: &x [1]\nb: *x\n", "a", "used in several places"},
		"a text with nothing": {"a: \"\"\n", "a", "daycare config edit"},
		"below a value":       {"a: 1\n", "a.b", "below a single value"},
		"a key twice":         {"a: [1]\nb:\nb:\n", "a", "already defined at line 2"},
		"not a list":          {"a: 1\n", "a", "daycare config edit"},
		"an entry that lacks": {"connectors:\n  - id: a\n", "connectors.b.allow", `no entry with the id "b"`},
		"no YAML":             {"a: [\n", "a", "not YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Append([]byte(tt.before), "2", strings.Split(tt.keys, ".")...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %q, %v; want an error with %q", got, err, tt.want)
			}
		})
	}
}

// An entry of several lines is not added to what is no settings, either.
func TestAppendLinesRefuses(t *testing.T) {
	for before, want := range map[string]string{"a: [\n": "not YAML", "x: 1\n": "below a single value"} {
		if got, err := Append([]byte(before), "id: b\ntype: c\n", "x", "y"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v; want an error with %q", before, got, err, want)
		}
	}
}

// Whatever the file and the entry, the result is YAML, or an error.
func FuzzAppend(f *testing.F) {
	f.Add("connectors:\n  - id: a\n", "connectors", "id: b\ntype: c\n")
	f.Add("a: ['x']\n", "a", "2")
	f.Fuzz(func(t *testing.T, before, keys, item string) {
		got, err := Append([]byte(before), item, strings.Split(keys, ".")...)
		if err == nil && yaml.Unmarshal(got, new(any)) != nil {
			t.Errorf("%q became %q", before, got)
		}
	})
}
