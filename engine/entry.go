package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"daycare/engine/address"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// An entry is what the engine knows of one agent that is awake or being delivered
// to. Its lock decides between sleeping and waking: an agent goes to sleep only if
// its inbox is empty under the lock, and a delivery either finds it awake or
// starts it.
type entry struct {
	actors *actors
	meta   address.Meta
	dir    string

	activity atomic.Pointer[activity]
	ending   atomic.Pointer[ending] // of its newest turn; nil: not known
	edited   chan struct{}          // capacity 1: a user may have written in the folder

	mu sync.Mutex
	opened
	actor
	ended bool // killed or removed: accepts nothing more
	gone  bool // no longer the engine's entry of this agent
}

// opened is the inbox of an agent that is awake.
type opened struct {
	box   inbox.Mailbox // nil while the agent sleeps
	file  *inbox.File   // the same, for what is wrong with it
	scans int           // of the file when its broken lines were last reported
	users int           // deliveries and waits that need the box now

	owned  bool // by this machine, among several
	fenced bool // another machine has taken the agent over: the box refuses everything
}

// actor is the goroutine of an agent that is awake.
type actor struct {
	running bool // it exists
	cancel  context.CancelCauseFunc
	stop    context.CancelCauseFunc // of the current turn
	done    chan struct{}           // closed when it ended
}

// errGone: the entry went to sleep between its lookup and its use; look again.
var errGone = errors.New("entry is gone")

// open returns the agent's mailbox, loading it if it sleeps. Each open needs a
// release.
func (e *entry) open() (inbox.Mailbox, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.sleep() // if it could not be opened
	if err := (closing{e}).refuses(); err != nil {
		return nil, err
	}
	if err := e.load(); err != nil {
		if hasMoved(err) {
			e.sleep() // nothing is to be known of it here
		}
		return nil, err
	}
	e.users++

	return e.box, nil
}

// load opens the mailbox if the agent sleeps. An agent that was ended, by this
// process or an earlier one, stays ended. The lock is held.
func (e *entry) load() error {
	if e.box != nil {
		return nil
	}
	if err := (ownership{e}).own(); err != nil {
		return err
	}

	return e.openBox()
}

// openBox opens the mailbox of an agent that is owned here.
func (e *entry) openBox() error {
	state, _, err := record.CurrentState(e.actors.vol, e.dir)
	if e.actors.index.SetEnded(e.meta.ID, state.Ended != nil); state.Ended == nil {
		e.actors.spent.Delete(e.meta.ID)
	}
	if state.Ended != nil {
		e.ended = true
		return fmt.Errorf("%w: %s has ended", message.ErrUnknownAgent, e.meta.Handle)
	}
	if err != nil && !errors.As(err, new(finding.Finding)) {
		return err // it is not known whether the agent has ended
	}

	box, found, err := inbox.Open(e.actors.vol, e.dir, e.actors.quota, crash.Now)
	if err != nil {
		return fmt.Errorf("open inbox of %s: %w", e.meta.ID, err)
	}
	if seq, err := record.LastSeq(e.dir); err == nil { // else what is accepted is looked for in all of it
		box.Reached(seq)
	}

	e.box, e.file, e.scans = box, box, 0
	e.noteInbox(found)
	return nil
}

// noteInbox reports what was found in the inbox's file: what happened to it, and the
// lines that are broken until someone mends them. The mailbox reads the file anew
// whenever it was changed, and nothing else is read for this.
func (e *entry) noteInbox(found []finding.Finding) {
	for _, f := range found {
		if f.ID != inbox.BrokenLine {
			e.actors.problems.Report(e.meta.ID, f)
		}
	}
	if lines, scans := e.file.Broken(); scans != e.scans {
		e.scans = scans
		e.actors.problems.Set(e.meta.ID, filepath.Join(e.dir, inbox.FileName), lines)
	}
}

// release gives the mailbox back and wakes the agent if there is work in it.
func (e *entry) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.users--
	e.noteInbox(e.file.Findings())
	if e.box.Len() > 0 && !(crash.Bug("wakelost") && crash.Once("wake")) {
		e.wake()
	}
	e.sleep()
}

// wake starts the actor if none runs, as soon as there is a place for it. The lock
// is held.
func (e *entry) wake() {
	start, w := e.actors.start.Load(), e.actors.waker
	if e.running || e.ended || e.fenced || start == nil || e.actors.ctx.Err() != nil || e.actors.vol.Err() != nil {
		return
	}
	if !w.take(e.meta.ID) {
		return
	}
	if err := e.load(); err != nil { // woken by its history, not by a delivery
		if e.ended || hasMoved(err) {
			w.well(e.meta.ID)
		} else {
			w.unwoken(e.meta.ID, err)
		}
		w.free()
		return
	}

	w.woke(e.meta.ID)
	ctx, cancel := context.WithCancelCause(e.actors.ctx)
	e.running, e.cancel, e.done = true, cancel, make(chan struct{})
	e.actors.events.Emit(event.Event{Type: event.AgentWoke, Agent: e.meta.ID})
	e.actors.wg.Add(1)
	go e.act(ctx, *start)
}

// lockAndWake is wake for callers that do not hold the lock. It returns false if the entry is gone, or has ended: the folder
// of its agent may have come back.
func (e *entry) lockAndWake() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended && !e.running {
		e.actors.forget(e)
		return false
	}
	if e.gone {
		return false
	}
	e.wake()
	e.sleep() // if it has to wait for a place

	return true
}

