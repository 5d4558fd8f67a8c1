package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/cmd/daycare/chaos/machines"
	"daycare/engine"
	"daycare/engine/cluster"
	"daycare/engine/disk"
	"daycare/engine/folders"
)

// A Cluster is what it costs that other machines can go on with the agents. Everything is on this machine: the
// agents, the model, who talks to them, and the servers.
type Cluster struct {
	Binary   string        // a daycare with a NATS server
	Dir      string        // on the disk that is measured
	Span     time.Duration // of each timed part
	Rounds   int           // of which each figure is the median; by turns
	Awake    int           // agents of the machine that is killed
	Agents   int           // that three servers hold, if they are to be measured; 0: they are not
	Progress func(string)
}

// An arrangement is where logs are.
type arrangement struct {
	name    string
	servers int // 0: on the local disk alone
	ownDisk cluster.OwnDisk
}

var (
	arrangements = []arrangement{{"local files", 0, ""}, {"one server", 1, ""}, {"three servers", 3, ""}}
	// relying has what is acknowledged on the disk of one server alone; only its speed differs.
	relying = arrangement{"one server, ownDisk: never", 1, cluster.Never}
)

// Run measures all parts. What could be measured before an error is returned too.
func (c Cluster) Run(ctx context.Context) (rows []Row, err error) {
	for _, part := range []func(context.Context) ([]Row, error){c.speeds, c.takeovers, c.idle, c.many} {
		more, err := part(ctx)
		rows = append(rows, more...)
		if err != nil {
			return rows, err
		}
	}

	return rows, nil
}

// with runs f while servers run, on a place of one of their machines.
func (c Cluster) with(a arrangement, f func(s *machines.Servers, at Place) error) (err error) {
	dir, err := os.MkdirTemp(c.Dir, "bench-cluster-")
	if err != nil {
		return err
	}
	if dir, err = filepath.Abs(dir); err != nil { // daemons have other working directories
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if a.servers == 0 {
		return f(nil, Place{Dir: dir})
	}
	s, err := machines.NewServers(c.Binary, dir, a.servers)
	defer s.End()
	if err == nil {
		err = s.Start()
	}
	if err != nil {
		return err
	}

	return f(s, Place{Dir: dir, Join: joining(s, a, func(*cluster.Node) {}), Beside: s.PIDs})
}

// joining makes worlds machines of the cluster of servers; met is called with what each is of it.
func joining(s *machines.Servers, a arrangement, met func(*cluster.Node)) Join {
	return func(root string, vol *disk.Volume) (engine.Peers, func(), error) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		node, err := cluster.Join(ctx, cluster.Config{Servers: s.URLs(), Name: "bench", Root: root, Volume: vol,
			Copies: cluster.Copies{Servers: a.servers, OwnDisk: a.ownDisk}, Covers: folders.Replicated, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, nil, err
		}
		met(node)

		return node, node.Close, nil
	}
}

// A speed is one round of one arrangement.
type speed struct {
	accepts  float64 // a second
	p50, p99 time.Duration
	turns    Load
	alone    Load // one agent
}

// How much is done in a round.
const (
	senders   = 64 // agents at once
	turnsEach = 20
	turnsOne  = 200 // of an agent that works alone
)

// speeds measures all arrangements by turns.
func (c Cluster) speeds(ctx context.Context) (rows []Row, err error) {
	all := map[string][]speed{}
	measured := append(slices.Clone(arrangements), relying)
	for round := range c.Rounds {
		for _, a := range measured {
			c.Progress(fmt.Sprintf("%s, round %d of %d", a.name, round+1, c.Rounds))
			err := c.with(a, func(_ *machines.Servers, at Place) (err error) {
				var one speed
				if one.accepts, one.p50, one.p99, err = Accept(ctx, at, senders, c.Span); err != nil {
					return err
				}
				if one.turns, err = Turns(ctx, at, senders, turnsEach); err != nil {
					return err
				}
				one.alone, err = Turns(ctx, at, 1, turnsOne)
				all[a.name] = append(all[a.name], one)

				return err
			})
			if err != nil {
				return rows, fmt.Errorf("%s: %w", a.name, err)
			}
		}
	}

	local := all[arrangements[0].name]
	for _, f := range []struct {
		name, unit string
		of         func(speed) float64
		note       func(speed) string
	}{
		{"accepted messages, 64 agents", "1/s", func(s speed) float64 { return s.accepts },
			func(s speed) string { return fmt.Sprintf("p50 %s, p99 %s", brief(s.p50), brief(s.p99)) }},
		{"turns, 64 agents", "1/s", func(s speed) float64 { return s.turns.Rate },
			func(s speed) string { return fmt.Sprintf("p50 %s, p99 %s", brief(s.turns.P50), brief(s.turns.P99)) }},
		{"processor time of such a turn", "ms", func(s speed) float64 { return ms(s.turns.Spent) },
			func(speed) string { return "with the servers, the model and who asks" }},
		{"turn of one agent, p50", "ms", func(s speed) float64 { return ms(s.alone.P50) },
			func(s speed) string { return "p99 " + brief(s.alone.P99) }},
	} {
		for _, a := range measured {
			one := middle(all[a.name], f.of)
			r := Row{Name: f.name + ", " + a.name, Value: f.of(one), Unit: f.unit, Note: f.note(one)}
			if a.servers > 0 {
				r = Against(r.Name, r.Value, r.Unit, f.of(middle(local, f.of)), r.Note+"; limit: local files")
			}
			rows = append(rows, r)
		}
	}

	return rows, nil
}

// middle is the round with the median of a figure.
func middle(rounds []speed, of func(speed) float64) speed {
	sorted := slices.SortedFunc(slices.Values(rounds), func(a, b speed) int {
		switch x, y := of(a), of(b); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})

	return sorted[len(sorted)/2]
}

// clusterSettings are those of a daemon that is a machine of the cluster; more are other ones.
func clusterSettings(s *machines.Servers, replicas int, more string) string {
	if s == nil {
		return more
	}
	return fmt.Sprintf("cluster: { servers: [ \"%s\" ], replicas: %d }\n", strings.Join(s.URLs(), `", "`), replicas) + more
}

// idle measures daemons that have nothing to do: one alone, and three of a cluster.
func (c Cluster) idle(ctx context.Context) (rows []Row, err error) {
	watched := 10 * c.Span
	for _, a := range arrangements {
		c.Progress("daemons that have nothing to do: " + a.name)
		err := c.with(a, func(s *machines.Servers, at Place) (err error) {
			list := make([]Daemon, 1)
			if s != nil {
				list = make([]Daemon, 3)
			}
			errs := make([]error, len(list))
			var watching sync.WaitGroup
			for i := range list {
				d, err := launch(ctx, c.Binary, filepath.Join(at.Dir, fmt.Sprint("m", i)),
					clusterSettings(s, a.servers, "providers: [{id: offline, type: scripted}]\n"))
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, d.stop()) }()
				watching.Go(func() { errs[i] = list[i].watch(ctx, d.cmd.Process.Pid, watched) })
			}
			watching.Wait()

			var spent time.Duration
			var resident int64
			for _, d := range list {
				spent, resident = spent+d.CPU, resident+d.RSS
			}
			rows = append(rows, Row{Name: "idle daemon, CPU, " + a.name, Unit: "%",
				Value: 100 * spent.Seconds() / watched.Seconds() / float64(len(list)),
				Note:  fmt.Sprintf("mean of %d over %s; %.0f MiB resident", len(list), watched, mib(resident/int64(len(list))))})

			return errors.Join(errs...)
		})
		if err != nil {
			return rows, err
		}
	}

	return rows, nil
}
