package daemon

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
	"strings"
	"time"

	"daycare/engine/control"
	"daycare/engine/record"
)

// costs is the part of the API that says what was spent. A call is counted once:
// copies of a history have it again.
type costs struct{ parts *Daemon }

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
				row = control.Spent{Key: cmp.Or(call.Model, call.Provider)}
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
