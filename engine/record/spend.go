package record

import (
	"bytes"
	"fmt"
	"time"
)

// A Spend is what one call of a model used, as history has it.
type Spend struct {
	At              time.Time
	Provider, Model string
	Tokens          Tokens
	Cost            float64 // US dollars
	Summary         bool    // it summarised a conversation
	// Call is the same in every copy of the record: an agent that was imported beside
	// the one it was exported from, or a folder copied by hand, paid nothing again.
	Call string
}

// Spent calls fn for each call of a model in the history of the folder dir since
// that time, the newest first, with the runtime running or not. A zero time is
// all of it; otherwise nothing older is read. What cannot be read is left out.
func Spent(dir string, since time.Time, fn func(Spend)) error {
	err := backFiles(dir, func(l rawLine) bool {
		h, ok := readHead(l.text)
		if ok && h.at.Before(since) {
			return false
		}
		if ok && h.typ != TypeAssistant && h.typ != TypeSummary {
			return true
		}
		if e, err := Decode(bytes.TrimSpace(l.text)); err == nil {
			if s, ok := spend(e); ok && !s.At.Before(since) {
				fn(s)
			}
		}

		return true
	})
	if err != nil {
		return fmt.Errorf("read spending: %w", err)
	}

	return nil
}

// maxLooked bounds how many lines InContext reads back for an answer.
const maxLooked = 1000

// InContext is about how many tokens of context the next call of the model has: as
// many as its newest call had, with the answer. 0 is not known: there was no call
// yet, or the context was begun anew or cut since.
func InContext(dir string) (tokens int64, err error) {
	looked := 0
	err = backFiles(dir, func(l rawLine) bool {
		looked++
		h, ok := readHead(l.text)
		if ok && h.typ != TypeAssistant && h.typ != TypeSummary && h.typ != TypeReset && h.typ != TypeRewind {
			return looked < maxLooked
		}

		e, err := Decode(bytes.TrimSpace(l.text))
		if err != nil {
			return looked < maxLooked
		}

		switch r := e.Rec.(type) {
		case *Assistant:
			tokens = r.Tokens.Input + r.Tokens.CacheRead + r.Tokens.CacheWrite + r.Tokens.Output
			return tokens == 0 && looked < maxLooked // one that failed used none
		case *Summary, *Reset, *Rewind:
			return false
		}

		return looked < maxLooked
	})
	if err != nil {
		return 0, fmt.Errorf("read context size: %w", err)
	}

	return tokens, nil
}

func spend(e *Entry) (s Spend, ok bool) {
	at := fmt.Sprintf(" %d %d", e.Seq, e.At.UnixNano())
	switch r := e.Rec.(type) {
	case *Assistant:
		s = Spend{e.At, r.Provider, r.Model, r.Tokens, r.Cost, false, r.Turn + at}
	case *Summary:
		s = Spend{e.At, r.Provider, r.Model, r.Tokens, r.Cost, true, r.SHA256 + at}
	}

	return s, s.Provider != ""
}

// CostAfter sums the cost of the calls after the record with number seq: what
// state.json, which counts up to there, does not have yet.
func CostAfter(dir string, seq int64) (cost float64, err error) {
	err = backFiles(dir, func(l rawLine) bool {
		if n := seqOf(l.text); n > 0 && n <= seq {
			return false
		}
		h, ok := readHead(l.text)
		if ok && h.typ != TypeAssistant && h.typ != TypeSummary {
			return true
		}
		if e, err := Decode(bytes.TrimSpace(l.text)); err == nil {
			if s, ok := spend(e); ok {
				cost += s.Cost
			}
		}

		return true
	})
	if err != nil {
		return 0, fmt.Errorf("read spending: %w", err)
	}

	return cost, nil
}
