package commands

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

// cronRun begins a run of a task now; cronRuns lists those that were.
func cronRun(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "run NAME",
		Short:   "Run a task now, in addition to its schedule",
		Example: "  daycare cron run queue-watch",
		Args:    term.Words(0, "the NAME of a task"), ValidArgsFunction: c.Complete(tasks),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.Daemon(cmd.Context())
			if err != nil {
				return err
			}
			slot, err := client.Schedule().RunTask(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("run task: %w", err)
			}

			return begun(c, args[0], slot, "daycare cron runs "+args[0])
		},
	}
}

func begun(c *term.App, name string, slot time.Time, look string) error {
	if c.JSON {
		return c.PrintJSON(struct {
			Name string    `json:"name"`
			Slot time.Time `json:"slot"`
		}{name, slot})
	}

	c.Print("%s runs\n", name)
	c.Note("see how it ends with: %s", look)

	return nil
}

func cronRuns(c *term.App) *cobra.Command {
	return listRuns(c, "runs", func(ctx context.Context, s control.ScheduleClient, args []string, n int) ([]control.TaskRun, error) {
		return s.TaskRuns(ctx, args[0], n)
	}, &cobra.Command{
		Use:     "runs NAME",
		Short:   "List the runs of a task with their results",
		Example: "  daycare cron runs queue-watch -n 50",
		Args:    term.Words(0, "the NAME of a task"), ValidArgsFunction: c.Complete(tasks),
	})
}

// listRuns has a command list runs.
func listRuns(c *term.App, what string, get func(context.Context, control.ScheduleClient, []string, int) ([]control.TaskRun, error),
	cmd *cobra.Command) *cobra.Command {
	var n int
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return term.List(c, term.Listing[control.TaskRun]{Key: "runs", What: what, None: "no runs yet", Table: runTable,
			Get: func(client *control.Client, ctx context.Context) ([]control.TaskRun, error) {
				return get(ctx, client.Schedule(), args, n)
			}})(cmd, args)
	}
	cmd.Flags().IntVarP(&n, "number", "n", 20, "number of runs, the newest")

	return cmd
}

func runTable(runs []control.TaskRun) (t term.Table, _ error) {
	t.Row("DUE", "AT", "OUTCOME", "TOOK", "REASON")
	for _, r := range runs {
		took := ""
		if r.MS > 0 {
			took = (time.Duration(r.MS) * time.Millisecond).String()
		}
		outcome := r.Outcome
		if r.Count > 1 {
			outcome += fmt.Sprintf(" %d times", r.Count)
		}

		t.Row(r.Slot.Local().Format("2006-01-02 15:04:05"), r.At.Local().Format("2006-01-02 15:04:05"), outcome, took,
			term.OneLine(term.Join("; ", r.Reason, r.Why), 100))
	}

	return t, nil
}
