package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"daycare/agents"
	"daycare/cmd/daycare/chaos/machines"
	"daycare/engine"
	"daycare/engine/cluster"
	"daycare/engine/control"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/workspace"
)

// busyModel has every agent at work until its machine is killed.
const busyModel = "rules: [ { reply: [ { delay: 1h }, { text: never } ] } ]\n"

// takeovers measures how soon another machine goes on.
func (c Cluster) takeovers(ctx context.Context) (rows []Row, err error) {
	for _, a := range arrangements[1:] {
		c.Progress(fmt.Sprintf("a machine with %d agents awake is killed: %s", c.Awake, a.name))
		err := c.with(a, func(s *machines.Servers, at Place) error {
			row, err := c.killed(ctx, a, s, at)
			rows = append(rows, row)
			return err
		})
		if err != nil {
			return rows, fmt.Errorf("takeover, %s: %w", a.name, err)
		}
		c.Progress("one agent goes from machine to machine: " + a.name)
		err = c.with(a, func(s *machines.Servers, at Place) error {
			row, err := handOver(ctx, a, s, at)
			rows = append(rows, row)
			return err
		})
		if err != nil {
			return rows, fmt.Errorf("one agent, %s: %w", a.name, err)
		}
	}

	return rows, nil
}

// killed kills a daemon whose agents all work, and waits until a second machine has opened each.
func (c Cluster) killed(ctx context.Context, a arrangement, s *machines.Servers, at Place) (r Row, err error) {
	work := filepath.Join(at.Dir, "killed")
	script := filepath.Join(at.Dir, "busy.yaml")
	if err := os.WriteFile(script, []byte(busyModel), 0o600); err != nil {
		return r, err
	}
	d, err := launch(ctx, c.Binary, work, clusterSettings(s, a.servers,
		fmt.Sprintf("providers: [{id: offline, type: scripted, options: {script: %q}}]\nagents: {maxAwake: %d}\n", script, c.Awake+1)))
	if err != nil {
		return r, err
	}
	dead := false
	defer func() {
		if !dead {
			err = errors.Join(err, d.stop())
		}
	}()
	if err := c.occupy(ctx, d); err != nil {
		return r, err
	}

	var node *cluster.Node
	join := joining(s, a, func(n *cluster.Node) { node = n })
	w, err := NewWorldWith(filepath.Join(at.Dir, "other"), join, instant{"ok"}, agents.Followup)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	o := &opened{ids: map[string]bool{}, of: c.Awake, all: make(chan struct{})}
	w.runWith(func(ctx context.Context, rt engine.Runtime) error {
		o.note(rt.Meta.ID)
		return w.start(ctx, rt)
	})
	for len(node.Machines()) < 2 || len(node.Agents()) < c.Awake {
		if err := rest(ctx, 10*time.Millisecond); err != nil {
			return r, err
		}
	}
	if err := rest(ctx, 2*time.Second); err != nil { // it is sure of whom it hears
		return r, err
	}

	killed := time.Now()
	if err := d.cmd.Process.Kill(); err != nil {
		return r, err
	}
	dead = true
	_ = d.cmd.Wait() // it was killed
	for len(node.Machines()) > 1 {
		if err := rest(ctx, time.Millisecond); err != nil {
			return r, err
		}
	}

	return o.since(killed, a)
}

// since waits until all agents were opened. The machine that had them was killed, and its lease has just ended.
func (o *opened) since(killed time.Time, a arrangement) (r Row, err error) {
	lapsed := time.Now()
	select {
	case <-o.all:
	case <-time.After(time.Minute):
		return r, fmt.Errorf("%d of %d agents were taken over within a minute", o.count(), o.of)
	}

	return Row{Name: fmt.Sprintf("takeover of %d agents awake, %s", o.of, a.name), Value: time.Since(lapsed).Seconds(), Unit: "s",
		Note: fmt.Sprintf("after the lease, which ended %.1f s after the kill; all had an open item", lapsed.Sub(killed).Seconds())}, nil
}

// occupy gives a daemon agents that all work.
func (c Cluster) occupy(ctx context.Context, d *child) error {
	errs := make([]error, c.Awake)
	var sending sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range c.Awake {
		sending.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			_, errs[i] = d.client.Send(ctx, "", control.Message{Connector: "bench", ChannelID: fmt.Sprint(i), UserID: "u", Text: "work"})
		})
	}
	sending.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for {
		st, err := d.client.Status(ctx)
		if err == nil && st.Awake >= c.Awake {
			return nil
		}
		if rerr := rest(ctx, 20*time.Millisecond); rerr != nil {
			return errors.Join(rerr, err)
		}
	}
}

// opened counts agents, each once.
type opened struct {
	mu  sync.Mutex
	ids map[string]bool
	of  int
	all chan struct{} // closed when so many were opened
}

func (o *opened) note(id string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ids[id] {
		if o.ids[id] = true; len(o.ids) == o.of {
			close(o.all)
		}
	}
}

func (o *opened) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.ids)
}

// acquired claims an agent. A server that is behind may not know yet that it was given up.
func acquired(ctx context.Context, n *cluster.Node, id string) error {
	for {
		err := n.Acquire(id)
		if !errors.As(err, new(*message.Elsewhere)) {
			return err
		}
		if err := rest(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// handOver has two machines take an agent by turns that the other one gave up: each claims it, reads its log, makes its
// folder, and opens its inbox.
func handOver(ctx context.Context, a arrangement, s *machines.Servers, at Place) (r Row, err error) {
	const times = 40
	var nodes []*cluster.Node
	var worlds []*World
	for i := range 2 {
		dir := filepath.Join(at.Dir, fmt.Sprint("m", i))
		join := joining(s, a, func(n *cluster.Node) { nodes = append(nodes, n) })
		w, err := NewWorldWith(dir, join, instant{"ok"}, agents.Followup)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, w.Close()) }()
		worlds = append(worlds, w)
	}
	one, err := os.MkdirTemp(at.Dir, "one-")
	if err != nil {
		return r, err
	}
	id, err := populate(ctx, one, 1, 0)
	if err == nil {
		err = os.CopyFS(filepath.Join(worlds[0].Root, "agents", id), os.DirFS(filepath.Join(workspace.At(one).Data, "agents", id)))
	}
	if err != nil {
		return r, err
	}

	var all []time.Duration
	for i := range times + 1 {
		began := time.Now()
		if err := acquired(ctx, nodes[i%2], id); err != nil {
			return r, err
		}
		w := worlds[i%2]
		box, _, err := inbox.Open(w.Volume, filepath.Join(w.Root, "agents", id), inbox.NewQuota(0), time.Now)
		if err != nil {
			return r, err
		}
		if i > 0 { // the first one brings it
			all = append(all, time.Since(began))
		}
		if err := box.Close(); err != nil {
			return r, err
		}
		nodes[i%2].Release(id, false)
	}

	return Row{Name: "one agent of another machine, " + a.name, Value: ms(median(all)), Unit: "ms",
		Note: fmt.Sprintf("median of %d: claim, read, folder, inbox", times)}, nil
}
