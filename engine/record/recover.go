package record

import (
	"bytes"
	"slices"

	"daycare/engine/disk"
)

// recover folds the obligations of what is in the file: from the newest record
// that lists what is owed up to the end.
func (h *folded) recover() error {
	s := search{report: &h.report}
	src := h.source()
	if _, err := src.back(s.step); err != nil {
		return err
	}

	slices.Reverse(s.tail)
	if len(s.tail) > 0 {
		if err := h.unlisted(s.tail[0]); err != nil {
			return err
		}
	}

	for _, e := range s.tail {
		h.fold.apply(e)
	}
	o := &h.fold.o

	// A damaged line keeps its number; one that is far off was damaged itself.
	if s.damaged > o.LastSeq && s.damaged-o.LastSeq < 10_000 {
		o.LastSeq = s.damaged
	}

	return h.complete()
}

// A search collects the newest entries, backward, up to a boundary.
type search struct {
	report  *report
	tail    []*Entry // newest first
	damaged int64    // highest seq of a line that cannot be read
}

func (s *search) step(l rawLine) bool {
	e := s.report.decode(l)
	if e == nil {
		s.damaged = max(s.damaged, seqOf(l.text))
		return true
	}

	s.tail = append(s.tail, e)

	switch e.Rec.(type) {
	case *Start, *Reset, *TurnEnd:
		return false
	default:
		return true
	}
}

// unlisted folds the promises in that a boundary record owes and does not list, with what
// became of them until then.
func (h *folded) unlisted(boundary *Entry) error {
	var from int64
	switch r := boundary.Rec.(type) {
	case *Start:
		from = r.OwedFrom
	case *Reset:
		from = r.OwedFrom
	case *TurnEnd:
		from = r.OwedFrom
	}

	if from == 0 {
		return nil
	}
	var found []*Entry
	err := h.backAll(func(l rawLine) bool {
		seq := seqOf(l.text)
		if seq > 0 && seq < from && disk.Sealed(l.text) {
			return false
		}
		if head, ok := readHead(l.text); seq >= boundary.Seq || ok && head.typ != TypeAssistant && head.typ != TypeDelivery {
			return true
		}
		if e := h.report.decode(l); e != nil {
			found = append(found, e)
		}

		return true
	})
	promises := fold{}
	for _, e := range slices.Backward(found) {
		switch e.Rec.(type) {
		case *Assistant, *Delivery:
			promises.apply(e)
		}
	}

	h.fold.o.Outs = promises.o.Outs
	return err
}

// complete looks further back for what the newest turn does not have: the texts of
// answers still owed, and, where a user wrote its lines, session and number.
func (h *folded) complete() error {
	o := &h.fold.o
	texts := map[string]*OpenOut{}
	for i := range o.Outs {
		if out := &o.Outs[i]; out.Entry == nil {
			texts[out.ID] = out
		}
	}

	noSession := o.Session == ""
	if h.file.Size() == 0 || (!noSession && len(texts) == 0 && o.LastSeq > 0) {
		return nil
	}
	return h.backAll(func(l rawLine) bool {
		if o.LastSeq == 0 { // all newer lines are a user's, without numbers
			o.LastSeq = seqOf(l.text)
		}
		if noSession {
			if id, ok := sessionOf(l); ok {
				o.Session, noSession = id, false
			}
		}

		for id, out := range texts {
			if e := carrier(l, id); e != nil {
				out.Entry = e
				delete(texts, id)
			}
		}

		return noSession || len(texts) > 0 || o.LastSeq == 0
	})
}

// backAll reads the whole history backward: the open file, then the rotated ones.
func (o *ownFile) backAll(fn func(rawLine) bool) error {
	lowest := int64(0)
	done, err := o.source().back(func(l rawLine) bool {
		lowest = lower(lowest, seqOf(l.text), l.off)
		return fn(l)
	})
	if done || err != nil {
		return err
	}

	return backClosed(o.dir, lowest, fn)
}

// sessionOf is the session that a line begins.
func sessionOf(l rawLine) (string, bool) {
	if !bytes.Contains(l.text, []byte(`"session"`)) {
		return "", false
	}
	e, err := Decode(l.text)
	if err != nil {
		return "", false
	}

	switch r := e.Rec.(type) {
	case *Start:
		return r.Session, true
	case *Reset:
		return r.Session, true
	case *TurnEnd:
		return r.Session, r.Session != ""
	}

	return "", false
}

// carrier is the entry of l if it is the answer that promised out id.
func carrier(l rawLine, id string) *Entry {
	if !bytes.Contains(l.text, []byte(id)) {
		return nil
	}
	e, err := Decode(l.text)
	if err != nil {
		return nil
	}
	if a, ok := e.Rec.(*Assistant); ok && a.Out != nil && a.Out.ID == id {
		return e
	}

	return nil
}
