package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/machine"
	"daycare/cmd/daycare/term"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/workspace"
)

// Workspaces lists the workspaces of this machine whose daemons were ever started.
func Workspaces(c *term.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workspaces",
		Short: "List the workspaces on this machine and their state",
		Long: "List the workspaces on this machine: state, queued messages, pending approvals, today's cost.\n" +
			"A daemon records its workspace in ~/.local/state/daycare when it starts; disks are never searched.",
		Example: "  daycare workspaces\n  daycare workspaces --json\n  daycare workspaces forget ~/old",
		Args:    term.NoSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return listWorkspaces(cmd.Context(), c, time.Now()) },
	}
	cmd.AddCommand(workspacesForget(c))

	return cmd
}

// NoteWorkspace makes a workspace known whose daemon starts.
func NoteWorkspace(c *term.App, at workspace.Place) {
	if err := machine.Note(at, time.Now()); err != nil {
		c.Warn("daycare workspaces does not list this one: %v", err)
	}
}

// The states of a workspace.
const (
	wsRunning  = "running"
	wsStarting = "starting" // or it does not answer
	wsStopped  = "stopped"
	wsGone     = "gone" // there is no .daycare any more
)

// A workspaceRow is one workspace, in --json.
type workspaceRow struct {
	Path      string     `json:"path"`
	Data      string     `json:"data,omitempty"` // where its own files are, if outside of it
	State     string     `json:"state"`          // running, starting, stopped or gone
	PID       int        `json:"pid,omitempty"`
	Version   string     `json:"version,omitempty"` // of the daemon that runs
	StartedAt disk.Stamp `json:"startedAt"`         // when its daemon was started last
	Agents    int        `json:"agents"`
	Queued    int        `json:"queued"`
	Approvals int        `json:"approvals"`
	Today     float64    `json:"today"` // US dollars since midnight
	Error     string     `json:"error,omitempty"`
}

// answerWait bounds how long one workspace is asked.
const answerWait = 5 * time.Second

func listWorkspaces(ctx context.Context, c *term.App, now time.Time) error {
	known, err := machine.List()
	if err != nil {
		return fmt.Errorf("list workspaces: %w", err)
	}
	rows := make([]workspaceRow, len(known))
	for i, e := range known {
		rows[i] = workspaceRow{Path: e.Path, Data: e.Data, StartedAt: e.StartedAt}
		if err := rows[i].ask(ctx, c, e.Place(), now); err != nil {
			rows[i].Error = err.Error()
		}
	}

	if c.JSON {
		return c.PrintJSON(map[string][]workspaceRow{"workspaces": rows})
	}
	if len(rows) == 0 {
		c.Note("no workspaces yet; daycare start records one")
		return nil
	}

	t := term.Table{{"PATH", "STATE", "PID", "VERSION", "AGENTS", "QUEUED", "APPROVALS", "TODAY"}}
	for _, r := range rows {
		r.add(&t)
	}
	if err := t.Write(c.Out, c.OutStyle()); err != nil {
		return err
	}

	for _, r := range rows {
		switch {
		case r.State == wsGone:
			c.Note("%s is gone; to remove it from the list: daycare workspaces forget %s", r.name(), cmp.Or(r.Data, r.Path))
		case r.Error != "":
			c.Warn("%s: %s", r.name(), r.Error)
		}
	}

	return nil
}

// name tells it from all others.
func (r workspaceRow) name() string { return term.Join(", data ", r.Path, r.Data) }

func (r workspaceRow) add(t *term.Table) {
	pid, version := "-", "-"
	if r.PID > 0 {
		pid = fmt.Sprint(r.PID)
	}
	if r.Version != "" {
		version = r.Version
	}
	if r.State == wsGone || r.Error != "" {
		t.Row(r.name(), r.State, pid, version, "-", "-", "-", "-")
		return
	}

	t.Row(r.name(), r.State, pid, version, fmt.Sprint(r.Agents), fmt.Sprint(r.Queued), fmt.Sprint(r.Approvals),
		term.Money(r.Today))
}

// ask fills in how a workspace is: its daemon says so, else its files.
func (r *workspaceRow) ask(ctx context.Context, c *term.App, at workspace.Place, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	if !term.Exists(at.Data) {
		r.State = wsGone
		return nil
	}

	r.State = wsRunning
	client, err := c.Dial(ctx, at)
	if errors.Is(err, control.ErrNotRunning) {
		if r.State = wsStopped; disk.Held(at.Lock()) {
			r.State = wsStarting
		}
		client, err = c.Offline(at, func(string, ...any) {})
	}
	if err != nil {
		return err
	}
	defer client.Close()
	s, err := client.Status(ctx)
	if err != nil {
		if r.State == wsRunning {
			r.State = wsStarting
		}
		return err
	}
	if r.Agents, r.Queued, r.Approvals = s.Agents, s.Queued, s.Asks; s.Running {
		r.PID, r.Version = s.PID, s.Version
	}

	year, month, day := now.Date()
	bill, err := client.Cost(ctx, time.Date(year, month, day, 0, 0, 0, 0, now.Location()), "day")
	r.Today = bill.Total.Cost
	return err
}

func workspacesForget(c *term.App) *cobra.Command {
	return &cobra.Command{
		Use:     "forget DIR",
		Short:   "Remove a workspace from the list; its files stay",
		Example: "  daycare workspaces forget ~/old",
		Args:    term.Words(0, "the DIR of a workspace"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			all, _ := machine.List() // nothing is completed then
			var paths []cobra.Completion
			for _, e := range all {
				paths = append(paths, cmp.Or(e.Data, e.Path))
			}

			return paths, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			at, err := machine.Clean(args[0])
			if err != nil {
				return fmt.Errorf("forget workspace: %w", err)
			}
			known, err := machine.Forget(at)
			switch {
			case err != nil:
				return fmt.Errorf("forget workspace: %w", err)
			case !known:
				return term.NotFound("list them with: daycare workspaces", "%s is not on the list of workspaces", at)
			case c.JSON:
				return c.PrintJSON(map[string]string{"forgotten": at})
			}

			c.Print("removed %s from the list; its files are unchanged\n", at)
			return nil
		},
	}
}
