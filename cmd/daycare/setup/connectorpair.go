package setup

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

func connectorsPair(c *term.App) *cobra.Command {
	var reject bool
	cmd := &cobra.Command{
		Use:   "pair [CODE]",
		Short: "Grant access by pairing code, or list pending codes",
		Long: "List pending pairing codes, or grant access to the user with CODE: add their id to allow in\n" +
			"settings.yaml, and notify them. Connectors with `pairing: true` give a code to users who are\n" +
			"not in allow; it is valid for an hour. Their messages are not read.",
		Example: "  daycare connectors pair\n  daycare connectors pair K7QX3M2P\n  daycare connectors pair K7QX3M2P --reject",
		Args:    term.Words(1), ValidArgsFunction: c.Complete(pairingCodes),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && reject:
				return term.Usage(cmd, "--reject needs a CODE")
			case len(args) == 0:
				return listPairings(cmd, c)
			}

			client, err := c.Daemon(cmd.Context())
			if err != nil {
				return err
			}
			p, err := client.Pair(cmd.Context(), args[0], reject)
			if err != nil {
				return term.About(err, "answer the code", args[0])
			}

			return reportPaired(c, p, reject)
		},
	}
	cmd.Flags().BoolVar(&reject, "reject", false, "reject the user, who gets no new code for an hour")

	return cmd
}

func reportPaired(c *term.App, p control.Paired, rejected bool) error {
	if c.JSON {
		return c.PrintJSON(p)
	}
	who := fmt.Sprintf("%s, id %s", strconv.Quote(term.Clean(p.Name)), term.Clean(p.UserID))
	if rejected {
		c.Print("rejected %s\n", who)
		return nil
	}

	c.Print("%s now has access to %s\n", who, p.Connector)
	if p.Owner {
		c.Warn("they are first in allow, so they answer approvals; to change that: daycare config set connectors.%s.owners '[…]'",
			p.Connector)
	}

	return nil
}

func listPairings(cmd *cobra.Command, c *term.App) error {
	client, err := c.Reader(cmd.Context())
	if err != nil {
		return err
	}
	list, err := client.Pairings(cmd.Context())
	if err != nil {
		return fmt.Errorf("list pairing codes: %w", err)
	}
	if c.JSON {
		return c.PrintJSON(struct {
			Pairings []control.Pairing `json:"pairings"`
		}{append([]control.Pairing{}, list...)})
	}
	if len(list) == 0 {
		c.Note("no pending codes; with pairing: true, users who are not in allow get a code when they write")
		return nil
	}

	var t term.Table
	t.Row("CODE", "CONNECTOR", "ID", "NAME", "EXPIRES IN")
	for _, p := range list {
		t.Row(p.Code, p.Connector, p.UserID, term.OneLine(p.Name, 40), term.Span(time.Until(p.ExpiresAt)))
	}

	return t.Write(c.Out, c.OutStyle())
}

// pairingCodes completes codes.
func pairingCodes(c *term.App, cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var codes []cobra.Completion
	if client, err := c.Reader(cmd.Context()); err == nil && len(args) == 0 {
		list, _ := client.Pairings(cmd.Context()) // nothing to complete
		for _, p := range list {
			codes = append(codes, cobra.CompletionWithDesc(p.Code, p.Name))
		}
	}

	return codes, cobra.ShellCompDirectiveNoFileComp
}
