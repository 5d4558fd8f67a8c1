package main

import (
	"cmp"
	"context"
	"daycare/engine/workspace"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/finding"

	"github.com/spf13/cobra"
)

func (c *cli) cronCommand() *cobra.Command {
	return group("cron", "Tasks that run on a schedule",
		"  daycare cron add 'every weekday at 9' Summarise my inbox\n  daycare cron ls",
		c.cronLs(), c.cronShow(), c.cronAdd(), c.cronEdit(), c.cronRm(),
		c.cronSwitch("enable", "Switch a task on", true), c.cronSwitch("disable", "Switch a task off; its file stays", false),
		c.cronRun(), c.cronRuns())
}

// tasks completes the first argument with the names of tasks.
func (c *cli) tasks(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	client, err := c.reader(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list, err := client.Tasks(cmd.Context())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, t := range list {
		out = append(out, cobra.CompletionWithDesc(t.Slug, oneLine(t.Words, 60)))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (c *cli) cronLs() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Aliases: []string{"list"},
		Short:   "List tasks with their last outcome and next times",
		Example: "  daycare cron ls",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.reader(cmd.Context())
			if err != nil {
				return err
			}
			tasks, err := client.Tasks(cmd.Context())
			if err != nil {
				return fmt.Errorf("list tasks: %w", err)
			}
			if c.json {
				return c.printJSON(struct {
					Tasks []control.Task `json:"tasks"`
				}{append([]control.Task{}, tasks...)})
			}
			if len(tasks) == 0 {
				c.note("nothing is scheduled")
				return nil
			}
			c.showFindings(tasks)
			return taskTable(tasks, time.Now()).write(c.stdout, c.data())
		},
	}
}

func taskTable(tasks []control.Task, now time.Time) table {
	var t table
	t.row("NAME", "LAST", "NEXT", "WHEN")
	for _, task := range tasks {
		next, when := strings.Join(times(task), ", "), cmp.Or(task.Words, "?")
		switch broken := finding.Join(task.Findings) != nil; {
		case broken && next != "":
			when += ", as it was before the file broke"
		case broken:
			next = "broken"
		case !task.Enabled:
			next = "disabled"
		case next == "":
			next = "-"
		}
		t.row(task.Slug, lastRun(task.Last, now), next, when)
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
	return r.Outcome + " " + ago(r.At, now)
}

// showFindings says what is wrong with files, for people.
func (c *cli) showFindings(tasks []control.Task) {
	for _, t := range tasks {
		for _, f := range t.Findings {
			c.warn("%s", f.Error())
		}
	}
}

func (c *cli) cronShow() *cobra.Command {
	return &cobra.Command{
		Use:     "show NAME",
		Short:   "One task in full",
		Example: "  daycare cron show queue-watch",
		Args:    words(0, "the NAME of a task"), ValidArgsFunction: c.tasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.reader(cmd.Context())
			if err != nil {
				return err
			}
			t, err := client.Task(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("show task: %w", err)
			}
			if c.json {
				return c.printJSON(t)
			}
			c.showFindings([]control.Task{t})
			root, err := c.root()
			if err != nil {
				return err
			}
			state := "on"
			if !t.Enabled {
				state = "off"
			}
			c.fields("name", t.Slug, "title", t.Name, "about", t.Description, "when", t.Words, "next",
				strings.Join(times(t), ", "), "state", state,
				"last", lastRun(t.Last, time.Now()), "agent", cmp.Or(t.AgentID, t.TaskID), "missed runs", t.CatchUp,
				"model", t.Model, "gate", t.Gate,
				"watches", join(", ", strings.Join(t.Watch, ", "), t.WatchCommand), "folder", filepath.Join(root, home, "cron", t.Slug))
			c.print("\n%s\n", clean(t.Prompt))
			return nil
		},
	}
}

func (c *cli) cronRm() *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME",
		Short:   "Move a task to the trash",
		Example: "  daycare cron rm queue-watch",
		Args:    words(0, "the NAME of a task"), ValidArgsFunction: c.tasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.reader(cmd.Context())
			if err != nil {
				return err
			}
			trash, err := client.RemoveTask(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("remove task: %w", err)
			}
			return c.removed(args[0], trash)
		},
	}
}

func (c *cli) removed(name, trash string) error {
	if c.json {
		return c.printJSON(struct {
			Name  string `json:"name"`
			Trash string `json:"trash"`
		}{name, trash})
	}
	c.print("removed %s; it lies in %s\n", name, trash)
	return nil
}

func (c *cli) cronSwitch(use, short string, on bool) *cobra.Command {
	return &cobra.Command{
		Use:     use + " NAME",
		Short:   short,
		Example: "  daycare cron " + use + " queue-watch",
		Args:    words(0, "the NAME of a task"), ValidArgsFunction: c.tasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.changeTask(cmd.Context(), args[0], control.TaskChange{Enabled: &on})
		},
	}
}

// changeTask changes a task and says what it is now.
func (c *cli) changeTask(ctx context.Context, name string, change control.TaskChange) error {
	client, err := c.reader(ctx)
	if err != nil {
		return err
	}
	t, err := client.ChangeTask(ctx, name, change)
	if err != nil {
		return fmt.Errorf("change task: %w", err)
	}
	return c.echoTask(t)
}

// echoTask says when a task is due, in words and in times.
func (c *cli) echoTask(t control.Task) error {
	if c.json {
		return c.printJSON(t)
	}
	c.showFindings([]control.Task{t})
	next := strings.Join(times(t), ", ")
	if !t.Enabled {
		next = "switched off"
	}
	c.fields("task", t.Slug, "when", t.Words, "next", cmp.Or(next, "nothing to come"))
	return c.noteStopped()
}

// noteStopped says that clocks stand still while no daemon runs.
func (c *cli) noteStopped() error {
	dir, err := c.madeRoot()
	if err == nil && !disk.Held(workspace.Lock(dir)) {
		c.note("no daemon runs, so nothing runs by the clock; start it with: daycare start --background")
	}
	return err
}
