package config

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestRemovingAnEntryKeepsEverythingElse(t *testing.T) {
	const block = "# top\nmcp:\n  # about a\n  servers:\n    - id: a\n      command: x # why\n    - id: b\n      url: http://h/\n      " +
		"headers:\n        A: b\nlog: { level: warn }\n"
	for name, tt := range map[string]struct{ text, id, want string }{
		"the first of lines": {block, "a",
			"# top\nmcp:\n  # about a\n  servers:\n    - id: b\n      url: http://h/\n      headers:\n        A: b\nlog: { " +
				"level: warn }\n"},
		"the last of lines": {block, "b",
			"# top\nmcp:\n  # about a\n  servers:\n    - id: a\n      command: x # why\nlog: { level: warn }\n"},
		"the only of lines": {"mcp:\n  servers:\n    - id: a\n      command: x\nlog: {level: warn}\n", "a",
			"mcp:\n  servers:\nlog: {level: warn}\n"},
		"the first in brackets": {"mcp: {servers: [{id: a, command: x}, {id: b, command: y}]}\n", "a",
			"mcp: {servers: [{id: b, command: y}]}\n"},
		"the last in brackets": {"mcp: {servers: [{id: a, command: x}, {id: b, command: y}]}\n", "b",
			"mcp: {servers: [{id: a, command: x}]}\n"},
		"the only in brackets": {"mcp: {servers: [{id: a, command: x}]}\n", "a", "mcp: {servers: []}\n"},
	} {
		got, err := Remove([]byte(tt.text), "mcp", "servers", tt.id)
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, tt.want)
		}
		if _, err := Remove([]byte(tt.text), "mcp", "servers", "none"); err == nil {
			t.Errorf("%s: an entry that is not there must be an error", name)
		}
	}
}

// What cannot be removed by itself is left alone, and the error says what to do.
func TestRemoveRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"no YAML":                    {"mcp: [\n", "not YAML"},
		"a key twice":                {"mcp: {servers: [{id: a}]}\nb:\nb:\n", "already defined at line 2"},
		"below a value":              {"mcp: 1\n", "below a single value"},
		"no list":                    {"mcp: {}\n", "daycare config edit"},
		"another thing":              {"mcp: {servers: {a: 1}}\n", "daycare config edit"},
		"no such entry":              {"mcp: {servers: [x, {id: b}]}\n", "there is no such entry"},
		"comments inside":            {"mcp:\n  servers: [{id: a, # why\n  command: x}]\n", "daycare config edit"},
		"comments before":            {"mcp:\n  servers: [{id: b, # why\n  command: x}, {id: a}]\n", "daycare config edit"},
		"a number sign before":       {"mcp: {servers: [{id# b}, {id: a}]}\n", "daycare config edit"},
		"used elsewhere":             {"mcp: {servers: [&x {id: a}]}\nb: *x\n", "used in several places"},
		"used in a line elsewhere":   {"mcp:\n  servers:\n    - &x\n      id: a\nb: *x\n", "used in several places"},
		"the first on the same line": {"mcp:\n  servers: [{id: b}, {id: a, env: {A: '#'}}\n  # why\n  ]\nb: &y [*z]\n", "not"},
	} {
		got, err := Remove([]byte(tt.text), "mcp", "servers", "a")
		if err == nil || got != nil || !strings.HasPrefix(err.Error(), "remove mcp.servers.a: ") ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %q, %v; want an error with %q", name, got, err, tt.want)
		}
	}
}

// Whatever the file, the result is YAML, or an error.
func FuzzRemove(f *testing.F) {
	f.Add("mcp:\n  servers:\n    - id: a\n", "mcp.servers.a")
	f.Add("a: [{id: b}, {id: c}]\n", "a.b")
	f.Add("- id: a\n", "0")
	f.Add("a: [{id# b}, {id: c}]", "a.c")
	f.Add("a: [{id: 010}, {id: 8, l: [{id: q}]}]\n", "a.8.l.q")
	f.Fuzz(func(t *testing.T, before, keys string) {
		got, err := Remove([]byte(before), strings.Split(keys, ".")...)
		if err == nil && yaml.Unmarshal(got, new(any)) != nil {
			t.Errorf("%q became %q", before, got)
		}
	})
}
