package record

import (
	"bytes"
	"fmt"
	"time"
)

// A Spend is the usage of one model call, as recorded in history.
type Spend struct {
	At              time.Time
	Provider, Model string
	Tokens          Tokens
	Cost            float64 // US dollars
	Summary         bool    // it summarised a conversation
	// Call is the same in every copy of the record, so that an imported agent, or a folder
	// copied by hand, does not count a cost twice.
	Call string
}

// Spent calls fn for each model call in the history of the folder dir since that time, newest
// first; a zero time means all. It reads nothing older, skips what cannot be read, and works
// whether the agent runs or not.
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

// InContext estimates how many tokens of context the next model call has: those of the newest call,
// plus its answer. 0: unknown, because there was no call yet, or the context was reset or shortened
// since.
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

// CostAfter sums the cost of the model calls after the record with number seq, in US dollars: what
// is not yet counted in state.json, which counts up to there.
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
