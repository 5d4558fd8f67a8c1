package permission

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
		return Pending{}, fmt.Errorf("settle permission request %s: decision %q is not one of %v", token, decision, decisions)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	p, ok := q.waiting[token]
	if !ok {
		return Pending{}, fmt.Errorf("%w: %s", ErrUnknown, token)
	}
	p.Decision, p.DecidedBy, p.DecidedAt = decision, by, disk.StampOf(at).Time
	line, err := encode(p)
	if err != nil {
		return Pending{}, err
	}
	if err := q.append(line); err != nil {
		return Pending{}, fmt.Errorf("log decision on %s: %w", token, err)
	}
	if in, err := q.read(q.path(token)); err == nil && in.Decision != "" && (in.Decision != decision || by != byFile) {
		q.late = append(q.late, in)
	}
	// Without a barrier of its own: a file that comes back after a power cut is
	// in the log, so the next start removes it.
	if err := q.remove(token); err != nil {
		return Pending{}, err
	}
	delete(q.waiting, token)
	delete(q.refused, token)
	return p, nil
}

// append writes one line to the log. A person may have edited the log or moved
// it away; it is a record for people, so what stands there now is gone on with.
func (q *Queue) append(line []byte) error {
	_, err := q.log.Append(line)
	if errors.Is(err, disk.ErrChanged) {
		if err = q.reopen(); err == nil {
			_, err = q.log.Append(line)
		}
	}
	if err != nil {
		return err
	}
	return q.log.Barrier()
}

func (q *Queue) reopen() error {
	_, _, err := q.log.Reload()
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := q.vol.WriteFile("permission", q.logPath(), nil); err != nil {
		return err
	}
	_, _, err = q.log.Reload()
	return err
}

// Answered looks for decisions that people wrote into the files: each request is
// returned with the decision found. A file that was changed in more than its
// decision is not an answer; that is reported, once for each change. A file that
// is gone is an answer too: deny.
func (q *Queue) Answered() ([]Pending, []finding.Finding) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var answers []Pending
	var findings []finding.Finding
	for _, p := range q.sorted(func(Pending) bool { return true }) {
		found, err := q.read(q.path(p.Token))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			found, err = p, nil
			found.Decision = Deny
		case err == nil && found.Decision == Expired:
			err = q.wrong(p, `decision is "expired"; allowed: once, always, deny, prefix`)
		case err == nil && !sameQuestion(p, found):
			err = q.wrong(p, "the request was changed in more than its decision")
		}
		if err != nil {
			findings = q.report(findings, p, err)
			continue
		}
		delete(q.refused, p.Token)
		if found.Decision != "" {
			found.DecidedBy, found.DecidedAt = byFile, q.now()
			answers = append(answers, found)
		}
	}
	return answers, findings
}

// Late returns, once, the answers that people saved in files when another one was
// first. An editor may write a file anew that has left the queue; it is removed.
func (q *Queue) Late() ([]Pending, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	late := q.late
	q.late = nil
	paths, err := filepath.Glob(filepath.Join(q.dir, "*.json"))
	if err != nil || len(paths) <= len(q.waiting) {
		return late, err
	}
	log, err := Log(filepath.Dir(q.dir))
	if err != nil {
		return late, err
	}
	for _, path := range paths {
		p, err := q.read(path)
		if _, waits := q.waiting[p.Token]; waits || err != nil || !slices.ContainsFunc(log, func(old Pending) bool { return old.Token == p.Token }) {
			continue // what is wrong with it is said at a start
		}
		if err := q.remove(p.Token); err != nil {
			return late, err
		}
		if p.Decision != "" {
			late = append(late, p)
		}
	}
	return late, nil
}

func (q *Queue) wrong(p Pending, reason string) error {
	return finding.Finding{ID: "permission-edit", Severity: finding.Error, File: q.path(p.Token), Reason: reason,
		Remedy: "set decision and nothing else; the request still waits, as it was asked"}
}

// report adds what is wrong with the file of p unless it was said before.
func (q *Queue) report(all []finding.Finding, p Pending, err error) []finding.Finding {
	var f finding.Finding
	if !errors.As(err, &f) {
		f = finding.Finding{ID: "permission-file", Severity: finding.Error, File: q.path(p.Token), Reason: err.Error()}
	}
	if q.refused[p.Token] == f.Reason {
		return all
	}
	q.refused[p.Token] = f.Reason
	return append(all, f)
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
