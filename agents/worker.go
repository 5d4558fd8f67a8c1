package agents

import (
	"context"
	"errors"
	"fmt"

	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/engine/crash"
	"daycare/engine/cuid"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/record"
)

// maxAttempts is how often a turn that made no progress may die before it is given
// up as poisonous: its third death ends it.
const maxAttempts = 3

// suspended is what execute returns when an orderly stop cut the turn.
const suspended = "suspended"

// A worker works on turns.
type worker struct {
	stage     Stage
	journal   *journal
	intake    *intake
	requests  *requests
	shortener *shortener
	caller    *caller
	executor  *executor
	permits   *permits
	replies   *replies
	hooks     *hooking
}

// begin opens a turn over items; none: the turn that a decision asks for.
func (w *worker) begin(ctx context.Context, s *self, items []inbox.Item) (outgrown, err error) {
	t := &turn{self: *s, id: cuid.Unique(), attempt: 1}
	taken := make([]string, len(items))
	for i, it := range items {
		taken[i] = it.ID
	}
	inner, end := w.stage.Turn(ctx)
	defer end()
	recs, refused := w.intake.users(inner, &t.self, t.id, items)
	if w.intake.cut(ctx, items) {
		return nil, nil
	}
	t.refused = refused
	opening := &record.TurnBegin{Turn: t.id, Items: taken, Attempt: t.attempt, Model: t.model().Model}
	entries, err := w.journal.append(append([]record.Record{opening}, recs...)...)
	if err != nil {
		return nil, err
	}
	t.join(w.replies.outbox, entries)
	crash.Point("turn.taken")
	return w.run(ctx, inner, t, nil)
}

// resume takes up a turn that a crash or a stop left open.
func (w *worker) resume(ctx context.Context, s *self, open *record.OpenTurn) (outgrown, err error) {
	t := &turn{self: *s, id: open.Turn, attempt: s.nextAttempt(open), rounds: open.Rounds, waiting: len(open.Asked) > 0}
	t.again = true
	t.join(w.replies.outbox, open.Users)
	t.refused = refusedBefore(open.Users)
	if open.HasAnswer != nil { // a torn write: the answer is there, its closing record is not
		return nil, w.replies.complete(t, open.HasAnswer)
	}
	inner, end := w.stage.Turn(ctx)
	defer end()
	entries, err := w.intake.takeAgain(inner, t, open)
	t.join(w.replies.outbox, entries)
	if err != nil {
		return nil, err
	}
	var recs []record.Record
	if as := w.caller.cut(t.id); as != nil {
		recs = append(recs, as)
	}
	cut := t.interrupted(open.Calls)
	if err := w.hooks.lost(inner, t, open.Calls, cut); err != nil {
		return nil, err
	}
	if recs = append(recs, cut...); open.Held { // a torn write lost what the hook wanted
		recs = append(recs, goOn("A hook asked you to continue before the turn ends. Check your work, then finish.", t.settings.Zone))
	}
	if t.attempt > maxAttempts {
		recs = append(recs, t.setAside(open.Calls)...)
		if _, err := w.journal.append(recs...); err != nil {
			return nil, err
		}
		return nil, w.replies.finish(t, record.ReasonPoison,
			t.apology(fmt.Errorf("this message made me fail %d times, so I set it aside", maxAttempts)))
	}
	recs = append(recs, &record.TurnBegin{Turn: t.id, Items: t.items, Attempt: t.attempt, Model: t.model().Model})
	if _, err := w.journal.append(recs...); err != nil {
		return nil, err
	}
	w.journal.removeDraft()
	var calls []record.ToolCall
	for _, c := range open.Calls {
		if !t.lost(c) {
			calls = append(calls, c.Call)
		}
	}
	if t.stopped != "" { // by a hook of a call that was cut
		if err := w.executor.cancelled(calls); err != nil {
			return nil, err
		}
		return nil, w.replies.finish(t, record.ReasonError, t.notice(record.ReasonError))
	}

	return w.run(ctx, inner, t, calls)
}

// run is the turn: five steps, until the model calls no more tools. calls are what
// a turn that is taken up again still has to execute. outgrown is why the conversation
// does not fit the model any more: the turn is closed, and the context has to begin anew.
// inner ends with the turn, ctx with the agent's work.
func (w *worker) run(ctx, inner context.Context, t *turn, calls []record.ToolCall) (outgrown, err error) {
	inner, t.clock = watchProgress(inner, t.settings.Stuck)
	defer t.clock.stop()
	w.journal.emit(event.TurnStarted, t.id, event.Started{Items: t.items, Attempt: t.attempt, Model: t.model().Model})

	for {
		if len(calls) == 0 {
			if over, err := w.refused(inner, t); over || err != nil {
				return nil, err
			}
			answer, err := w.ask(inner, t)
			if err != nil {
				return w.broken(ctx, inner, t, answer, err)
			}
			if len(answer.Calls) == 0 {
				if over, err := w.ends(inner, t, answer); over || err != nil {
					return nil, err
				}
				continue
			}
			if calls, err = w.replies.record(t, answer); err != nil {
				return nil, err
			}
		}
		t.share = share(w.shortener.limit(&t.self), len(calls))
		reason, err := w.executor.execute(ctx, inner, t, calls)
		if err != nil || reason == suspended {
			return nil, err
		}
		if t.rounds++; reason == "" && t.rounds >= t.settings.Rounds {
			reason = record.ReasonLimit
		}
		if reason != "" {
			return nil, w.replies.finish(t, reason, t.notice(reason))
		}
		calls = nil
	}
}

