package control

import (
	"context"
	"errors"
	"slices"
	"time"

	"daycare/engine/fault"
	"daycare/engine/finding"
)

// ErrNoTask: no task or heartbeat item has that name.
var ErrNoTask = fault.NoTask

// ErrTaskBusy: a run of the task is in progress.
var ErrTaskBusy = fault.TaskBusy

// Schedules is what the API needs for tasks and the heartbeat. An invalid name, and a change that
// would make the file invalid, are *Invalid.
type Schedules interface {
	Tasks(ctx context.Context) ([]Task, error)
	Task(ctx context.Context, slug string) (Task, error)
	AddTask(ctx context.Context, c TaskChange) (Task, error)
	ChangeTask(ctx context.Context, slug string, c TaskChange) (Task, error)
	RemoveTask(ctx context.Context, slug string) (trash string, err error)
	// RunTask starts a run in addition to the schedule and returns its slot.
	RunTask(ctx context.Context, slug string) (slot time.Time, err error)
	TaskRuns(ctx context.Context, slug string, limit int) ([]TaskRun, error)

	Heartbeat(ctx context.Context) (Heartbeat, error)
	AddPrompt(ctx context.Context, p PromptChange) (Prompt, error)
	RemovePrompt(ctx context.Context, slug string) (trash string, err error)
	RunHeartbeat(ctx context.Context) (slot time.Time, err error)
	HeartbeatRuns(ctx context.Context, limit int) ([]TaskRun, error)
}

// A Task is a scheduled task as user interfaces show it.
type Task struct {
	Slug           string            `json:"slug"`
	TaskID         string            `json:"taskId,omitempty"`
	Name           string            `json:"name"`
	Description    string            `json:"description,omitempty"`
	Words          string            `json:"words"` // when it is due, in plain words
	Schedule       string            `json:"schedule,omitempty"`
	Every          string            `json:"every,omitempty"`
	At             string            `json:"at,omitempty"`
	Timezone       string            `json:"timezone"`
	Enabled        bool              `json:"enabled"`
	AgentID        string            `json:"agentId,omitempty"` // "": its own agent, TaskID
	CatchUp        string            `json:"catchUp"`
	DeleteAfterRun bool              `json:"deleteAfterRun,omitempty"`
	Model          string            `json:"model,omitempty"`
	Gate           string            `json:"gate,omitempty"` // its command
	Watch          []string          `json:"watch,omitempty"`
	WatchCommand   string            `json:"watchCommand,omitempty"`
	Prompt         string            `json:"prompt"`
	Running        bool              `json:"running"`
	Next           []time.Time       `json:"next"` // at most three
	Last           *TaskRun          `json:"last"`
	Findings       []finding.Finding `json:"findings,omitempty"` // with one of severity error it is not active
}

// A TaskRun is one slot and its result.
type TaskRun struct {
	Slot    time.Time  `json:"slot"`    // the nominal time
	At      time.Time  `json:"at"`      // the actual time
	Outcome string     `json:"outcome"` // ran, skipped, missed, failed, running
	Reason  string     `json:"reason,omitempty"`
	Via     string     `json:"via,omitempty"` // catch-up, watch, hand; "": on time
	Why     string     `json:"why,omitempty"`
	Item    string     `json:"item,omitempty"`
	MS      int64      `json:"ms,omitempty"`
	From    *time.Time `json:"from,omitempty"` // Count slots from From to Slot share this line of the ledger
	Count   int        `json:"count,omitempty"`
}

// A TaskChange is the body of POST and PUT /v1/cron; members that are absent stay unchanged.
type TaskChange struct {
	Name        *string `json:"name,omitempty"`
	Description *string `json:"description,omitempty"`
	Prompt      *string `json:"prompt,omitempty"`
	// When is a time in any form: plain words, a date, a duration, a cron
	// expression. The next three are for one form each.
	When           *string   `json:"when,omitempty"`
	Schedule       *string   `json:"schedule,omitempty"`
	Every          *string   `json:"every,omitempty"`
	At             *string   `json:"at,omitempty"`
	Timezone       *string   `json:"timezone,omitempty"`
	Enabled        *bool     `json:"enabled,omitempty"`
	AgentID        *string   `json:"agentId,omitempty"`
	CatchUp        *string   `json:"catchUp,omitempty"`
	DeleteAfterRun *bool     `json:"deleteAfterRun,omitempty"`
	Model          *string   `json:"model,omitempty"`
	Gate           *string   `json:"gate,omitempty"`
	Watch          *[]string `json:"watch,omitempty"`
	WatchCommand   *string   `json:"watchCommand,omitempty"`
}

// A Heartbeat is the items of the heartbeat and its state.
type Heartbeat struct {
	Every   string     `json:"every"` // "": switched off
	Next    *time.Time `json:"next"`
	Last    *TaskRun   `json:"last"`
	Running bool       `json:"running"`
	Stopped bool       `json:"stopped"` // after too many failures in a row
	Prompts []Prompt   `json:"prompts"`
}

// A Prompt is one item of the heartbeat.
type Prompt struct {
	Slug     string            `json:"slug"`
	Title    string            `json:"title"`
	Enabled  bool              `json:"enabled"`
	Prompt   string            `json:"prompt"`
	Findings []finding.Finding `json:"findings,omitempty"`
}

