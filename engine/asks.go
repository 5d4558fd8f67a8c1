package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/engine/crash"
	"daycare/engine/finding"
	"daycare/engine/permission"
	"daycare/engine/watch"
)

// expiryPause is how long the expiry of a request waits at least: one whose
// decision cannot be delivered now is tried again, not at once.
const expiryPause = time.Second

// watchAsks makes decisions of what people write into the files of requests by
// hand, and of requests that nobody answered in time.
func (s *System) watchAsks(ctx context.Context, w *watch.Watcher) {
	changed := newEdits()
	dir := filepath.Join(s.root, "permissions")
	w.Add(dir, watch.Options{}, func(h watch.Hint) {
		if h.Overflow {
			changed.hint(anyRequest)
		}
		for _, name := range h.Names {
			if token, ok := strings.CutSuffix(name, ".json"); ok {
				changed.hint(token)
			}
		}
	})
	defer w.Remove(dir)
	left := s.decide(ctx, s.answeredByHand())
	for {
		var due <-chan time.Time
		if at, ok := s.asks.FirstEnd(); ok {
			due = time.After(max(time.Until(at), expiryPause))
		}
		select {
		case <-changed.hints:
			tokens := append(changed.take(), left...)
			if slices.Contains(tokens, anyRequest) {
				tokens = nil
			}
			left = s.decide(ctx, s.answeredByHand(tokens...))
		case <-due:
			s.decide(ctx, nil)
		case <-ctx.Done():
			return
		}
	}
}

// anyRequest hints that the file of any request may have changed.
const anyRequest = ""

// answeredByHand are the answers in the files of these requests; without tokens in those
// of all.
func (s *System) answeredByHand(tokens ...string) []permission.Pending {
	answered, found := s.asks.Answered(tokens...)
	s.board.Tell("", found...)
	late, err := s.asks.Late(tokens...)
	if err != nil {
		s.log.Warn("late answers in files cannot be looked for", "err", err)
	}
	for _, p := range late {
		if first, ok := s.answered(p.Token); ok {
			s.tooLate(p, first)
		}
	}
	return answered
}

// decide makes decisions of answers in files, and of requests that have ended. left are
// the requests whose decision could not be delivered: they are looked at again.
func (s *System) decide(ctx context.Context, answered []permission.Pending) (left []string) {
	for _, p := range append(answered, s.asks.Expired(crash.Now())...) {
		by := p.DecidedBy
		if by == "" {
			by = "file"
		}
		if p.Decision == permission.Expired {
			by = "clock"
		}
		switch earlier, err := s.Decide(ctx, p.Token, p.Decision, by); {
		case err != nil:
			s.log.Warn("decision not delivered", "token", p.Token, "err", err)
			left = append(left, p.Token)
		case earlier != nil && earlier.Decision != "" && by == "file":
			s.tooLate(p, *earlier)
		}
	}
	return left
}

// tooLate tells whoever answered in a file that somebody else was first.
func (s *System) tooLate(p, first permission.Pending) {
	s.board.Tell("", finding.Finding{ID: "permission-late", Severity: finding.Warning,
		File:   filepath.Join(s.root, "permissions", p.Token+".json"),
		Reason: fmt.Sprintf("the answer %s came too late: %s by %s was first", p.Decision, first.Decision, first.DecidedBy),
		Remedy: "to take back what was allowed, use: daycare permissions revoke"})
}
