package main

import (
	"path/filepath"

	"daycare/agents"
	"daycare/agents/budget"
	"daycare/agents/providers"
	"daycare/engine/config"
	"daycare/engine/crash"
	"daycare/engine/record"
)

// newLedger opens the ledger of what agents spend. It is asked before every request,
// so settings and state.json are looked at as they are then.
func (r *runtimeParts) newLedger() *budget.Ledger {
	return budget.Open(budget.Options{Dir: filepath.Join(r.root, "usage"), Volume: r.vol, Log: r.log, Now: crash.Now,
		Limits: func() budget.Limits {
			b := r.settings.Current().Budget
			return budget.Limits{PerDay: amount(b.PerDay), PerAgent: amount(b.PerAgent), Total: amount(b.Total)}
		},
		Own: func(agent string) (budget.Amount, error) {
			state, _, err := record.CurrentState(r.vol, filepath.Join(r.root, "agents", agent))
			if err != nil || state.Budget == nil {
				return budget.Amount{}, err
			}
			return budget.Amount{USD: state.Budget.USD, Tokens: state.Budget.Tokens}, nil
		},
		Line: r.family.Line,
		Price: func(provider, model string, u providers.Usage) float64 {
			return r.models.Load().price(provider, model, u)
		},
	})
}

func amount(l config.Limit) budget.Amount { return budget.Amount{USD: l.USD, Tokens: l.Tokens} }

// bounded puts the budget between an agent and the models that it calls.
func (r *runtimeParts) bounded(m agents.Model) agents.Model {
	c, ok := m.(*providers.Caller)
	if !ok {
		return m // there is no model, which costs nothing
	}
	chain := make([]providers.Provider, len(c.Chain))
	for i, p := range c.Chain {
		chain[i] = budget.Wrap(p, r.ledger)
	}
	return &providers.Caller{Chain: chain}
}
