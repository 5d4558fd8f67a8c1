package record

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"daycare/engine/disk"
)

// An Outcome is how an item ended.
type Outcome struct {
	Item   string
	Turn   string
	Reason string // reason of the turn's end, or: reset, rewind, permission, recorded, compact
	Text   string // the final answer, or the short error message for the user
	Error  string
	Cost   float64 // of the whole turn, US dollars
	Tokens Tokens
	Seq    int64 // of the closing record
	Span

	Finish Finish // of the final answer
	Work

	Sources []Source // what the turn had read from outside
}

// A Span is from the message of an item to its end.
type Span struct {
	At      time.Time // of the closing record
	Asked   *User     // the item as it entered the conversation; nil: it did not, or not in this turn
	AskedAt time.Time // when it did
}

// Work counts what a turn did, beside tokens.
type Work struct {
	Rounds, ToolCalls int    // answers of the model, and calls in them
	Said              string // the newest text next to tool calls
}

// SourcesOf returns what the newest ended turn in the folder dir had read from outside.
func SourcesOf(dir string) (list []Source, err error) {
	err = backFiles(dir, func(l rawLine) bool {
		if !mayClose(l.text) {
			return true
		}
		e, err := Decode(l.text)
		if err != nil {
			return true
		}

		end, ok := e.Rec.(*TurnEnd)
		if ok {
			list = end.Sources
		}

		return !ok
	})

	return list, err
}

// closed are the items that an entry closes, and how.
func closed(e *Entry) (items []string, reason string) {
	item := ""
	switch r := e.Rec.(type) {
	case *TurnEnd:
		return r.Items, r.Reason
	case *Reset:
		item, reason = r.Item, "reset"
	case *Rewind:
		item, reason = r.Item, "rewind"
	case *Permission:
		item, reason = r.Item, "permission"
	case *Summary:
		item, reason = r.Item, "compact"
	case *Note:
		item, reason = r.Item, "compact"
		if r.Refused {
			reason = "refused"
		}
	case *Mark:
		item, reason = r.Item, "mark"
	case *User:
		if r.Silent {
			item, reason = r.Item, "recorded"
		}
	}

	if item == "" {
		return nil, ""
	}

	return []string{item}, reason
}

var (
	silentMark = []byte(`"silent"`)
	itemMark   = []byte(`"item"`)
	itemsMark  = []byte(`"items"`)
)

// mayClose is false for lines that certainly close no item, without parsing them.
func mayClose(line []byte) bool {
	head, ok := readHead(line)
	if !ok {
		return bytes.Contains(line, itemMark) || bytes.Contains(line, itemsMark)
	}

	switch head.typ {
	case TypeTurnEnd:
		return true
	case TypeReset, TypeRewind, TypeMark, TypePermission, TypeSummary, TypeNote:
		return bytes.Contains(line, itemMark)
	case TypeUser:
		return bytes.Contains(line, silentMark)
	default:
		return false
	}
}

// Closed reports which of the items have a closing record. after is, by item, the number of the
// last record before which that cannot be; with 0 the whole history may be read. It reads backward
// until all are found.
func (h *History) Closed(after map[string]int64) (map[string]bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	found := map[string]bool{}
	if len(after) == 0 {
		return found, nil
	}

	first := slices.Min(slices.Collect(maps.Values(after)))
	if first > h.fold.o.LastSeq { // the history is an older one, which someone put back
		first = 0
	}
	err := h.backAll(func(l rawLine) bool {
		if seq := seqOf(l.text); seq > 0 && seq <= first && disk.Sealed(l.text) {
			return false
		}
		if !mayClose(l.text) {
			return true
		}
		if e, err := Decode(l.text); err == nil {
			names, _ := closed(e)
			for _, item := range names {
				if _, wanted := after[item]; wanted {
					found[item] = true
				}
			}
		}

		return len(found) < len(after)
	})

	return found, err
}

// Closing finds the record that closes an item in the files of an agent's folder, whether the agent
// runs or not. ok is false if there is none yet.
func Closing(dir, item string) (o Outcome, ok bool, err error) {
	return closingSearch{item: item}.of(dir)
}

// Ending is Closing for who has the message: its Outcome may lack Asked.
func Ending(dir, item string) (o Outcome, ok bool, err error) {
	return closingSearch{item: item, brief: true}.of(dir)
}

