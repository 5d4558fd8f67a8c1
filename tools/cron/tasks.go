package cron

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"daycare/engine/message"
	"daycare/engine/schedule"
	"daycare/tools"
)

type addArgs struct {
	Name           string   `json:"name"`
	When           string   `json:"when"`
	Prompt         string   `json:"prompt"`
	Timezone       string   `json:"timezone"`
	Here           bool     `json:"here"`
	DeleteAfterRun bool     `json:"deleteAfterRun"`
	Gate           string   `json:"gate"`
	Watch          []string `json:"watch"`
}

type updateArgs struct {
	Task     string  `json:"task"`
	Name     *string `json:"name"`
	When     *string `json:"when"`
	Prompt   *string `json:"prompt"`
	Timezone *string `json:"timezone"`
	Enabled  *bool   `json:"enabled"`
	Gate     *string `json:"gate"`
}

const (
	whenHelp = `every weekday at 9:00 | in 20 minutes | tomorrow at 7:30 | 2026-12-01T09:00 | cron expression`

	addSchema = `{"type":"object","properties":{
"name":{"type":"string"},
"when":{"type":"string","description":"` + whenHelp + `"},
"prompt":{"type":"string","description":"everything it needs: the task does not see this conversation"},
"timezone":{"type":"string","description":"default: the user's"},
"here":{"type":"boolean","description":"run in this conversation, as a reminder"},
"deleteAfterRun":{"type":"boolean"},
"gate":{"type":"string","description":"command: the task runs only if it exits with 0, and gets its output"},
"watch":{"type":"array","items":{"type":"string"},"description":"globs: run only when a matching file changed"}},
"required":["prompt"],"additionalProperties":false}`

	updateSchema = `{"type":"object","properties":{
"task":{"type":"string","description":"its name in cron_list"},
"name":{"type":"string"},
"when":{"type":"string","description":"as in add_cron"},
"prompt":{"type":"string"},
"timezone":{"type":"string"},
"enabled":{"type":"boolean"},
"gate":{"type":"string","description":"empty: remove it"}},
"required":["task"],"additionalProperties":false}`
)

func (c *clocks) taskTools() []tools.Tool {
	return []tools.Tool{
		makeTool("add_cron", "Schedule a task: once or repeatedly, at a time or when files change. Returns the next runs.",
			tools.Idempotent, addSchema, c.add),
		makeTool("cron_list", "List scheduled tasks with their next runs and last result.", tools.ReadOnly,
			`{"type":"object","properties":{},"additionalProperties":false}`, c.list),
		makeTool("cron_read_task", "Read the file of a scheduled task.", tools.ReadOnly, slugSchema, c.read),
		makeTool("cron_update", "Change a scheduled task. Fields that you omit stay unchanged.", tools.Idempotent, updateSchema, c.update),
		makeTool("cron_run", "Run a scheduled task now, in addition to its schedule.", tools.Once, slugSchema, c.runNow),
		makeTool("cron_delete_task", "Move a scheduled task to the trash.", tools.Once, slugSchema, c.remove),
	}
}

func (c *clocks) add(call tools.Call, a addArgs) (tools.Result, error) {
	change := schedule.Change{Name: &a.Name, Prompt: &a.Prompt}
	if a.When == "" && len(a.Watch) == 0 {
		return tools.Errorf("add_cron: say when it shall run: %s", whenHelp), nil
	}
	if a.When != "" {
		timing, err := c.timing(a.When, a.Timezone)
		if err != nil {
			return tools.Result{}, err
		}
		change.Timing = &timing
	}
	if a.Timezone != "" {
		change.Timezone = &a.Timezone
	}
	if a.Here {
		change.Agent = &call.Agent
	} else if err := enough(c.rights.Task(call.Agent, "")); err != nil {
		return tools.Result{}, err
	}
	if maker := c.rights.Maker(call.Agent); maker != "" {
		change.CreatedBy = &maker
	}
	if source := message.Relayed(call.Agent, call.Sources); source != "" {
		change.Source = &source
	}
	if a.DeleteAfterRun {
		change.DeleteAfterRun = &a.DeleteAfterRun
	}
	if a.Gate != "" {
		change.GateCommand = &a.Gate
	}
	if len(a.Watch) > 0 {
		change.Watch = &a.Watch
	}

	e, err := c.Create(idOf(call.ID), change)
	if err != nil {
		return tools.Result{}, err
	}

	return tools.Result{Text: fmt.Sprintf("Task %s: %s", e.Slug, about(e))}, nil
}

// idOf makes a task's id of the call that makes it, so that a call which is made
// again after a crash finds its task.
func idOf(call string) string {
	sum := sha256.Sum256([]byte(call))
	text := new(big.Int).SetBytes(sum[:]).Text(36)
	return "t" + fmt.Sprintf("%023s", text)[:23]
}

func (c *clocks) list(call tools.Call, _ struct{}) (tools.Result, error) {
	all, _, err := c.Tasks()
	if err != nil {
		return tools.Result{}, err
	}
	all = slices.DeleteFunc(all, func(e schedule.Entry) bool { return !c.knows(call, e) })
	if len(all) == 0 {
		return tools.Result{Text: "There are no scheduled tasks."}, nil
	}

	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "%s (%s): %s; last: %s\n", e.Slug, e.Name, about(e), last(e.Last))
		for _, f := range e.Found {
			fmt.Fprintf(&b, "  problem: %s\n", f.Reason)
		}
	}

	return tools.Result{Text: b.String()}, nil
}

func (c *clocks) read(call tools.Call, a slugArgs) (tools.Result, error) {
	e, err := c.seen(call, a.Task)
	if err != nil {
		return tools.Result{}, err
	}
	text, err := c.Source(a.Task)

	return tools.Result{Text: text, Source: e.Task.Source}, err
}

func (c *clocks) update(call tools.Call, a updateArgs) (tools.Result, error) {
	e, err := c.own(call, a.Task)
	if err != nil {
		return tools.Result{}, err
	}
	change := schedule.Change{Name: a.Name, Prompt: a.Prompt, Timezone: a.Timezone, Enabled: a.Enabled, GateCommand: a.Gate}
	if source := message.Relayed(call.Agent, call.Sources); source != "" {
		change.Source = &source
	}
	if a.When != nil {
		zone := e.Timezone
		if a.Timezone != nil {
			zone = *a.Timezone
		}
		timing, err := c.timing(*a.When, zone)
		if err != nil {
			return tools.Result{}, err
		}
		change.Timing = &timing
	}
	if e, err = c.Update(a.Task, change); err != nil {
		return tools.Result{}, err
	}

	return tools.Result{Text: fmt.Sprintf("Task %s: %s", e.Slug, about(e))}, nil
}

func (c *clocks) runNow(call tools.Call, a slugArgs) (tools.Result, error) {
	if _, err := c.own(call, a.Task); err != nil {
		return tools.Result{}, err
	}
	if _, err := c.RunNow(a.Task); err != nil {
		return tools.Result{}, err
	}

	return tools.Result{Text: "Task " + a.Task + " runs now; cron_list tells how it ended."}, nil
}

func (c *clocks) remove(call tools.Call, a slugArgs) (tools.Result, error) {
	if _, err := c.own(call, a.Task); err != nil {
		return tools.Result{}, err
	}
	if _, err := c.Remove(a.Task); err != nil {
		return tools.Result{}, err
	}

	return tools.Result{Text: "Task " + a.Task + " is in the trash."}, nil
}
