package main

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/commands"
	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/talk"
	"daycare/cmd/daycare/term"
	"daycare/connectors/terminal"
	"daycare/engine/control"
	"daycare/engine/event"
	"daycare/engine/workspace"
)

// tui opens the full-screen UI where a user sits at a terminal that can show it;
// else help is what they need.
func tui(c *term.App, cmd *cobra.Command) error {
	if c.NoInput || c.JSON || !term.IsTerminal(c.In) || !term.IsTerminal(c.Out) {
		return cmd.Help()
	}
	if os.Getenv("TERM") == "dumb" {
		c.Note("this terminal cannot show the full-screen view; use: daycare chat")
		return cmd.Help()
	}
	at, err := c.Place()
	if err != nil {
		return err
	}
	if err := setup.EnsureHome(c, at); err != nil {
		return err
	}
	if err := commands.EnsureDaemon(cmd.Context(), c, at); err != nil {
		return err
	}
	var other otherVersion
	c.TakeSignals() // the UI answers them: it has the screen to give back first
	return terminal.Run(cmd.Context(), terminal.Options{
		Dial:      func(context.Context) (*control.Client, error) { return other.dial(at) },
		Start:     func(ctx context.Context) error { return commands.EnsureDaemon(ctx, c, at) },
		Own:       talk.Own,
		Hints:     filepath.Join(at.Data, "connectors", "terminal"),
		Setup:     modelSetup(at, &other),
		Workspace: at.Dir,
		Input:     c.In,
		Output:    c.Out,
	})
}

// An otherVersion is that of the daemon, if it is not the version of this program.
type otherVersion struct{ theirs atomic.Pointer[string] }

// dial connects to the daemon. It may be another one than before, after an update.
func (o *otherVersion) dial(at workspace.Place) (*control.Client, error) {
	o.theirs.Store(nil)
	return term.DialQuietly(at, func(v string) { o.theirs.Store(&v) })
}

// modelSetup is init for the UI, which asks its questions itself.
func modelSetup(at workspace.Place, other *otherVersion) *terminal.Setup {
	return &terminal.Setup{
		Missed: func(ctx context.Context, s event.Status) (what, do string) {
			if v := other.theirs.Load(); v != nil {
				return term.OtherVersion(*v)
			}
			return setup.Missed(ctx, at, s.Providers)
		},
		Offers: func(ctx context.Context) ([]terminal.Offer, int, error) {
			list, usual, err := setup.Offers(ctx, at)
			var offers []terminal.Offer
			for _, o := range list {
				offers = append(offers, terminal.Offer(o))
			}
			return offers, usual, err
		},
		Models: func(ctx context.Context, a terminal.Answers) ([]string, error) {
			return setup.ServerModels(ctx, at, setup.Answers(a))
		},
		Apply: func(ctx context.Context, a terminal.Answers) (string, error) {
			return setup.Apply(ctx, at, setup.Answers(a))
		},
	}
}
