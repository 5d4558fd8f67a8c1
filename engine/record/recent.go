package record

import (
	"bytes"
	"iter"

	"daycare/engine/workspace"
)

const (
	// keepBytes of the newest lines are kept to be appended again: enough for the
	// time that a user has an editor open.
	keepBytes = 1 << 20
	// maxRecent bounds them also within one turn.
	maxRecent = 64 << 20
	// maxTail bytes of the end of the file are compared.
	maxTail = 4096
)

// recent keeps the entries appended last, at least those since the newest two
// turn_ends: what a user's save of an older copy takes off the end of the file is
// encoded and appended again from here.
type recent struct {
	lines []ownLine
	ends  int
	bytes int
	tail  []byte // how the file ended after the last append; nil: not known
	// behind: lines of ours are known to be missing in the file.
	behind bool
	edited int64 // what has this number or a lower one may stand otherwise in the file: a user edited it
}

// An ownLine is an entry that was written as a line of so many bytes.
type ownLine struct {
	*Entry
	bytes int
}

func (l ownLine) ends() bool {
	_, ok := l.Rec.(*TurnEnd)
	return ok
}

func (r *recent) add(l ownLine) {
	r.lines = append(r.lines, l)
	r.bytes += l.bytes
	if l.ends() {
		r.ends++
	}
}

// trim forgets the oldest lines.
func (r *recent) trim() {
	for len(r.lines) > 1 && (r.bytes > keepBytes && r.ends > 2 || r.bytes > maxRecent) {
		first := r.lines[0]
		r.bytes -= first.bytes
		if first.ends() {
			r.ends--
		}
		r.lines[0] = ownLine{}
		r.lines = r.lines[1:]
	}
}

// keep leaves only the lines that pass.
func (r *recent) keep(pass func(ownLine) bool) {
	old := r.lines
	r.lines, r.bytes, r.ends = nil, 0, 0
	for _, l := range old {
		if pass(l) {
			r.add(l)
		}
	}
}

// missing compares the numbers found in the file with what was appended. A line is
// missing at the end when nothing newer of ours is in the file; those are
// returned. One that is missing in the middle was taken out on purpose and is
// forgotten. The lines from seq fresh on were just written, perhaps onto a file
// cut short: that they are there says nothing about the ones before.
func (r *recent) missing(found iter.Seq[int64], fresh, last int64) []ownLine {
	highest, present := int64(0), map[int64]bool{}
	for seq := range found {
		if seq <= last {
			present[seq] = true
		}
		if seq < fresh {
			highest = max(highest, seq)
		}
	}

	r.keep(func(l ownLine) bool { return l.Seq > highest || present[l.Seq] })
	var gone []ownLine
	for _, l := range r.lines {
		if l.Seq > highest && !present[l.Seq] {
			gone = append(gone, l)
		}
	}

	return gone
}

// encodeAgain encodes entries once more, with their numbers and times.
func encodeAgain(at workspace.Place, lines []ownLine) (all []byte) {
	for _, l := range lines {
		all = appendLine(all, &Entry{Seq: l.Seq, At: l.At, Rec: stored(at, l.Rec)})
	}
	return all
}

// ending remembers how the file ends now.
func (r *recent) ending(content []byte) {
	r.tail = bytes.Clone(content[max(0, len(content)-maxTail):])
}
