package chaos

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
)

// playedAgain is how often a case in which something was late is played again.
const playedAgain = 3

// lateCases are the cases in which nothing was wrong but that something took too long.
type lateCases struct {
	mu    sync.Mutex
	cases []Case
	seen  []*Result
	once  []*Result // that were not late again
}

// patiently has cases played. Those in which something was only late are played again at the
// end, when nothing else runs: the machine may have had no time for them.
func (h *harness) patiently(ctx context.Context, play func(late *lateCases) error) error {
	var late lateCases
	defer func() {
		late.giveUp(h.take)
		h.report.LateOnce = append(h.report.LateOnce, late.once...)
	}()
	if err := play(&late); err != nil {
		return err
	}

	return late.again(ctx, h)
}

// keep keeps a case to be played again, unless more was wrong than that it was late, or
// nothing was, or so many were late that it is not for want of a processor.
func (l *lateCases) keep(c Case, r *Result) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !r.onlyLate() || len(l.cases) == shownFailures {
		return false
	}
	l.cases, l.seen = append(l.cases, c), append(l.seen, r)
	return true
}

// again plays each case again, alone. What is wrong then is a failure.
func (l *lateCases) again(ctx context.Context, h *harness) error {
	for len(l.cases) > 0 {
		c, first, failed := l.cases[0], l.seen[0], false
		for n := 0; n < playedAgain && !failed; n++ {
			r, err := h.play(ctx, c)
			if err != nil {
				return err
			}
			if failed = len(r.Violations) > 0; failed {
				h.take(r)
			} else if err := os.RemoveAll(r.Dir); err != nil {
				return err
			}
		}

		l.cases, l.seen = l.cases[1:], l.seen[1:]
		if !failed {
			l.once = append(l.once, &Result{Case: first.Case, Repeat: first.Repeat, Violations: first.Violations})
			first.Violations = nil
		}
		h.take(first)
	}

	return nil
}

// giveUp counts those that were not played again, because the run was ended, as failures.
func (l *lateCases) giveUp(take func(*Result)) {
	for _, r := range l.seen {
		take(r)
	}
	l.cases, l.seen = nil, nil
}

// onlyLate reports whether a case came out right, and too late.
func (r *Result) onlyLate() bool {
	return len(r.Violations) > 0 && !slices.ContainsFunc(r.Violations, func(v string) bool {
		return !strings.HasPrefix(v, "late: ") && !strings.Contains(v, livedFor)
	})
}

// livedFor marks an answer that came again though its delivery should have been on disk by
// then.
const livedFor = ", though the process lived for "
