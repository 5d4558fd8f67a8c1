package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func types(entries []*Entry) (all []Type) {
	for _, e := range entries {
		all = append(all, e.Rec.Type())
	}
	return all
}

func TestStoryOf(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "one", "uno")
	add(t, h, &TurnBegin{Turn: "t2", Items: []string{"i2"}, Attempt: 1}, user("i2", "two"))
	add(t, h, &Assistant{Turn: "t2", Finish: FinishToolUse, Provider: "p", ToolCalls: []ToolCall{{ID: "call2", Name: "read"}}})
	add(t, h, &Permission{Token: "perm2", Event: "asked", Tag: "@web"})
	add(t, h, &ToolResult{ToolCallID: "call2", Name: "read", Status: StatusOK})
	add(t, h, promising("t2", "dos", "out2"), &TurnEnd{Turn: "t2", Reason: ReasonDone})
	add(t, h, &Mark{Name: "here", Item: "i3"})
	turn(t, h, "t4", "four", "cuatro") // its end still lists out2 as owed
	add(t, h, &Delivery{Out: "out2", Parts: 1, Error: "503"}, &Delivery{Out: "out2", Parts: 1, RemoteID: "9", Retry: true})
	add(t, h, &TurnBegin{Turn: "t5", Items: []string{"i5"}, Attempt: 1}, user("i5", "five"))

	second := []Type{TypeTurnBegin, TypeUser, TypeAssistant, TypePermission, TypeToolResult, TypeAssistant, TypeTurnEnd,
		TypeDelivery, TypeDelivery}
	for id, want := range map[string][]Type{
		"i2": second, "out2": second, "t2": second, "call2": second, "perm2": second,
		"it1": {TypeTurnBegin, TypeUser, TypeAssistant, TypeTurnEnd},
		"i3":  {TypeMark},
		"i5":  {TypeTurnBegin, TypeUser},
	} {
		s, ok, err := TraceOf(h.dir, id)
		if err != nil || !ok {
			t.Errorf("%s: not found, %v", id, err)
			continue
		}
		if diff := cmp.Diff(want, types(s.Entries)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}

	s, _, _ := TraceOf(h.dir, "i2")
	if diff := cmp.Diff([]Type{TypeUser, TypeAssistant}, types(s.Before)); diff != "" {
		t.Errorf("what the model saw before (-want +got):\n%s", diff)
	}
	if _, ok, err := TraceOf(h.dir, "nobody"); ok || err != nil {
		t.Errorf("an unknown id: found %v, %v", ok, err)
	}
}
