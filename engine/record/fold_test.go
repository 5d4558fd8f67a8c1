package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// owes compares the obligations of h with what a restart finds, and returns them.
func owes(t testing.TB, h *History) *Obligations {
	t.Helper()
	live := h.Obligations()
	again, _ := reopen(t, h.dir, newClock())
	defer again.Close()
	if diff := cmp.Diff(live, again.Obligations(), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("obligations (-in memory +after a restart):\n%s", diff)
	}

	return live
}

func TestObligationsOfATurn(t *testing.T) {
	h := begun(t)
	add(t, h, &TurnBegin{Turn: "t1", Items: []string{"i1"}, Attempt: 1}, user("i1", "go"))
	if o := owes(t, h); o.Turn == nil || o.Turn.Progress || len(o.Turn.Users) != 1 || o.Turn.Items[0] != "i1" {
		t.Errorf("turn begun: %+v", o.Turn)
	}

	call := &Assistant{Turn: "t1", Finish: FinishToolUse, ToolCalls: []ToolCall{
		{ID: "c1", Name: "exec", Arguments: []byte(`{}`)}, {ID: "c2", Name: "read", Arguments: []byte(`{}`)}}}
	add(t, h, call)
	add(t, h, &ToolStart{ToolCallID: "c1", Name: "exec"})
	add(t, h, user("i2", "and this"))
	o := owes(t, h)
	if len(o.Turn.Calls) != 2 || !o.Turn.Calls[0].Started || o.Turn.Calls[1].Started || o.Turn.Rounds != 1 {
		t.Errorf("calls: %+v", o.Turn)
	}
	if diff := cmp.Diff([]string{"i1", "i2"}, o.Turn.Items); diff != "" {
		t.Errorf("items folded in belong to the turn:\n%s", diff)
	}

	add(t, h, &ToolResult{ToolCallID: "c1", Name: "exec", Status: StatusInterrupted},
		&TurnBegin{Turn: "t1", Items: []string{"i1", "i2"}, Attempt: 2})
	if o := owes(t, h); o.Turn.Attempt != 2 || o.Turn.Progress || len(o.Turn.Calls) != 1 || len(o.Turn.Users) != 2 {
		t.Errorf("turn opened again: %+v", o.Turn)
	}
	add(t, h, &Note{Text: "stopped", Suspended: "t1"})
	if o := owes(t, h); !o.Turn.Suspended {
		t.Error("an orderly stop was not seen")
	}

	add(t, h, &ToolResult{ToolCallID: "c2", Name: "read", Status: StatusOK})
	add(t, h, promising("t1", "done", "o1"))
	if o := owes(t, h); o.Turn.HasAnswer == nil || !o.Turn.Progress || len(o.Outs) != 1 || o.Outs[0].Entry == nil {
		t.Errorf("answered: %+v, %+v", o.Turn, o.Outs)
	}
	end := add(t, h, &TurnEnd{Turn: "t1", Reason: ReasonDone})[0].Rec.(*TurnEnd)
	if diff := cmp.Diff([]string{"i1", "i2"}, end.Items); diff != "" {
		t.Errorf("items of the turn's end:\n%s", diff)
	}
	if o := owes(t, h); o.Turn != nil || len(o.Outs) != 1 || o.Outs[0].Entry == nil || o.Session != "s1" {
		t.Errorf("ended: %+v", o)
	}
}

func TestPartsDeliveredAreRememberedOverTurns(t *testing.T) {
	h := begun(t)
	add(t, h, &TurnBegin{Turn: "t1", Attempt: 1}, promising("t1", "long", "o1"), &TurnEnd{Turn: "t1", Reason: ReasonDone})
	add(t, h, &Delivery{Out: "o1", Part: 1, Parts: 3})
	turn(t, h, "t2", "more", "yes")
	o := owes(t, h)
	if len(o.Outs) != 1 || !o.Outs[0].Delivered[1] || o.Outs[0].Parts != 3 {
		t.Fatalf("outs after a later turn: %+v", o.Outs)
	}
	if got := o.Outs[0].Entry.Rec.(*Assistant).Text; got != "long" {
		t.Errorf("text of the answer owed: %q", got)
	}

	add(t, h, &Delivery{Out: "o1", Part: 0, Parts: 3}, &Delivery{Out: "o1", Part: 2, Parts: 3, Error: "later"})
	if o := owes(t, h); len(o.Outs) != 1 {
		t.Errorf("a failed try closed the promise: %+v", o.Outs)
	}
	add(t, h, &Delivery{Out: "o1", Part: 2, Parts: 3, Error: "chat is gone", Final: true})
	if o := owes(t, h); len(o.Outs) != 0 {
		t.Errorf("given up, but still owed: %+v", o.Outs)
	}
}

func TestDecisionsOweATurn(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "push", "may I?")
	add(t, h, &Permission{Token: "p1", Item: "i9", Event: "once", Tag: "@exec:git", SHA256: "aa"})
	if o := owes(t, h); !o.Owed || len(o.Once) != 1 {
		t.Fatalf("after a decision: %+v", o)
	}

	turn(t, h, "t2", "wait", "ok")
	if o := owes(t, h); o.Owed || len(o.Once) != 1 || o.Once[0].SHA256 != "aa" {
		t.Fatalf("an approval not used yet is carried over the turn: %+v", o)
	}
	add(t, h, &ToolStart{ToolCallID: "c", Name: "exec", Grant: "p1"})
	if o := owes(t, h); len(o.Once) != 0 {
		t.Errorf("an approval was not used up: %+v", o.Once)
	}

	add(t, h, &Permission{Token: "p2", Event: "deny", Tag: "@web"})
	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	if o := owes(t, h); o.Owed || o.Session != "s2" {
		t.Errorf("after a reset: %+v", o)
	}
}

func TestSilentMessagesBelongToNoTurn(t *testing.T) {
	h := begun(t)
	u := user("i1", "by the way")
	u.Silent, u.Origin = true, "a2"
	add(t, h, u)
	add(t, h, user("i2", "recorded before its turn began"))
	add(t, h, &TurnBegin{Turn: "t1", Items: []string{"i2"}, Attempt: 1})
	if o := owes(t, h); len(o.Turn.Items) != 1 || o.Turn.Items[0] != "i2" {
		t.Errorf("items: %v", o.Turn.Items)
	}
	wantTexts(t, h, "by the way", "recorded before its turn began")
}

func TestObligationsAreACopy(t *testing.T) {
	h := begun(t)
	add(t, h, &TurnBegin{Turn: "t1", Attempt: 1}, &Assistant{Turn: "t1", Finish: FinishToolUse, ToolCalls: []ToolCall{
		{ID: "c1", Name: "a", Arguments: []byte(`{}`)}, {ID: "c2", Name: "b", Arguments: []byte(`{}`)}}})
	var seen []string
	for _, c := range h.Obligations().Turn.Calls { // as recovery does
		seen = append(seen, c.Call.ID)
		add(t, h, &ToolResult{ToolCallID: c.Call.ID, Name: c.Call.Name, Status: StatusInterrupted})
	}
	if diff := cmp.Diff([]string{"c1", "c2"}, seen); diff != "" {
		t.Error(diff)
	}
}
