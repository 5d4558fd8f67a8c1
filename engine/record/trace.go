package record

import (
	"bytes"
	"fmt"
	"math"
	"slices"
)

// A Trace is everything that a history records about one item or answer: its turn, from turn_begin
// to turn_end, and the deliveries of the turn's answers. An item that needs no turn (a reset, a
// mark, a decision) has one record.
type Trace struct {
	Turn    string
	Entries []*Entry // oldest first
	// Before is the context of the model when the turn started.
	Before  []*Entry
	Summary *Entry // the summary in that context; nil: none
}

// TraceOf finds the trace of an item, a promised answer (out), a turn or a tool call by its id, in
// the files of an agent's folder, whether the agent runs or not. ok is false if history has no such
// id.
func TraceOf(dir, id string) (s Trace, ok bool, err error) {
	t := tracer{id: id, later: map[string][]*Entry{}}
	if err := backFiles(dir, t.step); err != nil {
		return s, false, fmt.Errorf("read history: %w", err)
	}
	if !t.found {
		return s, false, nil
	}

	s.Turn = t.turn
	s.Entries = slices.Clone(t.entries)
	slices.Reverse(s.Entries)
	for _, out := range outsOf(s.Entries) {
		s.Entries = append(s.Entries, t.later[out]...)
	}

	if s.Turn != "" && s.Entries[0].Seq > 0 {
		s.Before, s.Summary, err = contextAt(dir, s.Entries[0].Seq)
	}

	return s, true, err
}

// ContextOf returns the context of the agent in dir, whether it runs or not. Unreadable lines are
// skipped.
func ContextOf(dir string) (*Context, error) {
	entries, summary, err := contextAt(dir, math.MaxInt64)
	return &Context{Summary: summary, Entries: entries}, err
}

// contextAt is the context as it was before the record seq.
func contextAt(dir string, seq int64) ([]*Entry, *Entry, error) {
	s := contextScan{report: &report{}, rewind: -1}
	err := backFiles(dir, func(l rawLine) bool {
		if n := seqOf(l.text); n == 0 || n >= seq {
			return true
		}
		return s.step(l)
	})
	slices.Reverse(s.entries)

	return s.entries, s.summary, err
}

// A tracer reads backward, one turn at a time, until it has the one that id is in.
type tracer struct {
	id      string
	found   bool
	turn    string
	entries []*Entry            // of the turn, newest first
	later   map[string][]*Entry // deliveries after it, by out, oldest first
}

func (t *tracer) step(l rawLine) bool {
	e, err := Decode(l.text)
	if err != nil {
		return true
	}
	mine := bytes.Contains(l.text, []byte(t.id)) && about(e, t.id)
	switch r := e.Rec.(type) {
	case *TurnEnd:
		if t.found {
			return false // it stood between turns
		}
		t.entries, t.turn = nil, r.Turn
	case *Start, *Reset:
		if t.found {
			return false // no turn of this session began before it
		}
		if !mine {
			t.entries, t.turn = nil, ""
			return true
		}
	case *Delivery:
		t.later[r.Out] = append([]*Entry{e}, t.later[r.Out]...)
		return true // told after the turn, wherever it stands
	}

	if alone(e, t.id) {
		t.found, t.turn, t.entries = true, "", []*Entry{e}
		return false
	}
	t.entries = append(t.entries, e)
	t.found = t.found || mine
	if b, ok := e.Rec.(*TurnBegin); ok && b.Attempt <= 1 {
		t.turn = b.Turn
		if t.found {
			return false
		}
		t.entries, t.turn = nil, ""
	}

	return true
}

// about reports whether an entry is of the turn that an id belongs to. That a later
// record still lists an answer as owed does not make it so.
func about(e *Entry, id string) bool {
	switch r := e.Rec.(type) {
	case *TurnBegin:
		return r.Turn == id || slices.Contains(r.Items, id)
	case *TurnEnd:
		return r.Turn == id || slices.Contains(r.Items, id)
	case *User:
		return r.Item == id
	case *Assistant:
		return r.Out != nil && r.Out.ID == id || slices.ContainsFunc(r.ToolCalls, func(c ToolCall) bool { return c.ID == id })
	case *Permission:
		return r.Token == id
	}

	return alone(e, id)
}

// alone reports an entry that closes an item without a turn.
func alone(e *Entry, id string) bool {
	if _, ends := e.Rec.(*TurnEnd); ends {
		return false
	}
	items, _ := closed(e)
	return slices.Contains(items, id)
}

// outsOf are the answers that a turn promised.
func outsOf(entries []*Entry) (outs []string) {
	for _, e := range entries {
		if a, ok := e.Rec.(*Assistant); ok && a.Out != nil {
			outs = append(outs, a.Out.ID)
		}
	}

	return outs
}
