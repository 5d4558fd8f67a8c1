package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"daycare/engine/event"
)

// The log says what was edited, compacted, reset or skipped, and not only that it was.
func TestLogSaysWhatHappened(t *testing.T) {
	for _, tt := range []struct {
		event event.Event
		want  string
	}{
		{event.Event{Type: event.FileEdited, Agent: "a1", Body: event.File{File: "descriptor.json", Text: "systemPrompt changed"}},
			`msg=file.edited agent=a1 file=descriptor.json change="systemPrompt changed"`},
		{event.Event{Type: event.ConfigReloaded, Body: event.File{File: "settings.yaml", Text: "read again"}},
			`msg=config.reloaded file=settings.yaml change="read again"`},
		{event.Event{Type: event.AgentReset, Agent: "a1", Body: event.Reason{Reason: "asked"}}, `msg=agent.reset agent=a1 reason=asked`},
		{event.Event{Type: event.CronSkipped, Body: event.Reason{Reason: "cron look skipped: busy"}}, `reason="cron look skipped: busy"`},
		{event.Event{Type: event.AgentCompacted, Body: event.Compacted{Before: 9000, Gone: 40, Kept: 6}}, "before=9000 gone=40 kept=6"},
	} {
		t.Run(string(tt.event.Type), func(t *testing.T) {
			var log bytes.Buffer
			j := &eventLog{log: slog.New(slog.NewTextHandler(&log, nil)), meter: &meter{}, turns: map[string]time.Time{}}
			j.note(tt.event)
			if !strings.Contains(log.String(), tt.want) {
				t.Errorf("logged %q, want %q", log.String(), tt.want)
			}
		})
	}
}
