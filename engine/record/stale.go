package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"daycare/engine/finding"
)

// SummedUp is the hash by which a summary identifies the records that it replaces.
func SummedUp(entries []*Entry) string {
	h := sha256.New()
	for _, e := range entries {
		h.Write(Encode(e))
	}

	return hex.EncodeToString(h.Sum(nil))
}

// reportStale reports edited lines that the current summary replaces: the model
// does not see them, because it reads the summary, which did not change. They are reported
// once for each state of the lines.
func (h *folded) reportStale() error {
	s := staleScan{report: &h.report}
	if _, err := h.source().back(s.step); err != nil || s.summary == nil {
		return err
	}
	r := s.summary.Rec.(*Summary)
	if r.SHA256 == "" || r.From == 0 || s.rotated && s.oldest > r.From {
		return nil // not known, of a fork, or moved to an older file, which nobody writes
	}

	slices.Reverse(s.under.entries)
	covered := slices.DeleteFunc(s.under.entries, func(e *Entry) bool { return e.Seq >= r.KeptFrom && e.Seq > 0 })
	if now := SummedUp(covered); now != r.SHA256 {
		h.report.once([]byte(r.SHA256+now), func() finding.Finding {
			return finding.Finding{ID: "history-under-summary", Severity: finding.Warning, File: h.path(), Line: s.line,
				Reason: fmt.Sprintf("lines covered by the summary of record %d were edited; the model reads the "+
					"summary, which is unchanged", s.summary.Seq),
				Remedy: "Edit the summary too, or remove its line: then the model reads the lines again."}
		})
	}

	return nil
}

// staleScan finds the current summary, and what it was made of.
type staleScan struct {
	report  *report
	summary *Entry
	line    int
	finder  contextScan // up to the summary
	under   contextScan // from there on
	oldest  int64       // the lowest seq seen
	rotated bool        // the file continues from an older one
}

func (s *staleScan) step(l rawLine) bool {
	if seq := seqOf(l.text); seq > 0 {
		s.oldest = seq
	}
	if e, err := Decode(l.text); err == nil {
		if start, ok := e.Rec.(*Start); ok {
			s.rotated = start.Continues != ""
		}
	}
	if s.summary != nil {
		return s.under.step(l)
	}
	if s.finder.report == nil {
		s.finder = contextScan{report: s.report, rewind: -1}
	}

	more := s.finder.step(l)
	if s.finder.summary != nil {
		s.summary, s.line = s.finder.summary, l.lineNumber()
		s.under = contextScan{report: s.report, rewind: -1}
		return true
	}

	return more
}
