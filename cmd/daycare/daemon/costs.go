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

	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/control"
	"daycare/engine/record"
)

// costs is the part of the API that says what was spent. A call is counted once:
// copies of a history have it again.
type costs struct{ parts *Daemon }

// Cost sums the histories of all agents, those in the trash included. Of several machines each sums those of the agents that it
// had last.
func (c costs) Cost(_ context.Context, since time.Time, by string) (control.Bill, error) {
	b := control.Bill{Since: since, By: by}
	rows, seen := map[string]*control.Spent{}, map[string]bool{}
	add := func(dir string, agent control.Spent, kind address.Type) error {
		return record.Spent(dir, since, func(call record.Spend) {
			if seen[call.Call] {
				return
			}
			seen[call.Call] = true
			row := agent
			first, second, two := strings.Cut(by, ",")
			row.Key = rowKey(first, agent, kind, call)
			if two {
				row.Then = rowKey(second, agent, kind, call)
			}
			if first != "agent" && second != "agent" {
				row.Name = ""
			}

			id := row.Key + "\x00" + row.Then
			if rows[id] == nil {
				rows[id] = &row
			}
			tally(rows[id], call)
			tally(&b.Total, call)
		})
	}
	for _, m := range c.parts.index.All() {
		if !c.parts.machines.Had(m.ID) {
			continue
		}
		row := control.Spent{Key: m.Handle, Name: m.Name}
		if err := add(filepath.Join(c.parts.at.Data, "agents", m.ID), row, m.Descriptor.Type); err != nil {
			return b, err
		}
	}

	removed, err := os.ReadDir(filepath.Join(c.parts.at.Data, "trash"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return b, fmt.Errorf("read trash: %w", err)
	}

	for _, e := range removed {
		if !e.IsDir() {
			continue // a prompt of the heartbeat, a file of someone
		}
		dir := filepath.Join(c.parts.at.Data, "trash", e.Name())
		if err := add(dir, control.Spent{Key: "trash/" + e.Name()}, removedType(dir)); err != nil {
			return b, err
		}
	}

	b.Rows, b.Total.Key = slices.Collect(maps.Values(rows)), "total"
	b.Sort()
	return b, nil
}

// Budgets are the limits that bound any agent.
func (c costs) Budgets(context.Context) ([]control.Budget, error) {
	index := c.parts.index
	var ids []string
	for _, m := range index.All() {
		ids = append(ids, m.ID)
	}

	list := []control.Budget{}
	for _, level := range c.parts.ledger.Levels(ids) {
		b := control.Budget{Scope: level.Scope, AgentID: level.Agent, Limit: control.BudgetAmount(level.Limit),
			Spent: control.BudgetAmount(level.Spent)}
		if m, ok := index.Get(level.Agent); ok {
			b.Handle, b.Name, b.Parent = m.Handle, m.Name, index.Handle(m.Descriptor.ParentAgentID)
		}
		if level.Scope == level.Agent && level.Agent != "" {
			b.Scope = "own"
		}
		list = append(list, b)
	}

	return list, nil
}

// rowKey is the row that a call belongs to.
func rowKey(by string, agent control.Spent, kind address.Type, call record.Spend) string {
	switch by {
	case "model":
		return cmp.Or(call.Model, call.Provider)
	case "purpose":
		return purpose(kind, call)
	case "day":
		return call.At.Local().Format(time.DateOnly)
	}

	return agent.Key
}

// purpose is what a call was for, as the settings route calls.
func purpose(kind address.Type, call record.Spend) string {
	switch {
	case call.Summary:
		return "summary"
	case kind == address.User, kind == address.Permanent:
		return "conversation"
	}

	return cmp.Or(string(kind), "unknown")
}

// maxDescriptor bounds what is read of the descriptor of an agent in the trash, in bytes.
const maxDescriptor = 1 << 20

// removedType is the type of an agent in the trash; "" if its descriptor does not say.
func removedType(dir string) address.Type {
	path := filepath.Join(dir, "descriptor.json")
	data, _, err := beneath.Own(path, maxDescriptor)
	if err != nil {
		return ""
	}
	d, _ := address.Decode(path, data)

	return d.Type
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