// sleep closes the mailbox if it is not needed. The lock is held.
func (e *entry) sleep() {
	if e.running || e.users > 0 || e.gone || (ownership{e}).sends() {
		return
	}
	if e.box != nil {
		closing{e}.close()
	}

	ownership{e}.giveUp()
	e.box, e.gone = nil, true
	e.actors.forget(e)
}

// act is the actor: it runs the agent until it may sleep. One that fails leaves, and
// the waker has it tried again. Its stack is kept while the agent waits, so little is on it.
func (e *entry) act(ctx context.Context, start StartFunc) {
	defer e.finish()
	if crash.Bug("latewake") {
		time.Sleep(30 * time.Second)
	}
	e.watch()
	defer e.unwatch()
	e.actors.descriptors.reread(e.meta.ID, true) // it may have been edited while the agent slept
	rt := e.runtime()

	for stays(ctx, start, rt) {
		e.actors.waker.stayed()
	}
}

// stays runs the agent, and reports whether it has to be run again at once.
func stays(ctx context.Context, start StartFunc, rt Runtime) bool {
	e := rt.entry
	began := time.Now()
	err := run(ctx, start, rt)
	if ctx.Err() != nil {
		return false
	}
	if err == nil || time.Since(began) > restartLast {
		e.actors.waker.well(e.meta.ID)
	}
	if err != nil {
		e.failed(err)
		return false
	}

	return !e.rest(rt.Results)
}

// run is start, guarded.
func run(ctx context.Context, start StartFunc, rt Runtime) (err error) {
	defer recovered(&err)
	return start(ctx, rt)
}

// runtime is what an agent that is woken now is run with.
func (e *entry) runtime() Runtime {
	rt := Runtime{&runtimeParts{Dir: e.dir, Inbox: e.box, Results: e.actors.senders.results(e.meta.ID), entry: e}}
	meta := rt.Identity()
	rt.Meta = &meta

	return rt
}

// failed decides what follows from a run that ended with an error.
func (e *entry) failed(err error) {
	switch id := e.meta.ID; {
	case errors.Is(err, record.ErrGone) && !disk.Exists(filepath.Join(e.dir, address.File)):
		e.actors.log.Warn("agent ended: its folder is gone", "agent", id)
		e.end()
		return
	case errors.Is(err, record.ErrGone):
		e.actors.problems.Report(id, finding.Finding{ID: "history-gone", Severity: finding.Warning,
			File:   filepath.Join(e.dir, "history.jsonl"),
			Reason: "it was removed while the agent was running; starting a new one"})
	case errors.Is(err, disk.ErrFenced):
		e.actors.log.Info("agent continues on another machine", "agent", id)
		e.actors.letGo(e)
		return
	case errors.Is(err, disk.ErrFailed):
		e.actors.log.Error("agent stopped: durable storage failed", "agent", id, "err", err)
		return
	}

	pause := e.actors.waker.failed(e.meta.ID, err)
	e.actors.log.Error("agent failed", "agent", e.meta.ID, "err", err, "again", pause)
}

// rest decides under the entry's lock whether the agent goes to sleep.
func (e *entry) rest(results *message.Results) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.box.Len() == 0 && results.Len() == 0
}

func (e *entry) finish() {
	defer e.actors.wg.Done()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.running = false
	e.cancel(nil)
	close(e.done)
	e.activity.Store(nil)
	e.ending.Store(nil)
	e.actors.events.Emit(event.Event{Type: event.AgentSlept, Agent: e.meta.ID})
	e.actors.waker.free()
	if !e.ended && (e.box.Len() > 0 || e.actors.senders.left(e.meta.ID)) {
		e.wake() // something arrived between rest and here, or it is tried again later
	}

	closing{e}.shut()
	e.sleep()
}

// turn makes a context that Stop can end.
func (e *entry) turn(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	e.mu.Lock()
	e.stop = cancel
	e.mu.Unlock()
	return ctx, func() {
		e.mu.Lock()
		e.stop = nil
		e.mu.Unlock()
		cancel(nil)
	}
}

// stopTurn cancels the current turn, or, where it is not "", that of an item; false: no such turn runs.
func (e *entry) stopTurn(item string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	taken := func(h inbox.Head) bool { return h.ID == item && h.Taken }
	if e.stop == nil || item != "" && !slices.ContainsFunc(e.box.Open(), taken) {
		return false
	}
	e.stop(ErrStopped)

	return true
}

// end makes the entry refuse everything from now on.
func (e *entry) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	closing{e}.shut()
}

// send gives a promise to the sender of its chat. What becomes of it wakes the agent,
// if it sleeps by then.
func (e *entry) send(p message.Promise) {
	report := p.Report
	p.Agent, p.Report = e.meta.ID, func(f message.Result) {
		report(f)
		if f.Delivered() || f.Final {
			e.actors.wake(e.meta.ID)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended { // its promises were dropped already
		report(message.Result{Out: p.ID, Kept: true})
		return
	}

	e.actors.senders.send(p)
}

// halt ends the actor and waits until it is gone. What it promised is not sent any
// more: it would wait for that, as long as a chat may be down.
func (e *entry) halt(ctx context.Context) error {
	e.mu.Lock()
	e.ended = true
	running, done := e.running, e.done
	if running {
		e.cancel(ErrStopped)
	}

	closing{e}.shut()
	e.mu.Unlock()
	e.actors.senders.drop(e.meta.ID)
	e.actors.waker.well(e.meta.ID)
	if running {
		select {
		case <-done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	return nil
}

// guard turns a panic into an error: one bad agent does not stop the rest.
func guard(f func() error) (err error) {
	defer recovered(&err)
	return f()
}

// recovered, deferred, turns a panic into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("panic: %v\n%s", r, debug.Stack())
	}
}
