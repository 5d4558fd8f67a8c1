package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/engine/crash"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/watch"
)

// expiryPause is how long the expiry of a request waits at least: one whose
// decision cannot be delivered now is tried again, not at once.
const expiryPause = time.Second

// longestExpiry is how much later a request expires at most if the clock jumps.
const longestExpiry = time.Hour

// approvals are requests for permission, from the queue to a decision in the inbox of
// who asked.
type approvals struct {
	place
	asks     *permission.Queue
	actors   *actors
	mailroom *mailroom
}

// watchAsks makes decisions of what users write into the files of requests by
// hand, and of requests that nobody answered in time.
func (ap *approvals) watchAsks(ctx context.Context, w *watch.Watcher) {
	changed := newEdits()
	dir := filepath.Join(ap.root, "permissions")
	w.Add(dir, watch.Options{}, func(h watch.Hint) {
		if h.Overflow {
			changed.hint(anyRequest)
		}
		for _, name := range h.Names {
			if token, ok := permission.TokenOf(name); ok {
				changed.hint(token)
			}
		}
	})
	defer w.Remove(dir)
	left := ap.decide(ctx, ap.answeredByHand())
	for {
		due := crash.Never("approvals")
		if at, ok := ap.asks.Next(); len(left) > 0 {
			due = crash.Wait("approvals", expiryPause, expiryPause)
		} else if ok {
			due = crash.Wait("approvals", max(at.Sub(crash.Now()), expiryPause), longestExpiry)
		}
		select {
		case <-changed.hints:
			tokens := append(changed.take(), left...)
			if slices.Contains(tokens, anyRequest) {
				tokens = nil
			}
			left = ap.decide(ctx, ap.answeredByHand(tokens...))
		case <-due:
			ap.tellLate()
			var again []permission.Pending
			if len(left) > 0 {
				again = ap.answeredByHand(left...)
			}
			left = ap.decide(ctx, again)
		case <-ctx.Done():
			return
		}
	}
}

// anyRequest hints that the file of any request may have changed.
const anyRequest = ""

// answeredByHand are the answers in the files of these requests; without tokens in those
// of all.
func (ap *approvals) answeredByHand(tokens ...string) []permission.Pending {
	answered, found := ap.asks.Answered(tokens...)
	ap.problems.Report("", found...)
	if err := ap.asks.SetAside(tokens...); err != nil {
		ap.log.Warn("cannot look for late answers in files", "err", err)
	}
	ap.tellLate()
	return answered
}

// tellLate reports the answers that were saved in files after another one was first.
func (ap *approvals) tellLate() {
	if err := ap.asks.Late(ap.tooLate); err != nil {
		ap.log.Warn("cannot read late answers in files", "err", err)
	}
}

// decide makes decisions of answers in files, and of requests that have ended. left are
// the requests whose decision could not be delivered: they are looked at again.
func (ap *approvals) decide(ctx context.Context, answered []permission.Pending) (left []string) {
	for _, p := range append(answered, ap.asks.Expired(crash.Now())...) {
		by := p.DecidedBy
		if by == "" {
			by = "file"
		}
		if p.Decision == permission.Expired {
			by = "clock"
		}
		switch earlier, err := ap.Decide(ctx, p.Token, p.Decision, by); {
		case err != nil:
			ap.log.Warn("decision not delivered", "token", p.Token, "err", err)
			left = append(left, p.Token)
		case earlier != nil && earlier.Decision != "" && by == "file":
			ap.tooLate(p, *earlier)
		}
	}

	return left
}

// tooLate notifies a user who answered in a file that another answer came first.
func (ap *approvals) tooLate(p, first permission.Pending) {
	was := "another answer"
	if first.Decision != "" { // else it is gone from the log
		was = fmt.Sprintf("%s by %s", first.Decision, first.DecidedBy)
	}
	ap.problems.Report("", finding.Finding{ID: "permission-late", Severity: finding.Warning,
		File:   filepath.Join(ap.root, "permissions", p.Token+".json"),
		Reason: fmt.Sprintf("the answer %s came too late: %s came first", p.Decision, was),
		Remedy: "to take a permission back, use: daycare permissions revoke"})
}

// withdraw takes the requests of an agent that has ended out of the queue: there is
// no agent left that an answer could reach.
func (ap *approvals) withdraw(id string) {
	const by = "daycare: the agent has ended"
	for _, p := range ap.asks.Of(id) {
		if _, err := ap.asks.Settle(p.Token, permission.Expired, by, crash.Now()); err != nil {
			ap.log.Warn("a request of an ended agent is still pending", "agent", id, "token", p.Token, "err", err)
			continue
		}
		ap.events.Emit(event.Event{Type: event.PermissionDecided, Agent: id,
			Body: event.Asked{Token: p.Token, Tag: p.Request.Tag, Decision: string(permission.Expired), By: by}})
	}
}

