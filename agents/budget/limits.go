package budget

import (
	"fmt"
	"math"
	"strings"

	"daycare/engine/permission"
)

// A limit is one of those that a request of an agent must stay within.
type limit struct {
	scope  string // of permission.Budget
	agent  string // whose spending it bounds, with that of all below it; "": everybody's
	amount Amount // as in the settings or state.json; 0: no limit
}

// limits are all that bound the requests of an agent, and its family: itself first, the
// oldest ancestor last.
func (l *Ledger) limits(agent string) (family []string, list []limit, err error) {
	family = append([]string{agent}, l.o.Line(agent)...)
	of := l.o.Limits()
	list = []limit{{permission.BudgetTotal, "", of.Total}, {permission.BudgetPerDay, "", of.PerDay},
		{permission.BudgetPerAgent, family[len(family)-1], of.PerAgent}}
	for _, id := range family {
		own, err := l.o.Own(id)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot read the budget of agent %s: %w", id, err)
		}
		list = append(list, limit{id, id, own})
	}

	return family, list, nil
}

// A Level is a limit with what counts against it.
type Level struct {
	Scope string // of permission.Budget: total, perDay, perAgent or the id of an agent
	Agent string // whose spending it bounds, with that of all below it; "": everybody's
	Limit Amount // with what it was raised by
	Spent Amount // with what requests that run may cost
}

// Levels are all limits that bound one of these agents, those for everybody first. An agent whose
// own limit cannot be read has none here; it spends nothing until it can.
func (l *Ledger) Levels(agents []string) (levels []Level) {
	of := l.o.Limits()
	list := []limit{{permission.BudgetTotal, "", of.Total}, {permission.BudgetPerDay, "", of.PerDay}}
	for _, id := range agents {
		_, more, err := l.limits(id)
		if err == nil {
			list = append(list, more...)
		}
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn()
	seen := map[[2]string]bool{}
	for _, m := range list {
		if key := [2]string{m.scope, m.agent}; m.amount != (Amount{}) && !seen[key] {
			seen[key] = true
			levels = append(levels, Level{m.scope, m.agent, l.raised(m), l.spentOf(m)})
		}
	}

	return levels
}

// spentOf is what counts against a limit, on all machines. l.mu is held.
func (l *Ledger) spentOf(m limit) Amount {
	switch m.scope {
	case permission.BudgetTotal:
		return l.spent.Total.plus(l.elsewhere(func(s *sums) Amount { return s.Total }))
	case permission.BudgetPerDay:
		return l.today().plus(l.elsewhere(func(s *sums) Amount { return s.Days[l.calendar.Day] }))
	}

	return l.spent.Agents[m.agent].plus(l.elsewhere(func(s *sums) Amount { return s.Agents[m.agent] }))
}

// A Reached says which limit prevents a request.
type Reached struct {
	Setting string // budget.perDay, …
	Spent   Amount
	Limit   Amount // with what it was raised by
	Next    Amount // about what the refused request would have cost
	Budget  permission.Budget
}

// reached says that a request for more would exceed a limit. l.mu is held.
func (l *Ledger) reached(m limit, spent, more Amount) *Reached {
	r := &Reached{Setting: "budget." + m.scope, Spent: spent, Limit: l.raised(m), Next: more}
	r.Budget.Scope = m.scope
	switch m.scope {
	case permission.BudgetTotal, permission.BudgetPerAgent:
	case permission.BudgetPerDay:
		r.Budget.Day = l.calendar.Day
	default:
		r.Setting = "of agent " + m.agent
	}

	b, unit := &r.Budget, permission.Tokens
	if spent.plus(more).over(Amount{USD: r.Limit.USD}) {
		unit = permission.USD
	}
	b.Unit, b.Limit = unit, r.Limit.in(unit)
	missing := spent.plus(more).in(unit) - b.Limit
	b.More = m.amount.in(unit) * max(1, math.Ceil(missing/m.amount.in(unit)))

	return r
}

// in is the amount in a unit of permission.Budget.
func (a Amount) in(unit string) float64 {
	if unit == permission.USD {
		return a.USD
	}
	return float64(a.Tokens)
}

// Remedy says in half a sentence how the agent gets on.
func (r *Reached) Remedy() string {
	switch r.Budget.Scope {
	case permission.BudgetPerDay:
		return "Raise it in the settings, or wait until the next day"
	case permission.BudgetTotal, permission.BudgetPerAgent:
		return "Raise it in the settings"
	}

	return "Raise the budget in state.json"
}

func (r *Reached) Error() string {
	var of, next []string
	if r.Limit.USD > 0 {
		of = append(of, fmt.Sprintf("$%.4f of $%.4f", r.Spent.USD, r.Limit.USD))
		next = append(next, fmt.Sprintf("$%.4f", r.Next.USD))
	}
	if r.Limit.Tokens > 0 {
		of = append(of, fmt.Sprintf("%d of %d tokens", r.Spent.Tokens, r.Limit.Tokens))
		next = append(next, fmt.Sprintf("%d tokens", r.Next.Tokens))
	}

	text := fmt.Sprintf("the budget %s is used up: %s", r.Setting, strings.Join(of, ", "))
	if r.Next != (Amount{}) {
		text += " (the next request may take " + strings.Join(next, ", ") + ")"
	}

	return text
}

// Request asks a user to raise the limit.
func (r *Reached) Request() permission.Request { return r.Budget.Request(r.Error()) }
