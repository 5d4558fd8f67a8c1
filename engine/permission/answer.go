package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/engine/disk"
	"daycare/engine/finding"
)

// byFile is who decided by an edit of a file.
const byFile = "file"

// Settle moves a request, whose decision the asker's inbox has accepted, to the
// log, durably, and returns it as it stands there. A request that does not wait
// any more is ErrUnknown, which is no failure for a caller that repeats itself.
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
	late, err := q.store.move(p)
	q.mu.Lock()
	q.late = append(q.late, late...)
	if err != nil {
		return Pending{}, err
	}
	q.waiting.remove(token)
	delete(q.refused, token)
	return p, nil
}

// Answered looks for decisions that people wrote into the files: each request is
// returned with the decision found. A file that was changed in more than its
// decision is not an answer; that is reported, once for each change. A file that
// is gone is an answer too: deny. Only the files of these requests are read; without
// tokens those of all.
func (q *Queue) Answered(tokens ...string) ([]Pending, []finding.Finding) {
	var answers []Pending
	var findings []finding.Finding
	for _, p := range q.those(tokens) {
		found, err := readRequest(q.store.path(p.Token))
		answer, f := q.answerIn(p, found, err)
		if f != nil {
			findings = append(findings, *f)
		}
		if answer.Decision != "" {
			answers = append(answers, answer)
		}
	}
	return answers, findings
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

// Late returns, once, the answers that people saved in files when another one was
// first. An editor may write a file anew that has left the queue; it is removed. Only
// the files of these requests are looked for; without tokens all.
func (q *Queue) Late(tokens ...string) ([]Pending, error) {
	q.mu.Lock()
	late := q.late
	q.late = nil
	q.mu.Unlock()
	paths, err := q.gone(tokens)
	if err != nil || len(paths) == 0 {
		return late, err
	}
	log, err := Log(filepath.Dir(q.store.dir))
	if err != nil {
		return late, err
	}
	for _, path := range paths {
		p, err := q.takeLate(path, log)
		if err != nil {
			return late, err
		}
		if p.Decision != "" {
			late = append(late, p)
		}
	}
	return late, nil
}

// takeLate removes the file of a request that was settled, and returns what stood in it; no
// decision where there is nothing to tell. Who comes second finds no file.
func (q *Queue) takeLate(path string, log []Pending) (Pending, error) {
	token := strings.TrimSuffix(filepath.Base(path), ".json")
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.claim(token)()
	if _, waits := q.waiting.byToken[token]; waits {
		return Pending{}, nil
	}
	q.mu.Unlock()
	defer q.mu.Lock()
	if _, err := readRequest(path); err != nil || !slices.ContainsFunc(log, func(old Pending) bool { return old.Token == token }) {
		return Pending{}, nil // what is wrong with it is said at a start
	}
	return q.store.take(token)
}

// gone are the files of requests that do not wait: of these tokens, without tokens of all.
func (q *Queue) gone(tokens []string) (paths []string, err error) {
	all := []string{}
	for _, token := range tokens {
		all = append(all, q.store.path(token))
	}
	if len(tokens) == 0 {
		if all, err = disk.Glob(q.store.dir, "*.json"); err != nil {
			return nil, err
		}
	}
	q.mu.Lock()
	paths = slices.DeleteFunc(all, func(path string) bool {
		_, waits := q.waiting.byToken[strings.TrimSuffix(filepath.Base(path), ".json")]
		return waits
	})
	q.mu.Unlock()
	return slices.DeleteFunc(paths, func(path string) bool { return !disk.Exists(path) }), nil
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

// Log reads the requests that were answered, oldest first. It needs no Queue:
// root is .daycare. Lines that cannot be read are skipped.
func Log(root string) ([]Pending, error) {
	path := filepath.Join(root, folder, logName)
	data, err := os.ReadFile(path)
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
