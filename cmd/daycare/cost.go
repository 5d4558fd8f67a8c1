package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"daycare/engine/address"
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
			if !slices.Contains([]string{"agent", "model", "day"}, by) {
				return usage(cmd, "--by %q is none of agent, model, day", by)
			}
			from, err := sinceTime(cmd, since, time.Now())
			if err != nil {
				return err
			}
			root, err := c.madeRoot()
			if err != nil {
				return err
			}
			b := bill{Since: from, By: by}
			if err := b.read(filepath.Join(root, home)); err != nil {
				return err
			}
			return c.showBill(&b)
		},
	}
	sinceFlag(cmd, &since)
	cmd.Flags().StringVar(&by, "by", "agent", "one line for each `agent`, model or day")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]cobra.Completion{"agent", "model", "day"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// A bill sums calls.
type bill struct {
	Since time.Time       `json:"since,omitzero"`
	By    string          `json:"by"`
	Rows  []*spent        `json:"rows"`
	Total spent           `json:"total"`
	seen  map[string]bool // calls that are counted: copies of a history have them again
}

// spent is one line of a bill.
type spent struct {
	Key        string  `json:"key"`
	Name       string  `json:"name,omitempty"` // of an agent
	Calls      int     `json:"calls"`
	Input      int64   `json:"input"`
	Output     int64   `json:"output"`
	CacheRead  int64   `json:"cacheRead"`
	CacheWrite int64   `json:"cacheWrite"`
	Cost       float64 `json:"cost"`
	Estimated  int     `json:"estimated,omitempty"` // calls whose tokens the service did not count
	Unpriced   int     `json:"unpriced,omitempty"`  // calls of a model without a known price
}

func (s *spent) add(c record.Spend) {
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

// read sums the histories of all agents, those in the trash included.
func (b *bill) read(root string) error {
	rows := map[string]*spent{}
	b.seen = map[string]bool{}
	add := func(dir string, agent spent) error {
		return record.Spent(dir, b.Since, func(c record.Spend) {
			if b.seen[c.Call] {
				return
			}
			b.seen[c.Call] = true
			row := agent
			switch b.By {
			case "model":
				row = spent{Key: orElse(c.Model, c.Provider)}
			case "day":
				row = spent{Key: c.At.Local().Format(time.DateOnly)}
			}
			if rows[row.Key] == nil {
				rows[row.Key] = &row
			}
			rows[row.Key].add(c)
			b.Total.add(c)
		})
	}
	index, _, err := address.Load(nil, root, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("read agents: %w", err)
	}
	for _, m := range index.All() {
		if err := add(filepath.Join(root, "agents", m.ID), spent{Key: m.Handle, Name: m.Name}); err != nil {
			return err
		}
	}
	removed, err := os.ReadDir(filepath.Join(root, "trash"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read trash: %w", err)
	}
	for _, e := range removed {
		if err := add(filepath.Join(root, "trash", e.Name()), spent{Key: "trash/" + e.Name()}); err != nil {
			return err
		}
	}
	b.sort(rows)
	return nil
}

// sort puts days in their order, all else by what it cost.
func (b *bill) sort(rows map[string]*spent) {
	b.Rows = []*spent{}
	for _, row := range rows {
		b.Rows = append(b.Rows, row)
	}
	slices.SortFunc(b.Rows, func(x, y *spent) int {
		if b.By == "day" {
			return strings.Compare(x.Key, y.Key)
		}
		return cmp.Or(cmp.Compare(y.Cost, x.Cost), cmp.Compare(y.Output, x.Output), strings.Compare(x.Key, y.Key))
	})
	b.Total.Key = "total"
}

func (c *cli) showBill(b *bill) error {
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
