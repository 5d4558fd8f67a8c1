package main

import (
	"fmt"
	"time"

	"daycare/engine/control"

	"github.com/spf13/cobra"
)

func (c *cli) cronRun() *cobra.Command {
	return &cobra.Command{
		Use:     "run NAME",
		Short:   "Run a task now, beside its schedule",
		Example: "  daycare cron run queue-watch",
		Args:    words(0, "the NAME of a task"), ValidArgsFunction: c.tasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.daemon(cmd.Context())
			if err != nil {
				return err
			}
			slot, err := client.RunTask(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("run task: %w", err)
			}
			return c.begun(args[0], slot, "daycare cron runs "+args[0])
		},
	}
}

func (c *cli) begun(name string, slot time.Time, look string) error {
	if c.json {
		return c.printJSON(struct {
			Name string    `json:"name"`
			Slot time.Time `json:"slot"`
		}{name, slot})
	}
	c.print("%s runs\n", name)
	c.note("see how it ends with: %s", look)
	return nil
}

func (c *cli) cronRuns() *cobra.Command {
	var n int
	cmd := &cobra.Command{
		Use:     "runs NAME",
		Short:   "What became of each due time",
		Example: "  daycare cron runs queue-watch -n 50",
		Args:    words(0, "the NAME of a task"), ValidArgsFunction: c.tasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := c.reader(cmd.Context())
			if err != nil {
				return err
			}
			runs, err := client.TaskRuns(cmd.Context(), args[0], n)
			if err != nil {
				return fmt.Errorf("list runs: %w", err)
			}
			return c.showRuns(runs)
		},
	}
	cmd.Flags().IntVarP(&n, "number", "n", 20, "how many, the newest")
	return cmd
}

func (c *cli) showRuns(runs []control.TaskRun) error {
	if c.json {
		return c.printJSON(struct {
			Runs []control.TaskRun `json:"runs"`
		}{append([]control.TaskRun{}, runs...)})
	}
	if len(runs) == 0 {
		c.note("it was never due")
		return nil
	}
	var t table
	t.row("DUE", "AT", "OUTCOME", "TOOK", "REASON")
	for _, r := range runs {
		took := ""
		if r.MS > 0 {
			took = (time.Duration(r.MS) * time.Millisecond).String()
		}
		outcome := r.Outcome
		if r.Count > 1 {
			outcome += fmt.Sprintf(" %d times", r.Count)
		}
		t.row(r.Slot.Local().Format("2006-01-02 15:04:05"), r.At.Local().Format("2006-01-02 15:04:05"), outcome, took,
			oneLine(join("; ", r.Reason, r.Why), 100))
	}
	return t.write(c.stdout, c.data())
}
