package daemon

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"daycare/engine/event"
)

// An eventLog logs and counts what happens. It learns of it from the
// events, which wait for nobody: what it misses in a flood is missing in the log,
// and never in history.
type eventLog struct {
	log   *slog.Logger
	meter *meter
	turns map[string]time.Time // when each began
}

// keepEventLog runs until ctx ends. What counts is fetched by number, so that a flood takes nothing away.
func (r *Daemon) keepEventLog(ctx context.Context) error {
	j := &eventLog{log: r.log, meter: &r.meter, turns: map[string]time.Time{}}
	defer r.calm.stop()
	next := uint64(1)
	read := func() {
		events, first := r.events.Since(next)
		if first > next {
			j.log.Warn("too many events at once; some were not logged", "missed", first-next)
		}

		for _, e := range events {
			j.note(e)
			switch e.Type {
			case event.AgentSlept:
				r.rested()
			case event.TurnFinished:
				r.calm.worked()
			case event.AgentEnded:
				worktrees{r}.drop(ctx, e.Agent)
			}
		}

		next = max(next, first) + uint64(len(events))
	}
	for changes := r.events.Changes(ctx); ; {
		select {
		case <-changes:
			read()
		case <-ctx.Done():
			read()
			return nil
		}
	}
}

// note logs one event. No text of messages gets into the log.
func (j *eventLog) note(e event.Event) {
	switch b := e.Body.(type) {
	case event.Item:
		j.item(e, b)
	case event.Started:
		j.turns[e.Turn] = e.At
		j.say(e, slog.LevelDebug, "turn started", "turn", e.Turn, "attempt", b.Attempt, "items", len(b.Items))
	case event.Finished:
		j.finished(e, b)
	case event.Tool:
		if e.Type == event.ToolFinished {
			j.meter.add("daycare_tool_calls_total", 1, "tool", b.Name, "status", b.Status)
			j.say(e, slog.LevelDebug, "tool finished", "tool", b.Name, "status", b.Status, "ms", b.MS)
		}
	case event.Attempt:
		j.meter.add("daycare_model_retries_total", 1, "status", strconv.Itoa(b.Status))
		j.say(e, slog.LevelWarn, "retrying model request", "n", b.N, "of", b.Of, "inMs", b.InMS, "status", b.Status, "reason", b.Reason,
			"fallback", b.Fallback)
	case event.Asked:
		j.asked(e, b)
	case event.Sent:
		j.sent(e, b)
	default:
		j.other(e)
	}
}

// say logs a line of an event. Most events of a turn have none at the usual level.
func (j *eventLog) say(e event.Event, level slog.Level, text string, args ...any) {
	if !j.log.Enabled(context.Background(), level) {
		return
	}
	if e.Agent != "" {
		args = append([]any{"agent", e.Agent}, args...)
	}
	j.log.Log(context.Background(), level, text, args...)
}

func (j *eventLog) item(e event.Event, b event.Item) {
	switch e.Type {
	case event.ItemQueued:
		j.meter.add("daycare_items_accepted_total", 1, "kind", b.Kind)
	case event.ItemDone:
		j.meter.add("daycare_items_done_total", 1)
	}
	j.say(e, slog.LevelDebug, string(e.Type), "item", b.Item, "kind", b.Kind)
}

func (j *eventLog) finished(e event.Event, b event.Finished) {
	args := []any{"turn", e.Turn, "reason", b.Reason}
	if began, ok := j.turns[e.Turn]; ok {
		delete(j.turns, e.Turn)
		j.meter.turn(e.At.Sub(began))
		args = append(args, "ms", e.At.Sub(began).Milliseconds())
	}

	j.meter.add("daycare_turns_total", 1, "reason", b.Reason)
	if b.Error != "" {
		j.say(e, slog.LevelWarn, "turn failed", append(args, "err", b.Error)...)
		return
	}

	j.say(e, slog.LevelInfo, "turn finished", args...)
}

func (j *eventLog) asked(e event.Event, b event.Asked) {
	switch e.Type {
	case event.PermissionRequested:
		j.meter.add("daycare_permission_requests_total", 1, "event", "asked")
		j.say(e, slog.LevelInfo, "approval requested", "permission", b.Tag, "token", b.Token)
	case event.PermissionDecided:
		j.meter.add("daycare_permission_requests_total", 1, "event", b.Decision)
		j.say(e, slog.LevelInfo, "approval answered", "permission", b.Tag, "token", b.Token, "decision", b.Decision, "by", b.By)
	default:
		j.say(e, slog.LevelInfo, string(e.Type), "permission", b.Tag, "by", b.By)
	}
}

func (j *eventLog) sent(e event.Event, b event.Sent) {
	result := "sent"
	if e.Type == event.OutboxFailed {
		result = "failed"
		j.say(e, slog.LevelWarn, "answer not delivered", "connector", b.Connector, "part", b.Part, "of", b.Parts, "err", b.Error)
	}
	j.meter.add("daycare_deliveries_total", 1, "connector", b.Connector, "result", result)
}

func (j *eventLog) other(e event.Event) {
	switch e.Type {
	case event.AgentCreated, event.AgentEnded, event.AgentReset, event.AgentCompacted, event.BudgetReached,
		event.CronFired, event.CronSkipped, event.ConfigReloaded, event.FileEdited:
		j.say(e, slog.LevelInfo, string(e.Type), details(e.Body)...)
	case event.SandboxRefused:
		if b, ok := e.Body.(event.Refused); ok {
			j.say(e, slog.LevelWarn, "sandbox refused", "what", b.Text)
		}
	case event.AgentWoke, event.AgentSlept:
		j.say(e, slog.LevelDebug, string(e.Type))
	}
}

// details are what a body says, as attributes of a line of the log.
func details(body event.Body) []any {
	switch b := body.(type) {
	case event.File:
		return []any{"file", b.File, "change", b.Text}
	case event.Reason:
		return []any{"reason", b.Reason}
	case event.Compacted:
		return []any{"before", b.Before, "gone", b.Gone, "kept", b.Kept, "failed", b.Failed}
	}

	return nil
}
