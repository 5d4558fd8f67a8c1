package main

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"daycare/cmd/daycare/talk"
	"daycare/engine/control"
	"daycare/engine/event"
)

const contractScript = `
rules:
  - contains: may I
    reply: [ { calls: [ { name: request_permission, arguments: { permission: "@web", reason: "to look" } } ] } ]
  - contains: delegate
    reply: [ { calls: [ { name: spawn, arguments: { task: "count to three", label: "counter" } } ] } ]
  - reply: [ { text: "Well." } ]
`

// TestEventsNameTheirAgent watches what happens beside turns: each event says whose it
// is, and a permission that someone was given is reported as one.
func TestEventsNameTheirAgent(t *testing.T) {
	t.Parallel()
	workspace := t.TempDir()
	write(t, filepath.Join(workspace, "script.yaml"), contractScript)
	write(t, filepath.Join(workspace, home, "settings.yaml"),
		"providers: [ { id: play, type: scripted, options: { script: \""+filepath.Join(workspace, "script.yaml")+"\" } } ]\n")
	client, err := control.Dial(startRuntime(t, workspace))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	seen := watchAll(t, client)

	for _, text := range []string{"may I?", "delegate"} {
		if _, err := client.Stream(t.Context(), "", talk.Own(control.Message{Text: text}), func(control.RawEvent) {}); err != nil {
			t.Fatal(err)
		}
	}
	asks, err := client.Permissions(t.Context())
	if err != nil || len(asks) != 1 {
		t.Fatalf("%d requests wait, %v; want one", len(asks), err)
	}
	if err := client.Decide(t.Context(), asks[0].Token, "always", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Schedule().AddPrompt(t.Context(), control.PromptChange{Title: "Disk", Prompt: "Is it full?"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Schedule().RunHeartbeat(t.Context()); err != nil {
		t.Fatal(err)
	}

	waitFor(t, "an event of each kind", func() bool {
		for _, want := range []event.Type{event.PermissionGranted, event.OutboxSent, event.CronFired} {
			if !slices.ContainsFunc(seen(), func(e control.RawEvent) bool { return e.Type == want }) {
				return false
			}
		}
		return true
	})

	for _, e := range seen() {
		if e.Agent == "" && e.Type != control.GapType && !strings.HasPrefix(string(e.Type), "config.") {
			t.Errorf("whose is %s?", e.Data)
		}
	}
}

// watchAll collects events until the test ends.
func watchAll(t *testing.T, client *control.Client) func() []control.RawEvent {
	t.Helper()
	var mu sync.Mutex
	var all []control.RawEvent
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// Its error is the end of ctx; a stream that fails early shows as events that are missing.
		_ = client.Events(ctx, control.Filter{}, "0.0", func(e control.RawEvent) error {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, e)
			return nil
		})
	}()

	t.Cleanup(func() { cancel(); <-ended })
	return func() []control.RawEvent {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}
