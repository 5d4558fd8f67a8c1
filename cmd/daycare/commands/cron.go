package commands

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/finding"
)

// Cron is the group of commands for tasks that run on a schedule.
func Cron(c *term.App) *cobra.Command {
	return term.Group("cron", "Manage scheduled tasks",
		"  daycare cron add 'every weekday at 9' Summarise my inbox\n  daycare cron ls",
		cronLs(c), cronShow(c), cronAdd(c), cronEdit(c), cronRm(c),
		cronSwitch(c, "enable", "Enable a task", true), cronSwitch(c, "disable", "Disable a task; its file stays", false),
		cronRun(c), cronRuns(c))
}

// tasks completes the first argument with the names of tasks.
var tasks = term.Listed(func(client *control.Client, ctx context.Context) ([]control.Task, error) {
	return client.Schedule().Tasks(ctx)
}, func(t control.Task) cobra.Completion {
	return cobra.CompletionWithDesc(t.Slug, term.OneLine(t.Words, 60))
})

func cronLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List tasks with their last result and next runs",
		Example: "  daycare cron ls",
		Args:    term.Words(0),
		RunE: term.List(c, term.Listing[control.Task]{Key: "tasks", None: "no tasks",
			Get: func(api *control.Client, ctx context.Context) ([]control.Task, error) {
				return api.Schedule().Tasks(ctx)
			},
			Table: func(tasks []control.Task) (term.Table, error) {
				showFindings(c, tasks)
				return taskTable(tasks, time.Now()), nil
			}}),
	}
}

func taskTable(tasks []control.Task, now time.Time) term.Table {
	var t term.Table
	t.Row("NAME", "LAST", "NEXT", "WHEN")
	for _, task := range tasks {
		next, when := strings.Join(times(task), ", "), cmp.Or(task.Words, "?")
		switch broken := finding.Join(task.Findings) != nil; {
		case broken && next != "":
			when += ", from the last valid version of the file"
		case broken:
			next = "broken"
		case !task.Enabled:
			next = "disabled"
		case next == "":
			next = "-"
		}

		t.Row(task.Slug, lastRun(task.Last, now), next, when)
	}

	return t
}

// times are the next runs by the clock of the task's zone.
func times(t control.Task) []string {
	zone, err := time.LoadLocation(t.Timezone)
	if err != nil {
		zone = time.Local
	}
	var out []string
	for _, at := range t.Next {
		layout := "Mon 2006-01-02 15:04"
		if at.Second() != 0 {
			layout += ":05"
		}
		out = append(out, at.In(zone).Format(layout))
	}

	return out
}

func lastRun(r *control.TaskRun, now time.Time) string {
	switch {
	case r == nil:
		return "never"
	case r.Outcome == "running":
		return "running"
	}

	return r.Outcome + " " + term.Ago(r.At, now)
}

// showFindings says what is wrong with files, for users.
func showFindings(c *term.App, tasks []control.Task) {
	for _, t := range tasks {
		for _, f := range t.Findings {
			c.Warn("%s", f.Error())
		}
	}
}

func cronShow(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "Show one task",
		Example: "  daycare cron show queue-watch",
		Args:    term.Words(0, "the NAME of a task"), ValidArgsFunction: c.Complete(tasks),
		RunE: term.Read(c, func(ctx context.Context, client *control.Client, args []string) (control.Task, error) {
			t, err := client.Schedule().Task(ctx, args[0])
			return t, term.Wrap(err, "show task")
		}, func(t control.Task) error { return showTask(c, t) }),
	}
}

func showTask(c *term.App, t control.Task) error {
	showFindings(c, []control.Task{t})
	at, err := c.Place()
	if err != nil {
		return err
	}

	state := "on"
	if !t.Enabled {
		state = "off"
	}

	c.Fields("name", t.Slug, "title", t.Name, "about", t.Description, "when", t.Words, "next", strings.Join(times(t), ", "),
		"state", state, "last", lastRun(t.Last, time.Now()), "agent", cmp.Or(t.AgentID, t.TaskID), "missed runs", t.CatchUp,
		"model", t.Model, "gate", t.Gate, "watches", term.Join(", ", strings.Join(t.Watch, ", "), t.WatchCommand),
		"folder", filepath.Join(at.Data, "cron", t.Slug))
	c.Print("\n%s\n", t.Prompt)

	return nil
}

func cronRm(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME",
		Short:   "Move a task to the trash",
		Example: "  daycare cron rm queue-watch",
		Args:    term.Words(0, "the NAME of a task"), ValidArgsFunction: c.Complete(tasks),
		RunE: toTrash(c, "remove task", control.ScheduleClient.RemoveTask),
	}
}

// toTrash moves the file that a name stands for to the trash.
func toTrash(c *term.App, what string, remove func(control.ScheduleClient, context.Context, string) (string, error)) func(*cobra.Command,
	[]string) error {
	type removed struct {
		Name  string `json:"name"`
		Trash string `json:"trash"`
	}
	return term.Read(c, func(ctx context.Context, client *control.Client, args []string) (removed, error) {
		trash, err := remove(client.Schedule(), ctx, args[0])
		return removed{args[0], trash}, term.Wrap(err, "%s", what)
	}, func(r removed) error {
		c.Print("removed %s; it is in %s\n", r.Name, r.Trash)
		return nil
	})
}

func cronSwitch(c *term.App, use, short string, on bool) *cobra.Command {
	return &cobra.Command{
		Use:     use + " NAME",
		Short:   short,
		Example: "  daycare cron " + use + " queue-watch",
		Args:    term.Words(0, "the NAME of a task"), ValidArgsFunction: c.Complete(tasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeTask(cmd.Context(), c, args[0], control.TaskChange{Enabled: &on})
		},
	}
}

// changeTask changes a task and says what it is now.
func changeTask(ctx context.Context, c *term.App, name string, change control.TaskChange) error {
	client, err := c.Reader(ctx)
	if err != nil {
		return err
	}
	t, err := client.Schedule().ChangeTask(ctx, name, change)
	if err != nil {
		return fmt.Errorf("change task: %w", err)
	}

	return echoTask(c, t)
}

// echoTask says when a task is due, in words and in times.
func echoTask(c *term.App, t control.Task) error {
	if c.JSON {
		return c.PrintJSON(t)
	}
	showFindings(c, []control.Task{t})
	next := strings.Join(times(t), ", ")
	if !t.Enabled {
		next = "disabled"
	}

	c.Fields("task", t.Slug, "when", t.Words, "next", cmp.Or(next, "no further runs"))

	return noteStopped(c)
}

// noteStopped says that no task becomes due while no daemon runs.
func noteStopped(c *term.App) error {
	at, err := c.MadePlace()
	if err == nil && !disk.Held(at.Lock()) {
		c.Note("%s, so no task runs; %s", fault.NotRunning.Text, fault.NotRunning.Hint)
	}

	return err
}
