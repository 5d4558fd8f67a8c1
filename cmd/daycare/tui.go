package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"daycare/connectors/terminal"
	"daycare/engine/control"
)

// tui opens the full-screen UI where a person sits at a terminal that can show it;
// else help is what they need.
func (c *cli) tui(cmd *cobra.Command) error {
	if c.noInput || c.json || !isTerminal(c.stdin) || !isTerminal(c.stdout) {
		return cmd.Help()
	}
	if os.Getenv("TERM") == "dumb" {
		c.note("this terminal cannot show the full screen; line by line it is: daycare chat")
		return cmd.Help()
	}
	root, err := c.root()
	if err != nil {
		return err
	}
	if err := c.ensureHome(root); err != nil {
		return err
	}
	if err := c.ensureDaemon(cmd.Context(), root); err != nil {
		return err
	}
	c.takeSignals() // the UI answers them: it has the screen to give back first
	return terminal.Run(cmd.Context(), terminal.Options{
		Dial:      func(ctx context.Context) (*control.Client, error) { return c.dial(ctx, root) },
		Start:     func(ctx context.Context) error { return c.ensureDaemon(ctx, root) },
		Own:       own,
		Hints:     filepath.Join(root, home, "connectors", "terminal"),
		Workspace: root,
		Input:     c.stdin,
		Output:    c.stdout,
	})
}

// ensureDaemon joins the daemon of a workspace, or starts it in the background. It
// says nothing: the screen belongs to the UI.
func (c *cli) ensureDaemon(ctx context.Context, root string) error {
	client, err := c.dial(ctx, root)
	if err == nil {
		client.Close()
		return nil
	}
	if !errors.Is(err, control.ErrNotRunning) {
		return err
	}
	if client, err := c.joinStarting(ctx, root); client != nil || err != nil {
		return err
	}
	quiet := &cli{wiring: c.wiring, stdin: c.stdin, stdout: io.Discard, stderr: io.Discard, workspace: c.workspace}
	return quiet.startBackground(ctx, root, "")
}
