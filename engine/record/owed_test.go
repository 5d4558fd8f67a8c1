package record

import (
	"fmt"
	"slices"
	"testing"
)

// While a chat is down each turn promises one answer more. The closing records of the
// turns do not grow with that, and nothing that is owed is forgotten: not at a start, not
// over a reset, not over a rotation.
func TestManyPromisesAreOwedAndNotListedInEveryTurn(t *testing.T) {
	h := begun(t)
	longest := 0
	for i := range 5 * maxListed {
		before := h.file.Size()
		add(t, h, &TurnBegin{Turn: fmt.Sprint("t", i), Attempt: 1},
			promising(fmt.Sprint("t", i), fmt.Sprint("answer ", i), fmt.Sprint("o", i)),
			&TurnEnd{Turn: fmt.Sprint("t", i), Reason: ReasonDone})
		longest = max(longest, int(h.file.Size()-before))
	}

	if most := 200 * maxListed; longest > most {
		t.Errorf("a turn takes up to %d bytes, want %d at most", longest, most)
	}
	add(t, h, &Delivery{Out: "o3", Part: 0, Parts: 1}, &Delivery{Out: "o4", Part: 1, Parts: 2},
		&Delivery{Out: "o5", Part: 0, Parts: 1, Error: "gone", Final: true},
		&Delivery{Out: "o310", Part: 0, Parts: 1})
	check := func(when string) {
		t.Helper()
		o := owes(t, h) // compares with what a restart finds
		var ids []string
		for _, out := range o.Outs {
			ids = append(ids, out.ID)
			if out.Entry == nil || out.Entry.Rec.(*Assistant).Text != "answer "+out.ID[1:] {
				t.Fatalf("%s: the text of %s is not known", when, out.ID)
			}
			if out.ID == "o4" && !out.Delivered[1] {
				t.Errorf("%s: the part of o4 that arrived is forgotten", when)
			}
		}

		if len(ids) != 5*maxListed-3 || slices.Contains(ids, "o3") || slices.Contains(ids, "o5") || slices.Contains(ids, "o310") {
			t.Errorf("%s: %d answers are owed, want %d", when, len(ids), 5*maxListed-3)
		}
	}
	check("after deliveries")
	turn(t, h, "more", "hello", "yes")
	check("after another turn")
	if settled, err := Settled(h.dir); settled || err != nil {
		t.Errorf("the history is settled: %v, %v", settled, err)
	}

	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	check("after a reset")
	h.limits.rotate = 100_000
	if rotated, err := h.Rotate(); !rotated || err != nil {
		t.Fatalf("not rotated: %v", err)
	}

	check("after a rotation")
}
