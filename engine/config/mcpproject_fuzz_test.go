package config

import (
	"bytes"
	"testing"

	"daycare/engine/form"
)

// FuzzProject: whatever an agent or a stranger wrote into .mcp.json, what is used of it is whole,
// and what is said of it names a place in it.
func FuzzProject(f *testing.F) {
	for _, seed := range []string{
		`{"mcpServers":{"files":{"command":"npx","args":["-y","x"],"env":{"A":"${B:-c}"}}}}`,
		`{"mcpServers":{"hub":{"type":"http","url":"https://h/mcp","headers":{"A":"Bearer ${K}"}}}}`,
		`{"mcpServers":{"a/../b":{"command":"x"},"b":{"command":"x","url":"http://h"},"c":{"type":"sse","url":"http://h"}}}`,
		`{"mcpServers":{"a":{"command":7,"args":"x","env":[]}}}`, `{"mcpServers":[]}`, `{"mcpServers":null}`, `[]`, `{`, ``, "\x00\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		list, found := parseProject("/w/.mcp.json", content)
		lines := bytes.Count(content, []byte("\n")) + 1
		for _, p := range found {
			if p.Reason == "" || p.Line < 0 || p.Line > lines {
				t.Errorf("line %d of %d: %q", p.Line, lines, p.Reason)
			}
		}
		last := ""
		for _, s := range list {
			if !form.Is("id", s.ID) || s.ID <= last || (s.Command == "") == (s.URL == "") || !s.Project || s.Timeout <= 0 {
				t.Errorf("used: %+v", s)
			}
			last = s.ID
		}
	})
}
