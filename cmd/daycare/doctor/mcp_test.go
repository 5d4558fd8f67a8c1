package doctor

import (
	"slices"
	"strings"
	"testing"
)

// doctor names MCP servers whose program is missing, whose pinned tools were edited, and which
// changed their tools.
func TestDoctorLooksAtMcpServers(t *testing.T) {
	w := newWard(t)
	w.file("settings.yaml", "mcp: {servers: [{id: a, command: no-such-program}, {id: b, url: 'http://127.0.0.1:1/'}, {id: c, "+
		"command: sh}]}")
	w.file("mcp/b.json", `{"tools": [{"name": "x", "description": "", "schema": {"type": "object"}, "sha256": "edited"}]}`)
	w.file("mcp/c.json", `{"tools": [], "pending": []}`)

	var got []string
	for _, a := range w.examine().ailments {
		if strings.HasPrefix(a.ID, "mcp-") {
			got = append(got, a.ID)
		}
	}
	slices.Sort(got)
	if want := []string{"mcp-hash", "mcp-program-missing"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}
