package record

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOnceOf: what was allowed once and not done is found in the files, over a
// boundary that carried it on and over its use.
func TestOnceOf(t *testing.T) {
	h := begun(t)
	turn(t, h, "t1", "q", "a")
	want := func(what string, tokens ...string) {
		t.Helper()
		once, err := OnceOf(h.dir)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, g := range once {
			got = append(got, g.Token)
		}
		if diff := cmp.Diff(tokens, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	want("nothing")
	add(t, h, &Permission{Token: "a", Event: "once", SHA256: "1", Silent: true},
		&Permission{Token: "b", Event: "once", SHA256: "2", Silent: true})
	want("two", "a", "b")
	if settled, err := Settled(h.dir); err != nil || !settled {
		t.Errorf("a silent decision leaves the history unsettled (%v)", err)
	}

	add(t, h, &Reset{Session: "s2", V: Version, Reason: "user"})
	want("over a reset", "a", "b")
	add(t, h, &Permission{Token: "a", Event: "used", SHA256: "1", Silent: true})
	want("one used", "b")
	add(t, h, &TurnBegin{Turn: "t", Items: []string{"i"}}, &ToolStart{ToolCallID: "c", Name: "exec", Grant: "b"})
	want("the other used by a call")
}
