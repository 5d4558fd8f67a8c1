package control

import (
	"context"
	"time"
)

// A ScheduleClient has the operations on tasks and the heartbeat.
type ScheduleClient struct{ c *wire }

// Schedule returns the operations on tasks and the heartbeat.
func (c *Client) Schedule() ScheduleClient { return ScheduleClient{c.wire} }

// Tasks lists the scheduled tasks.
func (s ScheduleClient) Tasks(ctx context.Context) ([]Task, error) {
	b, err := listTasks.call(ctx, s.c, nothing{})
	return b.Tasks, err
}

// Task returns one task. Errors: ErrNoTask.
func (s ScheduleClient) Task(ctx context.Context, slug string) (Task, error) {
	return showTask.call(ctx, s.c, slugIn{slug})
}

// AddTask creates a task.
func (s ScheduleClient) AddTask(ctx context.Context, change TaskChange) (Task, error) {
	return addTask.call(ctx, s.c, aBody[TaskChange]{change})
}

// ChangeTask changes a task. Errors: ErrNoTask.
func (s ScheduleClient) ChangeTask(ctx context.Context, slug string, change TaskChange) (Task, error) {
	return setTask.call(ctx, s.c, taskIn{slug, change})
}

// RemoveTask moves a task to the trash and returns its new path.
func (s ScheduleClient) RemoveTask(ctx context.Context, slug string) (string, error) {
	b, err := removeTask.call(ctx, s.c, slugIn{slug})
	return b.Trash, err
}

// RunTask starts a run in addition to the schedule. Errors: ErrNoTask, ErrTaskBusy.
func (s ScheduleClient) RunTask(ctx context.Context, slug string) (time.Time, error) {
	b, err := runTask.call(ctx, s.c, slugIn{slug})
	return b.Slot, err
}

// TaskRuns returns the newest runs of a task, oldest first; limit 0: 20.
func (s ScheduleClient) TaskRuns(ctx context.Context, slug string, limit int) ([]TaskRun, error) {
	b, err := taskRuns.call(ctx, s.c, runsIn{slug, int64(max(limit, 0))})
	return b.Runs, err
}

// Heartbeat returns the items and the state of the heartbeat.
func (s ScheduleClient) Heartbeat(ctx context.Context) (Heartbeat, error) {
	return heartbeat.call(ctx, s.c, nothing{})
}

// AddPrompt adds an item to the heartbeat.
func (s ScheduleClient) AddPrompt(ctx context.Context, p PromptChange) (Prompt, error) {
	return addPrompt.call(ctx, s.c, aBody[PromptChange]{p})
}

// RemovePrompt moves an item of the heartbeat to the trash and returns its new path. Errors:
// ErrNoTask.
func (s ScheduleClient) RemovePrompt(ctx context.Context, slug string) (string, error) {
	b, err := removePrompt.call(ctx, s.c, slugIn{slug})
	return b.Trash, err
}

// RunHeartbeat runs the heartbeat now. Errors: ErrNoTask if it has no items, ErrTaskBusy.
func (s ScheduleClient) RunHeartbeat(ctx context.Context) (time.Time, error) {
	b, err := runHeartbeat.call(ctx, s.c, nothing{})
	return b.Slot, err
}

// HeartbeatRuns returns the newest runs of the heartbeat, oldest first; limit 0: 20.
func (s ScheduleClient) HeartbeatRuns(ctx context.Context, limit int) ([]TaskRun, error) {
	b, err := heartbeatRuns.call(ctx, s.c, limitIn{int64(max(limit, 0))})
	return b.Runs, err
}
