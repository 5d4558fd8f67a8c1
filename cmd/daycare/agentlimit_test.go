package main

import (
	"errors"
	"fmt"
	"testing"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/fault"
)

// TestTheLimitOfSpawnedAgentsIsAnErrorOfItsOwn: what a user starts by /spawn is bounded,
// what a program makes is not, and neither is ever a defect of the daemon.
func TestTheLimitOfSpawnedAgentsIsAnErrorOfItsOwn(t *testing.T) {
	t.Parallel()
	h := newChatHouse(t, "rules:\n  - { reply: [ { text: \"Hello.\" } ] }\n", "agents: { maxSpawned: 2 }\nlog: { level: error }")
	client := h.start()
	defer client.Close()
	for i := range 25 {
		if _, err := client.Create(t.Context(), control.NewAgent{Name: fmt.Sprint("made ", i)}); err != nil {
			t.Fatalf("agent %d by the API: %v", i+1, err)
		}
	}

	for i := range 3 {
		_, err := client.Create(t.Context(), control.NewAgent{Name: fmt.Sprint("spawned ", i), Spawned: true})
		if i < 2 {
			if err != nil {
				t.Errorf("spawned agent %d: %v", i+1, err)
			}
			continue
		}

		var api *control.APIError
		if !errors.As(err, &api) || api.Status != 409 || api.Code != "agent_limit" || !errors.Is(err, control.ErrAgentLimit) {
			t.Errorf("over the limit: %v (%+v), want 409 agent_limit", err, api)
		}
		if code, do := term.Explain(err); code != fault.ExitFailure || do == "" {
			t.Errorf("the command line says %q with code %d", do, code)
		}
	}

	if _, err := client.Create(t.Context(), control.NewAgent{Type: "permanent", Name: "Ops", Spawned: true}); err == nil {
		t.Error("a permanent agent is spawned")
	}
}