// Ending is Ending of an item that one of the newest turns closed, from what was appended. ok is false where that
// is not known: where that turn began before the history was opened, or a user edited the file since.
func (h *History) Ending(item string) (o Outcome, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := closingSearch{item: item, brief: true}
	for _, l := range slices.Backward(h.recent.lines) {
		if l.Seq <= h.recent.edited {
			break
		}
		if !s.entry(l.Entry) {
			return s.o, s.ok
		}
	}

	return Outcome{}, false
}

// closingSearch reads backward: first for the closing record, then through its turn.
type closingSearch struct {
	item  string
	brief bool // the message of the item is not needed
	o     Outcome
	ok    bool
	final bool // Text is set
}

func (s closingSearch) of(dir string) (o Outcome, ok bool, err error) {
	err = backFiles(dir, s.step)
	return s.o, s.ok, err
}

func (s *closingSearch) step(l rawLine) bool {
	if !s.ok {
		if !mayClose(l.text) || !bytes.Contains(l.text, []byte(s.item)) {
			return true
		}
		e, err := Decode(l.text)
		if err != nil {
			return true
		}
		return s.closing(e)
	}

	head, ours := readHead(l.text)
	ours = ours && disk.Sealed(bytes.TrimRight(l.text, "\r\n"))
	switch {
	case ours && begins(head.typ, l.text):
		return false
	case ours && s.brief && head.typ == TypeUser:
		return true
	}
	e, err := Decode(l.text)

	return err != nil || s.turn(e)
}

// entry is step for an entry that was appended by this process; false: nothing more is to be found.
func (s *closingSearch) entry(e *Entry) bool {
	if !s.ok {
		return s.closing(e)
	}
	if _, said := e.Rec.(*User); said && s.brief {
		return true
	}

	return s.turn(e)
}

var firstAttempts = [][]byte{[]byte(`"attempt":1,`), []byte(`"attempt":1}`)}

// begins reports whether a line of ours, of that type, certainly is before the turn whose closing was found, without
// parsing it: the turn before ended there, or this one began.
func begins(t Type, line []byte) bool {
	switch t {
	case TypeTurnEnd, TypeReset:
		return true
	case TypeTurnBegin: // within a string the quotes would be escaped
		return bytes.Contains(line, firstAttempts[0]) || bytes.Contains(line, firstAttempts[1])
	}

	return false
}

// closing is false when there is nothing more to look for.
func (s *closingSearch) closing(e *Entry) bool {
	items, reason := closed(e)
	if !slices.Contains(items, s.item) {
		return true
	}
	s.ok, s.o = true, Outcome{Item: s.item, Reason: reason, Seq: e.Seq, Span: Span{At: e.At}}

	switch r := e.Rec.(type) {
	case *TurnEnd:
		s.o.Turn, s.o.Error, s.o.Sources = r.Turn, r.Error, r.Sources
		return true
	case *Summary:
		s.o.Cost, s.o.Tokens = r.Cost, r.Tokens
	case *Note:
		s.o.Text = r.Text
	case *Reset:
		s.o.Text = r.Message
	case *User:
		s.o.Asked, s.o.AskedAt = r, e.At
	}

	return false
}

// turn adds an entry of the turn up; false: the turn began here.
func (s *closingSearch) turn(e *Entry) bool {
	switch r := e.Rec.(type) {
	case *TurnEnd, *Reset:
		return false
	case *TurnBegin:
		return r.Turn == s.o.Turn && r.Attempt > 1
	case *User:
		if r.Item == s.item {
			s.o.Asked, s.o.AskedAt = r, e.At
		}
	case *Summary:
		s.spend(r.Tokens, r.Cost)
	case *Assistant:
		if r.Turn != s.o.Turn {
			return true
		}
		s.spend(r.Tokens, r.Cost)
		if r.Provider != "" && r.Finish != FinishInterrupted {
			s.o.Rounds++
		}

		s.o.ToolCalls += len(r.ToolCalls)
		if s.o.Said == "" && r.Finish == FinishToolUse {
			s.o.Said = r.Text
		}

		switch r.Finish {
		case FinishEndTurn, FinishMaxTokens, FinishError, FinishCanceled:
			if !s.final {
				s.o.Text, s.o.Finish, s.final = r.Text, r.Finish, true
			}
		}
	}

	return true
}

func (s *closingSearch) spend(t Tokens, cost float64) {
	s.o.Cost += cost
	s.o.Tokens.Input += t.Input
	s.o.Tokens.Output += t.Output
	s.o.Tokens.CacheRead += t.CacheRead
	s.o.Tokens.CacheWrite += t.CacheWrite
	s.o.Tokens.Reasoning += t.Reasoning
	s.o.Tokens.Estimated = s.o.Tokens.Estimated || t.Estimated
}
