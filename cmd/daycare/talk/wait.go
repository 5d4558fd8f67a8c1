package talk

import (
	"context"
	"errors"
	"slices"
	"time"

	"daycare/cmd/daycare/term"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/message"
	"daycare/engine/record"
)

// settle decides, with no own message in progress, whether more is to come: the
// answer of a user to what the agent asks, and the turns that follow from it.
func (t *talk) settle(ctx context.Context) (over bool, err error) {
	asks, err := familyAsks(ctx, t.client, t.agent)
	if err != nil {
		return true, err
	}
	if err := t.answerAsks(ctx, t.asks.fresh(asks, asksOn(t.flight.last.Reason))); err != nil || t.asks.open() {
		return err != nil, err
	}
	if t.flight.following {
		t.watch(ctx)
		if more, err := t.busy(ctx); more || err != nil {
			t.flight.calm = time.Time{}
			return err != nil, err
		}
		return t.settled(ctx)
	}
	if !t.once {
		t.watch(ctx)
		t.nextLine()
		return false, nil
	}

	return true, t.leaving()
}

// busy reports whether the agent is at work or will be; with --wait, its
// background agents too.
func (p *peer) busy(ctx context.Context) (bool, error) {
	if !p.wait {
		a, err := p.client.Agent(ctx, p.agent)
		if errors.Is(err, message.ErrUnknownAgent) {
			return false, nil // it was removed meanwhile
		}
		return err == nil && busy(a, false), err
	}

	agents, err := p.client.Family(ctx, p.agent)
	if errors.Is(err, message.ErrUnknownAgent) {
		return false, nil
	}

	return slices.ContainsFunc(agents, func(a event.Agent) bool { return inFamily(agents, a.ID, p.agent) && busy(a, true) }), err
}

// calmLimit is how long to wait for an idle agent to start the turn that a
// decision has to lead to.
const calmLimit = 10 * time.Second

// settled: the agent is not at work. The turns that were due are over when history
// has a turn after each decision; the newest is shown from there, because its
// events may have been lost.
func (t *talk) settled(ctx context.Context) (over bool, err error) {
	p, err := readPast(ctx, t.client, t.agent)
	if err != nil {
		return true, err
	}
	if t.flight.calm.IsZero() {
		t.flight.calm = time.Now()
	}
	if !t.asks.heardOf(p.followed) && time.Since(t.flight.calm) < calmLimit {
		return false, nil
	}

	t.flight.following = false
	if p.last.Turn != "" && p.last.Turn != t.flight.last.Turn {
		if err := t.conclude(p.last); err != nil {
			return true, err
		}
	}

	return t.settle(ctx)
}

// leaving is the exit of a talk of one message.
func (t *talk) leaving() error {
	if t.flight.stopping {
		return term.ErrInterrupted
	}
	if t.asks.left != nil {
		return needsApproval(*t.asks.left)
	}
	if err := ending(t.flight.last); err != nil {
		return err
	}
	if t.asks.denied {
		return &term.Problem{Code: fault.ExitDenied, Err: term.ErrSilent}
	}
	if t.flight.last.Reason == record.ReasonWaiting {
		t.c.Note("the agent waits for its background agents; to wait for them here, use --wait")
	}

	return nil
}
