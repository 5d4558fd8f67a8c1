package cluster

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/cluster"
)

// repairFor bounds how long a repair takes: a look at 100,000 agents takes a quarter of an hour.
const repairFor = 3 * time.Hour

func repairCommand(c *term.App) *cobra.Command {
	var join []string
	var fix bool
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Find agents whose log the servers have lost or damaged, and repair it",
		Long: "Find agents whose log the servers have lost or damaged, and show which machine has most of each in its\n" +
			"folder. With --fix, that machine writes the log again. What the servers still have is kept in\n" +
			".daycare/away/ of this workspace. Only running machines are asked, so start all of them first. The exit code\n" +
			"is 1 if a log is damaged.",
		Example: "  daycare cluster repair\n  daycare cluster repair --fix",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return repair(cmd.Context(), c, join, fix)
		},
	}
	cmd.Flags().BoolVar(&fix, "fix", false, "write the damaged logs again")
	cmd.Flags().StringSliceVar(&join, "join", nil, "the `URL`s of the cluster's servers (default: those of this workspace)")

	return cmd
}

// A damage is an agent in the answer with --json.
type damage struct {
	ID     string `json:"id"`
	Handle string `json:"handle,omitempty"`
	Name   string `json:"name,omitempty"`
	Reason string `json:"reason"`
	From   string `json:"from,omitempty"` // the machine that has most; "": the servers have
	UpTo   uint64 `json:"upTo"`           // number of the newest message that is there
	Of     uint64 `json:"of"`             // and of the newest that there was
	Kept   string `json:"kept,omitempty"` // what the servers had; "": it is not mended
	Error  string `json:"error,omitempty"`
}

func repair(ctx context.Context, c *term.App, join []string, fix bool) error {
	at, err := c.Place()
	if err != nil {
		return err
	}
	conf, err := reach(c, at.Data, join)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, repairFor)
	defer cancel()
	list := []damage{}
	bad := false
	r := cluster.Repair{Write: fix, Found: func(d cluster.Damage) {
		one := damage{ID: d.ID, Handle: d.Handle, Name: d.Name, Reason: d.Reason, From: d.From, UpTo: d.UpTo, Of: d.Of, Kept: d.Kept}
		if d.Err != nil {
			one.Error = d.Err.Error()
		}
		list, bad = append(list, one), bad || d.Err != nil || !fix
		if !c.JSON {
			one.print(c)
		}
	}}
	n, err := r.Run(ctx, conf)
	if err != nil {
		return term.Wrap(err, "repair the agents of the cluster")
	}

	switch {
	case c.JSON:
		if err := c.PrintJSON(list); err != nil {
			return err
		}
	case len(list) == 0:
		c.Print("the logs of %s are whole\n", term.Plural(n, "agent", "agents"))
	case !fix:
		c.Note("write them again with: daycare cluster repair --fix")
	}
	if bad {
		return term.ErrSilent
	}

	return nil
}

// print says what is wrong, and what becomes of it.
func (d damage) print(c *term.App) {
	c.Print("agent %s (%s): %s\n", d.Handle, d.Name, d.Reason)
	has := "the servers have"
	if d.From != "" {
		has = "machine " + d.From + " has"
	}
	switch {
	case d.Error != "":
		c.Print("  not repaired: %s\n", d.Error)
	case d.UpTo < d.Of:
		c.Print("  %s it up to message %d of %d; the rest is lost\n", has, d.UpTo, d.Of)
	default:
		c.Print("  %s all of it\n", has)
	}
	if d.Kept != "" && d.Error == "" {
		c.Print("  repaired; what the servers had is in %s\n", d.Kept)
	}
}
