package finding

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
)

// Severity says how much a finding matters.
type Severity string

const (
	Info    Severity = "info"    // worth knowing; nothing is out of force
	Warning Severity = "warning" // part of the file is not used
	Error   Severity = "error"   // the file as it stands is not active
)

// Level is how loud a log is about it.
func (s Severity) Level() slog.Level {
	switch s {
	case Error:
		return slog.LevelError
	case Warning:
		return slog.LevelWarn
	}

	return slog.LevelInfo
}

// A Finding is one thing that is wrong with one file.
type Finding struct {
	ID       string   `json:"id"` // stable, kebab-case: "settings-unknown-key"
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`   // from 1; 0: the whole file
	Column   int      `json:"column,omitempty"` // from 1, in bytes; 0: the whole line
	Reason   string   `json:"reason"`           // what was found and what is allowed
	Remedy   string   `json:"remedy,omitempty"` // what to do
}

// Place is FILE[:LINE[:COLUMN]].
func (f Finding) Place() string {
	switch {
	case f.Line == 0:
		return f.File
	case f.Column == 0:
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	}

	return fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
}

// Log writes a Finding into a log, behind other attributes of its line.
func (f Finding) Log(log *slog.Logger, attrs ...any) {
	attrs = append(attrs, "place", f.Place(), "reason", f.Reason)
	if f.Remedy != "" {
		attrs = append(attrs, "remedy", f.Remedy)
	}
	log.Log(context.Background(), f.Severity.Level(), "file has a problem", attrs...)
}

// Error makes a Finding an error: place and reason on one line, the remedy on a
// second.
func (f Finding) Error() string {
	s := f.Place() + ": " + f.Reason
	if f.Remedy != "" {
		s += "\n" + f.Remedy
	}

	return s
}

// Join is one error of all findings of severity Error, nil if there are none.
func Join(all []Finding) error {
	var e joined
	for _, f := range all {
		if f.Severity == Error {
			e = append(e, f)
		}
	}

	if len(e) == 0 {
		return nil
	}

	return e
}

type joined []Finding

func (j joined) Error() string {
	s := make([]string, len(j))
	for i, f := range j {
		s[i] = f.Error()
	}

	return strings.Join(s, "\n")
}

// Unwrap lets errors.As find each Finding.
func (j joined) Unwrap() []error {
	errs := make([]error, len(j))
	for i, f := range j {
		errs[i] = f
	}

	return errs
}

// Position turns a byte offset of data into line and column, both from 1.
func Position(data []byte, offset int64) (line, column int) {
	offset = min(max(offset, 0), int64(len(data)))
	before := data[:offset]
	line, column = 1, 1
	for _, c := range before {
		if c == '\n' {
			line, column = line+1, 1
		} else {
			column++
		}
	}

	return line, column
}
