// Package cron is the clocks in an agent's hands: tasks that run on a schedule, and
// the prompts of the heartbeat. Names are slugs, never paths; what is deleted goes
// to the trash. An agent changes only tasks that run as themselves or as this
// agent, so it cannot put words into another agent's inbox, with that one's rights.
package cron

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"daycare/engine/finding"
	"daycare/engine/schedule"
	"daycare/tools"
)

// New makes the tools: add_cron, cron_list, cron_read_task, cron_read_memory,
// cron_write_memory, cron_update, cron_run, cron_delete_task, heartbeat_add,
// heartbeat_list, heartbeat_run, heartbeat_remove.
func New(s *schedule.Scheduler) []tools.Tool {
	c := &clocks{s}
	return slices.Concat(c.taskTools(), c.memoryTools(), c.heartTools())
}

type clocks struct{ *schedule.Scheduler }

// A tool is a spec and a function.
type tool struct {
	spec tools.Spec
	run  func(tools.Call) (tools.Result, error)
}

// Spec describes the tool.
func (t *tool) Spec() tools.Spec { return t.spec }

// Run runs it. All of them are a few file operations.
func (t *tool) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	res, err := t.run(call)
	if err != nil {
		return tools.Errorf("%s: %s", t.spec.Name, reason(err)), nil
	}
	return res, nil
}

// makeTool makes a tool whose arguments are an A.
func makeTool[A any](name, description string, replay tools.Replay, schema string, run func(tools.Call, A) (tools.Result, error)) tools.Tool {
	return &tool{tools.Spec{Name: name, Description: description, Replay: replay, Schema: json.RawMessage(schema)},
		func(call tools.Call) (tools.Result, error) {
			var args A
			if err := json.Unmarshal(call.Arguments, &args); err != nil {
				return tools.Errorf("%s: the arguments do not fit: %v", name, err), nil
			}
			return run(call, args)
		}}
}

// reason puts an error into words that the model can act on.
func reason(err error) string {
	var f finding.Finding
	switch {
	case errors.As(err, &f):
		return f.Reason
	case errors.Is(err, schedule.ErrNotFound):
		return err.Error() + "; cron_list and heartbeat_list name them"
	}
	return err.Error()
}

type slugArgs struct {
	Task string `json:"task"`
}

const slugSchema = `{"type":"object","properties":{"task":{"type":"string","description":"its name in cron_list"}},"required":["task"],"additionalProperties":false}`

// errOther: the task speaks to another agent.
var errOther = errors.New("the task belongs to another agent; only that agent or the owner may change it")

// own finds a task that the calling agent may change.
func (c *clocks) own(call tools.Call, slug string) (schedule.Entry, error) {
	e, err := c.Task(slug)
	if err == nil && e.Agent != "" && e.Agent != call.Agent {
		err = errOther
	}
	return e, err
}

// about says when a task is due.
func about(e schedule.Entry) string {
	text := e.When.String()
	switch {
	case !e.Enabled:
		return text + "; switched off"
	case len(e.Next) == 0:
		return text + "; no run is to come"
	}
	var next []string
	for _, at := range e.Next {
		layout := "Mon 2006-01-02 15:04"
		if at.Second() != 0 {
			layout += ":05"
		}
		next = append(next, at.In(e.When.Zone()).Format(layout))
	}
	return text + "; next: " + strings.Join(next, ", ")
}

// last says how the newest run ended.
func last(r *schedule.Run) string {
	switch {
	case r == nil:
		return "never ran"
	case r.Outcome == "":
		return "running since " + r.At.UTC().Format("2006-01-02 15:04 UTC")
	}
	text := string(r.Outcome) + " " + r.At.UTC().Format("2006-01-02 15:04 UTC")
	if r.Reason != "" {
		text += " (" + r.Reason + ")"
	}
	return text
}

// timing reads when a task is to run: plain words or a cron expression.
func (c *clocks) timing(when, zoneName string) (schedule.Timing, error) {
	zone, err := schedule.LoadZone(zoneName, c.Zone())
	if err != nil {
		return schedule.Timing{}, err
	}
	return schedule.ParseWhen(when, c.Now(), zone)
}
