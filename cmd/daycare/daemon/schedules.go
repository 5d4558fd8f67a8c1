package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/schedule"
)

// schedules is the clocks as the API wants them.
type schedules struct{ *schedule.Scheduler }

// known gives the errors of the clocks the names that the API knows them by.
func (s schedules) known(err error) error {
	var f finding.Finding
	switch {
	case errors.Is(err, schedule.ErrName):
		return fmt.Errorf("%w: %w", control.ErrNoTask, err)
	case errors.Is(err, schedule.ErrPhrase):
		return &control.Invalid{Field: "when", Reason: err.Error()}
	case errors.As(err, &f):
		return &control.Invalid{Reason: f.Reason, Hint: f.Remedy}
	case errors.Is(err, disk.ErrChanged):
		return &control.Invalid{Reason: "the file is changing on disk", Hint: "check the file and try again"}
	}

	return err
}

// Tasks lists the scheduled tasks.
func (s schedules) Tasks(context.Context) ([]control.Task, error) {
	all, _, err := s.Scheduler.Tasks()
	var list []control.Task
	for _, e := range all {
		list = append(list, taskOf(e))
	}

	return list, s.known(err)
}

// Task is one of them.
func (s schedules) Task(_ context.Context, slug string) (control.Task, error) {
	e, err := s.Scheduler.Task(slug)
	return taskOf(e), s.known(err)
}

// AddTask makes a task.
func (s schedules) AddTask(_ context.Context, c control.TaskChange) (control.Task, error) {
	change, err := s.change(c, "")
	if err != nil {
		return control.Task{}, s.known(err)
	}
	e, err := s.Create("", change)

	return taskOf(e), s.known(err)
}

// ChangeTask changes a task's file.
func (s schedules) ChangeTask(_ context.Context, slug string, c control.TaskChange) (control.Task, error) {
	e, err := s.Scheduler.Task(slug)
	if err != nil {
		return control.Task{}, s.known(err)
	}
	change, err := s.change(c, e.Timezone)
	if err != nil {
		return control.Task{}, s.known(err)
	}

	e, err = s.Update(slug, change)

	return taskOf(e), s.known(err)
}

// change reads a change as the API takes it.
func (s schedules) change(c control.TaskChange, zoneName string) (schedule.Change, error) {
	out := schedule.Change{Name: c.Name, Description: c.Description, Prompt: c.Prompt, Timezone: c.Timezone,
		Enabled: c.Enabled, Agent: c.AgentID,
		CatchUp: (*schedule.CatchUp)(c.CatchUp), DeleteAfterRun: c.DeleteAfterRun, Model: c.Model, GateCommand: c.Gate,
		Watch: c.Watch, WatchCommand: c.WatchCommand}
	if c.Timezone != nil {
		zoneName = *c.Timezone
	}

	in, err := schedule.LoadZone(zoneName, s.Zone())
	if err != nil {
		return out, &control.Invalid{Field: "timezone", Reason: err.Error()}
	}
	var t schedule.Timing
	for value, field := range map[*string]*string{c.Schedule: &t.Cron, c.Every: &t.Every, c.At: &t.At} {
		if value != nil {
			*field, out.Timing = *value, &t
		}
	}

	if c.When != nil {
		if t, err = schedule.ParseWhen(*c.When, s.Now(), in); err != nil {
			return out, err
		}
		out.Timing = &t
	}

	return out, nil
}

// RemoveTask moves a task to the trash.
func (s schedules) RemoveTask(_ context.Context, slug string) (string, error) {
	trash, err := s.Remove(slug)
	return trash, s.known(err)
}

// RunTask begins a run.
func (s schedules) RunTask(_ context.Context, slug string) (time.Time, error) {
	slot, err := s.RunNow(slug)
	return slot, s.known(err)
}

// TaskRuns are the newest runs.
func (s schedules) TaskRuns(_ context.Context, slug string, limit int) ([]control.TaskRun, error) {
	runs, err := s.Runs(slug, limit)
	return runsOf(runs), s.known(err)
}

// Heartbeat is what the heartbeat looks at.
func (s schedules) Heartbeat(context.Context) (control.Heartbeat, error) {
	b, _, err := s.Scheduler.Heartbeat()
	h := control.Heartbeat{Running: b.Running, Stopped: b.Stopped}
	if b.Every > 0 {
		h.Every = config.FormatDuration(b.Every)
	}
	if !b.Next.IsZero() {
		h.Next = &b.Next
	}
	if b.Last != nil {
		h.Last = &runsOf([]schedule.Run{*b.Last})[0]
	}

	for _, p := range b.Prompts {
		h.Prompts = append(h.Prompts, promptOf(p))
	}

	return h, s.known(err)
}

// AddPrompt adds a point to it.
func (s schedules) AddPrompt(_ context.Context, p control.PromptChange) (control.Prompt, error) {
	made, err := s.Scheduler.AddPrompt(p.Title, p.Prompt, p.Gate, p.ActiveHours, false)
	return promptOf(made), s.known(err)
}

// RemovePrompt moves a point of it to the trash.
func (s schedules) RemovePrompt(_ context.Context, slug string) (string, error) {
	trash, err := s.Scheduler.RemovePrompt(slug)
	return trash, s.known(err)
}

// RunHeartbeat runs it now.
func (s schedules) RunHeartbeat(context.Context) (time.Time, error) {
	slot, err := s.BeatNow()
	return slot, s.known(err)
}

// HeartbeatRuns are its newest runs.
func (s schedules) HeartbeatRuns(_ context.Context, limit int) ([]control.TaskRun, error) {
	runs, err := s.PromptRuns(limit)
	return runsOf(runs), s.known(err)
}

func promptOf(p schedule.PromptEntry) control.Prompt {
	return control.Prompt{Slug: p.Slug, Title: p.Title, Enabled: p.Enabled, Prompt: p.Text, Findings: p.Found}
}

func taskOf(e schedule.Entry) control.Task {
	t := control.Task{Slug: e.Slug, TaskID: e.ID, Name: e.Name, Description: e.Description, Timezone: e.Timezone, Enabled: e.Enabled,
		AgentID: e.Agent, CatchUp: string(e.CatchUp), DeleteAfterRun: e.DeleteAfterRun, Model: e.Model, Watch: e.Watch,
		WatchCommand: e.WatchCommand, Prompt: e.Prompt, Running: e.Running, Next: e.Next, Findings: e.Found}
	timing := e.When.Timing()
	t.Schedule, t.Every, t.At = timing.Cron, timing.Every, timing.At
	if e.When.Zone() != nil {
		t.Words, t.Timezone = e.When.String(), e.When.Zone().String()
	}
	if e.Gate != nil {
		t.Gate = e.Gate.Command
	}
	if t.Next == nil {
		t.Next = []time.Time{}
	}
	if e.Last != nil {
		t.Last = &runsOf([]schedule.Run{*e.Last})[0]
	}

	return t
}

func runsOf(runs []schedule.Run) []control.TaskRun {
	list := []control.TaskRun{}
	for _, r := range runs {
		out := control.TaskRun{Slot: r.Slot, At: r.At, Outcome: string(r.Outcome), Reason: r.Reason, Via: string(r.Via),
			Why: r.Why, Item: r.Item, MS: r.MS}
		if r.Outcome == "" {
			out.Outcome = "running"
		}
		if r.Count > 1 {
			out.From, out.Count = &r.From, r.Count
		}
		list = append(list, out)
	}

	return list
}
