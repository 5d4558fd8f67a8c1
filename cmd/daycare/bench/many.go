package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"daycare/agents"
	"daycare/cmd/daycare/chaos/machines"
	"daycare/engine/cluster"
)

// many measures three servers that have the logs of very many agents.
func (c Cluster) many(ctx context.Context) (rows []Row, err error) {
	if c.Agents == 0 {
		return nil, nil
	}
	a := arrangements[len(arrangements)-1]
	err = c.with(a, func(s *machines.Servers, at Place) error {
		rows, err = c.hold(ctx, a, s, at)
		return err
	})

	return rows, err
}

// hold makes the agents, looks at the servers, kills them, and waits until an agent can be had again.
func (c Cluster) hold(ctx context.Context, a arrangement, s *machines.Servers, at Place) (rows []Row, err error) {
	var node *cluster.Node
	w, err := NewWorldWith(at.Dir, joining(s, a, func(n *cluster.Node) { node = n }), instant{"ok"}, agents.Followup)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	c.Progress(fmt.Sprintf("making %d agents on %s", c.Agents, a.name))
	began := time.Now()
	ids, err := w.Agents(ctx, c.Agents)
	if err != nil {
		return nil, err
	}
	rows = append(rows, Row{Name: fmt.Sprintf("agents made, of %d", c.Agents), Unit: "1/s",
		Value: float64(c.Agents) / time.Since(began).Seconds(), Note: a.name + ", 64 at once"})
	for i, pid := range s.PIDs() {
		size, err := resident(pid)
		if err != nil {
			return rows, err
		}
		rows = append(rows, Row{Name: fmt.Sprintf("server %d with %d agents, resident", i+1, c.Agents), Value: mib(size), Unit: "MiB"})
	}

	c.Progress("all servers are killed")
	s.Kill()
	killed := time.Now()
	if err := s.Start(); err != nil {
		return rows, err
	}
	for ctx.Err() == nil {
		if err = node.Acquire(ids[len(ids)/2]); err == nil {
			return append(rows, Row{Name: fmt.Sprintf("servers with %d agents, usable", c.Agents), Unit: "s",
				Value: time.Since(killed).Seconds(), Note: "from their start, after kill -9 of all, until an agent was claimed"}), nil
		}
		if err := rest(ctx, 20*time.Millisecond); err != nil {
			return rows, err
		}
	}

	return rows, errors.Join(err, ctx.Err())
}
