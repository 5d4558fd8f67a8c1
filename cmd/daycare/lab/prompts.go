package lab

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"daycare/cmd/daycare/term"
	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

// A question is one line of a batch.
type question struct {
	ID     string `json:"id,omitempty"` // "": made of the text
	Prompt string `json:"prompt"`
	line   int
}

// maxPrompts bounds the file of a batch, in bytes.
const maxPrompts = 1 << 30

// ownFile reads a file that a user names.
func ownFile(path string, limit int64) ([]byte, error) {
	data, _, err := beneath.Own(path, limit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, term.NotFound("", "there is no file %s", path)
	}

	return data, term.Wrap(err, "read %s", path)
}

// readPrompts reads the lines of a batch: objects, or texts. The error lists all mistakes with
// their places.
func readPrompts(path string, data []byte) (all []question, err error) {
	var found []finding.Finding
	seen, n := map[string]int{}, 0
	for text := range bytes.Lines(data) {
		n++
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		p, wrong := readPrompt(text)
		p.line = n
		if first := seen[p.ID]; wrong == nil && p.ID != "" && first > 0 {
			wrong = &finding.Finding{Column: 1, Reason: fmt.Sprintf("line %[2]d already has the id %[1]q", p.ID, first)}
		}
		if wrong != nil {
			wrong.ID, wrong.Severity, wrong.File, wrong.Line = "batch-line", finding.Error, path, n
			found = append(found, *wrong)
			continue
		}
		for k := 1; p.ID == ""; k++ { // equal texts are different lines
			id := fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%d %s", k, p.Prompt)))[:16]
			if seen[id] == 0 {
				p.ID = id
			}
		}
		seen[p.ID] = n
		all = append(all, p)
	}

	return all, finding.Join(found)
}

func readPrompt(text []byte) (p question, wrong *finding.Finding) {
	if trimmed := bytes.TrimSpace(text); trimmed[0] == '"' {
		if err := json.Unmarshal(trimmed, &p.Prompt); err != nil {
			return p, misread(text, err)
		}
	} else {
		dec := json.NewDecoder(bytes.NewReader(text))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&p); err != nil {
			return p, misread(text, err)
		}
		if rest := bytes.TrimSpace(text[dec.InputOffset():]); len(rest) > 0 {
			return p, &finding.Finding{Column: int(dec.InputOffset()) + 1, Reason: "the line has more than one object"}
		}
	}
	if strings.TrimSpace(p.Prompt) == "" {
		return p, &finding.Finding{Column: 1, Reason: "prompt is missing or empty", Remedy: `a line is {"prompt":"…"}, or a text in quotes`}
	}

	return p, nil
}

// misread is what is wrong with a line that is not of the form.
func misread(text []byte, err error) *finding.Finding {
	f := &finding.Finding{Column: 1, Reason: strings.TrimPrefix(err.Error(), "json: "),
		Remedy: `a line is {"prompt":"…"}, perhaps with "id", or a text in quotes`}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		_, f.Column = finding.Position(text, max(syntax.Offset-1, 0))
	}
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		_, f.Column = finding.Position(text, kind.Offset)
	}

	return f
}

// An answered line is one line of the results.
type answered struct {
	ID     string  `json:"id"`
	Line   int     `json:"line"` // in the file of prompts
	Prompt string  `json:"prompt"`
	Answer string  `json:"answer"`
	Reason string  `json:"reason"` // of the end of its turn: done, error, limit, …
	Error  string  `json:"error,omitempty"`
	Cost   float64 `json:"cost"` // US dollars
	Rounds int     `json:"rounds"`
	Input  int64   `json:"input"`
	Output int64   `json:"output"`
	MS     int64   `json:"ms"`
}

// A ledger is the file of results: a line is durable before the next thing is done.
type ledger struct {
	vol  *disk.Volume
	log  *disk.Log
	done map[string]answered
	cost float64 // of all lines, those of earlier runs included
}

// openLedger opens the results, and cuts off a line that a crash left half written.
func openLedger(path string) (*ledger, error) {
	vol := disk.NewVolume(filepath.Dir(path))
	log, _, err := vol.OpenLog(path, disk.LogOptions{Name: "batch", Valid: func(line []byte) bool { return json.Valid(line) }})
	if err != nil {
		return nil, fmt.Errorf("open results: %w", err)
	}
	l := &ledger{vol: vol, log: log, done: map[string]answered{}}
	data, err := contents(log)
	if err != nil {
		log.Close()
		return nil, fmt.Errorf("read results: %w", err)
	}

	n := 0
	for text := range bytes.Lines(data) {
		n++
		var a answered
		if err := json.Unmarshal(text, &a); err != nil || a.ID == "" {
			log.Close()
			return nil, finding.Finding{ID: "batch-results", Severity: finding.Error, File: path, Line: n,
				Reason: "not a result of a batch", Remedy: "name another file with --out, or remove this one"}
		}
		l.add(a)
	}

	return l, nil
}

func (l *ledger) add(a answered) {
	if _, twice := l.done[a.ID]; !twice {
		l.cost += a.Cost
	}
	l.done[a.ID] = a
}

// write adds a result, durably.
func (l *ledger) write(a answered) error {
	if err := appendLine(l.log, a); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	l.add(a)

	return nil
}

// contents reads all of a log.
func contents(log *disk.Log) ([]byte, error) {
	data := make([]byte, log.Size())
	if _, err := log.ReadAt(data, 0); err != nil && len(data) > 0 {
		return nil, err
	}

	return data, nil
}

// appendLine adds a value as a line of JSON, durably.
func appendLine(log *disk.Log, value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if _, err := log.Append(append(line, '\n')); err != nil {
		return err
	}

	return log.Barrier()
}
