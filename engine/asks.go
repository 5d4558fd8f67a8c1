package engine

import (
	"context"
	"fmt"
	"path/filepath"
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
	hints := make(chan struct{}, 1)
	dir := filepath.Join(s.root, "permissions")
	w.Add(dir, watch.Options{}, func(watch.Hint) {
		select {
		case hints <- struct{}{}:
		default:
		}
	})
	defer w.Remove(dir)
	for {
		s.answeredByHand(ctx)
		var due <-chan time.Time
		if list := s.asks.List(); len(list) > 0 {
			due = time.After(max(time.Until(list[0].ExpiresAt), expiryPause))
		}
		select {
		case <-hints:
		case <-due:
		case <-ctx.Done():
			return
		}
	}
}

func (s *System) answeredByHand(ctx context.Context) {
	answered, found := s.asks.Answered()
	s.board.Tell("", found...)
	late, err := s.asks.Late()
	if err != nil {
		s.log.Warn("late answers in files cannot be looked for", "err", err)
	}
	for _, p := range late {
		if first, ok := s.answered(p.Token); ok {
			s.tooLate(p, first)
		}
	}
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
		case earlier != nil && earlier.Decision != "" && by == "file":
			s.tooLate(p, *earlier)
		}
	}
}

// tooLate tells whoever answered in a file that somebody else was first.
func (s *System) tooLate(p, first permission.Pending) {
	s.board.Tell("", finding.Finding{ID: "permission-late", Severity: finding.Warning, File: filepath.Join(s.root, "permissions", p.Token+".json"),
		Reason: fmt.Sprintf("the answer %s came too late: %s by %s was first", p.Decision, first.Decision, first.DecidedBy),
		Remedy: "to take back what was allowed, use: daycare permissions revoke"})
}
