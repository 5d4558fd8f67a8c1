package control

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"daycare/engine/finding"
)

// ErrNoTask: no task or prompt of the heartbeat has that name.
var ErrNoTask = errors.New("no such task")

// ErrTaskBusy: a run of it is under way.
var ErrTaskBusy = errors.New("it is running already")

// Schedules is what the API needs of the clocks. A name that is no slug and a
// change that would not be in force are *Invalid.
type Schedules interface {
	Tasks(ctx context.Context) ([]Task, error)
	Task(ctx context.Context, slug string) (Task, error)
	AddTask(ctx context.Context, c TaskChange) (Task, error)
	ChangeTask(ctx context.Context, slug string, c TaskChange) (Task, error)
	RemoveTask(ctx context.Context, slug string) (trash string, err error)
	// RunTask begins a run beside the schedule and returns its slot.
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
	Words          string            `json:"words"` // when it is due, in words
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
	Findings       []finding.Finding `json:"findings,omitempty"` // with one of severity error it is not in force
}

// A TaskRun is one slot and its fate.
type TaskRun struct {
	Slot    time.Time  `json:"slot"`    // the nominal time
	At      time.Time  `json:"at"`      // the actual time
	Outcome string     `json:"outcome"` // ran, skipped, missed, failed, running
	Reason  string     `json:"reason,omitempty"`
	Via     string     `json:"via,omitempty"` // catch-up, watch, hand; "" is on time
	Why     string     `json:"why,omitempty"`
	Item    string     `json:"item,omitempty"`
	MS      int64      `json:"ms,omitempty"`
	From    *time.Time `json:"from,omitempty"` // Count slots from here to Slot share the line
	Count   int        `json:"count,omitempty"`
}

// A TaskChange is the body of POST and PUT /v1/cron; what is absent stays as it is.
type TaskChange struct {
	Name        *string `json:"name,omitempty"`
	Description *string `json:"description,omitempty"`
	Prompt      *string `json:"prompt,omitempty"`
	// When is any way to say it: plain words, a date, a time span, a cron
	// expression. The three after it say which it is.
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

// A Heartbeat is what is looked at now and then, and how that goes.
type Heartbeat struct {
	Every   string     `json:"every"` // "" if it is switched off
	Next    *time.Time `json:"next"`
	Last    *TaskRun   `json:"last"`
	Running bool       `json:"running"`
	Stopped bool       `json:"stopped"` // after too many failures in a row
	Prompts []Prompt   `json:"prompts"`
}

// A Prompt is one point of the heartbeat.
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
	slotBody struct {
		Slot time.Time `json:"slot"`
	}
)

// clocks is the routes of Schedules.
type clocks struct {
	*api
	Schedules
}

// scheduleRoutes adds the routes of the clocks.
func (a *api) scheduleRoutes(mux *http.ServeMux, s Schedules) {
	c := clocks{a, s}
	mux.HandleFunc("GET /v1/cron", a.handle(c.tasks))
	mux.HandleFunc("POST /v1/cron", a.handle(c.addTask))
	mux.HandleFunc("GET /v1/cron/{slug}", a.handle(c.task))
	mux.HandleFunc("PUT /v1/cron/{slug}", a.handle(c.changeTask))
	mux.HandleFunc("DELETE /v1/cron/{slug}", a.handle(c.removeTask))
	mux.HandleFunc("POST /v1/cron/{slug}/run", a.handle(c.runTask))
	mux.HandleFunc("GET /v1/cron/{slug}/runs", a.handle(c.taskRuns))
	mux.HandleFunc("GET /v1/heartbeats", a.handle(c.heartbeat))
	mux.HandleFunc("POST /v1/heartbeats", a.handle(c.addPrompt))
	mux.HandleFunc("DELETE /v1/heartbeats/{slug}", a.handle(c.removePrompt))
	mux.HandleFunc("POST /v1/heartbeats/run", a.handle(c.runHeartbeat))
	mux.HandleFunc("GET /v1/heartbeats/runs", a.handle(c.heartbeatRuns))
}

