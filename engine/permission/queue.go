package permission

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/finding"
)

// DefaultExpiry is how long a request waits for an answer before it expires.
const DefaultExpiry = 24 * time.Hour

const (
	folder  = "permissions" // in .daycare
	logName = "log.jsonl"
)

// ErrUnknown: no pending request has that token. It was answered, or never existed.
var ErrUnknown = fault.NoAsk

// ErrNoPrefix: the request cannot be answered with Prefix, which would allow all commands that
// begin with the same words.
var ErrNoPrefix = errors.New("prefix does not apply to this request; allowed: once, always, deny")

// A Queue holds the requests that wait for an answer: one file each in permissions/, and
// permissions/log.jsonl for answered ones. Its methods may be called from many goroutines at once.
//
// An answer takes effect when the agent's inbox has accepted the item with Pending.DedupeKey,
// whichever came first: a chat, a user interface, the command line, an edited file (Answered) or
// the clock (Expired). So the caller that has an answer calls, in this order,
//
//	p, err := queue.Get(token)
//	receipt, err := deliver(item with p.DedupeKey())   // the first answer wins
//	err = queue.Settle(token, decision, by, at)        // unless receipt.Duplicate
//
// and the agent's runtime calls Settle again, with the decision of the item, when it claims the
// item: after a crash in between this finishes the job. Settle does nothing if the request is
// already settled.
type Queue struct {
	store  store
	now    func() time.Time
	expiry time.Duration

	// mu is never held while files are read or written: everybody who looks at the queue
	// would wait for the disk. What must not happen twice at once is claimed instead.
	mu      sync.Mutex
	claimed map[string]chan struct{} // hash of a request that is asked, token of one that is settled
	waiting waiting
	refused refusals
	asides  *asides
}

func newQueue(vol *disk.Volume, root string, now func() time.Time, expiry time.Duration) *Queue {
	q := &Queue{store: store{vol: vol, dir: filepath.Join(root, folder)}, now: now, expiry: expiry,
		claimed: map[string]chan struct{}{}, waiting: newWaiting(), refused: refusals{}}
	if q.now == nil {
		q.now = time.Now
	}
	if q.expiry <= 0 {
		q.expiry = DefaultExpiry
	}
	q.asides = &asides{store: &q.store, now: func() time.Time { return q.now() }}
	return q
}

// ReadQueue is OpenQueue for reading only: nothing is written, and methods that would change the
// queue return an error.
func ReadQueue(_ *disk.Volume, root string, now func() time.Time, expiry time.Duration) (*Queue, []finding.Finding, error) {
	q := newQueue(nil, root, now, expiry)
	found, err := q.load()
	return q, found, err
}

// OpenQueue opens the queue in root/permissions, root being .daycare, and finishes what a crash
// interrupted: requests that are in the log leave the queue. A file that cannot be read is a
// finding and stays where it is. expiry 0 is DefaultExpiry; a nil now is time.Now.
func OpenQueue(vol *disk.Volume, root string, now func() time.Time, expiry time.Duration) (*Queue, []finding.Finding, error) {
	q := newQueue(vol, root, now, expiry)
	if err := vol.MkdirAll(q.store.dir); err != nil {
		return nil, nil, fmt.Errorf("open permission queue: %w", err)
	}
	if err := vol.Recover(q.store.dir); err != nil {
		return nil, nil, fmt.Errorf("open permission queue: %w", err)
	}
	if err := vol.Settle(q.store.dir); err != nil {
		return nil, nil, fmt.Errorf("open permission queue: %w", err)
	}
	log, torn, err := vol.OpenLog(q.store.logPath(), disk.LogOptions{Name: "permissions", Valid: json.Valid, Ballast: true})
	if err != nil {
		return nil, nil, fmt.Errorf("open permission log: %w", err)
	}
	q.store.log = log
	findings, err := q.load()
	if err != nil {
		log.Close()
		return nil, nil, err
	}
	if torn != nil {
		findings = append(findings, finding.Finding{ID: "permission-log-torn", Severity: finding.Info,
			File: q.store.logPath(), Reason: fmt.Sprintf("a crash cut the last line off; a copy is kept as %s", torn.Kept)})
	}

	return q, findings, nil
}

// load reads the files of the queue and removes those that the log has.
func (q *Queue) load() ([]finding.Finding, error) {
	paths, err := disk.Glob(q.store.dir, "*.json")
	if err != nil {
		return nil, fmt.Errorf("list approval requests: %w", err)
	}
	var findings []finding.Finding
	for _, path := range paths {
		p, err := readRequest(path)
		var f finding.Finding
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was answered meanwhile
		case errors.As(err, &f):
			findings = append(findings, f)
		case errors.Is(err, fs.ErrPermission):
			findings = append(findings, finding.Finding{ID: "permission-file", Severity: finding.Error, File: path,
				Reason: beneath.Reason(err).Error(), Remedy: "check who owns the file and its mode, then restart daycare"})
		case disk.Transient(err):
			return nil, fmt.Errorf("read approval request: %w", err)
		case err != nil:
			findings = append(findings, finding.Finding{ID: "permission-file", Severity: finding.Error, File: path,
				Reason: beneath.Reason(err).Error(), Remedy: "remove the file; it is not a pending request"})
		default:
			p.Decision, p.DecidedBy, p.DecidedAt = "", "", time.Time{} // Answered looks at the file again
			q.waiting.add(p)
		}
	}
	kept, err := disk.Glob(q.store.dir, "*"+answered)
	if err != nil {
		return nil, fmt.Errorf("list answered requests: %w", err)
	}
	if len(q.waiting.byToken)+len(kept) == 0 || q.store.log == nil {
		return findings, nil
	}

	return findings, q.finishMoves(kept)
}

