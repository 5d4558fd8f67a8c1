package config

import "testing"

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
