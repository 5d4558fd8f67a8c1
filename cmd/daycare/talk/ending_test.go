package talk

import (
	"strings"
	"testing"

	"daycare/cmd/daycare/term"
	"daycare/engine/event"
	"daycare/engine/fault"
)

func TestInFamily(t *testing.T) {
	agents := []event.Agent{{ID: "a"}, {ID: "b", ParentAgentID: "a"}, {ID: "c", ParentAgentID: "b"},
		{ID: "x", ParentAgentID: "y"}, {ID: "y", ParentAgentID: "x"}}
	for _, test := range []struct {
		id   string
		want bool
	}{{"a", true}, {"c", true}, {"x", false}, {"unknown", false}} {
		if got := inFamily(agents, test.id, "a"); got != test.want {
			t.Errorf("inFamily(%s, a) = %v, want %v", test.id, got, test.want)
		}
	}
}

func TestIsCommand(t *testing.T) {
	for line, want := range map[string]bool{"/stop": true, "/reset now": true, "/etc/hosts says": false,
		"/notes.txt": false, "/": false, "hello": false} {
		if got := isCommand(line); got != want {
			t.Errorf("isCommand(%q) = %v, want %v", line, got, want)
		}
	}
}

// Whoever is not asked reads how to answer, and the exit code says so.
func TestNeedsApproval(t *testing.T) {
	if code, do := term.Explain(needsApproval(event.Ask{Token: "t"})); code != fault.ExitDenied || !strings.Contains(do, "allow t --once") {
		t.Errorf("exit code %d, %q", code, do)
	}
}
