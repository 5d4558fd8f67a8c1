package record

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

// Unreadable reports whether a finding is about a line that the model does not see until someone
// repairs it.
func Unreadable(f finding.Finding) bool {
	return f.ID == "history-bad-line" || f.ID == "history-unknown-type"
}

// Check reads every line of the history in the folder dir, including rotated files, and reports
// unreadable lines, a torn end, duplicate numbers and records that belong to nothing. It changes
// nothing and works whether the agent runs or not.
func Check(dir string, now time.Time) ([]finding.Finding, error) {
	paths, err := closedFiles(dir)
	if err != nil {
		return nil, fmt.Errorf("check history: %w", err)
	}
	slices.Reverse(paths)
	c := checker{dir: dir, now: now, calls: map[string]int{}, outs: map[string]bool{}, turns: map[string]bool{}}
	for _, path := range append(paths, filepath.Join(dir, historyName)) {
		data, err := beneath.Whole(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return c.found, fmt.Errorf("check history: %w", err)
		}
		c.file(path, data)
	}

	return c.found, nil
}

// A checker reads a history forward.
type checker struct {
	dir   string
	now   time.Time
	found []finding.Finding

	path  string
	line  int
	seqs  map[int64]int   // line of each number, in the file
	calls map[string]int  // results of each tool call
	outs  map[string]bool // promised answers
	turns map[string]bool // that began
	sure  bool            // what came before was seen, so what is missing is missing
}

// future is how far a clock may be ahead of another.
const future = 10 * time.Minute

func (c *checker) file(path string, data []byte) {
	c.path, c.line, c.seqs = path, 0, map[int64]int{}
	for off, raw := range disk.Lines(data) {
		c.line++
		if len(bytes.TrimSpace(raw)) == 0 {
			continue
		}
		e, err := Decode(raw)
		last := int(off)+len(raw) == len(data) // without newline
		switch {
		case err != nil && last && !errors.Is(err, ErrUnknownType):
			c.report(finding.Warning, "history-torn", "the last line is incomplete: a crash cut it off",
				"It was never acknowledged. The next start, or doctor --fix, removes it and keeps a copy next to the file.")
		case err != nil:
			c.bad(err)
		default:
			if e.ByHand {
				c.report(finding.Info, "history-by-hand",
					"edited by hand (its crc is missing or does not match); it is used like any other line", "")
			}
			c.entry(e)
		}
	}
}

func (c *checker) report(s finding.Severity, id, reason, remedy string) {
	c.found = append(c.found, finding.Finding{ID: id, Severity: s, File: c.path, Line: c.line, Reason: reason, Remedy: remedy})
}

func (c *checker) bad(err error) {
	var f finding.Finding
	if !errors.As(err, &f) {
		f = finding.Finding{ID: "history-bad-line", Severity: finding.Warning, Reason: err.Error()}
	}
	f.File, f.Line = c.path, c.line
	c.found = append(c.found, f)
}

func (c *checker) entry(e *Entry) {
	start, opens := e.Rec.(*Start)
	if before := c.seqs[e.Seq]; before > 0 && e.Seq > 0 {
		c.report(finding.Warning, "history-seq-twice", fmt.Sprintf("seq %d is already used on line %d", e.Seq, before),
			"The line is used. Remove the seq from the copied line.")
	}
	if !opens || start.Continues == "" { // a rotation bears the number of what it follows
		c.seqs[e.Seq] = c.line
	}
	if e.At.After(c.now.Add(future)) {
		c.report(finding.Warning, "history-future", "its time, "+e.At.Format(time.RFC3339)+", is in the future",
			"Set the clock of this machine.")
	}
	if opens {
		c.begins(start)
	}

	c.belongs(e.Rec)
}

// begins looks at the record that opens a file.
func (c *checker) begins(r *Start) {
	c.sure = c.sure || r.Continues == "" && r.ForkedFrom == nil
	if r.Continues != "" && missing(filepath.Join(c.dir, r.Continues)) {
		c.report(finding.Warning, "history-part-missing", r.Continues+", which this file continues, is missing",
			"Restore it from a backup. Without it the agent works, but older records cannot be read.")
		c.sure = false
	}
}

// belongs looks whether a record is of something that is there.
func (c *checker) belongs(r Record) {
	orphan := func(id, what string) {
		if c.sure {
			c.report(finding.Warning, id, what, "The model does not see it. Remove the line, or restore the record it belongs to.")
		}
	}
	switch r := r.(type) {
	case *TurnBegin:
		c.turns[r.Turn] = true
	case *TurnEnd:
		if !c.turns[r.Turn] {
			orphan("history-orphan-turn", "it ends a turn that never started")
		}
		c.promised(r.Outs)
	case *Start:
		c.promised(r.Outs)
	case *Reset:
		c.promised(r.Outs)
	case *Assistant:
		for _, call := range r.ToolCalls {
			c.calls[call.ID] = 0
		}
		if r.Out != nil {
			c.outs[r.Out.ID] = true
		}
	case *ToolResult:
		n, called := c.calls[r.ToolCallID]
		switch {
		case !called:
			orphan("history-orphan-result", "no call has this id")
		case n > 0:
			orphan("history-result-twice", "its call already has a result")
		}
		c.calls[r.ToolCallID]++
		c.blob(r.Output.Blob)
	case *Delivery:
		if !c.outs[r.Out] {
			orphan("history-orphan-delivery", "no answer was promised under this id")
		}
	}
}

func (c *checker) promised(outs []Out) {
	for _, o := range outs {
		c.outs[o.ID] = true
	}
}

func missing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

func (c *checker) blob(hash string) {
	if hash != "" && missing(filepath.Join(c.dir, blobDir, filepath.Base(hash))) {
		c.report(finding.Warning, "blob-missing", "the full output, blobs/"+hash+", is missing",
			"The shortened output is still used. Restore the file from a backup.")
	}
}
