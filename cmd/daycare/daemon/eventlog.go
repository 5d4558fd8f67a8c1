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
	log := j.log
	if e.Agent != "" {
		log = log.With("agent", e.Agent)
	}

	switch b := e.Body.(type) {
	case event.Item:
		j.item(log, e.Type, b)
	case event.Started:
		j.turns[e.Turn] = e.At
		log.Debug("turn started", "turn", e.Turn, "attempt", b.Attempt, "items", len(b.Items))
	case event.Finished:
		j.finished(log, e, b)
	case event.Tool:
		if e.Type == event.ToolFinished {
			j.meter.add("daycare_tool_calls_total", 1, "tool", b.Name, "status", b.Status)
			log.Debug("tool finished", "tool", b.Name, "status", b.Status, "ms", b.MS)
		}
	case event.Attempt:
		j.meter.add("daycare_model_retries_total", 1, "status", strconv.Itoa(b.Status))
		log.Warn("retrying model request", "n", b.N, "of", b.Of, "inMs", b.InMS, "status", b.Status, "reason", b.Reason,
			"fallback", b.Fallback)
	case event.Asked:
		j.asked(log, e.Type, b)
	case event.Sent:
		j.sent(log, e.Type, b)
	default:
		j.other(log, e)
	}
}

func (j *eventLog) item(log *slog.Logger, t event.Type, b event.Item) {
	switch t {
	case event.ItemQueued:
		j.meter.add("daycare_items_accepted_total", 1, "kind", b.Kind)
	case event.ItemDone:
		j.meter.add("daycare_items_done_total", 1)
	}
	log.Debug(string(t), "item", b.Item, "kind", b.Kind)
}

func (j *eventLog) finished(log *slog.Logger, e event.Event, b event.Finished) {
	args := []any{"turn", e.Turn, "reason", b.Reason}
	if began, ok := j.turns[e.Turn]; ok {
		delete(j.turns, e.Turn)
		j.meter.turn(e.At.Sub(began))
		args = append(args, "ms", e.At.Sub(began).Milliseconds())
	}

	j.meter.add("daycare_turns_total", 1, "reason", b.Reason)
	if b.Error != "" {
		log.Warn("turn failed", append(args, "err", b.Error)...)
		return
	}

	log.Info("turn finished", args...)
}

func (j *eventLog) asked(log *slog.Logger, t event.Type, b event.Asked) {
	switch t {
	case event.PermissionRequested:
		j.meter.add("daycare_permission_requests_total", 1, "event", "asked")
		log.Info("approval requested", "permission", b.Tag, "token", b.Token)
	case event.PermissionDecided:
		j.meter.add("daycare_permission_requests_total", 1, "event", b.Decision)
		log.Info("approval answered", "permission", b.Tag, "token", b.Token, "decision", b.Decision, "by", b.By)
	default:
		log.Info(string(t), "permission", b.Tag, "by", b.By)
	}
}

func (j *eventLog) sent(log *slog.Logger, t event.Type, b event.Sent) {
	result := "sent"
	if t == event.OutboxFailed {
		result = "failed"
		log.Warn("answer not delivered", "connector", b.Connector, "part", b.Part, "of", b.Parts, "err", b.Error)
	}
	j.meter.add("daycare_deliveries_total", 1, "connector", b.Connector, "result", result)
}

func (j *eventLog) other(log *slog.Logger, e event.Event) {
	switch e.Type {
	case event.AgentCreated, event.AgentEnded, event.AgentReset, event.AgentCompacted, event.BudgetReached,
		event.CronFired, event.CronSkipped, event.ConfigReloaded, event.FileEdited:
		log.Info(string(e.Type), details(e.Body)...)
	case event.SandboxRefused:
		if b, ok := e.Body.(event.Refused); ok {
			log.Warn("sandbox refused", "what", b.Text)
		}
	case event.AgentWoke, event.AgentSlept:
		log.Debug(string(e.Type))
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
