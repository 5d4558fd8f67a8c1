package control

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Costs is what was spent.
type Costs interface {
	// Cost sums all calls since a time (zero: all there ever were), a row for each
	// of by, one of CostBy.
	Cost(ctx context.Context, since time.Time, by string) (Bill, error)
}

// CostBy are what a Bill can have rows for; the first is the default.
var CostBy = []string{"agent", "model", "day"}

// A Bill sums calls of models, those of removed agents included.
type Bill struct {
	Since time.Time `json:"since,omitzero"`
	By    string    `json:"by"` // agent, model or day
	Rows  []*Spent  `json:"rows"`
	Total Spent     `json:"total"`
}

// Spent is one line of a Bill. Tokens are counted, Cost is US dollars at the price
// that held when the call was made.
type Spent struct {
	Key        string  `json:"key"`            // handle of an agent, trash/NAME, a model, YYYY-MM-DD, total
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

func (a *api) cost(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	q := r.URL.Query()
	by := q.Get("by")
	if by == "" {
		by = CostBy[0]
	}
	if !slices.Contains(CostBy, by) {
		return 0, nil, &malformed{Invalid{Field: "by", Reason: fmt.Sprintf("found %q, allowed: %s", by, strings.Join(CostBy, ", "))}}
	}
	var since time.Time
	if s := q.Get("since"); s != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, s); err != nil {
			return 0, nil, &malformed{Invalid{Field: "since",
				Reason: fmt.Sprintf("found %q, allowed: a time such as 2026-11-20T00:00:00Z", s)}}
		}
	}
	b, err := a.Costs.Cost(r.Context(), since, by)
	b.Rows = some(b.Rows)
	return http.StatusOK, b, err
}

// Cost is what was spent since a time; zero is from the beginning.
func (c *Client) Cost(ctx context.Context, since time.Time, by string) (b Bill, err error) {
	q := url.Values{"by": {by}}
	if !since.IsZero() {
		q.Set("since", since.Format(time.RFC3339Nano))
	}
	err = c.do(ctx, http.MethodGet, "/v1/cost?"+q.Encode(), nil, &b)
	return b, err
}
