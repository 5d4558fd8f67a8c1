package control

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

func cronPath(slug string, more ...string) string {
	p := "/v1/cron/" + segment(slug)
	for _, m := range more {
		p += "/" + m
	}
	return p
}

// Tasks lists the scheduled tasks.
func (c *Client) Tasks(ctx context.Context) ([]Task, error) {
	var b tasksBody
	err := c.do(ctx, http.MethodGet, "/v1/cron", nil, &b)
	return b.Tasks, err
}

// Task is one of them. Errors: ErrNoTask.
func (c *Client) Task(ctx context.Context, slug string) (t Task, err error) {
	err = c.do(ctx, http.MethodGet, cronPath(slug), nil, &t)
	return t, err
}

// AddTask makes a task.
func (c *Client) AddTask(ctx context.Context, change TaskChange) (t Task, err error) {
	err = c.do(ctx, http.MethodPost, "/v1/cron", change, &t)
	return t, err
}

// ChangeTask changes a task. Errors: ErrNoTask.
func (c *Client) ChangeTask(ctx context.Context, slug string, change TaskChange) (t Task, err error) {
	err = c.do(ctx, http.MethodPut, cronPath(slug), change, &t)
	return t, err
}

// RemoveTask moves a task to the trash and says where it lies there.
func (c *Client) RemoveTask(ctx context.Context, slug string) (string, error) {
	var b trashBody
	err := c.do(ctx, http.MethodDelete, cronPath(slug), nil, &b)
	return b.Trash, err
}

// RunTask begins a run beside the schedule. Errors: ErrNoTask, ErrTaskBusy.
func (c *Client) RunTask(ctx context.Context, slug string) (time.Time, error) {
	var b slotBody
	err := c.do(ctx, http.MethodPost, cronPath(slug, "run"), nil, &b)
	return b.Slot, err
}

// TaskRuns are the newest runs, oldest first; limit 0: 20.
func (c *Client) TaskRuns(ctx context.Context, slug string, limit int) ([]TaskRun, error) {
	var b runsBody
	err := c.do(ctx, http.MethodGet, cronPath(slug, "runs")+limitQuery(limit), nil, &b)
	return b.Runs, err
}

func limitQuery(limit int) string {
	if limit <= 0 {
		return ""
	}
	return "?limit=" + strconv.Itoa(limit)
}

// Heartbeat is what the heartbeat looks at.
func (c *Client) Heartbeat(ctx context.Context) (h Heartbeat, err error) {
	return h, c.do(ctx, http.MethodGet, "/v1/heartbeats", nil, &h)
}

// AddPrompt adds a point to it.
func (c *Client) AddPrompt(ctx context.Context, p PromptChange) (made Prompt, err error) {
	return made, c.do(ctx, http.MethodPost, "/v1/heartbeats", p, &made)
}

// RemovePrompt moves a point of it to the trash. Errors: ErrNoTask.
func (c *Client) RemovePrompt(ctx context.Context, slug string) (string, error) {
	var b trashBody
	err := c.do(ctx, http.MethodDelete, "/v1/heartbeats/"+segment(slug), nil, &b)
	return b.Trash, err
}

// RunHeartbeat runs it now. Errors: ErrNoTask if there is no prompt, ErrTaskBusy.
func (c *Client) RunHeartbeat(ctx context.Context) (time.Time, error) {
	var b slotBody
	err := c.do(ctx, http.MethodPost, "/v1/heartbeats/run", nil, &b)
	return b.Slot, err
}

// HeartbeatRuns are its newest runs, oldest first; limit 0: 20.
func (c *Client) HeartbeatRuns(ctx context.Context, limit int) ([]TaskRun, error) {
	var b runsBody
	err := c.do(ctx, http.MethodGet, "/v1/heartbeats/runs"+limitQuery(limit), nil, &b)
	return b.Runs, err
}
