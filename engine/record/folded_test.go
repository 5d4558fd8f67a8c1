package record

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// What became of each call of a turn: which worked, which wait, and whether the turn got on.
func TestCallsOfATurn(t *testing.T) {
	h := begun(t)
	calls := []ToolCall{{ID: "c1", Name: "a", Arguments: []byte("{}")}, {ID: "c2", Name: "b", Arguments: []byte("{}")},
		{ID: "c3", Name: "c", Arguments: []byte("{}")}}
	add(t, h, &ToolResult{ToolCallID: "c0", Status: StatusOK}) // of no turn
	add(t, h, &TurnBegin{Turn: "t", Attempt: 1}, &Assistant{Turn: "t", Finish: FinishToolUse, ToolCalls: calls},
		&TurnBegin{Turn: "t", Attempt: 2}, &ToolResult{ToolCallID: "c1", Status: StatusInterrupted})
	if turn := owes(t, h).Turn; turn.Progress || len(turn.Worked) != 0 || len(turn.Calls) != 2 {
		t.Errorf("after an interrupted call: %+v", turn)
	}
	add(t, h, &ToolResult{ToolCallID: "c2", Status: StatusOK})
	if turn := owes(t, h).Turn; !turn.Progress || len(turn.Worked) != 1 || turn.Worked[0].ID != "c2" || len(turn.Calls) != 1 {
		t.Errorf("after a call that worked: %+v", turn)
	}
	add(t, h, &TurnBegin{Turn: "t", Attempt: 3}, &ToolResult{ToolCallID: "c3", Status: StatusError})
	if turn := owes(t, h).Turn; !turn.Progress || len(turn.Worked) != 1 || len(turn.Calls) != 0 {
		t.Errorf("after a call that failed: %+v", turn)
	}
}

// An item is in a turn once, however often it is recorded; what has no item is a message each.
func TestMessagesOfATurn(t *testing.T) {
	h := begun(t)
	add(t, h, &TurnBegin{Turn: "t", Attempt: 1}, user("i1", "a"), user("", "b"), user("i1", "a"), user("", "c"))
	turn := owes(t, h).Turn
	if diff := cmp.Diff([]string{"i1"}, turn.Items); diff != "" || len(turn.Users) != 3 {
		t.Errorf("%d messages, items (-want +got):\n%s", len(turn.Users), diff)
	}
}

// Who was asked in a turn is known, and a request outside of one owes nothing.
func TestAskedInATurn(t *testing.T) {
	h := begun(t)
	add(t, h, &Permission{Token: "p0", Event: "asked", Tag: "@web"})
	if o := owes(t, h); o.Turn != nil || o.Owed || len(o.Once) != 0 {
		t.Errorf("outside of a turn: %+v", o)
	}
	add(t, h, &TurnBegin{Turn: "t", Attempt: 1}, &Permission{Token: "p1", Event: "revoked", Tag: "@web"})
	if o := owes(t, h); len(o.Turn.Asked) > 0 {
		t.Error("a revocation asks nobody")
	}
	add(t, h, &Permission{Token: "p2", Event: "asked", Tag: "@web"})
	if o := owes(t, h); !slices.Equal(o.Turn.Asked, []string{"p2"}) {
		t.Error("the request is forgotten")
	}
	add(t, h, &Permission{Token: "p2", Event: "once", Tag: "@web"})
	if o := owes(t, h); o.Owed {
		t.Error("a decision within the turn owes another one")
	}
}

// A user's lines without time or session leave both as they were.
func TestLinesWithoutTimeOrSession(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "a", "b")
	at := h.Obligations().LastAt
	save(t, h, append(content(t, h), `{"type":"turn_begin","turn":"t2"}`+"\n"+`{"type":"turn_end","turn":"t2","reason":"done"}`+"\n"...))
	again, _ := reopen(t, h.dir, newClock())
	if o := again.Obligations(); o.Session != "s1" {
		t.Errorf("the session is %q", o.Session)
	}
	save(t, h, append(content(t, h), `{"type":"note","text":"x"}`+"\n"...))
	add(t, again, &TurnBegin{Turn: "t3", Attempt: 1})
	if o := again.Obligations(); o.Session != "s1" {
		t.Errorf("in memory it is %q", o.Session)
	}
	f := fold{}
	f.apply(&Entry{Seq: 7, At: at, Rec: &Start{Session: "s"}})
	f.apply(&Entry{Rec: &TurnEnd{}})
	if !f.o.LastAt.Equal(at) || f.o.Session != "s" || f.o.LastSeq != 7 {
		t.Errorf("%+v", f.o)
	}
}

// What a boundary lists as allowed once is all; nothing before it counts, and broken lines
// behind it change nothing.
func TestOnceOfBoundaries(t *testing.T) {
	for _, boundary := range []string{`{"type":"start","session":"s","continues":"x","once":[{"token":"y"}]}`,
		`{"type":"reset","session":"s","once":[{"token":"y"}]}`, `{"type":"turn_end","turn":"t","once":[{"token":"y"}]}`} {
		dir := t.TempDir()
		text := lines(&Start{Session: "s"}, &Permission{Token: "x", Event: "once", Tag: "@web"}) + boundary + "\n" +
			`{"type":"permission","broken` + "\n" + `{"type":"permission","token":"z","event":"once","tag":"@web"}` + "\n"
		if err := os.WriteFile(dir+"/"+historyName, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		once, err := OnceOf(dir)
		if diff := cmp.Diff([]OnceGrant{{Token: "y"}, {Token: "z"}}, once, cmpopts.EquateEmpty()); diff != "" || err != nil {
			t.Errorf("behind %s: %v (-want +got):\n%s", boundary, err, diff)
		}
	}
}

// The oldest of many sources go, and a source that is read again is the newest.
func TestTimeOfSources(t *testing.T) {
	f := fold{}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, source := range []string{"a", "b", "a"} {
		f.read(&Entry{At: at.Add(time.Duration(i) * time.Second)}, source)
	}
	if len(f.o.Sources) != 2 || f.o.Sources[0].Source != "b" || !f.o.Sources[1].At.Equal(at.Add(2*time.Second)) {
		t.Errorf("%+v", f.o.Sources)
	}
	if !slices.IsSortedFunc(f.o.Sources, func(a, b Source) int { return a.At.Compare(b.At.Time) }) {
		t.Errorf("not by time: %+v", f.o.Sources)
	}
}

// An answer without calls that did not end the turn is one, until what the model was asked to
// do first is recorded: a torn write can end between the two.
func TestAnAnswerThatDidNotEndTheTurn(t *testing.T) {
	h := begun(t)
	add(t, h, &TurnBegin{Turn: "t", Attempt: 1}, &Assistant{Turn: "t", Text: "done", Finish: FinishToolUse})
	if turn := owes(t, h).Turn; !turn.Held || turn.HasAnswer != nil {
		t.Errorf("after the answer: held %v, answer %v", turn.Held, turn.HasAnswer)
	}
	add(t, h, &User{Text: "format it first", Origin: "hook turn_end"})
	if turn := owes(t, h).Turn; turn.Held || turn.HasAnswer != nil || len(turn.Items) != 0 {
		t.Errorf("after what it was asked: held %v, answer %v, items %v", turn.Held, turn.HasAnswer, turn.Items)
	}
	add(t, h, &Assistant{Turn: "t", Text: "formatted", Finish: FinishEndTurn})
	if turn := owes(t, h).Turn; turn.Held || turn.HasAnswer == nil {
		t.Errorf("at the end: held %v, answer %v", turn.Held, turn.HasAnswer)
	}
}
