package daemon

import (
	"path/filepath"
	"strings"
	"testing"

	"daycare/agents/prompt"
	"daycare/engine/address"
	"daycare/engine/record"
	ws "daycare/engine/workspace"
	"daycare/tools"
)

// Schemas are compiled when their tools are called; here all of them are.
func TestSchemasOfAllToolsCompile(t *testing.T) {
	r := openEmpty(t)
	n := 0
	for spec := range r.toolset.all().All() {
		n++
		if _, err := tools.NewChecker(spec); err != nil {
			t.Errorf("%s: %v", spec.Name, err)
		}
	}
	if n < 40 {
		t.Errorf("only %d tools", n)
	}
	t.Logf("%d tools", n)
}

// TestSkillsAreToldToWhoCanReadThem: an agent without the tool skill is not told to use
// it.
func TestSkillsAreToldToWhoCanReadThem(t *testing.T) {
	r := openEmpty(t)
	for _, tt := range []struct {
		descriptor address.Descriptor
		told       bool
	}{
		{address.Descriptor{Type: address.User}, true},
		{address.Descriptor{Type: address.Permanent}, true},
		{address.Descriptor{Type: address.Subagent}, true},
		{address.Descriptor{Type: address.Subagent, Definition: "CodeSearch"}, false},
		{address.Descriptor{Type: address.Subagent, Definition: "sessions_spawn"}, false},
	} {
		d := factory{r}.define(address.Meta{Descriptor: tt.descriptor}, record.State{})
		if text := prompt.System(d); strings.Contains(text, "- skill-writing: ") != tt.told {
			t.Errorf("%+v is told of skills: %v\n%s", tt.descriptor, !tt.told, text)
		}
	}
}

// openEmpty is what runs in a workspace that nobody has set up, until the test ends.
func openEmpty(t *testing.T) *Daemon {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, ws.Home, "settings.yaml"), "")
	r, err := openFiles(t.Context(), ws.At(dir), t.Errorf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.close() })

	return r
}
