package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"daycare/agents/prompt"
	"daycare/engine/address"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/tools"
)

// agent is the state of a running agent. Only its own goroutine touches it.
type agent struct {
	Options
	Meta     address.Meta
	Settings Settings
	Tools    *tools.Set

	history *record.History
	state   record.State
	edits
	builder   *prompt.Builder
	system    string
	session   string // the session that system was rendered for
	room      room
	pending   map[string]bool // ids of the answers that were given to the outbox and have no recorded result yet
	postponed postponed
	syncs     sync.WaitGroup  // barriers that run beside the work
	over      <-chan struct{} // closed when the agent is to stop
	log       *slog.Logger
}

// Run runs the agent until it may sleep (nil), ctx ends (nil), or it fails.
func Run(ctx context.Context, o Options) (err error) {
	if o.Board == nil {
		o.Board = logBoard(o.Log)
	}
	if o.Fates == nil {
		o.Fates = message.NewFates()
	}
	o.Sources.Dir = o.Dir
	a := &agent{Options: o, builder: prompt.NewBuilder(o.Sources), pending: map[string]bool{}, over: ctx.Done(),
		log: o.Log.With("agent", o.ID), Settings: o.Identity.Settings(), Tools: o.Identity.Tools()}
	var found findings
	if a.history, found, err = record.Open(o.Volume, o.Dir, crash.Now, a.log); err != nil {
		return fmt.Errorf("open history: %w", err)
	}
	a.tell(found)
	defer func() {
		a.syncs.Wait()
		err = errors.Join(err, a.history.Close())
	}()
	if err := a.lookAround(); err != nil {
		return fmt.Errorf("look at files: %w", err)
	}
	if err := a.recover(); err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	return a.loop(ctx)
}

// loop takes one piece of work after the other.
func (a *agent) loop(ctx context.Context) error {
	for {
		if err := errors.Join(a.settle(), a.rotate()); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return a.leave()
		}
		worked, err := a.step(ctx)
		if err != nil {
			return err
		}
		if worked {
			continue
		}
		a.Stage.Show(event.Idle, "")
		if sleep, err := a.wait(ctx); sleep || err != nil {
			return errors.Join(err, a.sleep())
		}
	}
}

// step does the first thing that is to be done: an open turn, a turn that is owed
// after a decision, what waits in the inbox.
func (a *agent) step(ctx context.Context) (worked bool, err error) {
	a.Settings = a.Identity.Settings()
	switch ob := a.history.Obligations(); {
	case ob.Turn != nil:
		return true, a.resume(ctx, ob.Turn)
	case ob.Owed:
		return true, a.begin(ctx, nil)
	}
	return a.take(ctx)
}

// wait blocks until there may be work. It reports true when the agent has had none
// for the idle time, or when others wait for its place. Answers may still be on their
// way then: what becomes of them wakes the agent again.
func (a *agent) wait(ctx context.Context) (sleep bool, err error) {
	again, leave := a.postponed.due(), a.Leave
	var idle <-chan time.Time
	if again == nil {
		timer := time.NewTimer(a.Settings.Idle)
		defer timer.Stop()
		idle = timer.C
	} else {
		leave = nil // it has work, if only later
	}
	select {
	case <-a.Inbox.Arrived():
	case <-a.Fates.Arrived():
	case <-again:
	case <-a.Edited:
		return false, a.disturbed()
	case <-ctx.Done():
	case <-leave:
		return true, nil
	case <-idle:
		return true, nil
	}
	return false, nil
}

// leave is the orderly stop: answers under way may still arrive, or are told to be
// kept for the next start.
func (a *agent) leave() error {
	if crash.Bug("slowstop") {
		time.Sleep(15 * time.Second)
	}
	for len(a.pending) > 0 {
		<-a.Fates.Arrived()
		if err := a.settle(); err != nil {
			return err
		}
	}
	return a.sleep()
}

// sleep writes what is only cached in memory into state.json.
func (a *agent) sleep() error {
	if a.history.Obligations().LastSeq == 0 {
		return nil // it never did anything
	}
	return a.cacheState()
}

// cacheState is saveState of the caches alone: where they cannot be written that is
// logged, and work goes on.
func (a *agent) cacheState() error {
	err := a.saveState(nil)
	if err == nil || errors.Is(err, disk.ErrFailed) {
		return err
	}
	a.log.Warn("state not written", "err", err)
	return nil
}

// saveState brings the caches of state.json up to date, with one change more. Without
// an error the change is durable.
func (a *agent) saveState(change func(*record.State)) error {
	session, err := a.history.Session()
	if err != nil {
		return fmt.Errorf("count session: %w", err)
	}
	session.Parent = cmp.Or(session.Parent, a.Meta.Descriptor.ParentAgentID)
	var failed error
	announced := a.announced
	if change != nil && announced != nil { // what the runtime gives is announced by its own record
		s := record.State{Permissions: *copyOf(*announced)}
		change(&s)
		announced = &s.Permissions
	}
	err = record.UpdateState(a.Volume, a.Dir, func(s *record.State) {
		if a.loaded && !disk.Exists(a.path("state.json")) { // the last good version stays in force
			a.log.Warn("state.json was gone and is written again", "dir", a.Dir)
			s.Permissions, s.Provider, s.Queue, s.Budget = *copyOf(a.state.Permissions), a.state.Provider, a.state.Queue, a.state.Budget
			s.CreatedAt = a.state.CreatedAt
		}
		used, last, err := a.history.Totals(s.Seq)
		if err != nil {
			failed = err
			return
		}
		if s.Stats == nil {
			s.Stats = record.Stats{}
		}
		s.Stats.Add(used)
		if last != nil {
			s.Tokens = last
		}
		s.Session, s.Seq, s.UpdatedAt = session, a.history.Obligations().LastSeq, disk.StampOf(crash.Now())
		if change != nil {
			change(s)
		}
		s.Announced, a.announced = announced, announced
		a.state = *s
	})
	return errors.Join(err, failed)
}

func (a *agent) emit(t event.Type, turn string, body event.Body) {
	a.Events.Emit(event.Event{Type: t, Agent: a.ID, Turn: turn, Body: body})
}

// foreground reports whether a person waits for the answers of this agent.
func (a *agent) foreground() bool { return a.Meta.Descriptor.Type == address.User }
