package control

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Rows for one thing become one, others stay apart, and the order is that of one bill.
func TestBillsAreAdded(t *testing.T) {
	row := func(key, then string, calls int, cost float64) *Spent {
		return &Spent{Key: key, Then: then, Calls: calls, Input: int64(calls), Output: 2, CacheRead: 3, CacheWrite: 4, Cost: cost,
			Estimated: 1, Unpriced: 1}
	}
	for _, tt := range []struct {
		by         string
		mine, more []*Spent
		want       []*Spent
	}{
		{"agent", []*Spent{row("0/", "", 1, 1)}, []*Spent{row("1/", "", 1, 5), row("0/", "", 2, 2)}, []*Spent{row("1/", "", 1, 5),
			{Key: "0/", Calls: 3, Input: 3, Output: 4, CacheRead: 6, CacheWrite: 8, Cost: 3, Estimated: 2, Unpriced: 2}}},
		{"day,model", []*Spent{row("2026-11-02", "a", 1, 1)}, []*Spent{row("2026-11-01", "a", 1, 0.5), row("2026-11-02", "b", 1, 3)},
			[]*Spent{row("2026-11-01", "a", 1, 0.5), row("2026-11-02", "b", 1, 3), row("2026-11-02", "a", 1, 1)}},
		{"model", nil, []*Spent{row("a", "", 1, 1)}, []*Spent{row("a", "", 1, 1)}},
	} {
		b := Bill{By: tt.by, Rows: tt.mine, Total: Spent{Key: "total", Calls: 1}}
		b.Add(Bill{By: tt.by, Rows: tt.more, Total: Spent{Key: "total", Calls: 4}})
		if diff := cmp.Diff(tt.want, b.Rows); diff != "" || b.Total.Calls != 5 || b.Total.Key != "total" {
			t.Errorf("%s: total %+v, %s", tt.by, b.Total, diff)
		}
	}
}
