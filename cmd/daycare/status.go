package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/version"
	"daycare/engine/event"
	"daycare/engine/finding"
)

func (c *cli) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "How things stand, with the daemon running or not",
		Example: "  daycare status --json",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := c.readStatus(cmd.Context())
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(s)
			}
			c.showStatus(s, time.Now())
			return nil
		},
	}
}

// readStatus also answers where nothing was set up yet: scripts ask before they
// start anything.
func (c *cli) readStatus(ctx context.Context) (event.Status, error) {
	root, err := c.root()
	if err != nil {
		return event.Status{}, err
	}
	if !exists(filepath.Join(root, home)) {
		c.note("nothing is set up here yet; daycare init does it")
		return event.Status{Version: version.Number, Workspace: root,
			Connectors: []event.Service{}, Providers: []event.Service{}}, nil
	}
	client, err := c.reader(ctx)
	if err != nil {
		return event.Status{}, err
	}
	s, err := client.Status(ctx)
	if err != nil {
		return event.Status{}, fmt.Errorf("read status: %w", err)
	}
	return s, nil
}

func (c *cli) showStatus(s event.Status, now time.Time) {
	daemon := "not running (this is from the files; start it with: daycare start --background)"
	if s.Running {
		daemon = fmt.Sprintf("running, pid %d", s.PID)
		if s.StartedAt != nil {
			daemon += ", started " + ago(*s.StartedAt, now)
		}
	}
	full := ""
	if s.DiskFull {
		full = "full: nothing new is accepted until there is room"
	}
	agents := fmt.Sprint(s.Agents)
	if s.Running {
		agents += fmt.Sprintf(" (%d in memory)", s.Awake)
	}
	asks := fmt.Sprint(s.Asks)
	if s.Asks > 0 {
		asks += " (see: daycare permissions ls)"
	}
	c.fields("daemon", daemon, "version", s.Version, "workspace", s.Workspace,
		"agents", agents, "waiting", plural(s.Queued, "item", "items"), "asks", asks, "disk", full)
	c.services("connectors", s.Connectors)
	c.services("providers", s.Providers)
	c.problems(s.Workspace, s.Problems)
}

// problems lists what is wrong with files, each with its place as one would type it in
// the workspace.
func (c *cli) problems(workspace string, found []event.File) {
	if len(found) == 0 {
		return
	}
	c.heading("problems", len(found))
	for _, f := range found {
		at := finding.Finding{File: strings.TrimPrefix(f.File, workspace+string(filepath.Separator)), Line: f.Line, Column: f.Column}
		c.print("  %s  %s\n", c.data().red(clean(at.Place())), clean(oneLine(f.Text, 200)))
	}
}

func (c *cli) services(title string, list []event.Service) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(c.stdout, c.data().dim(title))
	for _, s := range list {
		line := "  " + clean(join("  ", s.ID, parens(s.Type), s.State, s.Model, s.Detail))
		if s.LastError != "" {
			line += "  " + c.data().red(strings.TrimSpace(clean(s.LastError)))
		}
		fmt.Fprintln(c.stdout, line)
	}
}