// Asks lists the permission requests that wait.
func (ap *approvals) Asks(context.Context) ([]event.Ask, error) {
	asks := []event.Ask{}
	for _, p := range ap.asks.List() {
		a := p.Ask()
		a.Lineage = ap.lineage(p.Agent)
		asks = append(asks, a)
	}

	return asks, nil
}

// Answered lists the newest requests that were answered, the newest first, at most limit.
func (ap *approvals) Answered(_ context.Context, limit int) ([]event.Ask, error) {
	log, err := permission.Log(ap.root)
	if err != nil {
		return nil, err
	}
	asks := []event.Ask{}
	for _, p := range slices.Backward(log) {
		if len(asks) == limit {
			break
		}
		asks = append(asks, p.Ask())
	}

	return asks, nil
}

// lineage are the handles of those whom an agent works for, its parent first.
func (ap *approvals) lineage(id string) (handles []string) {
	seen := map[string]bool{} // a hand edit can make a cycle
	for !seen[id] {
		seen[id] = true
		meta, _ := ap.index.Get(id)
		id = meta.Descriptor.ParentAgentID // "" at the top, which has no handle
		if handle := ap.index.Handle(id); handle != "" {
			handles = append(handles, handle)
		}
	}

	return handles
}

// Decide answers a permission request: the decision becomes an item of the agent
// that asked. The first answer wins: earlier reports the one that was first, however
// long ago; for that the beginning of the token is enough. Errors: permission.ErrUnknown, and those of Deliver.
func (ap *approvals) Decide(ctx context.Context, token string, d permission.Decision,
	by string) (earlier *permission.Pending, err error) {
	p, err := ap.asks.Get(token)
	if errors.Is(err, permission.ErrUnknown) {
		if old, ok := ap.answered(token); ok {
			return &old, nil
		}
	}
	if err != nil {
		return nil, err
	}
	in := message.Incoming{Agent: p.Agent, Kind: message.Permission, Dedupe: p.DedupeKey(), Text: p.Request.Detail.String(),
		Token: token, Decision: string(d), By: by, Tag: p.Request.Tag, SHA256: p.SHA256, Silent: p.Request.Gate}
	if d == permission.Prefix {
		if p.Request.Prefix == "" {
			return nil, fmt.Errorf("%w: %s", permission.ErrNoPrefix, token)
		}
		in.Tag, in.Scripts = p.Request.Prefix, p.Request.Scripts
	}
	receipt, err := ap.mailroom.Deliver(ctx, in)
	if errors.Is(err, message.ErrUnknownAgent) { // its folder was taken away by hand, or a crash came before
		ap.withdraw(p.Agent)
	}
	if err != nil {
		return nil, err
	}
	if receipt.Duplicate {
		first := ap.firstAnswer(p, receipt.Item)
		if first.Decision != "" { // a crash may have come before it left the queue
			if _, err := ap.asks.Settle(token, first.Decision, first.DecidedBy, first.DecidedAt); err != nil &&
				!errors.Is(err, permission.ErrUnknown) {
				return nil, err
			}
		}
		return &first, nil
	}
	_, err = ap.asks.Settle(token, d, by, crash.Now())
	// Afterwards, so that a watcher who then lists the pending requests does not find it again.
	ap.events.Emit(event.Event{Type: event.PermissionDecided, Agent: p.Agent,
		Body: event.Asked{Token: token, Tag: p.Request.Tag, Decision: string(d), By: by}})
	if err != nil && !errors.Is(err, permission.ErrUnknown) {
		return nil, err
	}

	return nil, nil
}

// firstAnswer is a request with the answer that was first: the item that holds it
// still waits, or the agent has moved the request to the log.
func (ap *approvals) firstAnswer(p permission.Pending, item string) permission.Pending {
	if e, box, err := ap.actors.acquire(p.Agent); err == nil {
		it, err := box.Read(item)
		e.release()
		if err == nil {
			p.Decision, p.DecidedBy, p.DecidedAt = permission.Decision(it.Decision), it.By, it.At
			return p
		}
	}
	if old, ok := ap.answered(p.Token); ok {
		return old
	}

	return p
}

// answered finds a request in the log of those that were answered, by its token or, as
// users type it, the beginning that no other one has.
func (ap *approvals) answered(token string) (permission.Pending, bool) {
	log, err := permission.Log(ap.root)
	if err != nil {
		ap.log.Warn("cannot read answered requests", "err", err)
	}
	var like []permission.Pending
	for _, old := range log {
		switch {
		case old.Token == token:
			return old, true
		case len(token) >= permission.CodeLength && strings.HasPrefix(old.Token, token):
			like = append(like, old)
		}
	}
	if len(like) != 1 {
		return permission.Pending{}, false
	}

	return like[0], true
}
