package agents

import (
	"context"
	"errors"
	"fmt"
	"time"

	"daycare/agents/prompt"
	"daycare/engine/crash"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// An agent is its loop: it takes one piece of work after the other, and has its parts do
// it. Only the agent's own goroutine touches it, and while that waits in apart, the one that works for it there.
type agent struct {
	Place
	stage      Stage
	journal    *journal
	deliveries *deliveries
	files      *files
	intake     *intake
	permits    *permits
	requests   *requests
	shortener  *shortener
	worker     *worker
}

// Run runs the agent until it may sleep (nil), ctx ends (nil), or it fails. It fills in what o leaves open.
//
// The stack of an agent that waits is what its callers have on it, and 4 KB are enough for that: what needs more runs
// apart, and nothing large is passed or kept by value on the way from the engine to here.
func Run(ctx context.Context, o *Options) (err error) {
	var a *agent
	defer func() {
		if a != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if _, err := apart(func() (_ bool, err error) {
		if a, err = open(ctx, o); err != nil {
			return false, err
		}
		return false, a.restore()
	}); err != nil {
		return err
	}

	return a.loop(ctx)
}

// restore brings the agent to where it can work: it looks at its files, and at what a crash left.
func (a *agent) restore() error {
	if err := a.lookAround(); err != nil {
		return fmt.Errorf("look at files: %w", err)
	}
	if err := a.recover(); err != nil {
		return fmt.Errorf("recover: %w", err)
	}

	return nil
}

// open makes the parts of an agent and opens its history.
func open(ctx context.Context, o *Options) (*agent, error) {
	if o.Problems == nil {
		o.Problems = logProblems(o.Log)
	}
	if o.Results == nil {
		o.Results = message.NewResults()
	}
	o.Sources.Dir = o.Dir
	j := &journal{id: o.ID, volume: o.Volume, dir: o.Dir, redact: o.Redact, events: o.Events, show: o.Stage.Show,
		problems: o.Problems, over: ctx.Done(), log: o.Log.With("agent", o.ID),
		drafted: true}
	history, found, err := record.Open(o.Volume, o.Dir, crash.Now, j.log)
	if err != nil {
		return nil, fmt.Errorf("open history: %w", err)
	}
	j.history = history
	j.report(found)

	rights := &rights{journal: j, box: o.Inbox, jobs: o.Jobs}
	files := &files{self: self{settings: o.Identity.Settings()}, identity: o.Identity, journal: j,
		rights: rights, folders: o.Folders}
	d := &deliveries{journal: j, outbox: o.Outbox, results: o.Results, pending: map[string]bool{}}
	hooks := &hooking{hooks: o.Hooks, journal: j, deliveries: d}
	in := &intake{box: o.Inbox, journal: j, briefing: o.Briefing, hooks: hooks}
	permits := &permits{queue: o.Permits, overseer: o.Overseer, journal: j, intake: in, files: files, rights: rights,
		costs: o.Costs, hooks: hooks}

	requests := &requests{journal: j, briefing: o.Briefing, builder: prompt.NewBuilder(o.Sources)}
	caller := &caller{journal: j, deliveries: d, box: o.Inbox, models: o.Models, costs: o.Costs}
	shortener := &shortener{journal: j, requests: requests, caller: caller, models: o.Models, costs: o.Costs, jobs: o.Jobs}

	worker := &worker{stage: o.Stage, journal: j, intake: in, requests: requests, shortener: shortener, caller: caller,
		permits: permits, hooks: hooks,
		executor: &executor{journal: j, deliveries: d, permits: permits, rights: rights, hooks: hooks},
		replies:  &replies{stage: o.Stage, journal: j, deliveries: d, intake: in, outbox: o.Outbox, costs: o.Costs, reports: o.Reports}}
	return &agent{Place: o.Place, stage: o.Stage, journal: j, deliveries: d, files: files, intake: in, permits: permits,
		requests: requests, shortener: shortener, worker: worker}, nil
}

// close waits for what is being written, and closes history.
func (a *agent) close() error {
	a.deliveries.syncs.Wait()
	return a.journal.history.Close()
}

// loop works until there is nothing to do, waits, and works again.
func (a *agent) loop(ctx context.Context) error {
	edited := false
	for {
		changed := edited // a copy, so that the variable itself stays on the stack
		over, err := apart(func() (bool, error) { return a.work(ctx, changed) })
		if over || err != nil {
			return err
		}
		a.journal.show(event.Idle, "")
		var sleep bool
		if sleep, edited = a.wait(ctx); sleep {
			return a.sleep()
		}
	}
}

// work takes one piece of work after the other, until none is left or ctx has ended, which is over. edited: something
// in the folder changed meanwhile.
func (a *agent) work(ctx context.Context, edited bool) (over bool, err error) {
	if edited {
		if err := a.disturbed(); err != nil {
			return false, errors.Join(err, a.sleep())
		}
	}
	for worked := true; worked; {
		if err := errors.Join(a.deliveries.settle(), a.shortener.rotate()); err != nil {
			return false, err
		}
		if ctx.Err() != nil {
			return true, a.leave()
		}
		if worked, err = a.step(ctx); err != nil {
			return false, err
		}
	}

	return false, nil
}

// step does the first thing that is to be done: an open turn, a turn that is owed
// after a decision, what waits in the inbox.
func (a *agent) step(ctx context.Context) (worked bool, err error) {
	a.files.settings = a.files.identity.Settings()
	if !a.journal.history.Owing() {
		return a.take(ctx)
	}
	if open := a.journal.history.Obligations().Turn; open != nil {
		return true, a.ended(a.worker.resume(ctx, &a.files.self, open))
	}

	return true, a.begin(ctx, nil)
}

// wait blocks until there may be work. It reports sleep when the agent has had none
// for the idle time, or when others wait for its place, and edited when something in its
// folder changed. Answers may still be on their way when it sleeps: what becomes of them
// wakes the agent again.
func (a *agent) wait(ctx context.Context) (sleep, edited bool) {
	at, leave := a.permits.postponed.due(), a.Leave
	later := at != nil
	if later {
		leave = nil // it has work, if only later
	} else {
		at = time.After(a.files.settings.Idle)
	}
	select {
	case <-a.Inbox.Arrived():
	case <-a.Results.Arrived():
	case <-a.Edited:
		edited = true
	case <-ctx.Done():
	case <-leave:
		sleep = true
	case <-at:
		sleep = !later
	}

	return sleep, edited
}

// leave is the orderly stop: deliveries in progress may still arrive, or are recorded to be
// kept for the next start.
func (a *agent) leave() error {
	if crash.Bug("slowstop") {
		time.Sleep(time.Minute)
	}
	if err := a.deliveries.wait(); err != nil {
		return err
	}

	return a.sleep()
}

// sleep writes what is only cached in memory into state.json.
func (a *agent) sleep() error {
	if a.journal.history.LastSeq() == 0 {
		return nil // it never did anything
	}
	return a.files.cacheState()
}

// lookAround takes over what a user changed in the descriptor and state.json.
func (a *agent) lookAround() error {
	read, err := a.files.lookAround()
	if read {
		a.permits.postponed.soon()
	}

	return err
}

// disturbed is called while the agent waits and something in its folder changed. It
// may have been the agent itself, so it costs no more than a look.
func (a *agent) disturbed() error {
	if err := a.lookAround(); err != nil {
		return err
	}
	return a.journal.refresh("")
}

// begin works on a turn over items; none: the turn that a decision asks for. What users
// changed since the last turn applies from here on.
func (a *agent) begin(ctx context.Context, items []inbox.Item) error {
	if err := a.journal.begin(); err != nil {
		return err
	}
	if err := a.lookAround(); err != nil {
		return fmt.Errorf("look at files: %w", err)
	}
	if err := a.requests.lookAtPrompt(&a.files.self); err != nil {
		return fmt.Errorf("look at files: %w", err)
	}

	return a.ended(a.worker.begin(ctx, &a.files.self, items))
}

// ended begins a new session where a turn ended because the conversation has outgrown
// the model.
func (a *agent) ended(outgrown, err error) error {
	if err != nil || outgrown == nil {
		return err
	}
	return a.reset("", "emergency", outgrown.Error())
}
