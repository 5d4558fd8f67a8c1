package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/commands"
	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/doctor"
	"daycare/cmd/daycare/inspect"
	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/term"
	"daycare/cmd/daycare/version"
	"daycare/engine/disk"
)

func startCommand(c *term.App) *cobra.Command {
	var background bool
	var listen string
	var join []string
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Run the daemon, in the foreground or with --background",
		Long: "Run the daemon in the foreground. Ctrl-C or SIGTERM shuts it down: connectors stop\n" +
			"accepting, agents finish or suspend their turn, answers are sent. A second Ctrl-C exits\n" +
			"at once; that is safe, because everything acknowledged is on disk.",
		Example: "  daycare start --background",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			daemon.SaveMemory() // before anything is made that could be collected
			at, err := c.Place()
			if err != nil {
				return err
			}
			if err := setup.EnsureHome(c, at); err != nil {
				return err
			}
			if err := c.NobodyRuns(at); err != nil {
				if client, dialed := c.Dial(cmd.Context(), at); dialed == nil {
					setup.WarnOfMissed(cmd.Context(), c, at, client)
				}
				return err
			}

			doctor.CautionHome(c, at.Dir)
			if background {
				c.WarnOfSettings() // in the foreground the log shows it
				return commands.StartBackground(cmd.Context(), c, at, commands.StartFlags{Listen: listen, Join: join})
			}

			return startForeground(cmd.Context(), c, daemon.Options{Place: at, Listen: listen, Join: join,
				Inspector: inspect.Inspector(at)})
		},
	}
	cmd.Flags().BoolVar(&background, "background", false, "run in the background: wait until it answers, print its pid")
	cmd.Flags().StringVar(&listen, "listen", "", "also serve the API at `ADDR` (HOST:PORT); needs control.token in settings")
	cmd.Flags().StringSliceVar(&join, "join", nil, "join the cluster whose servers have these `URL`s: docs/cluster.md")

	return cmd
}

// startForeground runs until a signal, then shuts down in order; a second signal
// leaves everything as it is.
func startForeground(ctx context.Context, c *term.App, o daemon.Options) error {
	signals := c.TakeSignals()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- daemon.Run(ctx, o, func(running context.Context, b daemon.Banner) {
			showBanner(c, o, b)
			cautionLater(running, c)
		})
	}()

	for stopping := false; ; {
		select {
		case err := <-done:
			return startEnded(c, o, err, stopping)
		case <-signals:
			if stopping {
				return term.ErrInterrupted
			}
			stopping = true
			c.Warn("stopping; press Ctrl-C again to exit at once")
			cancel()
		}
	}
}

func startEnded(c *term.App, o daemon.Options, err error, stopping bool) error {
	switch {
	case errors.Is(err, disk.ErrLocked):
		return term.AlreadyRunning(o.Place)
	case stopping && errors.Is(err, context.Canceled):
		return nil
	case err == nil:
		c.Note("stopped")
	}

	return err
}

// showBanner says what runs and why. It is talk, not data; --json makes it one
// object on stdout for scripts that wait for it.
func showBanner(c *term.App, o daemon.Options, b daemon.Banner) {
	commands.NoteWorkspace(c, o.Place)
	if c.JSON {
		if err := c.PrintJSON(struct {
			PID       int    `json:"pid"`
			Workspace string `json:"workspace"`
			Socket    string `json:"socket"`
			Listen    string `json:"listen,omitempty"`
			Model     string `json:"model"`
		}{os.Getpid(), o.Place.Dir, b.Socket, b.Listen, b.Model}); err != nil {
			c.Warn("%v", err)
		}
		return
	}

	s := c.ErrStyle()
	line := func(name, value string) {
		if value != "" {
			c.Say("%s %s\n", s.Dim(fmt.Sprintf("%-11s", name)), value)
		}
	}
	c.Say("%s%s\n", s.Bold("daycare "+version.Number), s.Dim(fmt.Sprintf("  pid %d", os.Getpid())))
	line("workspace", o.Place.Dir)
	if o.Place.Elsewhere() {
		line("data", o.Place.Data)
	}
	line("settings", cmp.Or(b.Settings, "none: defaults"))
	line("socket", b.Socket)
	line("listen", b.Listen)
	line("agents", fmt.Sprintf("%d, %s waiting", b.Agents, term.Plural(b.Waiting, "item", "items")))
	line("connectors", cmp.Or(strings.Join(b.Connectors, ", "), "none (command line only)"))
	line("model", strings.TrimSpace(b.Model+"  "+term.Parens(term.Join(", ", b.Provider, b.Why))))
	for _, n := range b.Notes {
		line("note", n)
	}

	line("stop", "Ctrl-C, or: daycare stop")
}

// cautionAfter is how long after the start commands are tried in a sandbox: that takes as much as all of the start, and the
// first messages come before it.
const cautionAfter = time.Second

// cautionLater says of a daemon that still runs then if the sandbox of its commands is a narrow one.
func cautionLater(running context.Context, c *term.App) {
	if c.JSON {
		return
	}
	select {
	case <-time.After(cautionAfter):
		doctor.CautionSandbox(c)
	case <-running.Done():
	}
}
