package engine

import (
	"path/filepath"
	"testing"

	"daycare/engine/finding"
)

// What is wrong with a file of an agent is known until the file is read again; what merely
// happened, and what belongs to no agent, is reported and not kept.
func TestProblemsOfAgentsAreKept(t *testing.T) {
	root := t.TempDir()
	var reported []string
	p := finding.NewProblems(func(agent string, f finding.Finding) { reported = append(reported, agent+":"+f.ID) },
		func(string, string) {})
	in := func(agent string) string { return filepath.Join(root, "agents", agent, "descriptor.json") }
	NoteAgents(p, root, []finding.Finding{
		{ID: "broken", Severity: finding.Error, File: in("a")},
		{ID: "kept", Severity: finding.Warning, File: in("b")},
		{ID: "elsewhere", Severity: finding.Error, File: filepath.Join(root, "settings.yaml")},
	})
	if of := p.Of("a"); len(of) != 1 || of[0].ID != "broken" {
		t.Errorf("agent a has the problems %v", of)
	}
	if of := append(p.Of("b"), p.Of("")...); len(of) > 0 {
		t.Errorf("kept is also %v", of)
	}
	if len(reported) != 3 {
		t.Errorf("reported is %v", reported)
	}
}
