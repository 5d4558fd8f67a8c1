package agents

import (
	"context"
	"errors"
	"fmt"

	"daycare/agents/providers"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// At the limit of a budget a turn ends, and a person is asked whether to raise it. The
// agent is paused until they answer: what it is sent meanwhile is recorded and answered
// with the same words. A turn follows the answer, with all of it in the context. If the
// limit was not raised, that turn comes to the limit again, and ends without a question.

// budgetOf is the failure of a request that a budget refused, nil for any other error.
func budgetOf(err error) *providers.Failure {
	var f *providers.Failure
	if errors.As(err, &f) && f.Kind == providers.Budget {
		return f
	}
	return nil
}

// overspent ends a turn whose model call a budget refused.
func (a *agent) overspent(t *turn, f *providers.Failure) error {
	why := f.Err.Error()
	a.emit(event.BudgetReached, t.id, event.Reason{Reason: why})
	token, err := a.askToRaise(t, f)
	if err != nil {
		return err
	}
	text := "I stopped: " + why + ". Raise it in the settings, or wait until the next day, and say \"continue\"."
	if token != "" {
		text = "I paused: " + why + ". I asked whether to raise it (request " + token +
			"), and go on where I am when it is raised."
	}
	return a.finish(t, record.ReasonBudget, &record.Assistant{Turn: t.id, Text: text, Finish: record.FinishError}, f)
}

// askToRaise asks a person to raise the limit that was reached. The token is empty where
// nobody is asked: the settings say so, or a person has answered and not spoken since.
func (a *agent) askToRaise(t *turn, f *providers.Failure) (token string, err error) {
	var reached interface {
		error
		Request() permission.Request
	}
	if !errors.As(f.Err, &reached) || a.Settings.StopAtLimit || a.Permits == nil {
		return "", nil
	}
	need := reached.Request()
	sha := need.SHA256(a.ID)
	if a.answered(sha, permission.Deny, permission.Expired) != nil {
		return "", nil
	}
	return a.askOnce(t, need, sha)
}

// raise raises a limit as a person said, durably. Doing it again is harmless.
func (a *agent) raise(ctx context.Context, it inbox.Item) error {
	b, ok := permission.BudgetOf(it.Tag)
	if !ok {
		return nil
	}
	switch d := permission.Decision(it.Decision); d {
	case permission.Once, permission.Always:
		if err := a.Costs.Raise(ctx, b, d, it.Token, it.By); err != nil {
			return fmt.Errorf("raise %s: %w", b.Key(), err)
		}
	}
	return nil
}
