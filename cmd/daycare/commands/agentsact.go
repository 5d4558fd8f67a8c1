package commands

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/message"
)

// agentsStop and the commands below it act on one agent: stop, reset, compact, kill, rm.
func agentsStop(c *term.App) *cobra.Command {
	return onAgent(c, "stop", "Cancel an agent's turn; its inbox stays as it is",
		"  daycare agents stop 0/",
		func(ctx context.Context, client *control.Client, a event.Agent) (any, string, error) {
			stopped, err := client.Stop(ctx, a.ID, "")
			said := "stopped the turn of " + a.Handle
			if !stopped {
				said = a.Handle + " has no turn to stop"
			}

			return struct {
				Agent   string `json:"agent"`
				Stopped bool   `json:"stopped"`
			}{a.ID, stopped}, said, err
		})
}

func agentsReset(c *term.App) *cobra.Command {
	return onAgent(c, "reset", "Start a new conversation; the agent keeps its id and files",
		"  daycare agents reset 0/",
		func(ctx context.Context, client *control.Client, a event.Agent) (any, string, error) {
			r, err := client.Reset(ctx, a.ID)
			return r, a.Handle + " will start a new conversation", err
		})
}

func agentsCompact(c *term.App) *cobra.Command {
	cmd := onAgent(c, "compact", "Compact an agent's context to a summary now",
		"  daycare agents compact 0/",
		func(ctx context.Context, client *control.Client, a event.Agent) (any, string, error) {
			before, err := conversation(ctx, c, client, a)
			if err != nil {
				return nil, "", err
			}
			if a.State != event.Idle || a.Queued > 0 {
				c.Note("%s is busy; it compacts after its turn (Ctrl-C stops waiting, not the compaction)", a.Handle)
			}

			o, err := client.Stream(ctx, a.ID, control.Message{Kind: message.Compact}, nil)
			if err == nil && o.Reason == "refused" {
				err = errors.New(o.Text)
			}
			if err != nil {
				return nil, "", err
			}

			after, err := conversation(ctx, c, client, a)
			return o, fmt.Sprintf("compacted the context of %s from about %s to %s tokens", a.Handle,
				thousands(before), thousands(after)), err
		})
	cmd.Long = "Compact an agent's context to a summary, now or when its turn ends, and wait until it is done. The\n" +
		"history keeps the whole conversation."

	return cmd
}

func agentsKill(c *term.App) *cobra.Command {
	return onAgent(c, "kill", "End a background agent and its children",
		"  daycare agents kill 0/1",
		func(ctx context.Context, client *control.Client, a event.Agent) (any, string, error) {
			err := client.Kill(ctx, a.ID)
			return struct {
				Agent  string `json:"agent"`
				Killed bool   `json:"killed"`
			}{a.ID, true}, "ended " + a.Handle, err
		})
}

func agentsRm(c *term.App) *cobra.Command {
	var force bool
	cmd := onAgent(c, "rm", "Move an agent's folder to the trash",
		"  daycare agents rm 2/ --force",
		func(ctx context.Context, client *control.Client, a event.Agent) (any, string, error) {
			trash, err := client.Remove(ctx, a.ID, force)
			return struct {
				Agent string `json:"agent"`
				Trash string `json:"trash"`
			}{a.ID, trash}, fmt.Sprintf("removed %s; it is in %s", a.Handle, trash), err
		})
	cmd.Flags().BoolVar(&force, "force", false, "remove it even with queued work or undelivered replies, which move to the trash with it")

	return cmd
}
