package commands

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

// Heartbeat is the group of commands for what the heartbeat looks at.
func Heartbeat(c *term.App) *cobra.Command {
	return term.Group("heartbeat", "Manage periodic background checks",
		"  daycare heartbeat add --title Disk 'Is the disk filling up?'\n  daycare heartbeat ls",
		heartbeatLs(c), heartbeatAdd(c), heartbeatRm(c), heartbeatRun(c), heartbeatRuns(c))
}

func heartbeatLs(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "ls",
		Short:   "List heartbeat items, the next run and the last result",
		Example: "  daycare heartbeat ls",
		Args:    term.Words(0),
		RunE: term.Read(c, func(ctx context.Context, client *control.Client, _ []string) (control.Heartbeat, error) {
			h, err := client.Schedule().Heartbeat(ctx)
			return h, term.Wrap(err, "read heartbeat")
		}, func(h control.Heartbeat) error { return showHeartbeat(c, h) }),
	}
}

func showHeartbeat(c *term.App, h control.Heartbeat) error {
	if len(h.Prompts) == 0 {
		c.Note("the heartbeat has no items")
		return nil
	}
	next := "disabled (heartbeat.every in settings)"
	switch {
	case h.Stopped:
		next = "stopped after repeated failures; start it again with: daycare heartbeat run"
	case h.Next != nil:
		next = h.Next.Local().Format("Mon 2006-01-02 15:04")
	}

	c.Fields("every", h.Every, "last", lastRun(h.Last, time.Now()), "next", next)
	var t term.Table
	t.Row("NAME", "STATE", "TITLE", "PROMPT")
	for _, p := range h.Prompts {
		state := "on"
		if !p.Enabled {
			state = "off"
		}
		for _, f := range p.Findings {
			c.Warn("%s", f.Error())
			state = "broken"
		}
		t.Row(p.Slug, state, term.OneLine(p.Title, 40), term.OneLine(p.Prompt, 80))
	}

	c.Print("\n")
	return t.Write(c.Out, c.OutStyle())
}

func heartbeatAdd(c *term.App) *cobra.Command {
	var p control.PromptChange
	cmd := &cobra.Command{
		Use:     "add PROMPT…",
		Short:   "Add a heartbeat item",
		Example: "  daycare heartbeat add --title Disk --hours 08:00-22:00 'Is the disk filling up?'",
		Args:    term.Words(-1, "a PROMPT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p.Prompt = strings.Join(args, " ")
			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}

			made, err := client.Schedule().AddPrompt(cmd.Context(), p)
			if err != nil {
				return unclear(cmd, fmt.Errorf("add to heartbeat: %w", err))
			}
			if c.JSON {
				return c.PrintJSON(made)
			}

			c.Print("added %s to the heartbeat\n", made.Slug)
			return noteStopped(c)
		},
	}
	cmd.Flags().StringVar(&p.Title, "title", "", "its title")
	cmd.Flags().StringVar(&p.ActiveHours, "hours", "", "check it only during these hours: 08:00-22:00")
	cmd.Flags().StringVar(&p.Gate, "gate", "", "command that decides whether the item is checked: exit code 0 checks it")

	return cmd
}

// prompts completes the first argument with what the heartbeat looks at.
var prompts = term.Listed(func(client *control.Client, ctx context.Context) ([]control.Prompt, error) {
	h, err := client.Schedule().Heartbeat(ctx)
	return h.Prompts, err
}, func(p control.Prompt) cobra.Completion {
	return cobra.CompletionWithDesc(p.Slug, term.OneLine(p.Title, 60))
})

func heartbeatRm(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "rm NAME",
		Short:   "Move a heartbeat item to the trash",
		Example: "  daycare heartbeat rm disk",
		Args:    term.Words(0, "a NAME from daycare heartbeat ls"), ValidArgsFunction: c.Complete(prompts),
		RunE: toTrash(c, "remove from heartbeat", control.ScheduleClient.RemovePrompt),
	}
}

func heartbeatRun(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "run",
		Short:   "Run the heartbeat now, even if nothing changed",
		Example: "  daycare heartbeat run",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := c.Daemon(cmd.Context())
			if err != nil {
				return err
			}
			slot, err := client.Schedule().RunHeartbeat(cmd.Context())
			if errors.Is(err, control.ErrNoTask) {
				return term.NotFound("add an item with: daycare heartbeat add PROMPT", "the heartbeat has no items")
			}
			if err != nil {
				return fmt.Errorf("run heartbeat: %w", err)
			}

			return begun(c, "the heartbeat", slot, "daycare heartbeat runs")
		},
	}
}

func heartbeatRuns(c *term.App) *cobra.Command {
	return listRuns(c, "heartbeat runs", func(ctx context.Context, s control.ScheduleClient, _ []string, n int) ([]control.TaskRun, error) {
		return s.HeartbeatRuns(ctx, n)
	}, &cobra.Command{
		Use:     "runs",
		Short:   "List the runs of the heartbeat with their results",
		Example: "  daycare heartbeat runs -n 50",
		Args:    term.Words(0),
	})
}
