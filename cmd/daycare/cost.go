package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"daycare/engine/control"
	"daycare/engine/record"

	"github.com/spf13/cobra"
)

func (c *cli) costCommand() *cobra.Command {
	var since, by string
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "What was spent, by agent, model or day",
		Long: "What was spent: tokens and US dollars of every call in the histories, removed agents\n" +
			"included. The price is the one that held when the call was made.",
		Example: "  daycare cost --since 7d --by day",
		Args:    words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(control.CostBy, by) {
				return usage(cmd, "--by %q is none of %s", by, strings.Join(control.CostBy, ", "))
			}
			from, err := sinceTime(cmd, since, time.Now())
			if err != nil {
				return err
			}
			client, err := c.reader(cmd.Context())
			if err != nil {
				return err
			}
			b, err := client.Cost(cmd.Context(), from, by)
			if err != nil {
				return fmt.Errorf("sum what was spent: %w", err)
			}
			return c.showBill(b)
		},
	}
	sinceFlag(cmd, &since)
	cmd.Flags().StringVar(&by, "by", "agent", "one line for each `agent`, model or day")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(control.CostBy, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// costs is the part of the API that says what was spent. A call is counted once:
// copies of a history have it again.
type costs struct{ parts *runtimeParts }

// Cost sums the histories of all agents, those in the trash included.
func (c costs) Cost(_ context.Context, since time.Time, by string) (control.Bill, error) {
	b := control.Bill{Since: since, By: by}
	rows, seen := map[string]*control.Spent{}, map[string]bool{}
	add := func(dir string, agent control.Spent) error {
		return record.Spent(dir, since, func(call record.Spend) {
			if seen[call.Call] {
				return
			}
			seen[call.Call] = true
			row := agent
			switch by {
			case "model":
				row = control.Spent{Key: orElse(call.Model, call.Provider)}
			case "day":
				row = control.Spent{Key: call.At.Local().Format(time.DateOnly)}
			}
			if rows[row.Key] == nil {
				rows[row.Key] = &row
			}
			tally(rows[row.Key], call)
			tally(&b.Total, call)
		})
	}
	for _, m := range c.parts.index.All() {
		if err := add(filepath.Join(c.parts.root, "agents", m.ID), control.Spent{Key: m.Handle, Name: m.Name}); err != nil {
			return b, err
		}
	}
	removed, err := os.ReadDir(filepath.Join(c.parts.root, "trash"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return b, fmt.Errorf("read trash: %w", err)
	}
	for _, e := range removed {
		if !e.IsDir() {
			continue // a prompt of the heartbeat, a file of somebody
		}
		if err := add(filepath.Join(c.parts.root, "trash", e.Name()), control.Spent{Key: "trash/" + e.Name()}); err != nil {
			return b, err
		}
	}
	b.Rows, b.Total.Key = sortCosts(rows, by), "total"
	return b, nil
}

func tally(s *control.Spent, c record.Spend) {
	s.Calls++
	s.Input, s.Output = s.Input+c.Tokens.Input, s.Output+c.Tokens.Output
	s.CacheRead, s.CacheWrite = s.CacheRead+c.Tokens.CacheRead, s.CacheWrite+c.Tokens.CacheWrite
	s.Cost += c.Cost
	if c.Tokens.Estimated {
		s.Estimated++
	}
	if c.Cost == 0 && c.Model != "scripted" && c.Tokens.Input+c.Tokens.Output > 0 {
		s.Unpriced++
	}
}

// sortCosts puts days in their order, all else by what it cost.
func sortCosts(rows map[string]*control.Spent, by string) []*control.Spent {
	return slices.SortedFunc(maps.Values(rows), func(x, y *control.Spent) int {
		if by == "day" {
			return strings.Compare(x.Key, y.Key)
		}
		return cmp.Or(cmp.Compare(y.Cost, x.Cost), cmp.Compare(y.Output, x.Output), strings.Compare(x.Key, y.Key))
	})
}

func (c *cli) showBill(b control.Bill) error {
	if c.json {
		return c.printJSON(b)
	}
	if b.Total.Calls == 0 {
		c.note("no model was called%s", map[bool]string{true: "", false: " in that time"}[b.Since.IsZero()])
		return nil
	}
	var t table
	t.row(strings.ToUpper(b.By), "CALLS", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "COST")
	for _, s := range append(b.Rows, &b.Total) {
		cost := money(s.Cost)
		if s.Estimated > 0 {
			cost = "~" + cost
		}
		t.row(strings.TrimSpace(s.Key+"  "+oneLine(s.Name, 30)), strconv.Itoa(s.Calls), number(s.Input), number(s.Output),
			number(s.CacheRead), number(s.CacheWrite), cost)
	}
	if err := t.write(c.stdout, c.data()); err != nil {
		return err
	}
	if n := b.Total.Unpriced; n > 0 {
		c.note("%s of a model without a known price counted as 0; the settings can say it (models)", plural(n, "call", "calls"))
	}
	if b.Total.Estimated > 0 {
		c.note("~ is estimated: the service did not say how many tokens it was")
	}
	return nil
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
