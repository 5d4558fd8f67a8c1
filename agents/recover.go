package agents

import (
	"fmt"
	"slices"
	"time"

	"daycare/engine/crash"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/tools"
)

// recover brings inbox and outbox in line with history. It decides everything from
// the files, so a crash in the middle of it is just another crash.
func (a *agent) recover() error {
	// After a failure of the agent alone the mailbox is still open, and what the
	// failed run was working on is still marked.
	for _, h := range a.Inbox.Open() {
		if h.Taken {
			a.Inbox.Untake(h.ID)
		}
	}

	if err := a.deliveries.settle(); err != nil { // what a run that failed did not get to record
		return err
	}
	ob, heads := a.journal.history.Obligations(), a.Inbox.Open()
	a.Inbox.Reached(ob.LastSeq)
	if ob.Turn == nil && len(ob.Outs) == 0 && len(heads) == 0 {
		return nil
	}

	// What was read may only be in the page cache, and it is acted on from here.
	if !crash.Bug("blindrecovery") {
		if err := a.journal.history.Sync(); err != nil {
			return err
		}
	}
	if err := a.closeDone(heads); err != nil {
		return err
	}

	var removed []record.Record
	for _, o := range ob.Outs {
		if o.Entry == nil {
			// A hand took it away. The promise is given up, or the agent would owe it
			// forever.
			a.journal.log.Warn("promised answer is no longer in history", "out", o.ID)
			removed = append(removed, &record.Delivery{Out: o.ID, Parts: 1, Error: "the answer was removed from history", Final: true})
			continue
		}
		a.deliveries.send(o.Out, o.Entry, o.Delivered, true)
	}

	_, err := a.journal.append(removed...)
	return err
}

// closeDone closes items whose closing record is in history, but whose done line a
// crash prevented. What came just now cannot be among them; of the rest each says where
// its closing record begins to be possible, so that nobody reads the whole past of an
// agent whenever it wakes.
func (a *agent) closeDone(heads []inbox.Head) error {
	heads = slices.DeleteFunc(slices.Clone(heads), func(h inbox.Head) bool { return h.Fresh })
	if len(heads) == 0 || crash.Bug("twice") {
		return nil
	}
	after := make(map[string]int64, len(heads))
	for _, h := range heads {
		after[h.ID] = h.After
	}

	closed, err := a.journal.history.Closed(after)
	if err != nil {
		return err
	}
	var finished []string
	for _, h := range heads {
		if !closed[h.ID] {
			continue
		}
		if h.Kind == message.Permission { // what follows from it may not have been done
			it, err := a.Inbox.Read(h.ID)
			if err == nil {
				err = a.permits.conclude(it)
			}
			if err != nil {
				return fmt.Errorf("conclude decision: %w", err)
			}
		}

		finished = append(finished, h.ID)
	}

	return a.intake.done(finished...)
}

// lost reports a started call that must not run again.
func (s *self) lost(c record.OpenCall) bool {
	if !c.Started || crash.Bug("rerun") {
		return false
	}
	_, spec, ok := s.tools.Get(c.Call.Name)
	return !ok || spec.Replay == tools.Once
}

// waited reports a call whose agent had work since a time. That agent may have been
// set aside in the life that begins now.
func (s *self) waited(c record.ToolCall, since time.Time) bool {
	tool, _, _ := s.tools.Get(c.Name)
	w, waits := tool.(tools.Waits)
	return waits && w.AtWork(tools.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Agent: s.meta.ID}, since)
}

// nextAttempt counts deaths without progress. An orderly stop is none, and a crash
// while a call waited for an agent at work is counted by that agent.
func (s *self) nextAttempt(open *record.OpenTurn) int {
	switch {
	case open.Suspended:
		return open.Attempt
	case open.Progress:
		return 2
	case slices.ContainsFunc(open.Calls, func(c record.OpenCall) bool { return s.waited(c.Call, open.Began) }):
		return open.Attempt
	}

	return open.Attempt + 1
}

// interrupted are the results of the calls that the crash cut and that may not be run
// twice.
func (s *self) interrupted(calls []record.OpenCall) []record.Record {
	var recs []record.Record
	for _, c := range calls {
		if s.lost(c) {
			status := record.StatusInterrupted
			if crash.Bug("lostcallok") {
				status = record.StatusOK
			}
			recs = append(recs, &record.ToolResult{ToolCallID: c.Call.ID, Name: c.Call.Name, Status: status,
				Output: record.Output{Text: "interrupted: daycare stopped while this ran; it may have taken effect"}})
		}
	}

	return recs
}

// setAside are the results of the other calls of a turn that is not tried again: no
// call stays without one.
func (s *self) setAside(calls []record.OpenCall) []record.Record {
	var recs []record.Record
	for _, c := range calls {
		if !s.lost(c) {
			recs = append(recs, &record.ToolResult{ToolCallID: c.Call.ID, Name: c.Call.Name, Status: record.StatusInterrupted,
				Output: record.Output{Text: "interrupted: the turn was set aside before this was done"}})
		}
	}

	return recs
}
