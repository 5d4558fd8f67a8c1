package agents

import (
	"context"
	"errors"
	"fmt"

	"daycare/agents/compact"
	"daycare/agents/providers"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/record"
)

// defaultContextLimit is agents.emergencyContextLimit where settings say nothing.
const defaultContextLimit = 200_000

// A room is how much context there is room for, and what was tried to keep it.
type room struct {
	learned  int    // tokens at which the model's service refused a request
	model    string // the model that this is of
	failedAt int    // size of the context when it could not be summarised
	rotate   bool   // a summary was recorded since history was last rotated
}

// limit is how many tokens of context there is room for: the smaller of the
// model's window and the owner's limit.
func (a *agent) limit() int {
	model := a.state.Provider.ID + "/" + a.state.Provider.Model
	limit := a.Settings.ContextLimit
	if limit <= 0 {
		limit = defaultContextLimit
	}
	if w := a.Models.Window(a.state.Provider); w > 0 {
		limit = min(limit, w)
	}
	if a.room.model != model {
		a.room = room{model: model, rotate: a.room.rotate}
	}
	if a.room.learned > 0 {
		limit = min(limit, a.room.learned)
	}
	return limit
}

// fit returns the request as it is, or, where the context has grown too long for
// it, the request of a shorter one.
func (a *agent) fit(ctx context.Context, t *turn, req *providers.Request) (*providers.Request, error) {
	limit := a.limit()
	size, l := a.builder.Tokens(), compact.For(limit)
	if size < l.Trigger || a.conversation() < limit/8 { // a system prompt cannot be shortened
		return req, nil
	}
	if size < limit*9/10 && size < a.room.failedAt+limit/20 {
		return req, nil // it was tried a moment ago
	}
	came, err := a.shorten(ctx, t, limit, "", "")
	if err != nil {
		return nil, err
	}
	if came == shortened {
		if req, err = a.build(t); err != nil {
			return nil, err
		}
	}
	if a.builder.Tokens() >= limit && a.conversation() > limit/4 {
		return nil, callError{&providers.Failure{Kind: providers.Overflow, Provider: "daycare",
			Message: fmt.Sprintf("about %d tokens of context, and room for %d", a.builder.Tokens(), limit)}}
	}
	return req, nil
}

// squeeze is fit after a service refused a request as too long: its window is
// smaller than was known. It returns nil where nothing can be made shorter.
func (a *agent) squeeze(ctx context.Context, t *turn) (*providers.Request, error) {
	const worthwhile = 1000 // tokens
	if t.squeezed || a.conversation() < worthwhile {
		return nil, nil
	}
	t.squeezed = true
	a.limit() // forgets what was learned of another model
	a.room.learned = a.builder.Tokens() * 9 / 10
	if came, err := a.shorten(ctx, t, a.room.learned, "", ""); err != nil || came != shortened {
		return nil, err
	}
	return a.build(t)
}

// conversation is what the messages take of the context, in tokens.
func (a *agent) conversation() int { return a.builder.Tokens() - a.builder.Fixed() }

// What came of an attempt to shorten the context.
type attempt int

const (
	nothingOlder attempt = iota // than the newest messages, which stay word for word
	noSummary                   // no model could be reached, and there is room left to wait for one
	shortened
)

// shorten puts a summary in the place of what is older in the context.
//
// What a person edits while the summary is written is not in it: the summary is
// thrown away, its cost is not, and the next one is made of what stands there then.
func (a *agent) shorten(ctx context.Context, t *turn, limit int, item, focus string) (attempt, error) {
	var wasted record.Summary
	for try := 0; ; try++ {
		came, edited, err := a.shortenOnce(ctx, t, limit, item, focus, &wasted, try == maxEdited)
		if !edited || err != nil {
			return came, err
		}
		a.log.Info("history was edited while it was summarised; the summary is made again")
	}
}

// maxEdited is how often a summary is made again because of an edit.
const maxEdited = 3