// clockError gives the errors of the clocks their status.
func clockError(err error) error {
	switch {
	case errors.Is(err, ErrNoTask):
		return &APIError{Status: http.StatusNotFound, Code: codeNoTask, Message: err.Error(), Hint: "GET /v1/cron and /v1/heartbeats list them"}
	case errors.Is(err, ErrTaskBusy):
		return &APIError{Status: http.StatusConflict, Code: codeTaskBusy, Message: err.Error(), Hint: "wait until the run has ended"}
	}
	return err
}

const (
	codeNoTask   = "unknown_task"
	codeTaskBusy = "task_busy"
)

func (c clocks) tasks(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	list, err := c.Tasks(r.Context())
	return http.StatusOK, tasksBody{some(list)}, clockError(err)
}

func (c clocks) task(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	t, err := c.Task(r.Context(), r.PathValue("slug"))
	return http.StatusOK, t, clockError(err)
}

func (c clocks) addTask(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var change TaskChange
	if err := decode(w, r, maxBody, &change); err != nil {
		return 0, nil, err
	}
	if change.Prompt == nil || *change.Prompt == "" {
		return 0, nil, &Invalid{Field: "prompt", Reason: "is missing", Hint: "say what the agent shall do"}
	}
	t, err := c.AddTask(r.Context(), change)
	return http.StatusCreated, t, clockError(err)
}

func (c clocks) changeTask(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var change TaskChange
	if err := decode(w, r, maxBody, &change); err != nil {
		return 0, nil, err
	}
	t, err := c.ChangeTask(r.Context(), r.PathValue("slug"), change)
	return http.StatusOK, t, clockError(err)
}

func (c clocks) removeTask(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	trash, err := c.RemoveTask(r.Context(), r.PathValue("slug"))
	return http.StatusOK, trashBody{trash}, clockError(err)
}

func (c clocks) runTask(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	slot, err := c.RunTask(r.Context(), r.PathValue("slug"))
	return http.StatusAccepted, slotBody{slot}, clockError(err)
}

func (c clocks) taskRuns(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	limit, err := runLimit(r)
	if err != nil {
		return 0, nil, err
	}
	runs, err := c.TaskRuns(r.Context(), r.PathValue("slug"), limit)
	return http.StatusOK, runsBody{some(runs)}, clockError(err)
}

func (c clocks) heartbeat(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	h, err := c.Heartbeat(r.Context())
	h.Prompts = some(h.Prompts)
	return http.StatusOK, h, clockError(err)
}

func (c clocks) addPrompt(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var p PromptChange
	if err := decode(w, r, maxBody, &p); err != nil {
		return 0, nil, err
	}
	made, err := c.AddPrompt(r.Context(), p)
	return http.StatusCreated, made, clockError(err)
}

func (c clocks) removePrompt(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	trash, err := c.RemovePrompt(r.Context(), r.PathValue("slug"))
	return http.StatusOK, trashBody{trash}, clockError(err)
}

func (c clocks) runHeartbeat(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	slot, err := c.RunHeartbeat(r.Context())
	return http.StatusAccepted, slotBody{slot}, clockError(err)
}

func (c clocks) heartbeatRuns(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	limit, err := runLimit(r)
	if err != nil {
		return 0, nil, err
	}
	runs, err := c.HeartbeatRuns(r.Context(), limit)
	return http.StatusOK, runsBody{some(runs)}, clockError(err)
}

// runLimit is how many runs are asked for.
func runLimit(r *http.Request) (int, error) {
	n, err := number(r, "limit", 20, 1, maxPage)
	return int(n), err
}

// taskError is clockError seen from the other side.
func taskError(err error, name string) error {
	var api *APIError
	if errors.As(err, &api) {
		switch api.Code {
		case codeNoTask:
			return fmt.Errorf("%w: %s", ErrNoTask, name)
		case codeTaskBusy:
			return ErrTaskBusy
		}
	}
	return err
}
