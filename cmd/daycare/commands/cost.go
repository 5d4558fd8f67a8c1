package commands

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/engine/control"
)

// Cost sums what calls of models cost, by agent, model, day or purpose.
func Cost(c *term.App) *cobra.Command {
	var since, by string
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show spending by agent, model, day or purpose",
		Long: "Show the tokens and the cost in US dollars of every model call in the histories, including removed\n" +
			"agents. Each call is charged at the price that applied when it was made. Purposes are\n" +
			"conversation, summary, heartbeat, cron and subagent, as in `routing` of the settings.",
		Example: "  daycare cost --since 7d --by day\n  daycare cost --by purpose",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(control.CostBy, by) {
				return term.Usage(cmd, "--by %q is unknown; allowed: %s", by, strings.Join(control.CostBy, ", "))
			}
			from, err := term.SinceTime(cmd, since, time.Now())
			if err != nil {
				return err
			}

			client, err := c.Reader(cmd.Context())
			if err != nil {
				return err
			}
			b, err := client.Cost(cmd.Context(), from, by)
			if err != nil {
				return fmt.Errorf("sum spending: %w", err)
			}

			return showBill(c, b)
		},
	}
	term.SinceFlag(cmd, &since)
	cmd.Flags().StringVar(&by, "by", "agent", "group by `agent`, model, day or purpose, or by two: day,agent; day,model; day,purpose")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(control.CostBy, cobra.ShellCompDirectiveNoFileComp))

	return cmd
}

func showBill(c *term.App, b control.Bill) error {
	if c.JSON {
		return c.PrintJSON(b)
	}
	if b.Total.Calls == 0 {
		c.Note("no model calls%s", map[bool]string{true: "", false: " in that time"}[b.Since.IsZero()])
		return nil
	}

	var t term.Table
	t.Row(strings.ToUpper(b.By), "CALLS", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "COST")
	for _, s := range append(b.Rows, &b.Total) {
		cost := term.Money(s.Cost)
		if s.Estimated > 0 {
			cost = "~" + cost
		}
		t.Row(term.Join("  ", s.Key, s.Then, term.OneLine(s.Name, 30)), strconv.Itoa(s.Calls), number(s.Input), number(s.Output),
			number(s.CacheRead), number(s.CacheWrite), cost)
	}

	if err := t.Write(c.Out, c.OutStyle()); err != nil {
		return err
	}
	if n := b.Total.Unpriced; n > 0 {
		c.Note("%s of a model without a known price: counted as 0; set its price in the settings (models)", term.Plural(n, "call", "calls"))
	}
	if b.Total.Estimated > 0 {
		c.Note("~ means estimated: the service reported no token counts")
	}

	return nil
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