func (a *agent) shortenOnce(ctx context.Context, t *turn, limit int, item, focus string, wasted *record.Summary,
	last bool) (came attempt, edited bool, err error) {
	ctxt, err := a.history.Context()
	if err != nil {
		return 0, false, fmt.Errorf("read context: %w", err)
	}
	l := compact.For(limit)
	if item != "" { // asked for: as short as may be
		l.Tail, l.Round = l.Tail/8, l.Tail/8
	} else if real, counted := a.builder.Tokens(), a.builder.Counted(); counted > 0 {
		l.Tail, l.Round = l.Tail*counted/real, l.Round*counted/real // records are counted in characters
	}
	plan, ok := compact.Make(ctxt, l, a.history.Obligations().LastSeq+1)
	if !ok {
		return nothingOlder, false, nil
	}
	a.Stage.Show(event.Thinking, "shortening the conversation")
	task := compact.Task{Plan: plan, Limits: l, Model: a.state.Provider.Model, Agent: a.ID, Focus: focus, Waiting: a.foreground(),
		Running: a.Jobs.Running()}
	if t != nil {
		task.Watch = func(providers.Event) { t.clock.tick() }
	}
	before := a.builder.Tokens()
	s, err := compact.Summarize(ctx, a.model(), task)
	if ctx.Err() != nil {
		return 0, false, callError{context.Cause(ctx)}
	}
	if t != nil && budgetOf(err) != nil { // to go on without a summary would cost as much, and the summary
		return 0, false, callError{err}
	}
	if err != nil {
		a.log.Warn("conversation not summarised", "err", err)
		a.room.failedAt = before
		if !errors.Is(err, compact.ErrUseless) && (item != "" || before < limit*9/10) {
			return noSummary, false, nil // the old context stays; a later call tries again
		}
		s.Text = compact.Digest(task)
	}
	s.Tokens.Input, s.Tokens.Output = s.Tokens.Input+wasted.Tokens.Input, s.Tokens.Output+wasted.Tokens.Output
	s.Tokens.CacheRead, s.Tokens.CacheWrite = s.Tokens.CacheRead+wasted.Tokens.CacheRead, s.Tokens.CacheWrite+wasted.Tokens.CacheWrite
	turn := ""
	if t != nil {
		turn = t.id
	}
	if err := a.refresh(turn); err != nil {
		return 0, false, err
	}
	if ctxt, err = a.history.Context(); err != nil {
		return 0, false, fmt.Errorf("read context: %w", err)
	}
	if !plan.Holds(ctxt) && !last {
		*wasted = s
		return 0, true, nil
	}
	if err := a.summarized(plan, s, item); err != nil {
		return 0, false, err
	}
	a.emit(event.AgentCompacted, turn, event.Compacted{Before: before, Gone: len(plan.Gone), Kept: len(plan.Kept),
		RequestCut: task.RequestCut()})
	return shortened, false, nil
}

// summarized records a summary: from here on the model sees it instead of what it
// stands for.
func (a *agent) summarized(plan compact.Plan, s record.Summary, item string) error {
	s.From, s.KeptFrom, s.SHA256, s.Item = plan.From, plan.KeptFrom, plan.SHA256(), item
	s.Cost = a.Costs.Price(s.Provider, s.Model, providers.Usage{Input: s.Tokens.Input, Output: s.Tokens.Output,
		CacheRead: s.Tokens.CacheRead, CacheWrite: s.Tokens.CacheWrite})
	if _, err := a.append(&s); err != nil {
		return err
	}
	if err := a.barrier(); err != nil {
		return err
	}
	a.room.rotate, a.room.failedAt = true, 0
	return nil
}

// rotate moves what a summary made superfluous to an old file, between turns.
func (a *agent) rotate() error {
	if !a.room.rotate {
		return nil
	}
	a.room.rotate = false
	_, err := a.history.Rotate()
	return err
}

// compact shortens the context because somebody asked for it. Its record closes
// the item, whatever came of it.
func (a *agent) compact(ctx context.Context, it inbox.Item) error {
	inner, end := a.Stage.Turn(ctx)
	defer end()
	came, err := a.shorten(inner, nil, a.limit(), it.ID, it.Text)
	if ctx.Err() != nil {
		return nil // taken up at the next start
	}
	var canceled callError
	if err != nil && !errors.As(err, &canceled) {
		return err
	}
	if err != nil || came != shortened {
		why := "there is nothing older than the newest messages"
		switch {
		case err != nil:
			why = "it was stopped"
		case came == noSummary:
			why = "no model could be reached to summarise it"
		}
		err = a.close(it, &record.Note{Text: "nothing was shortened: " + why, Item: it.ID, Refused: true})
		a.emit(event.AgentCompacted, "", event.Compacted{Before: a.builder.Tokens(), Failed: why})
	} else {
		err = a.done(it.ID)
	}
	if err != nil {
		return err
	}
	return a.rotate()
}
