package engine

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"daycare/engine/event"
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
	for path, want := range map[string]string{"agents/a/state.json": "a", "agents/a/undo/x": "a", "agents/a": "", "agents": "",
		"settings.yaml": "", ".": "", "../agents/a/state.json": ""} {
		if got := agentOf(root, filepath.Join(root, path)); got != want {
			t.Errorf("%s is of agent %q, want %q", path, got, want)
		}
	}
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

// A line of the log about a problem names the agent, if it is one of an agent.
func TestALogLineNamesTheAgent(t *testing.T) {
	var out bytes.Buffer
	p := NewProblems(slog.New(slog.NewTextHandler(&out, nil)), event.NewStream("t"))
	p.Report("a1", finding.Finding{ID: "x", Severity: finding.Warning, Reason: "of an agent"})
	p.Report("", finding.Finding{ID: "x", Severity: finding.Warning, Reason: "of the settings"})
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if want := i == 0; strings.Contains(line, "agent=a1") != want || strings.Contains(line, "agent=") != want {
			t.Errorf("line %d is %s", i, line)
		}
	}
}

// A file that was broken and is valid again is an event.
func TestAFileThatIsValidAgain(t *testing.T) {
	events := event.NewStream("t")
	p := NewProblems(slog.New(slog.DiscardHandler), events)
	broken := finding.Finding{ID: "x", Severity: finding.Error, File: "/a/state.json", Reason: "a comma"}
	p.Set("a1", broken.File, []finding.Finding{broken})
	p.Set("a1", broken.File, nil)
	all, _ := events.Since(0)
	if len(all) != 2 || all[0].Type != event.FileInvalid || all[1].Type != event.FileEdited || all[1].Agent != "a1" ||
		all[1].Body.(event.File).File != broken.File {
		t.Errorf("the events are %+v", all)
	}
}
