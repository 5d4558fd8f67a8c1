package scripted

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"daycare/agents/providers"
)

// TestFirstTry plays a whole first conversation. What the tools give stands in
// testdata/firsttry.json, which the test of tools/files holds against the tools,
// so that what they print and what is read from it here fit together.
func TestFirstTry(t *testing.T) {
	data, err := os.ReadFile("testdata/firsttry.json")
	if err != nil {
		t.Fatal(err)
	}
	var turns []struct {
		Said  string
		Calls []struct {
			Tool      string
			Arguments map[string]any
			Result    string
			IsError   bool
		}
		Want string
	}
	if err := json.Unmarshal(data, &turns); err != nil {
		t.Fatal(err)
	}
	c := newTalk(t, Options{})
	for _, turn := range turns {
		text, calls := c.person(turn.Said).answer()
		for _, want := range turn.Calls {
			args, err := json.Marshal(want.Arguments)
			if err != nil {
				t.Fatal(err)
			}
			if len(calls) != 1 || calls[0] != want.Tool+string(args) {
				t.Fatalf("%q: calls %v, want %s%s", turn.Said, calls, want.Tool, args)
			}
			text, calls = c.results(providers.Result{Text: want.Result, IsError: want.IsError}).answer()
		}
		if len(calls) > 0 || !strings.Contains(text, turn.Want) {
			t.Errorf("%q: calls %v\n got %s\nwant %s", turn.Said, calls, text, turn.Want)
		}
	}
}
