package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/fault"
)

// taskFlags are the flags of add and edit.
type taskFlags struct {
	timeFlags
	name, agent, catchUp, model, gate, description, watchCommand string

	watch          []string
	deleteAfterRun bool
}

// timeFlags say when a task runs.
type timeFlags struct{ cron, every, at, tz string }

func (f *taskFlags) define(c *term.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.name, "name", "", "its name")
	flags.StringVar(&f.description, "description", "", "what it is for")
	flags.StringVar(&f.cron, "cron", "", "five fields: minute, hour, day of month, month, day of week; or @hourly, @daily, @weekly, …")
	flags.StringVar(&f.every, "every", "", "a time span: 10m, 2h, 1d")
	flags.StringVar(&f.at, "at", "", "once, at a date and time: 2026-12-01T09:00")
	flags.StringVar(&f.tz, "tz", "", "time zone: Europe/Berlin (default: cron.timezone, else this machine's)")
	flags.StringVar(&f.agent, "agent", "", "run it in this agent's conversation (default: a separate agent)")
	flags.StringVar(&f.catchUp, "catch-up", "", "which missed runs to catch up: one, all or none")
	flags.StringVar(&f.model, "model", "", "the model to use (default: the agent's usual one)")
	flags.StringVar(&f.gate, "gate", "", "command that decides whether the task runs: exit code 0 runs it, with the output")
	flags.StringArrayVar(&f.watch, "watch", nil, "run only when a file matching this pattern changed; repeatable")
	flags.StringVar(&f.watchCommand, "watch-command", "", "run only when this command's output changed")
	flags.BoolVar(&f.deleteAfterRun, "delete-after-run", false, "move it to the trash after it has run")
	_ = cmd.RegisterFlagCompletionFunc("agent", c.AgentRefs)
	_ = cmd.RegisterFlagCompletionFunc("catch-up", term.OneOf("one", "all", "none"))
}

// timed reports whether a flag says when.
func (f *taskFlags) timed(cmd *cobra.Command) bool {
	for _, name := range []string{"cron", "every", "at", "watch", "watch-command"} {
		if cmd.Flags().Changed(name) {
			return true
		}
	}

	return false
}

// change is what the flags that were given say.
func (f *taskFlags) change(cmd *cobra.Command) control.TaskChange {
	given := func(name string, v *string) *string {
		if !cmd.Flags().Changed(name) {
			return nil
		}
		return v
	}
	c := control.TaskChange{Name: given("name", &f.name), Description: given("description", &f.description),
		Schedule: given("cron", &f.cron),
		Every:    given("every", &f.every), At: given("at", &f.at), Timezone: given("tz", &f.tz), AgentID: given("agent", &f.agent),
		CatchUp: given("catch-up", &f.catchUp), Model: given("model", &f.model), Gate: given("gate", &f.gate),
		WatchCommand: given("watch-command", &f.watchCommand)}
	if cmd.Flags().Changed("watch") {
		c.Watch = &f.watch
	}
	if cmd.Flags().Changed("delete-after-run") {
		c.DeleteAfterRun = &f.deleteAfterRun
	}

	return c
}

func cronAdd(c *term.App) *cobra.Command {
	var f taskFlags
	cmd := &cobra.Command{
		Use:   "add [WHEN] PROMPT…",
		Short: "Add a task, and show when it will run",
		Long: "Add a task. WHEN is a value of --cron, --every or --at, or plain words that are\n" +
			"unambiguous: 'every weekday at 9', 'every 10 minutes', 'tomorrow at 7:30', 'in 20 minutes'.\n" +
			"With one of these flags, all arguments are the prompt.",
		Example: "  daycare cron add 'every weekday at 9' Summarise my inbox\n" +
			"  daycare cron add --cron '*/20 8-18 * * mon-fri' --tz Europe/Berlin Look at the queue\n" +
			"  daycare cron add --watch 'notes/**/*.md' Update the index of the notes",
		Args: term.Words(-1, "a PROMPT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			change := f.change(cmd)
			if !f.timed(cmd) {
				if len(args) < 2 {
					return term.Usage(cmd, "say when the task runs and what it does: daycare cron add 'every day at 9' PROMPT")
				}
				change.When, args = &args[0], args[1:]
			}

			prompt := strings.Join(args, " ")
			change.Prompt = &prompt
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			if err := agentFlag(cmd.Context(), client, &change); err != nil {
				return err
			}

			t, err := client.Schedule().AddTask(cmd.Context(), change)
			if err != nil {
				return unclear(cmd, fmt.Errorf("add task: %w", err))
			}
			return echoTask(c, t)
		},
	}
	f.define(c, cmd)

	return cmd
}

