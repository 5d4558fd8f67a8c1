package terminal

import (
	"testing"
	"time"

	"daycare/engine/event"
)

// TestAgentsThatFailedBefore: an agent whose newest turn failed needs the user also if that was before the terminal
// was opened, until the user has looked at it.
func TestAgentsThatFailedBefore(t *testing.T) {
	looked := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(after time.Duration) *time.Time { at := looked.Add(after); return &at }
	for _, tt := range []struct {
		name string
		is   event.Agent
		seen bool
		rank rank
		text string
	}{
		{"never looked at", event.Agent{ID: "a", Failed: "no\nmodel", LastAt: at(0)}, false, needsYou, "failed: no model"},
		{"failed since", event.Agent{ID: "a", Failed: "no model", LastAt: at(time.Second)}, true, needsYou, "failed: no model"},
		{"failed before", event.Agent{ID: "a", Failed: "no model", LastAt: at(-time.Second)}, true, idle, "idle"},
		{"answered since", event.Agent{ID: "a", LastAt: at(time.Second)}, true, unread, "answered"},
		{"never failed", event.Agent{ID: "a", LastAt: at(0)}, false, idle, "idle"},
		{"new", event.Agent{ID: "a"}, false, idle, "idle"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld()
			if tt.seen {
				w.seen["a"] = looked
			}
			w.read([]event.Agent{tt.is})

			a := w.get("a")
			if got := a.rank(); got != tt.rank {
				t.Errorf("rank %d, want %d", got, tt.rank)
			}
			if got := w.stateText(a); got != tt.text {
				t.Errorf("%q, want %q", got, tt.text)
			}
		})
	}
}
