package control

import (
	"context"
	"time"
)

// A ScheduleClient is what a Client says about tasks and the heartbeat.
type ScheduleClient struct{ c *wire }

// Schedule is about tasks and the heartbeat.
func (c *Client) Schedule() ScheduleClient { return ScheduleClient{c.wire} }

// Tasks lists the scheduled tasks.
func (s ScheduleClient) Tasks(ctx context.Context) ([]Task, error) {
	b, err := listTasks.call(ctx, s.c, nothing{})
	return b.Tasks, err
}

// Task is one of them. Errors: ErrNoTask.
func (s ScheduleClient) Task(ctx context.Context, slug string) (Task, error) {
	return showTask.call(ctx, s.c, slugIn{slug})
}

// AddTask makes a task.
func (s ScheduleClient) AddTask(ctx context.Context, change TaskChange) (Task, error) {
	return addTask.call(ctx, s.c, aBody[TaskChange]{change})
}

// ChangeTask changes a task. Errors: ErrNoTask.
func (s ScheduleClient) ChangeTask(ctx context.Context, slug string, change TaskChange) (Task, error) {
	return setTask.call(ctx, s.c, taskIn{slug, change})
}

// RemoveTask moves a task to the trash and says where it lies there.
func (s ScheduleClient) RemoveTask(ctx context.Context, slug string) (string, error) {
	b, err := removeTask.call(ctx, s.c, slugIn{slug})
	return b.Trash, err
}

// RunTask begins a run beside the schedule. Errors: ErrNoTask, ErrTaskBusy.
func (s ScheduleClient) RunTask(ctx context.Context, slug string) (time.Time, error) {
	b, err := runTask.call(ctx, s.c, slugIn{slug})
	return b.Slot, err
}

// TaskRuns are the newest runs, oldest first; limit 0: 20.
func (s ScheduleClient) TaskRuns(ctx context.Context, slug string, limit int) ([]TaskRun, error) {
	b, err := taskRuns.call(ctx, s.c, runsIn{slug, int64(max(limit, 0))})
	return b.Runs, err
}

// Heartbeat is what the heartbeat looks at.
func (s ScheduleClient) Heartbeat(ctx context.Context) (Heartbeat, error) {
	return heartbeat.call(ctx, s.c, nothing{})
}

// AddPrompt adds a point to it.
func (s ScheduleClient) AddPrompt(ctx context.Context, p PromptChange) (Prompt, error) {
	return addPrompt.call(ctx, s.c, aBody[PromptChange]{p})
}

// RemovePrompt moves a point of it to the trash. Errors: ErrNoTask.
func (s ScheduleClient) RemovePrompt(ctx context.Context, slug string) (string, error) {
	b, err := removePrompt.call(ctx, s.c, slugIn{slug})
	return b.Trash, err
}

// RunHeartbeat runs it now. Errors: ErrNoTask if there is no prompt, ErrTaskBusy.
func (s ScheduleClient) RunHeartbeat(ctx context.Context) (time.Time, error) {
	b, err := runHeartbeat.call(ctx, s.c, nothing{})
	return b.Slot, err
}

// HeartbeatRuns are its newest runs, oldest first; limit 0: 20.
func (s ScheduleClient) HeartbeatRuns(ctx context.Context, limit int) ([]TaskRun, error) {
	b, err := heartbeatRuns.call(ctx, s.c, limitIn{int64(max(limit, 0))})
	return b.Runs, err
}
