package control

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"
)

// Costs sums up what was spent.
type Costs interface {
	// Cost sums all calls since a time (zero: all there ever were), a row for each
	// of by, one of CostBy.
	Cost(ctx context.Context, since time.Time, by string) (Bill, error)
	// Budgets are the limits of what agents may spend, those for everybody first.
	Budgets(ctx context.Context) ([]Budget, error)
}

// A Budget is a limit and what counts against it: of all agents, of one, or of each that has no
// parent, always with those below it. Spent has what requests that run may cost. A limit of 0 is
// none in that unit.
type Budget struct {
	Scope   string       `json:"scope"`             // total, perDay, perAgent (of the settings) or own (of its state.json)
	AgentID string       `json:"agentId,omitempty"` // whose; absent: all
	Handle  string       `json:"handle,omitempty"`
	Name    string       `json:"name,omitempty"`
	Parent  string       `json:"parent,omitempty"` // handle of the agent above it
	Limit   BudgetAmount `json:"limit"`
	Spent   BudgetAmount `json:"spent"`
}

// A BudgetAmount is money and tokens.
type BudgetAmount struct {
	USD    float64 `json:"usd"`
	Tokens int64   `json:"tokens"`
}

type budgetsBody struct {
	Budgets []Budget `json:"budgets"`
}

// listBudgets makes the handler of the limits.
func listBudgets(c Costs) func(context.Context, nothing) (budgetsBody, error) {
	return func(ctx context.Context, _ nothing) (budgetsBody, error) {
		list, err := c.Budgets(ctx)
		return budgetsBody{some(list)}, err
	}
}

// CostBy are the possible rows of a Bill; the first is the default.
var CostBy = []string{"agent", "model", "day", "purpose", "day,agent", "day,model", "day,purpose"}

// A Bill sums up model calls, including those of removed agents.
type Bill struct {
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by"` // agent, model, day, purpose, or day with another
	Rows  []*Spent  `json:"rows"`
	Total Spent     `json:"total"`
}

// Spent is one row of a Bill. Tokens are counted; Cost is in US dollars at the price that applied
// when the call was made.
type Spent struct {
	Key        string  `json:"key"`            // handle of an agent, trash/NAME, a model, YYYY-MM-DD, a purpose, total
	Then       string  `json:"then,omitempty"` // second key
	Name       string  `json:"name,omitempty"` // of an agent
	Calls      int     `json:"calls"`
	Input      int64   `json:"input"`
	Output     int64   `json:"output"`
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	Cost       float64 `json:"cost"`
	Estimated  int     `json:"estimated,omitempty"` // number of calls whose tokens are estimated
	Unpriced   int     `json:"unpriced,omitempty"`  // number of calls whose price is unknown
}

// Add adds a bill of other calls.
func (b *Bill) Add(other Bill) {
	at := map[string]*Spent{}
	for _, row := range b.Rows {
		at[row.Key+"\x00"+row.Then] = row
	}
	for _, row := range other.Rows {
		if mine := at[row.Key+"\x00"+row.Then]; mine != nil {
			mine.add(*row)
		} else {
			b.Rows = append(b.Rows, row)
		}
	}
	b.Total.add(other.Total)
	b.Sort()
}

func (s *Spent) add(o Spent) {
	s.Calls += o.Calls
	s.Input, s.Output = s.Input+o.Input, s.Output+o.Output
	s.CacheRead, s.CacheWrite = s.CacheRead+o.CacheRead, s.CacheWrite+o.CacheWrite
	s.Cost += o.Cost
	s.Estimated, s.Unpriced = s.Estimated+o.Estimated, s.Unpriced+o.Unpriced
}

// Sort puts days in their order, all else by what it cost.
func (b *Bill) Sort() {
	slices.SortFunc(b.Rows, func(x, y *Spent) int {
		if strings.HasPrefix(b.By, "day") && x.Key != y.Key {
			return strings.Compare(x.Key, y.Key)
		}
		return cmp.Or(cmp.Compare(y.Cost, x.Cost), cmp.Compare(y.Output, x.Output), strings.Compare(x.Key, y.Key))
	})
}

// sumCost makes the handler of what was spent.
func sumCost(c Costs) func(context.Context, costIn) (Bill, error) {
	return func(ctx context.Context, in costIn) (Bill, error) {
		b, err := c.Cost(ctx, in.Since, in.By)
		b.Rows = some(b.Rows)
		return b, err
	}
}

// Cost returns what was spent since a time; zero: since the beginning.
func (c daemonCalls) Cost(ctx context.Context, since time.Time, by string) (Bill, error) {
	return cost.call(ctx, c.wire, costIn{by, since})
}
