package control

import (
	"context"
	"time"
)

// Costs sums up what was spent.
type Costs interface {
	// Cost sums all calls since a time (zero: all there ever were), a row for each
	// of by, one of CostBy.
	Cost(ctx context.Context, since time.Time, by string) (Bill, error)
}

// CostBy are the possible rows of a Bill; the first is the default.
var CostBy = []string{"agent", "model", "day", "purpose"}

// A Bill sums up model calls, including those of removed agents.
type Bill struct {
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by"` // agent, model, day or purpose
	Rows  []*Spent  `json:"rows"`
	Total Spent     `json:"total"`
}

// Spent is one row of a Bill. Tokens are counted; Cost is in US dollars at the price that applied
// when the call was made.
type Spent struct {
	Key        string  `json:"key"`            // handle of an agent, trash/NAME, a model, YYYY-MM-DD, a purpose, total
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
