package agents

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nrednav/cuid2"

	"daycare/agents/prompt"
	"daycare/agents/providers"
	"daycare/engine/crash"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// maxAttempts is how often a turn that made no progress may die before it is given
// up as poisonous: its third death ends it.
const maxAttempts = 3

// Causes of a turn's end that do not come from outside.
var (
	errInterrupt = errors.New("a new message came")
	errStuck     = errors.New("no progress")
)

// A turn is the work on one or more items, from taking them to their closing
// record. Everything in it can be computed from history again.
type turn struct {
	id       string
	attempt  int
	items    []string // whose user_message lies in the turn
	hops     int
	route    *message.Address // of its last message; nil: that one came from the agent's own address
	spoken   bool             // a person's message is in it
	replyTo  string
	rounds   int // of tool calls
	loop     loopGuard
	waiting  bool // a tool call asked for a permission
	reads    bool // the profile is read-only: nobody is asked
	share    int  // characters that one result of the round may have
	squeezed bool // a request was refused as too long, and shortened
	clock    *progress
}

// begin opens a turn over items; none: the turn that a decision asks for.
func (a *agent) begin(ctx context.Context, items []inbox.Item) error {
	if err := a.history.Begin(cuid2.Generate()); err != nil {
		return fmt.Errorf("begin history: %w", err)
	}
	if err := a.lookAtFiles(); err != nil {
		return fmt.Errorf("look at files: %w", err)
	}
	a.Tools = a.Identity.Tools()
	t := &turn{id: cuid2.Generate(), attempt: 1}
	recs := append([]record.Record{a.opening(t, items)}, a.users(t.id, items)...)
	entries, err := a.append(recs...)
	if err != nil {
		return err
	}
	a.join(t, entries)
	crash.Point("turn.taken")
	return a.run(ctx, t, nil)
}

func (a *agent) opening(t *turn, items []inbox.Item) *record.TurnBegin {
	taken := make([]string, len(items))
	for i, it := range items {
		taken[i] = it.ID
	}
	return &record.TurnBegin{Turn: t.id, Items: taken, Attempt: t.attempt, Model: a.state.Provider.Model}
}

// join makes user messages part of the turn: it closes their items, and answers
// where the last of them asks. One that is answered nowhere, because its sender
// reads along in a terminal, leaves the answer to whoever waits for it elsewhere.
func (a *agent) join(t *turn, entries []*record.Entry) {
	for _, e := range entries {
		u, ok := e.Rec.(*record.User)
		if !ok {
			continue
		}
		t.items = append(t.items, u.Item)
		t.hops = max(t.hops, u.Hops)
		switch {
		case u.Origin == "":
			readsAlong := u.Route == nil && !a.Outbox.Answers(a.address())
			if readsAlong && t.spoken && t.route != nil {
				continue
			}
			t.spoken, t.route, t.replyTo = true, u.Route, ""
			if u.Context != nil {
				t.replyTo = u.Context.MessageID
			}
		case !t.spoken && u.Route != nil && a.foreground():
			t.route = u.Route // a report: the answer goes where the work was asked for
		}
	}
}

// run is the turn: five steps, until the model calls no more tools. calls are what
// a turn that is taken up again still has to execute.
func (a *agent) run(ctx context.Context, t *turn, calls []record.ToolCall) error {
	inner, end := a.Stage.Turn(ctx)
	defer end()
	inner, t.clock = watchProgress(inner, a.Settings.Stuck)
	defer t.clock.stop()
	a.emit(event.TurnStarted, t.id, event.Started{Items: t.items, Attempt: t.attempt, Model: a.state.Provider.Model})

	for {
		if len(calls) == 0 {
			answer, err := a.ask(inner, t)
			if err != nil {
				return a.broken(ctx, inner, t, answer, err)
			}
			if len(answer.Calls) == 0 {
				return a.reply(t, answer)
			}
			if calls, err = a.record(t, answer); err != nil {
				return err
			}
		}
		reason, err := a.execute(ctx, inner, t, calls)
		if err != nil || reason == suspended {
			return err
		}
		if t.rounds++; reason == "" && t.rounds >= a.Settings.Rounds {
			reason = record.ReasonLimit
		}
		if reason != "" {
			return a.finish(t, reason, a.notice(t, reason))
		}
		calls = nil
	}
}

