package engine

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"daycare/engine/message"
	"daycare/engine/record"
)

// The cost of a parent is its own and that of its children, whether their turns
// were finished, are in progress or were cut, and whether state.json has counted them.
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
				s.Stats, _, err = hist.Totals(0)
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

// What a fork takes along was paid for by the other agent: no way of counting counts it
// again.
func TestAForkIsNotPaidForTwice(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	hist, _, err := record.Open(h.vol, h.folder(one), time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	paid := &record.Assistant{Turn: "t", Finish: record.FinishEndTurn, Text: "so be it", Provider: "p", Model: "m", Cost: 3,
		Tokens: record.Tokens{Input: 100, Output: 10}}
	err = hist.Begin("session")
	if err == nil {
		_, err = hist.Append(&record.TurnBegin{Turn: "t"}, &record.User{Item: "i", Text: "do it"}, paid,
			&record.TurnEnd{Turn: "t", Items: []string{"i"}, Reason: record.ReasonDone})
	}
	if err = errors.Join(err, hist.Barrier(), hist.Close()); err != nil {
		t.Fatal(err)
	}

	fork, err := h.Fork(t.Context(), one, 0, "other")
	if err != nil {
		t.Fatal(err)
	}
	list, err := h.Agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	total := 0.0
	for _, a := range list {
		total += a.OwnCost
		err := record.Spent(h.folder(a.ID), time.Time{}, func(s record.Spend) {
			if a.ID == fork.ID {
				t.Errorf("the bill has a call of the fork: %+v", s)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if math.Abs(total-3) > 1e-9 {
		t.Errorf("all agents cost %v together, want 3", total)
	}
	// Counted anew from the history alone, as after state.json was lost.
	if err := os.Remove(filepath.Join(h.folder(fork.ID), "state.json")); err != nil {
		t.Fatal(err)
	}
	copied, _, err := record.Open(h.vol, h.folder(fork.ID), time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	session, err := copied.Session()
	if err != nil || session.Cost != 0 || session.PromptTokens != 0 || session.CompletionTokens != 0 || session.Messages != 2 {
		t.Errorf("its session is %+v (%v), want two messages that cost nothing", session, err)
	}
	if used, _, err := copied.Totals(0); err != nil || len(used) > 0 {
		t.Errorf("its totals are %v (%v), want none", used, err)
	}
}

// What an agent cost that has ended is read once, however often its parent is looked at: one
// that started a thousand agents would be read a thousand times over at each look.
func TestTheCostOfAnEndedAgentIsReadOnce(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	child, err := h.child(one, "c", false)
	must(t, err)
	spend(t, h.System, child.ID, 5)
	must(t, h.Kill(t.Context(), child.ID))
	waitFor(t, "the child sleeps", func() bool { _, awake := h.awake(child.ID); return !awake })
	history := filepath.Join(h.folder(child.ID), "history.jsonl")
	must(t, errors.Join(os.Rename(history, history+".away"), os.Mkdir(history, 0o700)))
	if cost, err := h.actors.ownCost(child.ID); err == nil {
		t.Errorf("it cost %v, though its history cannot be read", cost)
	}
	must(t, errors.Join(os.Remove(history), os.Rename(history+".away", history)))
	if cost, err := h.actors.ownCost(child.ID); cost != 5 || err != nil { // what could not be read is not remembered
		t.Fatalf("it cost %v (%v), want 5", cost, err)
	}
	if n := testing.AllocsPerRun(10, func() { _, _ = h.actors.ownCost(child.ID) }); n > 1 {
		t.Errorf("looked at again it takes %v allocations: its files are read", n)
	}

	writeFile(t, filepath.Join(h.folder(child.ID), "state.json"), "{}\n") // it is back
	r := h.deliver(message.Incoming{Agent: child.ID, Text: "more"})
	_, err = h.System.Await(t.Context(), child.ID, r.Item)
	must(t, err)
	waitFor(t, "the child sleeps", func() bool { _, awake := h.awake(child.ID); return !awake })
	spend(t, h.System, child.ID, 2)
	if cost, err := h.actors.ownCost(child.ID); cost != 7 || err != nil {
		t.Errorf("back again it cost %v (%v), want 7", cost, err)
	}
}
