package cron

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"daycare/engine/finding"
	"daycare/engine/schedule"
	"daycare/tools"
)

// New makes the tools: add_cron, cron_list, cron_read_task, cron_read_memory,
// cron_write_memory, cron_update, cron_run, cron_delete_task, heartbeat_add,
// heartbeat_list, heartbeat_run, heartbeat_remove.
func New(s *schedule.Scheduler, r Rights) []tools.Tool {
	c := &clocks{s, r}
	return slices.Concat(c.taskTools(), c.memoryTools(), c.heartTools())
}

// Rights compares what agents may do. The answers are the rights, as tags, that an
// agent has not got and the other one has.
type Rights interface {
	// Task compares with the agent of a task, "" for one that is not made yet.
	Task(agent, task string) (missing []string, err error)
	// Heartbeat compares with the agent of the heartbeat.
	Heartbeat(agent string) (missing []string, err error)
	// Knows reports whether an agent may know of what maker created; "": the workspace. Who
	// writes the text of a task gets at what the agent of the task knows.
	Knows(agent, maker string) bool
	// Maker is the agent that answers for what an agent schedules; "": the workspace.
	Maker(agent string) string
}

type clocks struct {
	*schedule.Scheduler
	rights Rights
}

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
func makeTool[A any](name, description string, replay tools.Replay, schema string,
	run func(tools.Call, A) (tools.Result, error)) tools.Tool {
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

const slugSchema = `{"type":"object","properties":{"task":{"type":"string"}},"required":["task"],"additionalProperties":false}`

// errHouse: the heartbeat works for the owner.
var errHouse = errors.New("the heartbeat works for the owner alone; set a task with add_cron")

// seen finds a task that the calling agent may know of. Others do not exist for it.
func (c *clocks) seen(call tools.Call, slug string) (schedule.Entry, error) {
	e, err := c.Task(slug)
	if err == nil && !c.knows(call, e) {
		err = fmt.Errorf("%w: %s", schedule.ErrNotFound, slug)
	}

	return e, err
}

func (c *clocks) knows(call tools.Call, e schedule.Entry) bool {
	return e.ID == call.Agent || e.Agent == call.Agent || c.rights.Knows(call.Agent, cmp.Or(e.Agent, e.CreatedBy))
}

// heartbeat is the error of an agent that must not give the heartbeat its words.
func (c *clocks) heartbeat(call tools.Call) error {
	if !c.rights.Knows(call.Agent, "") {
		return errHouse
	}
	return enough(c.rights.Heartbeat(call.Agent))
}

// errOther: the task speaks to another agent.
var errOther = errors.New("the task belongs to another agent; only that agent or the owner may change it")

// own finds a task that the calling agent may change.
func (c *clocks) own(call tools.Call, slug string) (schedule.Entry, error) {
	e, err := c.seen(call, slug)
	switch {
	case err != nil || e.ID == call.Agent || e.Agent == call.Agent:
		return e, err
	case e.Agent != "":
		return e, errOther
	}

	return e, enough(c.rights.Task(call.Agent, e.ID))
}

// enough is the error of an agent that would have rights work for it that it has not
// got.
func enough(missing []string, err error) error {
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("that would be done with rights that you do not have (%s); ask the person to do it, or for the "+
			"rights with request_permission", strings.Join(missing, ", "))
	}

	return err
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
