package daemon

import (
	"daycare/engine/event"
	"daycare/engine/finding"
)

// Problems converts findings to what user interfaces show.
func Problems(found []finding.Finding) []event.File {
	files := []event.File{}
	for _, f := range found {
		files = append(files, event.File{File: f.File, Line: f.Line, Column: f.Column, Text: f.Reason})
	}
	return files
}
