package record

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
)

// RewindTo finds the record to rewind to: by its number, by the name of a mark (the newest with
// that name), or "" for the end of the turn before the newest one in the context. A rewind never
// goes back beyond the start of the session, nor into a rotated file. Errors: ErrNoRecord.
func (h *History) RewindTo(to string) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.takeOver(); err != nil {
		return 0, err
	}

	return findPlace(h.source(), &h.report, to)
}

// Rewindable returns what RewindTo would find now, by reading the file only. Errors: ErrNoRecord.
func Rewindable(dir, to string) (int64, error) {
	src, file, err := openSource(filepath.Join(dir, historyName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, noRecord("the conversation is empty")
	case err != nil:
		return 0, fmt.Errorf("read history: %w", err)
	}
	defer file.Close()

	return findPlace(src, &report{}, to)
}

// Rewound returns which of some tool calls, by id, were made in a part of the conversation that was rewound. With after,
// what follows that record counts as rewound, too; 0: nothing more does. A call that is in no record is not.
func Rewound(dir string, calls []string, after int64) (map[string]bool, error) {
	left := map[string]bool{}
	for _, id := range calls {
		left[id] = true
	}
	gone := map[string]bool{}
	var spans [][2]int64 // from the first record that is out, to the rewind
	if after > 0 {
		spans = append(spans, [2]int64{after + 1, math.MaxInt64})
	}
	err := backFiles(dir, func(l rawLine) bool {
		e, err := Decode(l.text)
		if err != nil {
			return true
		}
		switch r := e.Rec.(type) {
		case *Rewind:
			spans = append(spans, [2]int64{r.To + 1, e.Seq})
		case *Assistant:
			out := slices.ContainsFunc(spans, func(s [2]int64) bool { return s[0] <= e.Seq && e.Seq < s[1] })
			for _, call := range r.ToolCalls {
				if left[call.ID] {
					gone[call.ID] = out
					delete(left, call.ID)
				}
			}
		}
		return len(left) > 0
	})
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}

	return gone, nil
}

// findPlace looks for a place in one file of history.
func findPlace(src *source, r *report, to string) (int64, error) {
	s := rewindSearch{report: r, name: to, skip: -1}
	n, err := strconv.ParseInt(to, 10, 64)
	number := err == nil
	if number {
		s.name, s.seq = "", n
	}
	if number && n < 1 {
		return 0, noRecord("%d is not a record; the first one is 1", n)
	}
	if _, err := src.back(s.step); err != nil {
		return 0, err
	}

	switch {
	case s.found > 0:
		return s.found, nil
	case number:
		return 0, noRecord("%d is not in this session, which has records %d to %d", s.seq, s.begin, s.end)
	case to == "":
		return 0, noRecord("this session has no turn to rewind")
	}

	return 0, noRecord("this session has no checkpoint %q", to)
}

// noRecord is ErrNoRecord in other words.
func noRecord(format string, args ...any) error { return &absent{fmt.Sprintf(format, args...)} }

type absent struct{ text string }

func (e *absent) Error() string { return e.text }
func (e *absent) Unwrap() error { return ErrNoRecord }

// A rewindSearch reads backward to the beginning of the session.
type rewindSearch struct {
	report *report
	name   string // of a mark
	seq    int64  // instead
	skip   int64  // what is above it was rewound; -1: nothing is
	found  int64
	begin  int64
	end    int64 // the newest record
}

func (s *rewindSearch) step(l rawLine) bool {
	e := s.report.decode(l)
	if e == nil || e.Seq == 0 {
		return true
	}
	s.begin, s.end = e.Seq, max(s.end, e.Seq)
	if s.skip >= 0 && e.Seq <= s.skip {
		s.skip = -1
	}

	switch r := e.Rec.(type) {
	case *Mark:
		if s.seq == 0 && s.name != "" && r.Name == s.name {
			s.found = e.Seq
		}
	case *Rewind:
		if s.skip < 0 || r.To < s.skip {
			s.skip = r.To
		}
	case *TurnBegin:
		if s.seq == 0 && s.name == "" && s.skip < 0 && r.Attempt <= 1 {
			s.found = e.Seq - 1
		}
	}

	if e.Seq == s.seq {
		s.found = e.Seq
	}

	return s.found == 0 && !boundary(e)
}

// boundary reports whether an entry begins a session or a file.
func boundary(e *Entry) bool {
	switch e.Rec.(type) {
	case *Start, *Reset:
		return true
	}

	return false
}
