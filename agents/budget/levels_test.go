package budget

import (
	"errors"
	"testing"
)

func TestLevelsAreTheLimitsOnce(t *testing.T) {
	w := newWorld(t)
	w.limits = Limits{PerDay: Amount{USD: 5}, PerAgent: Amount{Tokens: 1000}}
	w.own = map[string]Amount{"child": {USD: 1}}
	w.line["child"] = []string{"parent"}
	w.broken = map[string]error{"torn": errors.New("torn")}
	for _, agent := range []string{"parent", "child"} {
		if err := ask(Wrap(&vendor{}, w.Ledger), agent); err != nil {
			t.Fatal(err)
		}
	}

	got := w.Levels([]string{"parent", "child", "torn"})
	want := []Level{{"perDay", "", Amount{USD: 5}, w.Spent("parent")}, {"perAgent", "parent", Amount{Tokens: 1000}, w.Spent("parent")},
		{"child", "child", Amount{USD: 1}, w.Spent("child")}}
	if len(got) != len(want) {
		t.Fatalf("levels %+v", got)
	}
	for i := range want {
		if got[i].Scope != want[i].Scope || got[i].Agent != want[i].Agent || got[i].Limit != want[i].Limit ||
			!near(got[i].Spent, want[i].Spent) {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	w.now = w.now.AddDate(0, 0, 1)
	if got := w.Levels([]string{"child"}); len(got) != 3 || got[0].Scope != "perDay" || got[0].Spent != (Amount{}) ||
		got[2].Spent == (Amount{}) {
		t.Errorf("on the next day: %+v", got)
	}
	if len(newWorld(t).Levels([]string{"parent"})) > 0 {
		t.Error("there are levels without limits")
	}
}
