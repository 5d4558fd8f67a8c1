package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// settledWindow is how much of the end of a history the check at boot reads.
const settledWindow = 4 << 10

// Settled reports whether the end of the history in dir proves that there is nothing to do: no open
// turn, no decision to act on, every answer delivered or given up. It reads the last 4 KiB; false
// only means that they prove nothing.
func Settled(dir string) (bool, error) {
	tail, err := readTail(filepath.Join(dir, historyName), settledWindow)
	if err != nil || len(tail) == 0 {
		return err == nil, err
	}
	if tail[len(tail)-1] != '\n' {
		return false, nil
	}

	// A first line that is cut has no checksum that matches.
	p := proof{done: map[string]map[int]bool{}, parts: map[string]int{}}
	var rerr error
	for _, line := range disk.Backward(bytes.NewReader(tail), int64(len(tail)), &rerr) {
		e, err := Decode(line)
		if err != nil || e.ByHand {
			return false, nil
		}
		if settled, more := p.step(e); !more {
			return settled, nil
		}
	}

	return false, nil
}

// readTail reads the last n bytes of a file. A missing file is empty.
func readTail(path string, n int64) (tail []byte, err error) {
	src, file, err := openSource(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	tail = make([]byte, min(n, src.size))
	_, err = src.r.ReadAt(tail, src.size-int64(len(tail)))

	return tail, err
}

// proof walks backward over what may follow a finished turn.
type proof struct {
	done  map[string]map[int]bool // parts delivered, by out
	parts map[string]int          // of an out; -1: given up
}

func (p *proof) step(e *Entry) (settled, more bool) {
	switch r := e.Rec.(type) {
	case *Delivery:
		p.delivery(r)
		return false, true
	case *TurnEnd:
		return r.OwedFrom == 0 && p.kept(r.Outs), false
	case *Reset:
		return r.OwedFrom == 0 && p.kept(r.Outs), false
	case *Start:
		return r.OwedFrom == 0 && p.kept(r.Outs), false
	case *User:
		return false, r.Silent
	case *Permission:
		return false, !r.owes()
	case *Mark, *Rewind, *Summary, *Note:
		return false, true
	default:
		return false, false
	}
}

func (p *proof) delivery(r *Delivery) {
	switch {
	case r.Final:
		p.parts[r.Out] = -1
	case r.Error == "":
		if p.done[r.Out] == nil {
			p.done[r.Out] = map[int]bool{}
		}
		p.done[r.Out][r.Part] = true
		if p.parts[r.Out] == 0 {
			p.parts[r.Out] = max(r.Parts, 1)
		}
	}
}

func (p *proof) kept(outs []Out) bool {
	for _, out := range outs {
		have := len(p.done[out.ID])
		for _, part := range out.Delivered {
			if !p.done[out.ID][part] {
				have++
			}
		}

		parts := p.parts[out.ID]
		if parts == 0 || (parts > 0 && have < parts) {
			return false
		}
	}

	return true
}

// Tail returns up to limit lines of history before the number before (0: from the end), oldest
// first, exactly as on disk, and the number to ask for next; nil at the beginning. It continues
// into rotated files. Lines that are not JSON are skipped.
func Tail(dir string, before int64, limit int) (lines []json.RawMessage, next *int64, err error) {
	if limit <= 0 {
		limit = 100
	}
	lowest, skip, numbered, more := int64(0), before > 0, false, false
	at := workspace.Of(dir)
	err = backFiles(dir, func(l rawLine) bool {
		e, derr := Decode(l.text)
		if derr != nil && !errors.Is(derr, ErrUnknownType) {
			return true
		}
		if s, ok := e.Rec.(*Start); ok && s.Continues != "" {
			return true
		}
		if skip {
			// A line without a number belongs to the page of the line before it.
			if skip = e.Seq == 0 || e.Seq > before; skip || e.Seq == before {
				return true
			}
		}

		// A page ends at a line with a number: the next one is asked for by it.
		if len(lines) >= limit && numbered {
			more = true
			return false
		}

		lines = append(lines, absolute(at, e, bytes.Clone(bytes.TrimSpace(l.text))))
		if numbered = e.Seq > 0; numbered && (lowest == 0 || e.Seq < lowest) {
			lowest = e.Seq
		}

		return true
	})
	slices.Reverse(lines)
	if more {
		next = &lowest
	}

	return lines, next, err
}

// LastSeq returns the number of the newest readable record in dir; 0 if there is none.
func LastSeq(dir string) (seq int64, err error) {
	err = backFiles(dir, func(l rawLine) bool {
		if e, err := Decode(bytes.TrimSpace(l.text)); err == nil {
			seq = e.Seq
		}
		return seq == 0
	})

	return seq, err
}

// LastAt returns the time of the newest record in dir; zero if there is none.
func LastAt(dir string) (at time.Time, err error) {
	err = backFiles(dir, func(l rawLine) bool {
		at = l.at()
		return at.IsZero()
	})

	return at, err
}

// at is the time of a line; zero if it is not a record.
func (l rawLine) at() time.Time {
	if head, ok := readHead(l.text); ok && disk.Sealed(l.text) {
		return head.at
	}
	e, err := Decode(l.text)
	if err != nil {
		return time.Time{}
	}

	return e.At
}

// saidWithin is how far from its end Newest looks for an answer, in bytes: an agent that
// works for long has many results behind its last words.
const saidWithin = 64 << 10

// A Last is the end of a history.
type Last struct {
	At     time.Time // of the newest record; zero if there is none
	Said   string    // the newest answer; "" if there is none in the last 64 KiB
	Failed string    // why the newest turn failed; "" if it did not, or a new conversation began since
}

// Newest reads the end of the history in dir.
func Newest(dir string) (last Last, err error) {
	left, ended := saidWithin, false
	err = backFiles(dir, func(l rawLine) bool {
		if last.At.IsZero() {
			last.At = l.at()
		}
		left -= len(l.text)
		if !ended && slices.ContainsFunc(turning, func(t Type) bool { return bytes.Contains(l.text, []byte(`"`+t+`"`)) }) {
			last.Failed, ended = failure(l)
		}
		if bytes.Contains(l.text, []byte(`"`+TypeAssistant+`"`)) {
			if e, err := Decode(l.text); err == nil {
				if a, ok := e.Rec.(*Assistant); ok {
					last.Said = a.Text
				}
			}
		}

		return last.At.IsZero() || last.Said == "" && left > 0
	})

	return last, err
}

// turning are the records that say whether an agent stands at a failure.
var turning = []Type{TypeTurnEnd, TypeTurnBegin, TypeReset, TypeRewind}

// failure returns why the turn failed that a line ends; decides: the lines before it say nothing about that.
func failure(l rawLine) (why string, decides bool) {
	e, err := Decode(l.text)
	if err != nil {
		return "", false
	}
	if end, ok := e.Rec.(*TurnEnd); ok && failed(end.Reason) {
		return cmp.Or(end.Error, end.Reason), true
	}

	return "", slices.Contains(turning, e.Rec.Type())
}
