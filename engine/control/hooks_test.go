package control

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What a client lists and tries arrives as it was sent.
func TestHooksOverTheWire(t *testing.T) {
	h := HookClient{NewClient(Local(Handler(whole(&pair{fake: &fake{}}), Options{})))}
	list, err := h.List(t.Context())
	want := []HookInfo{{Event: "before_tool", Command: "./policy", TimeoutMS: 5000, OnError: "deny", Sandbox: true}}
	if diff := cmp.Diff(want, list); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	got, err := h.Test(t.Context(), HookSample{Event: "before_tool", Tool: "exec", Input: json.RawMessage(`{"command":"ls"}`)})
	tried := HookTest{Decision: "deny", Reason: "before_tool exec", Input: json.RawMessage(`{"command":"ls"}`), Runs: []HookRun{}}
	if diff := cmp.Diff(tried, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
