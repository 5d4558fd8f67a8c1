package inbox

import (
	"bytes"
	"fmt"
	"slices"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/message"
)

// An entry is an open item as it is kept in memory.
type entry struct {
	Head
	off     int64         // of its line; -1: not in the file, owed to it
	durable bool          // behind a barrier: may be listed and worked on
	line    []byte        // a copy of its line, nil if the quota had no room for it
	gone    chan struct{} // closed when it is no longer open; made by the first Wait
	lost    bool          // an edit took it away before it was durable: its Accept fails
}

// An index is what an inbox file says, folded. The text of the items is left in
// the file.
type index struct {
	byID   map[string]*entry
	order  []*entry // open items in the order they are to be worked on
	bytes  int64    // of the open items, on disk
	keys   map[uint64]key
	closed []uint64          // hashes of ids that are done or dropped, oldest first
	odd    []span            // lines that were not understood; kept when the file is rotated
	broken []finding.Finding // those and others with an error in them, told before or not; at most maxBroken
	seq    int64             // the highest of any line
	solid  int64             // the highest of an append that nobody disturbed
	seen   []int64           // seq of every line that has one, only while a file is read
	whole  bool              // what the file lacks was removed on purpose
	grown  bool              // it has items that nobody accepted: an edit brought them
}

func newIndex() *index {
	return &index{byID: map[string]*entry{}, keys: map[uint64]key{}}
}

func (ix *index) add(e *entry) {
	ix.byID[e.ID] = e
	ix.order = append(ix.order, e)
	ix.bytes += int64(e.Bytes)
}

func (ix *index) remove(e *entry) {
	delete(ix.byID, e.ID)
	if i := slices.Index(ix.order, e); i >= 0 {
		ix.order = slices.Delete(ix.order, i, i+1)
		ix.bytes -= int64(e.Bytes)
	}
}

// close removes an item permanently.
func (ix *index) close(e *entry) {
	ix.remove(e)
	ix.closed = append(ix.closed, hash64(e.ID))
}

func (ix *index) front(e *entry) {
	if i := slices.Index(ix.order, e); i > 0 {
		ix.order = slices.Insert(slices.Delete(ix.order, i, i+1), 0, e)
	}
}

// A reader folds the lines of a file into an index and notes what is wrong.
type reader struct {
	*index
	path   string
	over   map[uint64]bool // closed, by hash of the id
	found  []finding.Finding
	told   map[uint64]bool // what was found before, by hash of the line
	lineNo int
}

// scan reads a whole inbox file. What is wrong with a line that told has is not
// said again.
func scan(path string, data []byte, told map[uint64]bool) (*index, []finding.Finding) {
	r := &reader{index: newIndex(), path: path, told: told, over: map[uint64]bool{}}
	for off, raw := range disk.Lines(data) {
		r.lineNo++
		r.read(off, raw)
	}

	return r.index, r.found
}

func (r *reader) read(off int64, raw []byte) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return
	}
	l, err := decode(raw)
	if err == nil {
		if l.byHand {
			r.note("inbox-by-hand", finding.Info, raw, 0, "checksum mismatch: the line was edited by hand; it is used", "")
		}
		r.apply(l, off, raw)
		return
	}

	whole := salvage(raw)
	for _, s := range whole {
		piece := raw[s.off : s.off+int64(s.n)]
		if l, err := decode(piece); err == nil {
			r.apply(l, off+s.off, piece)
		}
	}

	remedy := "its whole messages are used, as all other lines; give each a line of its own"
	if len(whole) == 0 { // else rotation keeps the lines found in it
		r.odd = append(r.odd, span{off, len(raw)})
		remedy = "correct or delete the line; all other lines are used"
	}
	r.note(BrokenLine, finding.Warning, raw, column(err),
		fmt.Sprintf("not a valid inbox line: %v (%d valid ones found in it)", err, len(whole)), remedy)
}

func (r *reader) note(id string, severity finding.Severity, raw []byte, column int, reason, remedy string) {
	f := finding.Finding{ID: id, Severity: severity, File: r.path, Line: r.lineNo, Column: column, Reason: reason, Remedy: remedy}
	if id == BrokenLine && len(r.broken) < maxBroken {
		r.broken = append(r.broken, f)
	}
	h := hash64(id + string(raw))
	if r.told[h] {
		return
	}
	if len(r.told) < maxTold {
		r.told[h] = true
	}

	r.found = append(r.found, f)
}

// maxBroken bounds how many broken lines are kept in memory.
const maxBroken = 100

// maxTold bounds how many broken lines are remembered as said.
const maxTold = 10_000

func (r *reader) apply(l *line, off int64, raw []byte) {
	if l.Seq > 0 {
		r.seen = append(r.seen, l.Seq)
		r.seq = max(r.seq, l.Seq)
	}

	switch string(l.Kind) {
	case lineDone:
		for _, id := range l.IDs {
			r.shut(id)
		}
	case lineDropped:
		r.shut(l.ID)
	case lineFront:
		if e := r.byID[l.ID]; e != nil {
			r.front(e)
		}
	case lineKeys:
		r.carried(l.Keys, off, raw)
	default:
		r.item(l, off, len(raw))
	}
}

func (r *reader) item(l *line, off int64, n int) {
	if l.Dedupe != "" {
		r.keys[hash64(l.Dedupe)] = key{at: l.At.Unix(), off: off}
	}
	had := r.byID[l.ID]
	if had != nil && !l.Edited || r.over[hash64(l.ID)] {
		return // the same line twice, or one that was closed before
	}
	if l.byHand {
		l.After = 0
	}

	if had != nil {
		r.bytes += int64(n - had.Bytes)
		had.Head, had.off = headOf(&l.Item, n), off
		return
	}
	e := &entry{Head: headOf(&l.Item, n), off: off, durable: true}
	r.add(e)
}

func headOf(it *Item, bytes int) Head {
	return Head{ID: it.ID, Seq: it.Seq, At: it.At, Kind: it.Kind, Sender: senderOf(it), Connector: connectorOf(it),
		Silent: it.Kind == message.System && it.Silent, Queue: it.Queue, After: it.After, Bytes: bytes}
}

func (r *reader) shut(id string) {
	h := hash64(id)
	if !r.over[h] {
		r.over[h] = true
		r.closed = append(r.closed, h)
	}
	if e := r.byID[id]; e != nil {
		r.remove(e)
	}
}
