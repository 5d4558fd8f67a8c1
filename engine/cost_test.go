package engine

import (
	"context"
	"log/slog"
	"math"
	"testing"
	"time"

	"daycare/engine/record"
)

// The cost of a parent is its own and that of its children, whether their turns
// were finished, are under way or were cut, and whether state.json has counted them.
func TestTheCostOfAParentHasThatOfItsChildren(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	spend := func(id string, cost float64, counted bool) {
		t.Helper()
		hist, _, err := record.Open(h.vol, h.folder(id), time.Now, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if err := hist.Begin("session"); err != nil {
			t.Fatal(err)
		}
		for _, finish := range []record.Finish{record.FinishToolUse, record.FinishCanceled} {
			if _, err := hist.Append(&record.Assistant{Turn: "t", Finish: finish, Provider: "p", Model: "m", Cost: cost / 2}); err != nil {
				t.Fatal(err)
			}
		}
		if counted {
			err = record.UpdateState(h.vol, h.folder(id), func(s *record.State) {
				s.Stats, err = hist.Totals(0)
				s.Seq = hist.Obligations().LastSeq
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := hist.Close(); err != nil {
			t.Fatal(err)
		}
	}
	spend(one, 1, true)
	spend(one, 2, false)
	for i, name := range []string{"a", "b"} {
		child, err := h.child(one, name, false)
		if err != nil {
			t.Fatal(err)
		}
		spend(child.ID, float64(10*(i+1)), i == 0)
		if err := h.Kill(t.Context(), child.ID); i == 1 && err != nil {
			t.Fatal(err)
		}
	}
	list, err := h.Agents(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if a := list[0]; math.Abs(a.Cost-33) > 1e-9 || math.Abs(a.OwnCost-3) > 1e-9 {
		t.Errorf("the parent cost %v, %v of its own; want 33 and 3", a.Cost, a.OwnCost)
	}
	if a, err := h.Agent(t.Context(), one); err != nil || math.Abs(a.Cost-33) > 1e-9 {
		t.Errorf("looked at alone it cost %v, want 33: %v", a.Cost, err)
	}
}
