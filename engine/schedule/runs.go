package schedule

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A Run is a slot with its result, as shown to users.
type Run struct {
	Slot    time.Time // the nominal time
	At      time.Time // the actual time
	Outcome Outcome   // "": it is in progress
	Reason  string
	Via     Via
	Why     string
	Item    string
	MS      int64     // duration in milliseconds
	From    time.Time // Count slots from From to Slot share this line of the ledger
	Count   int
}

// Runs returns the newest n slots of a task, oldest first; the last may be in progress.
func (s *Store) Runs(slug string, n int) ([]Run, error) {
	if !ValidSlug(slug) {
		return nil, fmt.Errorf("%w: %q", ErrName, slug)
	}
	if _, err := os.Stat(s.files().cron(slug)); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNotFound, slug)
	}

	return newest(filepath.Join(s.files().cron(slug), runsFile), n)
}

func newest(path string, n int) ([]Run, error) {
	lines, err := readTail(path)
	if err != nil {
		return nil, err
	}
	runs := runsOf(lines)
	if n > 0 && len(runs) > n {
		runs = runs[len(runs)-n:]
	}

	return runs, nil
}

// runsOf are the slots of a ledger; of a firing only the one that has no end yet.
func runsOf(lines []line) []Run {
	var runs []Run
	var open *line
	for _, l := range lines {
		switch {
		case l.Firing != nil:
			open = &l
		case l.Slot != nil && l.Outcome != "":
			if open != nil && open.Firing.Equal(*l.Slot) && open.Via == l.Via {
				open = nil
			}
			runs = append(runs, runOf(l))
		}
	}

	if open != nil {
		runs = append(runs, runOf(*open))
	}

	return runs
}

func runOf(l line) Run {
	r := Run{Slot: *l.slot(), At: l.At, Outcome: l.Outcome, Reason: l.Reason, Via: l.Via, Why: l.Why, Item: l.Item,
		MS: l.MS, Count: max(l.Count, 1)}
	if l.From != nil {
		r.From = *l.From
	}

	return r
}