// unclear makes what the daemon could not read a problem with what was typed.
func unclear(cmd *cobra.Command, err error) error {
	var invalid *control.Invalid
	if errors.As(err, &invalid) {
		return &term.Problem{Code: fault.ExitUsage, Err: err, Do: cmp.Or(invalid.Hint, "usage: "+cmd.UseLine())}
	}

	return err
}

// agentFlag makes an id of what was typed.
func agentFlag(ctx context.Context, client *control.Client, change *control.TaskChange) error {
	if change.AgentID == nil || *change.AgentID == "" {
		return nil
	}
	a, err := client.Agent(ctx, *change.AgentID)
	if err != nil {
		return term.About(err, "find agent", *change.AgentID)
	}

	change.AgentID = &a.ID

	return nil
}

func cronEdit(c *term.App) *cobra.Command {
	var f taskFlags
	var when, prompt string
	cmd := &cobra.Command{
		Use:   "edit NAME",
		Short: "Change a task with flags, or in $EDITOR",
		Long: "Change a task. Flags change single keys; comments and the rest of the file stay.\n" +
			"Without flags, open the file in $EDITOR; it takes effect when you save.",
		Example: "  daycare cron edit queue-watch --every 1h\n  daycare cron edit queue-watch",
		Args:    term.Words(0, "the NAME of a task"), ValidArgsFunction: c.Complete(tasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().NFlag() == 0 {
				return cronEditor(cmd.Context(), c, args[0])
			}
			change := f.change(cmd)
			if cmd.Flags().Changed("when") {
				change.When = &when
			}
			if cmd.Flags().Changed("prompt") {
				change.Prompt = &prompt
			}

			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			if err := agentFlag(cmd.Context(), client, &change); err != nil {
				return err
			}

			return unclear(cmd, changeTask(cmd.Context(), c, args[0], change))
		},
	}
	f.define(c, cmd)
	cmd.Flags().StringVar(&when, "when", "", "when it runs, in plain words")
	cmd.Flags().StringVar(&prompt, "prompt", "", "what it does")

	return cmd
}

// cronEditor opens TASK.md and says what it means now.
func cronEditor(ctx context.Context, c *term.App, name string) error {
	client, err := c.Reader(ctx)
	if err != nil {
		return err
	}
	t, err := client.Schedule().Task(ctx, name)
	if err != nil {
		return fmt.Errorf("edit task: %w", err)
	}

	at, err := c.MadePlace()
	if err != nil {
		return err
	}
	if err := editFile(ctx, c, filepath.Join(at.Data, "cron", t.Slug, "TASK.md")); err != nil {
		return err
	}
	if t, err = client.Schedule().Task(ctx, name); err != nil {
		return fmt.Errorf("read task again: %w", err)
	}

	return echoTask(c, t)
}

// runEditor runs an editor, which may be a command with arguments, on a file.
func runEditor(ctx context.Context, editor, path string) error {
	run := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "sh", path)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := run.Run(); err != nil {
		return fmt.Errorf("run editor: %w", err)
	}

	return nil
}

// editFile opens the user's editor on a file.
func editFile(ctx context.Context, c *term.App, path string) error {
	if !term.Exists(path) {
		return term.NotFound("list them with: daycare cron ls", "there is no file %s", path)
	}
	editor, err := editorOf(c)
	if err != nil {
		return noEditor(path)
	}

	return runEditor(ctx, editor, path)
}
