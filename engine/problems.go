package engine

import (
	"log/slog"
	"path/filepath"
	"strings"

	"daycare/engine/event"
	"daycare/engine/finding"
)

// NewProblems returns a list of file problems that reports each new problem, and each file
// that is valid again, to the log and as an event.
func NewProblems(log *slog.Logger, events *event.Stream) *finding.Problems {
	return finding.NewProblems(func(agent string, f finding.Finding) {
		f.Log(log, about(agent)...)
		events.Emit(event.Event{Type: event.FileInvalid, Agent: agent,
			Body: event.File{File: f.File, Line: f.Line, Column: f.Column, Text: f.Reason}})
	}, func(agent, file string) {
		events.Emit(event.Event{Type: event.FileEdited, Agent: agent, Body: event.File{File: file, Text: "valid again, and active"}})
	})
}

// about prepends the agent, if any, to the attributes of a log line.
func about(agent string, args ...any) []any {
	if agent == "" {
		return args
	}
	return append([]any{"agent", agent}, args...)
}

// NoteAgents adds what was found when the folders of agents were read. Errors stay until
// the file is read again.
func NoteAgents(p *finding.Problems, root string, found []finding.Finding) {
	for _, f := range found {
		agent := agentOf(root, f.File)
		if agent == "" || f.Severity != finding.Error {
			p.Report(agent, f)
			continue
		}
		p.Add(agent, f)
	}
}

// agentOf returns the agent whose folder contains a file, or "" if none does.
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