// ask is one model call, with what arrived meanwhile and what was edited meanwhile
// in it. An error of the call itself is a callError; any other ends the agent's run.
func (a *agent) ask(ctx context.Context, t *turn) (*providers.Response, error) {
	if err := a.fold(t); err != nil {
		return nil, err
	}
	req, err := a.build(t)
	if errors.Is(err, prompt.ErrNothingNew) {
		return nil, callError{err}
	}
	if err != nil {
		return nil, err
	}
	if req, err = a.fit(ctx, t, req); err != nil {
		return nil, err
	}
	answer, err := a.call(ctx, t, req)
	if overflowed(err) {
		if req, failed := a.squeeze(ctx, t); failed != nil {
			return nil, failed
		} else if req != nil {
			answer, err = a.call(ctx, t, req)
		}
	}
	if err != nil {
		return answer, err
	}
	crash.Point("turn.called")
	return answer, nil
}

// A callError is what a model call failed with.
type callError struct{ error }

func (e callError) Unwrap() error { return e.error }

// fold lets what arrived meanwhile join the turn. This is the only place, directly
// before a model call; resets, decisions and compactions wait for the turn's end.
func (a *agent) fold(t *turn) error {
	heads := a.Inbox.Open()
	joining := heads[:0:0]
	for _, h := range heads {
		if h.Taken || control(h.Kind) || (a.queue(h) != Steer && !h.Silent) {
			continue
		}
		joining = append(joining, h)
	}
	if len(joining) == 0 {
		return nil
	}
	items, err := a.claim(ids(joining)...)
	if err != nil || len(items) == 0 {
		return err
	}
	entries, err := a.append(a.users(t.id, items)...)
	a.join(t, entries)
	return err
}

// broken ends or suspends a turn whose model call gave no answer.
func (a *agent) broken(ctx, inner context.Context, t *turn, partial *providers.Response, err error) error {
	if !errors.As(err, new(callError)) {
		return err
	}
	switch cause := context.Cause(inner); {
	case ctx.Err() != nil:
		return a.suspend(t)
	case inner.Err() != nil && errors.Is(cause, errStuck):
		return a.finish(t, record.ReasonError, a.apology(t, fmt.Errorf("no progress for %s", a.Settings.Stuck)))
	case inner.Err() != nil, errors.Is(err, errInterrupt):
		return a.finish(t, record.ReasonCanceled, a.assistant(t, partial, record.FinishCanceled))
	}
	if errors.Is(err, prompt.ErrNothingNew) { // a person took the messages of this turn out of history
		return a.finish(t, record.ReasonDone, nil)
	}
	if overflowed(err) {
		return a.overflow(t, err)
	}
	if f := budgetOf(err); f != nil {
		return a.overspent(t, f)
	}
	a.log.Warn("turn failed", "turn", t.id, "err", err)
	return a.finish(t, record.ReasonError, a.apology(t, err), err)
}

// suspended is what execute returns when an orderly stop cut the turn.
const suspended = "suspended"

// suspend leaves the turn open for the next start, which is not another attempt.
func (a *agent) suspend(t *turn) error {
	if _, err := a.append(&record.Note{Text: "daycare stopped in the middle of this turn; it goes on at the next start",
		Suspended: t.id}); err != nil {
		return err
	}
	return a.barrier()
}

// overflow ends a conversation that no longer fits the model's window: the turn
// says so, and the context begins anew.
func (a *agent) overflow(t *turn, why error) error {
	text := "This conversation has grown too long for the model, so I started a new one. Everything said is still in my " +
		"history file. Please ask again."
	if err := a.finish(t, record.ReasonError, &record.Assistant{Turn: t.id, Text: text, Finish: record.FinishError}, why); err != nil {
		return err
	}
	return a.reset("", "emergency", why.Error())
}

// overflowed reports that a request was refused because it is too long.
func overflowed(err error) bool {
	var f *providers.Failure
	return errors.As(err, &f) && f.Kind == providers.Overflow
}

// apology is the one short message that a person gets instead of an answer.
func (a *agent) apology(t *turn, err error) *record.Assistant {
	return &record.Assistant{Turn: t.id, Text: short(err), Finish: record.FinishError}
}

// short says in one or two sentences what went wrong and what to do.
func short(err error) string {
	var f *providers.Failure
	if !errors.As(err, &f) {
		return "I could not answer: " + firstLine(err.Error()) + ". Please try again."
	}
	what := firstLine(f.Error())
	switch f.Kind {
	case providers.NoKey:
		return "There is no key for the model service (" + what + ")."
	case providers.Down:
		return "The model service of this machine does not answer (" + what +
			"). Is the server running? Test it with: daycare providers test"
	case providers.Auth:
		return "The model service did not accept the key (" + what + "). Check the key, then ask again."
	case providers.Busy, providers.Broken:
		return "The model service could not be reached or is too busy (" + what + "). Please ask again in a while."
	default:
		return "The model service refused the request (" + what + ")."
	}
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	const most = 300
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
