package record

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// forked cuts the history of h and opens the result as another agent would.
func forked(t *testing.T, h *History, at int64) (*History, Cut) {
	t.Helper()
	c, err := CutAt(h.dir, "agent1", at, "s2", time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatalf("cut: %v", err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, historyName), c.Content, 0o600); err != nil {
		t.Fatal(err)
	}
	if settled, err := Settled(dir); err != nil || !settled {
		t.Errorf("the new agent has something to do: %v, %v", settled, err)
	}

	f, found := reopen(t, dir, newClock())
	if len(found) > 0 {
		t.Errorf("findings in the new history: %v", found)
	}
	return f, c
}

// The new history has the context and owes nothing.
func TestCutAt(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "one", "uno")
	add(t, h, &TurnBegin{Turn: "t2", Items: []string{"i2"}, Attempt: 1}, user("i2", "two"))
	add(t, h, promising("t2", "dos", "out2"), &TurnEnd{Turn: "t2", Reason: ReasonDone})
	add(t, h, &Permission{Token: "p", Event: "once", Tag: "@web", SHA256: "1"})
	add(t, h, &TurnBegin{Turn: "t3", Items: []string{"i3"}, Attempt: 1}, user("i3", "three"))

	f, c := forked(t, h, 0) // the current turn stays out
	wantTexts(t, f, "one", "uno", "two", "dos")
	ob := f.Obligations()
	if ob.Turn != nil || len(ob.Outs) > 0 || len(ob.Once) > 0 || ob.Owed {
		t.Errorf("the new agent owes: %+v", ob)
	}
	if ob.LastSeq != c.Last || ob.Session != "s2" || c.Session.Title != "one" || c.Session.Messages != 4 || c.Session.Cost != 0 {
		t.Errorf("the cut says %+v, history %+v", c.Session, ob)
	}

	for _, not := range []string{`"cost":0.25`, `"provider"`, `"out"`, `"i2"`} {
		if strings.Contains(string(c.Content), not) {
			t.Errorf("the new history has %s:\n%s", not, c.Content)
		}
	}
	f, _ = forked(t, h, 3)
	wantTexts(t, f, "one")
	if _, err := CutAt(t.TempDir(), "a", 0, "s", time.Now()); !errors.Is(err, ErrNoRecord) {
		t.Errorf("cut of an empty history: %v, want ErrNoRecord", err)
	}
}

func TestCutAtKeepsSummaryRewindAndSession(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "one", "uno")
	turn(t, h, "t2", "two", "dos")
	first := h.Obligations().LastSeq
	add(t, h, &Summary{Text: "so far", From: 1, KeptFrom: 7, Provider: "p", Cost: 1})
	turn(t, h, "t3", "three", "tres")
	keep := h.Obligations().LastSeq
	turn(t, h, "t4", "four", "cuatro")
	add(t, h, &Rewind{To: keep})
	f, _ := forked(t, h, 0)
	wantTexts(t, f, texts(t, h)...)

	add(t, h, &Reset{Session: "s9", V: 1, Reason: "user"})
	turn(t, h, "t5", "five", "cinco")
	f, _ = forked(t, h, 0)
	wantTexts(t, f, "five", "cinco")
	f, c := forked(t, h, first) // the session before
	wantTexts(t, f, "one", "uno", "two", "dos")
	if diff := cmp.Diff(&Fork{Agent: "agent1", Seq: first}, firstStart(t, c).ForkedFrom); diff != "" {
		t.Errorf("forkedFrom (-want +got):\n%s", diff)
	}
}

func firstStart(t *testing.T, c Cut) *Start {
	t.Helper()
	e, err := Decode(splitLines(c.Content)[0])
	if err != nil {
		t.Fatal(err)
	}
	return e.Rec.(*Start)
}
