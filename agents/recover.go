package agents

import (
	"context"
	"fmt"
	"slices"
	"time"

	"daycare/agents/providers"
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
	if err := a.settle(); err != nil { // what a run that failed did not get to record
		return err
	}
	ob, heads := a.history.Obligations(), a.Inbox.Open()
	a.Inbox.Reached(ob.LastSeq)
	if ob.Turn == nil && len(ob.Outs) == 0 && len(heads) == 0 {
		return nil
	}
	// What was read may only be in the page cache, and it is acted on from here.
	if !crash.Bug("blindrecovery") {
		if err := a.history.Sync(); err != nil {
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
			// for ever.
			a.log.Warn("promised answer is no longer in history", "out", o.ID)
			removed = append(removed, &record.Delivery{Out: o.ID, Parts: 1, Error: "the answer was removed from history", Final: true})
			continue
		}
		a.send(o.Out, o.Entry, o.Delivered, true)
	}
	_, err := a.append(removed...)
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
	closed, err := a.history.Closed(after)
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
				err = a.conclude(it)
			}
			if err != nil {
				return fmt.Errorf("conclude decision: %w", err)
			}
		}
		finished = append(finished, h.ID)
	}
	return a.done(finished...)
}

// resume takes up a turn that a crash or a stop left open.
func (a *agent) resume(ctx context.Context, open *record.OpenTurn) error {
	t := &turn{id: open.Turn, attempt: a.nextAttempt(open), rounds: open.Rounds, waiting: open.Asked}
	a.join(t, open.Users)
	if open.HasAnswer != nil { // a torn write: the answer is there, its closing record is not
		return a.complete(t, open.HasAnswer)
	}
	if err := a.takeAgain(t, open); err != nil {
		return err
	}
	recs := a.interrupted(open)
	if t.attempt > maxAttempts {
		recs = append(recs, a.setAside(open)...)
		if _, err := a.append(recs...); err != nil {
			return err
		}
		return a.finish(t, record.ReasonPoison,
			a.apology(t, fmt.Errorf("this message made me fail %d times, so I set it aside", maxAttempts)))
	}
	recs = append(recs, &record.TurnBegin{Turn: t.id, Items: t.items, Attempt: t.attempt, Model: a.state.Provider.Model})
	if _, err := a.append(recs...); err != nil {
		return err
	}
	record.RemoveDraft(a.Dir)
	var calls []record.ToolCall
	for _, c := range open.Calls {
		if !a.lost(c) {
			calls = append(calls, c.Call)
		}
	}
	return a.run(ctx, t, calls)
}

// nextAttempt counts deaths without progress. An orderly stop is none, and a death
// while a call waited for an agent at work is counted by that agent.
func (a *agent) nextAttempt(open *record.OpenTurn) int {
	switch {
	case open.Suspended:
		return open.Attempt
	case open.Progress:
		return 2
	case slices.ContainsFunc(open.Calls, func(c record.OpenCall) bool { return a.waited(c.Call, open.Began) }):
		return open.Attempt
	}
	return open.Attempt + 1
}

// waited reports a call whose agent had work since a time. That agent may have been
// set aside in the life that begins now.
func (a *agent) waited(c record.ToolCall, since time.Time) bool {
	tool, _, _ := a.Tools.Get(c.Name)
	w, waits := tool.(tools.Waits)
	return waits && w.AtWork(tools.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Agent: a.ID}, since)
}

// complete writes the closing record that a torn write lost.
func (a *agent) complete(t *turn, e *record.Entry) error {
	as := e.Rec.(*record.Assistant)
	end := &record.TurnEnd{Turn: t.id, Items: t.items, Reason: record.ReasonDone}
	switch as.Finish {
	case record.FinishError:
		end.Reason = record.ReasonError
	case record.FinishCanceled:
		end.Reason = record.ReasonCanceled
	}
	if _, err := a.append(end); err != nil {
		return err
	}
	if err := a.barrier(); err != nil {
		return err
	}
	a.announce(t, end, as)
	return a.done(t.items...) // the promise itself was taken up by recover
}

// takeAgain marks the turn's items as being worked on, and records those whose
// user message a torn write lost.
func (a *agent) takeAgain(t *turn, open *record.OpenTurn) error {
	recorded := map[string]bool{}
	for _, id := range t.items {
		recorded[id] = true
	}
	waiting := map[string]bool{}
	for _, h := range a.Inbox.Open() {
		waiting[h.ID] = true
	}
	var lost []string
	for _, id := range open.Taken {
		if !recorded[id] && waiting[id] {
			lost = append(lost, id)
		}
	}
	for _, id := range t.items {
		if waiting[id] {
			if _, err := a.claim(id); err != nil {
				return err
			}
		}
	}
	if len(lost) == 0 {
		return nil
	}
	items, err := a.claim(lost...)
	if err != nil {
		return err
	}
	entries, err := a.append(a.users(t.id, items)...)
	a.join(t, entries)
	return err
}

// interrupted are the records of what the crash cut: the draft of an answer, and
// the calls that may not be run twice.
func (a *agent) interrupted(open *record.OpenTurn) []record.Record {
	var recs []record.Record
	if d, ok, err := record.ReadDraft(a.Dir); err == nil && ok && d.Turn == open.Turn && d.Text+d.Thinking != "" {
		as := &record.Assistant{Turn: open.Turn, Text: d.Text, Finish: record.FinishInterrupted}
		if d.Thinking != "" {
			as.Thinking = []record.Thinking{{Text: d.Thinking}}
		}
		if as.Provider, as.Model = d.Provider, d.Model; d.Provider != "" {
			used := providers.Usage{Input: d.Input, Output: providers.EstimateText(d.Text + d.Thinking), Estimated: true}
			as = a.paid(as, used)
			a.Costs.Cut(d.Provider, d.Model, used)
		}
		recs = append(recs, as)
	}
	for _, c := range open.Calls {
		if a.lost(c) {
			status := record.StatusInterrupted
			if crash.Bug("lostcallok") {
				status = record.StatusOK
			}
			recs = append(recs, &record.ToolResult{ToolCallID: c.Call.ID, Name: c.Call.Name, Status: status,
				Output: record.Output{Text: "interrupted: daycare stopped while this ran; whether it took effect is not known"}})
		}
	}
	return recs
}

// setAside are the results of the other calls of a turn that is not tried again: no
// call stays without one.
func (a *agent) setAside(open *record.OpenTurn) []record.Record {
	var recs []record.Record
	for _, c := range open.Calls {
		if !a.lost(c) {
			recs = append(recs, &record.ToolResult{ToolCallID: c.Call.ID, Name: c.Call.Name, Status: record.StatusInterrupted,
				Output: record.Output{Text: "interrupted: the turn was set aside before this was done"}})
		}
	}
	return recs
}

// lost reports a call that was started and may not be run again.
func (a *agent) lost(c record.OpenCall) bool {
	if !c.Started || crash.Bug("rerun") {
		return false
	}
	_, spec, ok := a.Tools.Get(c.Call.Name)
	return !ok || spec.Replay == tools.Once
}
