package schedule

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

// Kind says what a firing belongs to.
type Kind string

const (
	Cron      Kind = "cron"
	Heartbeat Kind = "heartbeat"
)

// A Firing is one run of a task or of the heartbeat, on its way to an agent.
type Firing struct {
	Trigger
	Input
	Kind   Kind
	Slug   string // name of the task's folder; "": the heartbeat
	Name   string
	TaskID string
	Agent  string // id of the agent that it is for; "": the task's own agent, or the heartbeat's
	Maker  string // id of the agent that created the task; "": a user did
	Source string // what the turn that wrote the task had read from outside; "": nothing
	Model  string // "": the agent's own
	Dir    string // absolute path of the task's files/, created; "" if the agent has a folder of its own
}

// A Trigger is when and why a firing happens.
type Trigger struct {
	Slot   time.Time // the time that it was due
	Via    Via
	Why    string // what caused it, in words, unless it was the schedule
	Dedupe string // dedupe key, the same for every attempt: cron:<taskId>/<slot>
	Zone   *time.Location
}

// Input is what the agent reads in a run.
type Input struct {
	Prompt string
	Memory string // MEMORY.md of a task, the last answer of the heartbeat
	Gate   string // output of the gate
	// Resumed: it may have been handed over before; Gate is the output of that time.
	Resumed bool
}

// A Result is how a firing ended.
type Result struct {
	Outcome Outcome // Ran, Failed, or Skipped: the agent was busy
	Reason  string
	Item    string
	Text    string // the final answer
	Source  string // what the turn had read from outside; "": nothing
	// Nothing: the agent said that there is nothing to report.
	Nothing bool
}

// Options configure a Scheduler. All functions may be called from several goroutines at once.
type Options struct {
	Store *Store
	// Target creates the agent of a firing if it does not exist, and returns its id.
	Target func(ctx context.Context, f Firing) (agent string, err error)
	// Due runs a firing and returns when it has ended. When ctx ends it returns ctx's error;
	// the same firing is then repeated at the next start.
	Due func(ctx context.Context, f Firing) (Result, error)
	// Gate runs a command with the permissions of an agent; nil: every gate stays closed.
	Gate GateFunc
	// Workspace is the folder that watch patterns are relative to.
	Workspace string
	// OnRun is called for every run: when it is handed over (outcome "") and for each line
	// of the ledger. Findings is called with all problems of files, at first and whenever
	// they change. Say sends a message to the owner, once per key.
	OnRun    func(f Firing, r Run)
	Findings func([]finding.Finding)
	Say      func(ctx context.Context, key, text string) error
	// Leads reports whether this process fires what is due; one of several machines does. nil: it
	// does. After a change Lead.Passed is called.
	Leads func() bool
	// Elsewhere runs a task, or the heartbeat ("") on the machine that leads.
	Elsewhere func(slug string) (slot time.Time, err error)
	// Folders is called with the folders to watch; its implementation calls Changed if
	// something in them changes.
	Folders func(dirs []string)
	Log     *slog.Logger
}

// A Scheduler fires what is due. With nothing scheduled, Run sleeps until Changed is called.
type Scheduler struct {
	known
	gates gates
	wake  alarm
	spawn func(func())

	wg    sync.WaitGroup
	stale stale
	loop  sync.Mutex       // held by the loop, also while it reads and writes files
	last  time.Time        // of the last step
	timer <-chan time.Time // when the next one is due; nil: when the alarm rings
	ended bool             // a run has ended since
}

// known is what the loop knows of tasks and heartbeat, from their files.
type known struct {
	*Store
	o     Options
	tasks atomic.Pointer[active] // for all who must not wait for the loop

	// The loop alone may use the rest.
	again     time.Time // when to look at all files again; zero: when something changes
	jobs      map[string]*job
	heartbeat heartbeat
	seen      seen
}

// An alarm wakes the loop, however often it rings: it has capacity 1.
type alarm chan struct{}

func (a alarm) ring() {
	select {
	case a <- struct{}{}:
	default:
	}
}