// refused ends a turn that a hook refuses before a model call.
func (w *worker) refused(ctx context.Context, t *turn) (over bool, err error) {
	why := t.refused
	if why == "" {
		if why, err = w.hooks.opening(ctx, t); why == "" || err != nil {
			return err != nil, err
		}
	}
	if ctx.Err() != nil {
		return true, w.replies.finish(t, record.ReasonCanceled, nil)
	}
	return true, w.replies.finish(t, record.ReasonError, t.says("A hook of the owner refused this: "+why),
		fmt.Errorf("refused by a hook: %s", why))
}

// ends ends the turn with the model's answer, unless a hook wants something done first.
func (w *worker) ends(ctx context.Context, t *turn, answer *providers.Response) (over bool, err error) {
	why, err := w.hooks.goOn(ctx, t, answer.Text)
	if err != nil {
		return true, err
	}
	if why == "" {
		return true, w.replies.reply(t, answer)
	}
	t.rounds++
	return false, w.replies.interim(t, answer, why)
}

// ask is one model call, with what arrived meanwhile and what was edited meanwhile
// in it. An error of the call itself is a callError; any other ends the agent's run.
func (w *worker) ask(ctx context.Context, t *turn) (*providers.Response, error) {
	entries, err := w.intake.fold(ctx, t)
	t.join(w.replies.outbox, entries)
	if err != nil {
		return nil, err
	}
	req, err := w.requests.build(t)
	if err != nil {
		return nil, err
	}
	if req, err = w.shortener.fit(ctx, t, req); err != nil {
		return nil, err
	}
	answer, err := w.caller.call(ctx, t, req)
	if overflowed(err) {
		if req, failed := w.shortener.squeeze(ctx, t); failed != nil {
			return nil, failed
		} else if req != nil {
			answer, err = w.caller.call(ctx, t, req)
		}
	}
	if err != nil {
		return answer, err
	}
	crash.Point("turn.called")
	return answer, nil
}

// broken ends or suspends a turn whose model call gave no answer.
func (w *worker) broken(ctx, inner context.Context, t *turn, partial *providers.Response, err error) (outgrown, _ error) {
	if !errors.As(err, new(callError)) {
		return nil, err
	}
	switch cause := context.Cause(inner); {
	case ctx.Err() != nil:
		return nil, w.journal.suspend(t.id)
	case inner.Err() != nil && errors.Is(cause, errStuck):
		return nil, w.replies.finish(t, record.ReasonError, t.apology(fmt.Errorf("no progress for %s", t.settings.Stuck)))
	case inner.Err() != nil, errors.Is(err, errInterrupt):
		return nil, w.replies.finish(t, record.ReasonCanceled, w.replies.assistant(t, partial, record.FinishCanceled))
	}
	if errors.Is(err, prompt.ErrNothingNew) { // a user took the messages of this turn out of history
		return nil, w.replies.finish(t, record.ReasonDone, nil)
	}
	if overflowed(err) {
		text := "This conversation has grown too long for the model, so I started a new one. Everything said is still in my " +
			"history file. Please ask again."
		return err, w.replies.finish(t, record.ReasonError, t.says(text), err)
	}
	if f := budgetOf(err); f != nil {
		return nil, w.overspent(ctx, t, f)
	}

	return nil, w.replies.finish(t, record.ReasonError, t.apology(err), err)
}

// overspent ends a turn whose model call a budget refused.
func (w *worker) overspent(ctx context.Context, t *turn, f *providers.Failure) error {
	why := f.Err.Error()
	w.journal.emit(event.BudgetReached, t.id, event.Reason{Reason: why})
	token, err := w.permits.askToRaise(ctx, t, f)
	if err != nil {
		return err
	}
	remedy := "Raise it in the settings"
	if r, ok := errors.AsType[interface {
		error
		Remedy() string
	}](f.Err); ok {
		remedy = r.Remedy()
	}
	text := "I stopped: " + why + ". " + remedy + ", and say \"continue\"."
	if token != "" {
		text = "I paused: " + why + ". I asked whether to raise it (request " + token +
			"), and continue from here when it is raised."
	}

	return w.replies.finish(t, record.ReasonBudget, t.says(text), f)
}
