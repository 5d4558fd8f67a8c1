package main

import (
	"context"
	"fmt"

	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"

	"github.com/spf13/cobra"
)

func (c *cli) agentsStop() *cobra.Command {
	return c.onAgent("stop", "Cancel the turn of an agent; what waits in its inbox stays",
		"  daycare agents stop 0/",
		func(ctx context.Context, client *control.Client, a event.Agent) (any, string, error) {
			stopped, err := client.Stop(ctx, a.ID)
			said := "stopped the turn of " + a.Handle
			if !stopped {
				said = a.Handle + " was not in a turn"
			}
			return struct {
				Agent   string `json:"agent"`
				Stopped bool   `json:"stopped"`
			}{a.ID, stopped}, said, err
		})
}

func (c *cli) agentsReset() *cobra.Command {
	return c.post("reset", "Begin a new conversation; the id and the files stay",
		"  daycare agents reset 0/", (*control.Client).Reset, "will begin a new conversation")
}

func (c *cli) agentsCompact() *cobra.Command {
	return c.post("compact", "Shorten the context of an agent to a summary now",
		"  daycare agents compact 0/", (*control.Client).Compact, "will shorten its context")
}

// post is a command that puts an item without text in the inbox.
func (c *cli) post(use, short, example string, do func(*control.Client, context.Context, string) (message.Receipt, error), will string) *cobra.Command {
	return c.onAgent(use, short, example,
		func(ctx context.Context, client *control.Client, a event.Agent) (any, string, error) {
			r, err := do(client, ctx, a.ID)
			return r, a.Handle + " " + will, err
		})
}

func (c *cli) agentsKill() *cobra.Command {
	return c.onAgent("kill", "End a background agent and its children",
		"  daycare agents kill 0/1",
		func(ctx context.Context, client *control.Client, a event.Agent) (any, string, error) {
			err := client.Kill(ctx, a.ID)
			return struct {
				Agent  string `json:"agent"`
				Killed bool   `json:"killed"`
			}{a.ID, true}, "ended " + a.Handle, err
		})
}

func (c *cli) agentsRm() *cobra.Command {
	var force bool
	cmd := c.onAgent("rm", "Move an agent's folder to the trash",
		"  daycare agents rm 2/ --force",
		func(ctx context.Context, client *control.Client, a event.Agent) (any, string, error) {
			trash, err := client.Remove(ctx, a.ID, force)
			return struct {
				Agent string `json:"agent"`
				Trash string `json:"trash"`
			}{a.ID, trash}, fmt.Sprintf("removed %s; it is in %s", a.Handle, trash), err
		})
	cmd.Aliases = []string{"remove"}
	cmd.Flags().BoolVar(&force, "force", false, "also with work or replies waiting; they go along")
	return cmd
}
