package control

import (
	"context"
	"time"
)

// Bodies of answers.
type (
	tasksBody struct {
		Tasks []Task `json:"tasks"`
	}
	runsBody struct {
		Runs []TaskRun `json:"runs"`
	}
	slotBody struct {
		Slot time.Time `json:"slot"`
	}
)

// clocks is the routes of Schedules.
type clocks struct{ schedules Schedules }

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
