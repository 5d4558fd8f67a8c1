package permission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"daycare/engine/event"
)

// What a budget limits: everything ever spent, what all agents spend in a day, what each
// family of agents spends. A limit in the state.json of one agent has its id as scope.
const (
	BudgetTotal    = "total"
	BudgetPerDay   = "perDay"
	BudgetPerAgent = "perAgent"
)

// Units of a budget.
const (
	USD    = "usd"
	Tokens = "tokens"
)

// Budget is the permission to continue beyond a spending limit. It is never part of a Set: Once
// raises the limit by More this one time, Always raises it to Raised permanently; both are written
// where limits are stored.
type Budget struct {
	Scope string // BudgetTotal, BudgetPerDay, BudgetPerAgent, or the id of an agent
	Day   string // of BudgetPerDay: 2026-11-22
	Unit  string
	Limit float64 // the limit that was reached, including what it was raised by once
	More  float64 // by how much an approval raises it: a multiple of the configured amount
}

func (Budget) access() {}

// Tag is @budget:total:usd:5+5, or @budget:perDay/2026-11-22:tokens:1000+1000.
func (b Budget) Tag() string {
	scope := b.Scope
	if b.Day != "" {
		scope += "/" + b.Day
	}

	return "@budget:" + scope + ":" + b.Unit + ":" + number(b.Limit) + "+" + number(b.More)
}

// BudgetOf returns the budget that a tag names.
func BudgetOf(tag string) (b Budget, ok bool) {
	a, _ := Parse(tag) // nil, which is no budget, where it is no tag
	b, ok = a.(Budget)

	return b, ok
}

// Raised is the limit after it was raised permanently, in Unit.
func (b Budget) Raised() float64 { return b.Limit + b.More }

// Request returns the request to raise the limit. reason says how much was spent.
func (b Budget) Request(reason string) Request {
	return Request{Tag: b.Tag(), Reason: reason, Detail: Detail{Budget: b.String()}}
}

// String is the text that a user is asked to approve.
func (b Budget) String() string {
	text := "continue beyond the budget of " + b.amount(b.Limit)
	switch b.Scope {
	case BudgetTotal:
		return text + " for everything, ever (" + b.Key() + ")"
	case BudgetPerDay:
		return text + " for all agents on " + b.Day + " (" + b.Key() + ")"
	case BudgetPerAgent:
		return text + " for one agent and those that it started (" + b.Key() + ")"
	}

	return text + " for agent " + b.Scope + " and those that it started (" + b.Key() + ")"
}

// Setting reports whether the limit is in settings.yaml, as opposed to the state.json of one agent.
func (b Budget) Setting() bool {
	return b.Scope == BudgetTotal || b.Scope == BudgetPerDay || b.Scope == BudgetPerAgent
}

// Key is the name under which the limit is stored.
func (b Budget) Key() string {
	if b.Setting() {
		return "budget." + b.Scope + "." + b.Unit + " in settings.yaml"
	}
	return "budget." + b.Unit + " in its state.json"
}

// choices are the answers, with what each of them does.
func (b Budget) choices() []event.Choice {
	once := "Raise once: " + b.amount(b.More) + " more"
	if b.Day != "" {
		once += " on " + b.Day
	}
	return []event.Choice{{Decision: string(Once), Text: once},
		{Decision: string(Always), Text: "Raise limit to " + b.amount(b.Raised()) + ": " + b.Key()},
		{Decision: string(Deny), Text: "Stop"}}
}

// amount is a number with its unit.
func (b Budget) amount(n float64) string {
	if b.Unit == USD {
		cents := strconv.FormatFloat(n, 'f', 2, 64)
		if exact, err := strconv.ParseFloat(cents, 64); err == nil && exact == n {
			return "$" + cents
		}
		return "$" + number(n)
	}

	digits := number(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}

	return digits + " tokens"
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

const budgetHelp = "allowed: @budget:total:usd:5+5, @budget:perDay/2026-11-22:tokens:1000+1000"

// parseBudget reads what follows @budget:.
func parseBudget(value string) (Access, error) {
	wrong := fmt.Errorf("%w: %q is not a budget; %s", ErrTag, value, budgetHelp)
	parts := strings.Split(value, ":")
	if len(parts) != 3 || !slices.Contains([]string{USD, Tokens}, parts[1]) {
		return nil, wrong
	}

	scope, day, dated := strings.Cut(parts[0], "/")
	_, err := time.Parse(time.DateOnly, day)
	if dated != (scope == BudgetPerDay) || dated && err != nil {
		return nil, wrong
	}

	limit, more, _ := strings.Cut(parts[2], "+")
	b := Budget{Scope: scope, Day: day, Unit: parts[1]}
	if !b.Setting() && !agentID.MatchString(scope) {
		return nil, wrong
	}
	if b.Limit, err = amountOf(limit); err == nil {
		b.More, err = amountOf(more)
	}
	if err != nil {
		return nil, wrong
	}

	return b, nil
}

func amountOf(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err == nil && !(n > 0 && n < maxAmount) { // nor is it NaN
		err = strconv.ErrRange
	}

	return n, err
}

// maxAmount bounds a limit, in dollars or tokens: below it each whole number is exact.
const maxAmount = 1 << 53
