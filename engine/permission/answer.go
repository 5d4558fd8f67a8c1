package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

// byFile is who decided by an edit of a file.
const byFile = "file"

// Settle moves a request whose decision was accepted by the agent's inbox to the log, durably, and
// returns it as recorded there. If the request is no longer pending the error is ErrUnknown, which
// callers that repeat themselves can ignore.
func (q *Queue) Settle(token string, decision Decision, by string, at time.Time) (Pending, error) {
	if !slices.Contains(decisions, decision) {
		return Pending{}, fmt.Errorf("answer approval request %s: decision %q is not one of %v", token, decision, decisions)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.claim(token)()
	p, ok := q.waiting.byToken[token]
	if !ok {
		return Pending{}, fmt.Errorf("%w: %s", ErrUnknown, token)
	}
	p.Decision, p.DecidedBy, p.DecidedAt = decision, by, disk.StampOf(at).Time
	q.mu.Unlock()
	err := q.store.record(p)
	if err == nil {
		err = q.asides.settled(p)
	}
	q.mu.Lock()
	if err != nil {
		return Pending{}, err
	}
	q.waiting.remove(token)
	delete(q.refused, token)
	return p, nil
}

// replacing is how long the file of a request is missing at most while an editor saves it:
// many move the old file away and then write a new one.
const replacing = time.Second

// Answered looks for decisions that users wrote into the files and returns each such request with
// its decision. If anything other than the decision was changed, the file is not an answer and is
// reported, once per change. A deleted file means deny; an editor has a second to put it back. Only
// the files of these requests are read; without tokens, all.
func (q *Queue) Answered(tokens ...string) ([]Pending, []finding.Finding) {
	var answers, missing []Pending
	var findings []finding.Finding
	look := func(p Pending, last bool) {
		found, err := readRequest(q.store.path(p.Token))
		if errors.Is(err, fs.ErrNotExist) && !last && q.waits(p.Token) {
			missing = append(missing, p)
			return
		}
		answer, f := q.answerIn(p, found, err)
		if f != nil {
			findings = append(findings, *f)
		}
		if answer.Decision != "" {
			answers = append(answers, answer)
		}
	}
	for _, p := range q.those(tokens) {
		look(p, false)
	}
	if len(missing) > 0 {
		time.Sleep(replacing)
	}
	for _, p := range missing {
		look(p, true)
	}

	return answers, findings
}

// waits reports whether a request waits that is not being settled just now.
func (q *Queue) waits(token string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, ok := q.waiting.byToken[token]
	return ok && q.claimed[token] == nil
}

// those are the requests with these tokens that wait; without tokens all.
func (q *Queue) those(tokens []string) []Pending {
	if len(tokens) == 0 {
		return q.List()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.sorted(tokens)
}

// answerIn is what was found in the file of a request, or err: an answer, something
// wrong that was not reported before, or nothing.
func (q *Queue) answerIn(p, found Pending, err error) (answer Pending, f *finding.Finding) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, waits := q.waiting.byToken[p.Token]; !waits || q.claimed[p.Token] != nil {
		return Pending{}, nil // it was settled while the file was read, which takes the file away
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		found, err = p, nil
		found.Decision = Deny
	case err == nil && (found.Decision == Expired || found.Decision == Freed):
		err = q.store.wrong(p, fmt.Sprintf("decision is %q; allowed: once, always, deny, prefix", found.Decision))
	case err == nil && !sameQuestion(p, found):
		err = q.store.wrong(p, "more than the decision was changed")
	}
	if err != nil {
		return Pending{}, q.refused.report(p.Token, q.store.path(p.Token), err)
	}
	delete(q.refused, p.Token)
	if found.Decision != "" {
		found.DecidedBy, found.DecidedAt = byFile, q.now()
	}

	return found, nil
}

// refusals are the reasons that were reported for files that are not answers, by token.
type refusals map[string]string

// report is what is wrong with the file of a request, nil if it was said before.
func (r refusals) report(token, path string, err error) *finding.Finding {
	var f finding.Finding
	if !errors.As(err, &f) {
		f = finding.Finding{ID: "permission-file", Severity: finding.Error, File: path, Reason: err.Error()}
	}
	if r[token] == f.Reason {
		return nil
	}
	r[token] = f.Reason
	return &f
}

// Log reads the answered requests, oldest first, without a Queue. root is the .daycare directory.
// Lines that cannot be read are skipped.
func Log(root string) ([]Pending, error) {
	path := filepath.Join(root, folder, logName)
	data, err := beneath.Whole(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read permission log: %w", err)
	}
	var list []Pending
	for _, line := range disk.Lines(data) {
		if p, err := decode(path, line); err == nil {
			list = append(list, p)
		}
	}

	return list, nil
}
