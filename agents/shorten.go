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

// Results of an attempt to compact the context.
type attempt int

const (
	nothingOlder attempt = iota // than the newest messages, which stay word for word
	noSummary                   // no model could be reached, and there is room left to wait for one
	shortened
)

// maxEdited is how often a summary is made again because of an edit.
const maxEdited = 3

// compact shortens the context because somebody asked for it. Its record closes
// the item, whatever the result.
func (a *agent) compact(ctx context.Context, it inbox.Item) error {
	inner, end := a.stage.Turn(ctx)
	defer end()
	now := &a.files.self
	came, err := a.shortener.shorten(inner,
		shortening{self: now, limit: a.shortener.limit(now), item: it.ID, focus: it.Text})
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
		err = a.intake.close(it, &record.Note{Text: "not compacted: " + why, Item: it.ID, Refused: true})
		a.journal.emit(event.AgentCompacted, "", event.Compacted{Before: a.requests.builder.Tokens(), Failed: why})
	} else {
		err = a.intake.done(it.ID)
	}
	if err != nil {
		return err
	}

	return a.shortener.rotate()
}

// A shortener keeps the context shorter than what the model takes.
type shortener struct {
	journal  *journal
	requests *requests
	caller   *caller
	models   Models
	costs    Costs
	jobs     Jobs
	room     room
}

// A shortening is one attempt to shorten the context.
type shortening struct {
	self  *self
	turn  *turn  // nil: between turns
	limit int    // tokens of context that there is room for
	item  string // that asked for it; "": the limit does
	focus string // what the summary should keep
}

// turnID is the id of the turn, "" between turns.
func (g shortening) turnID() string {
	if g.turn == nil {
		return ""
	}
	return g.turn.id
}

// limit is how many tokens of context there is room for: the smaller of the
// model's window and the owner's limit.
func (sh *shortener) limit(s *self) int {
	choice := s.model()
	model := choice.ID + "/" + choice.Model
	limit := s.settings.ContextLimit
	if limit <= 0 {
		limit = defaultContextLimit
	}
	if w := sh.models.Window(choice); w > 0 {
		limit = min(limit, w)
	}
	if sh.room.model != model {
		sh.room = room{model: model, rotate: sh.room.rotate}
	}
	if sh.room.learned > 0 {
		limit = min(limit, sh.room.learned)
	}

	return limit
}

// fit returns the request as it is, or, where the context has grown too long for
// it, the request of a shorter one.
func (sh *shortener) fit(ctx context.Context, t *turn, req *providers.Request) (*providers.Request, error) {
	limit := sh.limit(&t.self)
	size, l := sh.requests.builder.Tokens(), compact.For(limit)
	if size < l.Trigger || sh.conversation() < limit/8 { // a system prompt cannot be shortened
		return req, nil
	}
	if size < limit*9/10 && size < sh.room.failedAt+limit/20 {
		return req, nil // it was tried a moment ago
	}

	came, err := sh.shorten(ctx, shortening{self: &t.self, turn: t, limit: limit})
	if err != nil {
		return nil, err
	}
	if came == shortened {
		if req, err = sh.requests.build(t); err != nil {
			return nil, err
		}
	}
	if sh.requests.builder.Tokens() >= limit && sh.conversation() > limit/4 {
		return nil, callError{&providers.Failure{Kind: providers.Overflow, Provider: "daycare",
			Message: fmt.Sprintf("about %d tokens of context, and room for %d", sh.requests.builder.Tokens(), limit)}}
	}

	return req, nil
}

// squeeze is fit after a service refused a request as too long: its window is
// smaller than was known. It returns nil where nothing can be made shorter.
func (sh *shortener) squeeze(ctx context.Context, t *turn) (*providers.Request, error) {
	const worthwhile = 1000 // tokens
	if t.squeezed || sh.conversation() < worthwhile {
		return nil, nil
	}
	t.squeezed = true
	sh.room.learned = sh.requests.builder.Tokens() * 9 / 10
	if came, err := sh.shorten(ctx, shortening{self: &t.self, turn: t, limit: sh.room.learned}); err != nil || came != shortened {
		return nil, err
	}

	return sh.requests.build(t)
}

// conversation is what the messages take of the context, in tokens.
func (sh *shortener) conversation() int {
	return sh.requests.builder.Tokens() - sh.requests.builder.Fixed()
}

// shorten puts a summary in the place of what is older in the context.
//
// What a user edits while the summary is written is not in it: the summary is
// thrown away, its cost is not, and the next one is made of what stands there then.
func (sh *shortener) shorten(ctx context.Context, g shortening) (attempt, error) {
	var wasted record.Summary
	for try := 0; ; try++ {
		came, edited, err := sh.shortenOnce(ctx, g, &wasted, try == maxEdited)
		if !edited || err != nil {
			return came, err
		}
		sh.journal.log.Info("history was edited while it was summarised; summarising again")
	}
}

