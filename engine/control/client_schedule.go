package control

import (
	"context"
	"time"
)

// Tasks lists the scheduled tasks.
func (c *Client) Tasks(ctx context.Context) ([]Task, error) {
	b, err := listTasks.call(ctx, c, nothing{})
	return b.Tasks, err
}

// Task is one of them. Errors: ErrNoTask.
func (c *Client) Task(ctx context.Context, slug string) (Task, error) {
	return showTask.call(ctx, c, slugIn{slug})
}

// AddTask makes a task.
func (c *Client) AddTask(ctx context.Context, change TaskChange) (Task, error) {
	return addTask.call(ctx, c, aBody[TaskChange]{change})
}

// ChangeTask changes a task. Errors: ErrNoTask.
func (c *Client) ChangeTask(ctx context.Context, slug string, change TaskChange) (Task, error) {
	return setTask.call(ctx, c, taskIn{slug, change})
}

// RemoveTask moves a task to the trash and says where it lies there.
func (c *Client) RemoveTask(ctx context.Context, slug string) (string, error) {
	b, err := removeTask.call(ctx, c, slugIn{slug})
	return b.Trash, err
}

// RunTask begins a run beside the schedule. Errors: ErrNoTask, ErrTaskBusy.
func (c *Client) RunTask(ctx context.Context, slug string) (time.Time, error) {
	b, err := runTask.call(ctx, c, slugIn{slug})
	return b.Slot, err
}

// TaskRuns are the newest runs, oldest first; limit 0: 20.
func (c *Client) TaskRuns(ctx context.Context, slug string, limit int) ([]TaskRun, error) {
	b, err := taskRuns.call(ctx, c, runsIn{slug, int64(max(limit, 0))})
	return b.Runs, err
}

// Heartbeat is what the heartbeat looks at.
func (c *Client) Heartbeat(ctx context.Context) (Heartbeat, error) {
	return heartbeat.call(ctx, c, nothing{})
}

// AddPrompt adds a point to it.
func (c *Client) AddPrompt(ctx context.Context, p PromptChange) (Prompt, error) {
	return addPrompt.call(ctx, c, aBody[PromptChange]{p})
}

// RemovePrompt moves a point of it to the trash. Errors: ErrNoTask.
func (c *Client) RemovePrompt(ctx context.Context, slug string) (string, error) {
	b, err := removePrompt.call(ctx, c, slugIn{slug})
	return b.Trash, err
}

// RunHeartbeat runs it now. Errors: ErrNoTask if there is no prompt, ErrTaskBusy.
func (c *Client) RunHeartbeat(ctx context.Context) (time.Time, error) {
	b, err := runHeartbeat.call(ctx, c, nothing{})
	return b.Slot, err
}

// HeartbeatRuns are its newest runs, oldest first; limit 0: 20.
func (c *Client) HeartbeatRuns(ctx context.Context, limit int) ([]TaskRun, error) {
	b, err := heartbeatRuns.call(ctx, c, limitIn{int64(max(limit, 0))})
	return b.Runs, err
}
