package control

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type till struct{ asked *Bill }

func (s till) Cost(_ context.Context, since time.Time, by string) (Bill, error) {
	*s.asked = Bill{Since: since, By: by, Total: Spent{Key: "total", Calls: 1, Cost: 0.5}}
	return *s.asked, nil
}

func (s till) Budgets(context.Context) ([]Budget, error) { return nil, nil }

func TestCost(t *testing.T) {
	var asked Bill
	b := (&fake{}).backend()
	b.Costs = till{&asked}
	h := Handler(b, Options{})
	want := `{"by":"agent","rows":[],"total":{"key":"total","calls":1,"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"cost":0.5}}`
	if status, _, body := raw(t, h, "GET", "/v1/cost", ""); status != 200 || body != want+"\n" {
		t.Errorf("%d %s\nwant %s", status, body, want)
	}

	for query, field := range map[string]string{"?by=week": `"by"`, "?since=yesterday": `"since"`} {
		if status, _, body := raw(t, h, "GET", "/v1/cost"+query, ""); status != 400 || !strings.Contains(body, `"field":`+field) {
			t.Errorf("%s: %d %s; want 400 that names %s", query, status, body, field)
		}
	}
	c := NewClient(Local(h))
	since := time.Date(2026, 11, 20, 1, 2, 3, 4000, time.UTC)
	got, err := c.Cost(t.Context(), since, "day")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Bill{Since: since, By: "day", Rows: []*Spent{}, Total: Spent{Key: "total", Calls: 1, Cost: 0.5}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