// New returns a Scheduler, which does nothing before Run.
func New(o Options) *Scheduler {
	if o.OnRun == nil {
		o.OnRun = func(Firing, Run) {}
	}
	if o.Findings == nil {
		o.Findings = func([]finding.Finding) {}
	}
	if o.Say == nil {
		o.Say = func(context.Context, string, string) error { return nil }
	}
	if o.Leads == nil {
		o.Leads = func() bool { return true }
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Scheduler{known: known{Store: o.Store, o: o, jobs: map[string]*job{}}, gates: gates{o.Gate, o.Workspace},
		wake: make(alarm, 1)}
	s.stale.add()
	s.tasks.Store(&active{})
	s.spawn = s.wg.Go
	s.Store.Changed = func() { s.Changed() }
	return s
}

// longest is how long the loop sleeps at most while something is scheduled: if the
// clock jumps, nothing is later than this.
const longest = 30 * time.Second

// Changed makes the loop read the folders of these tasks again; without names, all files.
func (s *Scheduler) Changed(slugs ...string) {
	s.stale.add(slugs...)
	s.wake.ring()
}

// A Lead is that of a Scheduler which is one of several.
type Lead struct{ *Scheduler }

// Passed has the loop take in that this process fires what is due from now on, or does not any
// more: the ledgers are what another one left.
func (s Lead) Passed() {
	s.loop.Lock()
	for _, j := range s.jobs {
		j.read, j.reckoned, j.begun = false, false, false
	}
	s.heartbeat.read, s.heartbeat.reckoned = false, false
	s.loop.Unlock()
	s.wake.ring()
}

// Run fires what is due until ctx ends, and returns when everything it started has ended. It
// returns an error only if durable storage fails.
func (s *Scheduler) Run(ctx context.Context) error {
	defer s.wg.Wait()
	for _, dir := range []string{s.files().cron(), s.files().heart()} { // what is not there cannot be watched
		if err := s.Volume.MkdirAll(dir); err != nil {
			return fmt.Errorf("make folder: %w", err)
		}
	}
	if err := s.files().recover(); err != nil {
		s.o.Log.Warn("cannot finish what a crash interrupted, trying again at the next start", "err", err)
	}
	for {
		s.step(ctx, s.Now())
		if err := s.Volume.Err(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.wake:
		case <-s.timer:
		}
	}
}

// Settled reports whether the loop has seen this moment and knows all files, and how many runs are in progress. A loop
// that has not is woken.
func (s *Scheduler) Settled() (seen bool, running int) {
	s.loop.Lock()
	defer s.loop.Unlock()
	for _, j := range s.jobs {
		if j.running {
			running++
		}
	}
	if s.heartbeat.running {
		running++
	}
	if seen = !s.last.Before(s.Now()) && !s.stale.any() && !s.ended; !seen {
		s.wake.ring()
	}

	return seen, running
}

// step does what is due now and says when to come again; zero: nothing is
// scheduled.
func (s *Scheduler) step(ctx context.Context, now time.Time) (next time.Time) {
	s.loop.Lock()
	defer s.loop.Unlock()
	defer func() {
		if s.timer = crash.Never("schedule"); !next.IsZero() {
			s.timer = crash.Wait("schedule", next.Sub(s.Now()), longest)
		}
	}()
	s.ended = false
	slugs, all := s.stale.take()
	if !s.again.IsZero() && !now.Before(s.again) {
		all = true
	}
	if all || len(slugs) > 0 && !s.lookAtSome(slugs, now) {
		s.again = time.Time{}
		s.look(now)
	}
	if !s.o.Leads() {
		return next
	}
	back := now.Before(s.last) // what was reckoned by a clock that was ahead says nothing
	s.last = now
	next = s.again
	for _, j := range s.sorted() {
		if !back && j.sleeps(now) {
			next = earlier(next, j.next)
			continue
		}
		if ctx.Err() != nil {
			return time.Time{}
		}
		at, err := s.advance(ctx, j, now)
		if err != nil {
			at = s.troubled(&j.track, j.task.Slug, now, err)
		}
		j.reckoned, j.next = true, at
		next = earlier(next, at)
	}
	at, err := s.pulse(ctx, now)
	if err != nil {
		at = s.troubled(&s.heartbeat.track, "heartbeat", now, err)
	}

	return earlier(next, at)
}

func (k *known) sorted() []*job {
	all := make([]*job, 0, len(k.jobs))
	for _, j := range k.jobs {
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b *job) int { return strings.Compare(a.task.Slug, b.task.Slug) })
	return all
}

// A track is what a job and the heartbeat have in common: their ledger, and
// whether a run is in progress.
type track struct {
	st      state
	read    bool // st is what the ledger says
	running bool
	retry   time.Time // after trouble with a file or an agent: not before
	kept    string    // why slots wait that the last run could not begin; "": they do not

	reckoned bool      // next is right: nothing has happened since
	next     time.Time // when there is something to do; zero: something else will say
}

// sleeps reports whether there is nothing to do now.
func (t *track) sleeps(now time.Time) bool {
	if t.next.IsZero() {
		return t.reckoned && !t.running
	}
	return t.reckoned && now.Before(t.next)
}

// refold reads the ledger if that is needed: at first, after trouble, and when the
// clock went back behind what was done already.
func (t *track) refold(path string, now time.Time) error {
	if t.read && !t.st.cursor.After(now) {
		return nil
	}
	lines, err := readTail(path)
	if err != nil {
		return err
	}
	st := fold(lines, now)
	if st.set == "" && st.ahead(now) != nil {
		older, err := readOlder(path)
		if err != nil {
			return err
		}
		st.recall(older, now)
	}
	t.st, t.read = st, true
	return nil
}

// troubled postpones a job whose files cannot be read or written, or whose agent is away.
func (s *Scheduler) troubled(t *track, name string, now time.Time, err error) time.Time {
	if errors.Is(err, disk.ErrFailed) {
		return time.Time{} // Run returns it
	}
	t.read, t.retry = false, now.Add(longest)
	if away(err) {
		t.kept = oneLine(err.Error())
	}
	if errors.Is(err, fs.ErrNotExist) { // its folder was removed or renamed: that is no trouble
		s.Changed()
		return t.retry
	}
	s.o.Log.Warn("scheduler failed, retrying", "task", name, "err", err, "in", longest)
	return t.retry
}

// finish ends a run that wrote these lines.
func (s *Scheduler) finish(ctx context.Context, t *track, name string, lines []line, err error) {
	s.loop.Lock()
	defer s.loop.Unlock()
	t.running, t.reckoned, t.kept, s.ended = false, false, "", true
	for _, l := range lines {
		t.st.add(l, s.Now())
	}
	if err != nil && ctx.Err() == nil {
		s.troubled(t, name, s.Now(), err)
	}
	s.wake.ring()
}
