package commands

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/setup"
	"daycare/cmd/daycare/term"
	"daycare/cmd/daycare/version"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// Status prints how the daemon, its connectors and its providers are.
func Status(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Show the status of the workspace, with the daemon running or not",
		Example: "  daycare status --json",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := readStatus(cmd.Context(), c)
			if err != nil {
				return err
			}
			if c.JSON {
				return c.PrintJSON(s)
			}
			at, err := c.Place()
			if err != nil {
				return err
			}
			if err := showStatus(c, at, s, time.Now()); err != nil {
				return err
			}
			if what, do := setup.Missed(cmd.Context(), at, s.Providers); what != "" {
				c.Warn("warning: %s\n%s", what, do)
			}
			return nil
		},
	}
}

// readStatus also answers where nothing was set up yet: scripts ask before they
// start anything.
func readStatus(ctx context.Context, c *term.App) (event.Status, error) {
	at, err := c.Place()
	if err != nil {
		return event.Status{}, err
	}
	if !term.Exists(at.Data) {
		c.Note("there is no %s yet; create it with: daycare init", at.Shown(at.Data))
		return event.Status{Version: version.Number, Workspace: at.Dir,
			Connectors: []event.Service{}, Providers: []event.Service{}}, nil
	}
	client, err := c.Reader(ctx)
	if err != nil {
		return event.Status{}, err
	}
	s, err := client.Status(ctx)
	if err != nil {
		return event.Status{}, fmt.Errorf("read status: %w", err)
	}

	return s, nil
}

func showStatus(c *term.App, at workspace.Place, s event.Status, now time.Time) error {
	daemon := "not running (showing what is on disk; start it with: daycare start --background)"
	if s.Running {
		daemon = fmt.Sprintf("running, pid %d", s.PID)
		if s.StartedAt != nil {
			daemon += ", started " + term.Ago(*s.StartedAt, now)
		}
	}
	full := ""
	if s.DiskFull {
		full = "full: no new messages are accepted until there is space"
	}
	agents := fmt.Sprint(s.Agents)
	if s.Running {
		agents += fmt.Sprintf(" (%d in memory)", s.Awake)
	}
	asks := fmt.Sprint(s.Asks)
	if s.Asks > 0 {
		asks += " (see: daycare permissions ls)"
	}
	data := ""
	if at.Elsewhere() {
		data = at.Data
	}
	c.Fields("daemon", daemon, "version", s.Version, "workspace", s.Workspace, "data", data,
		"agents", agents, "waiting", term.Plural(s.Queued, "item", "items"), "asks", asks, "disk", full)
	if err := services(c, "connectors", s.Connectors); err != nil {
		return err
	}
	if err := services(c, "providers", s.Providers); err != nil {
		return err
	}
	if err := services(c, "MCP servers", s.MCP); err != nil {
		return err
	}
	if err := Machines(c, s); err != nil {
		return err
	}
	problems(c, s.Workspace, s.Problems)
	return nil
}

// Machines lists those of the cluster.
func Machines(c *term.App, s event.Status) error { return services(c, "machines", s.Machines) }

// problems lists what is wrong with files, each with its place as one would type it in
// the workspace.
func problems(c *term.App, workspace string, found []event.File) {
	if len(found) == 0 {
		return
	}
	heading(c, "problems", len(found))
	for _, f := range found {
		at := finding.Finding{File: strings.TrimPrefix(f.File, workspace+string(filepath.Separator)), Line: f.Line, Column: f.Column}
		c.Print("  %s  %s\n", c.OutStyle().Red(at.Place()), term.OneLine(f.Text, 200))
	}
}

// services lists connectors, providers or MCP servers, in columns under their title.
func services(c *term.App, title string, list []event.Service) error {
	if len(list) == 0 {
		return nil
	}
	c.Print("%s\n", c.OutStyle().Dim(title))
	var t term.Table
	for _, s := range list {
		t.Row("  "+s.ID, term.Parens(s.Type), s.State, s.Model, term.Cause(term.Join("; ", s.Detail, s.LastError, s.Differs), 300))
	}

	return t.Write(c.Out, term.Style(false)) // it has no headings
}