// A PromptChange is the body of POST /v1/heartbeats.
type PromptChange struct {
	Title       string `json:"title,omitempty"`
	Prompt      string `json:"prompt"`
	ActiveHours string `json:"activeHours,omitempty"`
	Gate        string `json:"gate,omitempty"`
}

// Bodies of answers.
type (
	tasksBody struct {
		Tasks []Task `json:"tasks"`
	}
	runsBody struct {
		Runs []TaskRun `json:"runs"`
	}
	allRunsBody struct {
		Runs []SlugRun `json:"runs"`
	}
	slotBody struct {
		Slot time.Time `json:"slot"`
	}
)

// clocks is the routes of Schedules.
type clocks struct{ schedules Schedules }

func scheduleRows(a *api, c clocks) []row {
	return []row{
		on(a, listTasks, c.tasks),
		on(a, addTask, c.addTask),
		on(a, showTask, c.task),
		on(a, setTask, c.changeTask),
		on(a, removeTask, c.removeTask),
		on(a, runTask, c.runTask),
		on(a, taskRuns, c.taskRuns),
		on(a, allRuns, c.allRuns),
		on(a, heartbeat, c.heartbeat),
		on(a, addPrompt, c.addPrompt),
		on(a, removePrompt, c.removePrompt),
		on(a, runHeartbeat, c.runHeartbeat),
		on(a, heartbeatRuns, c.heartbeatRuns),
	}
}

func (c clocks) tasks(ctx context.Context, _ nothing) (tasksBody, error) {
	list, err := c.schedules.Tasks(ctx)
	return tasksBody{some(list)}, err
}

func (c clocks) task(ctx context.Context, in slugIn) (Task, error) {
	return c.schedules.Task(ctx, in.Slug)
}

func (c clocks) addTask(ctx context.Context, in aBody[TaskChange]) (Task, error) {
	if in.Body.Prompt == nil || *in.Body.Prompt == "" {
		return Task{}, &Invalid{Field: "prompt", Reason: "is missing", Hint: "say what the agent does"}
	}
	return c.schedules.AddTask(ctx, in.Body)
}

func (c clocks) changeTask(ctx context.Context, in taskIn) (Task, error) {
	return c.schedules.ChangeTask(ctx, in.Slug, in.Body)
}

func (c clocks) removeTask(ctx context.Context, in slugIn) (trashBody, error) {
	trash, err := c.schedules.RemoveTask(ctx, in.Slug)
	return trashBody{trash}, err
}

func (c clocks) runTask(ctx context.Context, in slugIn) (slotBody, error) {
	slot, err := c.schedules.RunTask(ctx, in.Slug)
	return slotBody{slot}, err
}

func (c clocks) taskRuns(ctx context.Context, in runsIn) (runsBody, error) {
	runs, err := c.schedules.TaskRuns(ctx, in.Slug, int(in.Limit))
	return runsBody{some(runs)}, err
}

// A SlugRun is a run with the task that it is of; "" is the heartbeat.
type SlugRun struct {
	Slug string `json:"slug"`
	TaskRun
}

// mostRuns is how many runs of one task are looked through.
const mostRuns = 1000

// allRuns are the runs of all tasks and of the heartbeat since a time, the newest first.
func (c clocks) allRuns(ctx context.Context, in sinceIn) (allRunsBody, error) {
	runs := []SlugRun{}
	add := func(slug string, list []TaskRun) {
		for _, r := range list {
			if !r.Slot.Before(in.Since) || !r.At.Before(in.Since) {
				runs = append(runs, SlugRun{slug, r})
			}
		}
	}
	tasks, err := c.schedules.Tasks(ctx)
	if err != nil {
		return allRunsBody{}, err
	}
	for _, t := range tasks {
		list, err := c.schedules.TaskRuns(ctx, t.Slug, mostRuns)
		if err != nil && !errors.Is(err, ErrNoTask) { // it was removed meanwhile
			return allRunsBody{}, err
		}
		add(t.Slug, list)
	}

	list, err := c.schedules.HeartbeatRuns(ctx, mostRuns)
	add("", list)
	slices.SortStableFunc(runs, func(a, b SlugRun) int { return b.At.Compare(a.At) })
	return allRunsBody{runs}, err
}

func (c clocks) heartbeat(ctx context.Context, _ nothing) (Heartbeat, error) {
	h, err := c.schedules.Heartbeat(ctx)
	h.Prompts = some(h.Prompts)
	return h, err
}

func (c clocks) addPrompt(ctx context.Context, in aBody[PromptChange]) (Prompt, error) {
	return c.schedules.AddPrompt(ctx, in.Body)
}

func (c clocks) removePrompt(ctx context.Context, in slugIn) (trashBody, error) {
	trash, err := c.schedules.RemovePrompt(ctx, in.Slug)
	return trashBody{trash}, err
}

func (c clocks) runHeartbeat(ctx context.Context, _ nothing) (slotBody, error) {
	slot, err := c.schedules.RunHeartbeat(ctx)
	return slotBody{slot}, err
}

func (c clocks) heartbeatRuns(ctx context.Context, in limitIn) (runsBody, error) {
	runs, err := c.schedules.HeartbeatRuns(ctx, int(in.Limit))
	return runsBody{some(runs)}, err
}