// finishMoves sets the files of requests aside that a crash left after their line was in
// the log, and those in kept were set aside before it.
func (q *Queue) finishMoves(kept []string) error {
	// What was read may only be in the page cache: a file must not continue the
	// word of a line that a power cut takes back.
	if err := q.store.log.Barrier(); err != nil {
		return fmt.Errorf("repair permission log: %w", err)
	}
	data, err := beneath.Whole(q.store.logPath())
	if err != nil {
		return fmt.Errorf("read permission log: %w", err)
	}
	first := map[string]Pending{}
	for _, line := range disk.Lines(data) {
		var entry struct {
			Token string `json:"token"`
		}
		if json.Unmarshal(line, &entry) != nil || first[entry.Token].Token != "" {
			continue
		}
		p, _ := decode(q.store.logPath(), line) // a line that a user has changed settles it all the same
		p.Token = entry.Token
		first[entry.Token] = p
	}
	for _, path := range kept {
		token, _ := TokenOf(filepath.Base(path))
		p := first[token]
		p.Token = token // of one that the log does not have, too
		q.asides.add(path, p)
	}
	for token := range q.waiting.byToken {
		p, ok := first[token]
		if !ok {
			continue
		}
		if err := q.asides.anew(p); err != nil {
			return err
		}
		q.waiting.remove(token)
	}

	return nil
}

// SetExpiry changes how long requests wait that are made from now on.
func (q *Queue) SetExpiry(d time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.expiry = d
}

// claim waits until nobody has a key, and has it until release. mu is held by the caller
// of both, and not while claim waits.
func (q *Queue) claim(key string) (release func()) {
	for q.claimed[key] != nil {
		done := q.claimed[key]
		q.mu.Unlock()
		<-done
		q.mu.Lock()
	}
	done := make(chan struct{})
	q.claimed[key] = done
	return func() {
		delete(q.claimed, key)
		close(done)
	}
}

// Ask adds a request of an agent to the queue and returns when it is durable. If the same request
// of the same agent is already pending, that one is returned, with fresh false.
func (q *Queue) Ask(agent string, owner Owner, r Request) (p Pending, fresh bool, err error) {
	for _, tag := range append([]string{r.Tag}, r.Also...) {
		if _, err := Parse(tag); err != nil {
			return Pending{}, false, fmt.Errorf("ask for permission: %w", err)
		}
	}
	hash := r.SHA256(agent)
	q.mu.Lock()
	defer q.mu.Unlock()
	// A second Ask for the same must not return a request that is not durable yet.
	defer q.claim(hash)()
	if old, ok := q.waiting.find(agent, hash); ok {
		return old, false, nil
	}
	now := disk.StampOf(q.now()).Time
	p = Pending{Token: cuid.New(), Agent: agent, Owner: owner, Request: r, SHA256: hash,
		AskedAt: now, ExpiresAt: now.Add(q.expiry)}
	content, err := encode(p, "  ")
	if err != nil {
		return Pending{}, false, err
	}
	q.mu.Unlock()
	err = q.store.vol.WriteFile("permission", q.store.path(p.Token), content)
	q.mu.Lock()
	if err != nil {
		return Pending{}, false, fmt.Errorf("ask for permission: %w", err)
	}
	q.waiting.add(p)
	return p, true, nil
}

// Find returns the pending request with that hash. A decision enters the inbox before its request
// leaves the queue, so a caller that finds it neither here nor, afterwards, in the inbox can ask.
func (q *Queue) Find(agent, sha string) (p Pending, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.find(agent, sha)
}

// List returns the pending requests, oldest first.
func (q *Queue) List() []Pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.sorted(slices.Collect(maps.Keys(q.waiting.byToken)))
}

// Of returns the pending requests of one agent, oldest first.
func (q *Queue) Of(agent string) []Pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.of(agent)
}

// Next returns when the next request expires or Late has something to do; false: nothing is
// pending.
func (q *Queue) Next() (time.Time, bool) {
	q.mu.Lock()
	first, waits := q.waiting.ending.Min()
	q.mu.Unlock()
	at, ok := q.asides.next()
	if waits && (!ok || first.at.Before(at)) {
		return first.at, true
	}

	return at, ok
}

// Get returns a pending request, or ErrUnknown.
func (q *Queue) Get(token string) (Pending, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, ok := q.waiting.byToken[token]
	if !ok {
		return Pending{}, fmt.Errorf("%w: %s", ErrUnknown, token)
	}

	return p, nil
}

// Expired returns the pending requests whose time is up, with the decision Expired.
func (q *Queue) Expired(now time.Time) []Pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	due := q.waiting.due(now)
	for i := range due {
		due[i].Decision, due[i].DecidedBy, due[i].DecidedAt = Expired, "daycare", now
	}

	return due
}

// Close closes the log.
func (q *Queue) Close() error {
	if q.store.log == nil {
		return nil
	}
	return q.store.log.Close()
}
