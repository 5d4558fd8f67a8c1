package control

import (
	"context"
	"time"
)

// Costs is what was spent.
type Costs interface {
	// Cost sums all calls since a time (zero: all there ever were), a row for each
	// of by, one of CostBy.
	Cost(ctx context.Context, since time.Time, by string) (Bill, error)
}

// CostBy are what a Bill can have rows for; the first is the default.
var CostBy = []string{"agent", "model", "day", "purpose"}

// A Bill sums calls of models, those of removed agents included.
type Bill struct {
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by"` // agent, model, day or purpose
	Rows  []*Spent  `json:"rows"`
	Total Spent     `json:"total"`
}

// Spent is one line of a Bill. Tokens are counted, Cost is US dollars at the price
// that held when the call was made.
type Spent struct {
	Key        string  `json:"key"`            // handle of an agent, trash/NAME, a model, YYYY-MM-DD, a purpose, total
	Name       string  `json:"name,omitempty"` // of an agent
	Calls      int     `json:"calls"`
	Input      int64   `json:"input"`
	Output     int64   `json:"output"`
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	Cost       float64 `json:"cost"`
	Estimated  int     `json:"estimated,omitempty"` // calls whose tokens the service did not count
	Unpriced   int     `json:"unpriced,omitempty"`  // calls of a model without a known price
}

// sumCost makes the handler of what was spent.
func sumCost(c Costs) func(context.Context, costIn) (Bill, error) {
	return func(ctx context.Context, in costIn) (Bill, error) {
		b, err := c.Cost(ctx, in.Since, in.By)
		b.Rows = some(b.Rows)
		return b, err
	}
}

// Cost is what was spent since a time; zero is from the beginning.
func (c daemonCalls) Cost(ctx context.Context, since time.Time, by string) (Bill, error) {
	return cost.call(ctx, c.wire, costIn{by, since})
}
