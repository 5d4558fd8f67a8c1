package engine

import (
	"log/slog"
	"path/filepath"
	"strings"

	"daycare/engine/event"
	"daycare/engine/finding"
)

// NewProblems makes a board that tells people of what is wrong with files, and of what is
// good again: in the log and by events.
func NewProblems(log *slog.Logger, events *event.Stream) *finding.Problems {
	return finding.NewProblems(func(agent string, f finding.Finding) {
		f.Log(log, about(agent)...)
		events.Emit(event.Event{Type: event.FileInvalid, Agent: agent,
			Body: event.File{File: f.File, Line: f.Line, Column: f.Column, Text: f.Reason}})
	}, func(agent, file string) {
		events.Emit(event.Event{Type: event.FileEdited, Agent: agent, Body: event.File{File: file, Text: "valid again, and active"}})
	})
}

// about puts the agent, if there is one, before other attributes of a line of the log.
func about(agent string, args ...any) []any {
	if agent == "" {
		return args
	}
	return append([]any{"agent", agent}, args...)
}

// NoteAgents puts on the board what was found when the folders of agents were read.
// Errors stay there until the file is read again.
func NoteAgents(b *finding.Problems, root string, found []finding.Finding) {
	for _, f := range found {
		agent := agentOf(root, f.File)
		if agent == "" || f.Severity != finding.Error {
			b.Report(agent, f)
			continue
		}
		b.Add(agent, f)
	}
}

// agentOf is the agent in whose folder a file lies; "": in none.
func agentOf(root, path string) string {
	rel, err := filepath.Rel(filepath.Join(root, "agents"), path)
	if err != nil {
		return ""
	}
	id, _, in := strings.Cut(filepath.ToSlash(rel), "/")
	if !in || id == ".." {
		return ""
	}
	return id
}
