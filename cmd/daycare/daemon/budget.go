package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"daycare/agents"
	"daycare/agents/budget"
	"daycare/agents/providers"
	"daycare/engine/config"
	"daycare/engine/crash"
	"daycare/engine/finding"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// budgets stop agents that reach a limit of what they may spend, and let them continue.
type budgets struct{ *Daemon }

// newLedger opens the ledger of what agents spend. It is asked before every request,
// so settings and state.json are looked at as they are then.
func (r budgets) newLedger() *budget.Ledger {
	return budget.Open(budget.Options{Dir: filepath.Join(r.at.Data, "usage"), Volume: r.vol, Log: r.log, Now: crash.Now,
		Limits: func() budget.Limits {
			b := r.settings.Current().Budget
			return budget.Limits{PerDay: amount(b.PerDay), PerAgent: amount(b.PerAgent), Total: amount(b.Total)}
		},
		Own: func(agent string) (budget.Amount, error) {
			state, err := r.gists.Of(r.vol, filepath.Join(r.at.Data, "agents", agent))
			return budget.Amount{USD: state.Budget.USD, Tokens: state.Budget.Tokens}, err
		},
		Line: r.family.Line,
		Price: func(provider, model string, u providers.Usage) float64 {
			return r.models.Load().Price(provider, model, u)
		},
	})
}

func amount(l config.Limit) budget.Amount { return budget.Amount{USD: l.USD, Tokens: l.Tokens} }

// bounded puts the budget between an agent and the models that it calls.
func (r budgets) bounded(m agents.Model) agents.Model {
	c, ok := m.(*providers.Caller)
	if !ok {
		return m // there is no model, which costs nothing
	}
	chain := make([]providers.Provider, len(c.Chain))
	for i, p := range c.Chain {
		chain[i] = budget.Wrap(p, r.ledger)
	}

	return &providers.Caller{Chain: chain, Sleep: c.Sleep}
}

// raise raises a limit that an agent has reached, once or permanently: where the limit is
// written. Doing it again is harmless.
func (r budgets) raise(ctx context.Context, agent string, b permission.Budget, d permission.Decision,
	token, by string) error {
	defer r.roomAgain()
	if d == permission.Once {
		return r.ledger.Raise(agent, b, token, by)
	}
	if !b.Setting() {
		return record.UpdateState(r.vol, filepath.Join(r.at.Data, "agents", b.Scope), func(s *record.State) {
			if s.Budget != nil { // else there is no limit any more
				s.Budget.USD, s.Budget.Tokens = raised(b, s.Budget.USD, s.Budget.Tokens)
			}
		})
	}
	if r.applies(b) {
		return nil
	}

	value := strconv.FormatFloat(b.Raised(), 'f', -1, 64)
	if err := config.SetPlain(r.vol, r.at.Data, value, "budget", b.Scope, b.Unit); err != nil {
		return err
	}
	if found := (reloader{r.Daemon}).reload(ctx); !r.applies(b) {
		return errors.Join(fmt.Errorf("%s is now %s, but the environment has another value", b.Key(), value), finding.Join(found))
	}

	return nil
}

// applies reports whether a limit of the settings is no lower than it was raised to.
func (r *conf) applies(b permission.Budget) bool {
	of := r.settings.Current().Budget
	limits := map[string]config.Limit{permission.BudgetTotal: of.Total, permission.BudgetPerDay: of.PerDay,
		permission.BudgetPerAgent: of.PerAgent}
	l := limits[b.Scope]
	usd, tokens := raised(b, l.USD, l.Tokens)

	return usd == l.USD && tokens == l.Tokens
}

// raised are both numbers of a limit after one of them was raised permanently. One that is
// higher, or no limit any more, stays as it is.
func raised(b permission.Budget, usd float64, tokens int64) (float64, int64) {
	switch {
	case b.Unit == permission.USD && usd > 0:
		usd = max(usd, b.Raised())
	case b.Unit == permission.Tokens && tokens > 0:
		tokens = max(tokens, int64(b.Raised()))
	}

	return usd, tokens
}

// roomAgain has watchBudgets look whether agents that are paused may continue.
func (r budgets) roomAgain() {
	select {
	case r.freed <- struct{}{}:
	default:
	}
}

// budgetPause is how long a day that is over goes unnoticed at most, on a machine that
// slept meanwhile.
const budgetPause = time.Hour

// watchBudgets lets agents continue whose limit has room again: it was raised for another
// agent or by hand, or its day is over. Their question is no more.
func (r budgets) watchBudgets(ctx context.Context) error {
	for {
		for _, p := range r.asks.List() {
			b, ok := permission.BudgetOf(p.Request.Tag)
			if !ok || !r.ledger.Freed(p.Agent, b) {
				continue
			}
			if _, err := r.system.Decide(ctx, p.Token, permission.Freed, "daycare"); err != nil && ctx.Err() == nil {
				r.log.Warn("an agent stays paused although its budget allows more", "agent", p.Agent, "token", p.Token, "err", err)
			}
		}

		now := crash.Now()
		year, month, day := now.Date()
		midnight := time.Date(year, month, day+1, 0, 0, 0, 0, now.Location())
		select {
		case <-r.freed:
		case <-crash.Wait("budgets", midnight.Sub(now), budgetPause):
		case <-ctx.Done():
			return nil
		}
	}
}
