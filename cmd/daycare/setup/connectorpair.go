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
				return term.List(c, term.Listing[control.Pairing]{Key: "pairings", What: "pairing codes",
					None: "no pending codes; with pairing: true, users who are not in allow get a code when they write",
					Get:  (*control.Client).Pairings, Table: pairingTable})(cmd, nil)
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
	who := fmt.Sprintf("%s, id %s", strconv.Quote(p.Name), p.UserID)
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

func pairingTable(list []control.Pairing) (t term.Table, _ error) {
	t.Row("CODE", "CONNECTOR", "ID", "NAME", "EXPIRES IN")
	for _, p := range list {
		t.Row(p.Code, p.Connector, p.UserID, term.OneLine(p.Name, 40), term.Span(time.Until(p.ExpiresAt)))
	}

	return t, nil
}

// pairingCodes completes codes.
var pairingCodes = term.Listed((*control.Client).Pairings, func(p control.Pairing) cobra.Completion {
	return cobra.CompletionWithDesc(p.Code, p.Name)
})