// shortenOnce is one try. edited: a user changed history meanwhile, and wasted has the cost
// of the summary that is thrown away.
func (sh *shortener) shortenOnce(ctx context.Context, g shortening, wasted *record.Summary,
	last bool) (came attempt, edited bool, err error) {
	ctxt, err := sh.journal.history.Context()
	if err != nil {
		return 0, false, fmt.Errorf("read context: %w", err)
	}
	l := compact.For(g.limit)
	if g.item != "" { // asked for: as short as may be
		l.Tail, l.Round = l.Tail/8, l.Tail/8
	} else if real, counted := sh.requests.builder.Tokens(), sh.requests.builder.Counted(); counted > 0 {
		l.Tail, l.Round = l.Tail*counted/real, l.Round*counted/real // records are counted in characters
	}
	plan, ok := compact.Make(ctxt, l, sh.journal.history.LastSeq()+1)
	if !ok {
		return nothingOlder, false, nil
	}
	sh.journal.show(event.Thinking, "compacting the conversation")
	summarist := g.self.summarist()
	task := compact.Task{Plan: plan, Limits: sh.readable(l, g.limit, summarist), Model: summarist.Model,
		Agent: sh.journal.id, Focus: g.focus, Waiting: g.self.foreground(), Running: sh.jobs.Running()}
	if g.turn != nil {
		task.Watch = func(providers.Event) { g.turn.clock.tick() }
	}
	before := sh.requests.builder.Tokens()
	s, err := compact.Summarize(ctx, sh.caller.model(summarist), task)
	if ctx.Err() != nil {
		return 0, false, callError{context.Cause(ctx)}
	}
	if g.turn != nil && budgetOf(err) != nil { // to continue without a summary would cost as much, and the summary
		return 0, false, callError{err}
	}
	if err != nil {
		sh.journal.log.Warn("conversation not summarised", "err", err)
		sh.room.failedAt = before
		if !errors.Is(err, compact.ErrUseless) && (g.item != "" || before < g.limit*9/10) {
			return noSummary, false, nil // the old context stays; a later call tries again
		}
		s.Text = compact.Digest(task)
	}
	s.Tokens.Input += wasted.Tokens.Input
	s.Tokens.Output += wasted.Tokens.Output
	s.Tokens.CacheRead += wasted.Tokens.CacheRead
	s.Tokens.CacheWrite += wasted.Tokens.CacheWrite
	if err := sh.journal.refresh(g.turnID()); err != nil {
		return 0, false, err
	}
	if ctxt, err = sh.journal.history.Context(); err != nil {
		return 0, false, fmt.Errorf("read context: %w", err)
	}
	if !plan.Holds(ctxt) && !last {
		*wasted = s
		return 0, true, nil
	}
	if err := sh.summarized(plan, s, g.item); err != nil {
		return 0, false, err
	}
	sh.journal.emit(event.AgentCompacted, g.turnID(), event.Compacted{Before: before, Gone: len(plan.Gone), Kept: len(plan.Kept),
		RequestCut: task.RequestCut()})
	return shortened, false, nil
}

// readable are the limits of a summary whose model may have less room than the agent's.
func (sh *shortener) readable(l compact.Limits, limit int, summarist record.Model) compact.Limits {
	if w := sh.models.Window(summarist); w > 0 && w < limit {
		less := compact.For(w)
		l.Part, l.Summary = min(l.Part, less.Part), min(l.Summary, less.Summary)
	}

	return l
}

// summarized records a summary: from here on the model sees it instead of what it
// stands for.
func (sh *shortener) summarized(plan compact.Plan, s record.Summary, item string) error {
	s.From, s.KeptFrom, s.SHA256, s.Item = plan.From, plan.KeptFrom, plan.SHA256(), item
	s.Cost = sh.costs.Price(s.Provider, s.Model, providers.Usage{Input: s.Tokens.Input, Output: s.Tokens.Output,
		CacheRead: s.Tokens.CacheRead, CacheWrite: s.Tokens.CacheWrite})
	if _, err := sh.journal.append(&s); err != nil {
		return err
	}
	if err := sh.journal.barrier(); err != nil {
		return err
	}

	sh.room.rotate, sh.room.failedAt = true, 0

	return nil
}

// rotate moves what a summary made superfluous to an old file, between turns.
func (sh *shortener) rotate() error {
	if !sh.room.rotate {
		return nil
	}
	sh.room.rotate = false
	_, err := sh.journal.history.Rotate()

	return err
}
