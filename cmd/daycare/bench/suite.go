package bench

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// A Suite is one run of everything, on one machine, in one go: the only figures
// worth comparing.
type Suite struct {
	Dir      string        // on the disk that is measured
	Binary   string        // the daycare binary, for what is measured from outside
	Span     time.Duration // of each timed part
	Agents   []int         // how many agents lie on disk when a start is measured
	Progress func(string)  // what is being measured now
}

// Curves is how the cost grows with agents, and with what the history of an agent holds.
type Curves struct {
	Ready, RSS, Overhead, Restore Series
}

// Run measures all parts. What could be measured before an error is returned too.
func (s Suite) Run(ctx context.Context) (rows []Row, curves Curves, err error) {
	curves = Curves{
		Ready: Series{Name: "ready, ms", By: "agents on disk"}, RSS: Series{Name: "resident, MiB", By: "agents on disk"},
		Overhead: Series{Name: "turn over the model's time, ms", By: "KB of context"},
		Restore:  Series{Name: "first answer after a start, ms", By: "MiB of history"},
	}
	one, many, rows, err := s.disk(ctx)
	if err != nil {
		return rows, curves, err
	}

	for _, part := range []func() ([]Row, error){
		func() ([]Row, error) { return s.accept(ctx, one, many) },
		func() ([]Row, error) { return s.turns(ctx, one, many) },
		func() ([]Row, error) { return s.overhead(ctx, one, &curves) },
		func() ([]Row, error) { return s.model(ctx, one) },
		func() ([]Row, error) { return s.restores(ctx, &curves) },
		func() ([]Row, error) { return s.process(ctx, &curves) },
		func() ([]Row, error) { return s.beside(ctx) },
	} {
		more, err := part()
		rows = append(rows, more...)
		if err != nil {
			return rows, curves, err
		}
	}

	return rows, curves, nil
}

func (s Suite) disk(ctx context.Context) (one, many Result, rows []Row, err error) {
	s.Progress("the disk itself")
	if one, err = Disk(ctx, s.Dir, 1, s.Span); err != nil {
		return one, many, nil, err
	}
	if many, err = Disk(ctx, s.Dir, 64, s.Span); err != nil {
		return one, many, nil, err
	}

	return one, many, append(one.Rows(), many.Rows()...), nil
}

func (s Suite) accept(ctx context.Context, one, many Result) (rows []Row, err error) {
	for _, n := range []int{1, 8, 64, 1000} {
		s.Progress(fmt.Sprintf("accepting messages for %d agents", n))
		limit := many.Rate()
		if n == 1 {
			limit = one.Rate()
		}

		rate, p50, p99, err := Accept(ctx, Place{Dir: s.Dir}, n, s.Span)
		if err != nil {
			return rows, err
		}
		rows = append(rows, Against(fmt.Sprintf("accepted messages, %d agents", n), rate, "1/s", limit,
			fmt.Sprintf("one barrier each; p50 %s, p99 %s", brief(p50), brief(p99))))
	}

	return rows, nil
}

func (s Suite) turns(ctx context.Context, one, many Result) ([]Row, error) {
	s.Progress("1,000 agents × 20 messages on a model that answers at once")
	debug.FreeOSMemory() // what the parts before this one took
	l, err := Turns(ctx, Place{Dir: s.Dir}, 1000, 20)
	if err != nil {
		return nil, err
	}

	return []Row{
		Against("turns, 1,000 agents: barriers", l.Rate*3, "1/s", many.Rate(),
			fmt.Sprintf("%.0f turns/s × 3; p50 %s, p99 %s", l.Rate, brief(l.P50), brief(l.P99))),
		{Name: "resident after it, this process", Value: mib(l.Resident), Unit: "MiB", Note: "1,000 agents in memory, and those who ask"},
	}, nil
}

func (s Suite) overhead(ctx context.Context, one Result, c *Curves) (rows []Row, err error) {
	limit := ms(2 * one.P50)
	for _, size := range []int{10_000, 100_000, 1_000_000} {
		s.Progress(fmt.Sprintf("a turn with %d KB of context", size/1000))
		p50, p99, err := Overhead(ctx, s.Dir, size, 100)
		if err != nil {
			return rows, err
		}
		rows = append(rows, Against(fmt.Sprintf("turn over the model's time, %d KB of context", size/1000), ms(p50), "ms", limit,
			"limit: two barriers; p99 "+brief(p99)))
		c.Overhead.Points = append(c.Overhead.Points, Point{float64(size) / 1000, ms(p50)})
	}

	return rows, nil
}

func (s Suite) model(ctx context.Context, one Result) ([]Row, error) {
	s.Progress("a local HTTP model with 20 ms to its first token")
	r, err := HTTP(ctx, s.Dir, 30)
	if err != nil {
		return nil, err
	}

	return []Row{
		Against("turn on a local HTTP model", ms(r.Turn), "ms", ms(r.Model), "limit: the model's own time"),
		{Name: "chunk to event", Value: ms(r.Latency), Unit: "ms", Note: "median"},
	}, nil
}

// beside leaves out the most agents: to prepare them takes longer than all else.
func (s Suite) beside(ctx context.Context) ([]Row, error) {
	others := slices.DeleteFunc(slices.Clone(s.Agents), func(n int) bool { return n == 0 || n > 10_000 })
	return Beside{Binary: s.Binary, Dir: s.Dir, Others: others, Each: 50, Progress: s.Progress}.Run(ctx)
}

func (s Suite) process(ctx context.Context, c *Curves) (rows []Row, err error) {
	s.Progress("starting processes")
	version, err := Startup(ctx, 21, s.Binary, "version")
	if err != nil {
		return nil, err
	}

	rows = append(rows, Row{Name: "daycare version", Value: ms(version), Unit: "ms", Note: "median of 21"})
	var empty int64
	for _, n := range s.Agents {
		s.Progress(fmt.Sprintf("a daemon with %d agents on disk", n))
		idle := time.Duration(0)
		if n == 0 {
			idle = 5 * time.Second
		}

		d, err := Process(ctx, s.Binary, s.Dir, n, 1<<20, idle)
		if err != nil {
			return rows, err
		}
		if n == 0 {
			empty = d.RSS
			rows = append(rows, Row{Name: "idle daemon, CPU", Value: 100 * float64(d.CPU) / float64(d.Idled), Unit: "%",
				Note: "over " + d.Idled.String()})
		}

		note := ""
		if n > 0 {
			note = fmt.Sprintf("1 MiB of history each; first answer %s, %d bytes an agent", brief(d.First), (d.RSS-empty)/int64(n))
			c.Ready.Points = append(c.Ready.Points, Point{float64(n), ms(d.Ready)})
			c.RSS.Points = append(c.RSS.Points, Point{float64(n), mib(d.RSS)})
		}

		rows = append(rows,
			Row{Name: fmt.Sprintf("daemon ready, %d agents on disk", n), Value: ms(d.Ready), Unit: "ms", Note: note},
			Row{Name: fmt.Sprintf("daemon resident, %d agents on disk", n), Value: mib(d.RSS), Unit: "MiB"})
	}

	return rows, nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

func brief(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }
