package record

import (
	"fmt"
	"hash/maphash"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// A report collects problems for the user, each once.
type report struct {
	found []finding.Finding
	told  map[uint64]bool // lines that were reported
	place workspace.Place // which paths in records are relative to
}

var lineSeed = maphash.MakeSeed()

// line reports a problem of one line, unless the line was reported before.
func (r *report) line(l rawLine, make func() finding.Finding) { r.once(l.text, make) }

// once reports a finding, unless it was reported before.
func (r *report) once(what []byte, make func() finding.Finding) {
	sum := maphash.Bytes(lineSeed, what)
	if r.told[sum] {
		return
	}
	if r.told == nil {
		r.told = map[uint64]bool{}
	}
	r.told[sum] = true
	r.found = append(r.found, make())
}

// bad reports a line that cannot be read.
func (r *report) bad(l rawLine, err error) {
	r.line(l, func() finding.Finding { return l.finding(err) })
}

// byHand reports a line that a user wrote.
func (r *report) byHand(l rawLine) {
	r.line(l, func() finding.Finding {
		return finding.Finding{ID: "history-by-hand", Severity: finding.Info, File: l.src.path, Line: l.lineNumber(),
			Reason: "edited by hand (its crc is missing or does not match); it is used like any other line"}
	})
}

// torn reports a half line that a crash left.
func (r *report) torn(path string, t *disk.Torn) {
	if t == nil {
		return
	}
	r.found = append(r.found, finding.Finding{ID: "history-torn", Severity: finding.Warning, File: path,
		Reason: fmt.Sprintf("the last line was incomplete (%d bytes at offset %d) and was removed", t.Bytes, t.Offset),
		Remedy: "It was never acknowledged. A copy is kept as " + t.Kept + "."})
}

func (r *report) take() []finding.Finding {
	found := r.found
	r.found = nil
	return found
}

// decode reads a line and reports what is wrong with it; nil: it is skipped.
func (r *report) decode(l rawLine) *Entry {
	e, err := Decode(l.text)
	if err != nil {
		r.bad(l, err)
		return nil
	}
	if e.ByHand {
		r.byHand(l)
	}

	e.Rec = resolved(r.place, e.Rec)

	return e
}
