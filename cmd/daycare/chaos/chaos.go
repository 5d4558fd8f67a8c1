package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// A Length is how much is played.
type Length int

// Lengths.
const (
	Default Length = iota
	Short          // a sample, for every change
	Full           // each step, for a release
)

// Options say what to play.
type Options struct {
	Binary string // the daycare to kill
	Dir    string // where cases live; "": in memory where possible
	Filter
	Length   Length
	Random   int                                        // number of deaths at random moments; -1: as Length says
	Power    int                                        // number of power cuts of each real file system; -1: as Length says
	Soak     time.Duration                              // play this long in one workspace, instead
	CSV      string                                     // file for the samples of a soak; "": none
	Bugs     bool                                       // show that each seeded bug is caught, instead
	Build    func(ctx context.Context, to string) error // makes a binary that has the seeded bugs
	Progress func(done, of int, what string)
	Log      io.Writer // what was cleaned up before
}

// A Filter limits what is played. Its zero value plays everything.
type Filter struct {
	Scenario string // name of a scenario
	Way      string // name of a way to die
	Kill     string // one case of Scenario, as a failing case is printed
	Bug      string // name of a seeded bug
	Upgrade  string // of machines of a cluster: the other daycare
}

func (f Filter) plays(way string) bool { return f.Way == "" || f.Way == way }

// A harness runs cases.
type harness struct {
	planner
	dir    string
	lock   *os.File // of dir
	ports  *ports
	shared *server
	made   templates
	stalls *stallClock
	secret string // of webhooks
}

// A planner chooses the cases to play, from what scenarios pass in peace.
type planner struct {
	Options
	report *Report

	mu sync.Mutex
	// learned are the failpoints that each scenario passes in peace.
	learned map[string][]string
	// considered are the operations worth dying at, unplayed those that this length
	// leaves out.
	considered, unplayed int
}

// Run plays everything that o asks for. An error means that the harness itself
// could not work; what the daemon did wrong is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	h, err := newHarness(o)
	if err != nil {
		return nil, err
	}
	defer h.close()
	began := time.Now()

	switch {
	case o.Bugs:
		err = h.bugs(ctx)
	case o.Soak > 0:
		err = h.soak(ctx)
	default:
		err = h.all(ctx)
	}

	h.report.Seconds, h.report.Processor = time.Since(began).Seconds(), processorSeconds()
	h.report.LeftOut = h.leftOut()
	return h.report, err
}

func (h *harness) all(ctx context.Context) error {
	if h.Kill != "" {
		return h.repeat(ctx)
	}
	scenarios, err := h.scenarios()
	if err != nil {
		return err
	}

	before := processorSeconds()
	if err := h.learnAll(ctx, scenarios); err != nil {
		return err
	}
	learned := processorSeconds() - before
	cases := slices.DeleteFunc(h.plan(scenarios), func(c Case) bool { return !h.plays(c.Way) })
	if err := h.announce(scenarios, cases, learned); err != nil {
		return err
	}

	// File systems are cut beside everything else: most of that is waiting for them.
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return h.patiently(ctx, func(late *lateCases) error { return late.first(ctx, h, cases) })
	})
	group.Go(func() error { return h.volumes(ctx) })
	err = group.Wait()
	if err == nil && h.Way != "" && h.report.ways[h.Way] == nil {
		return fmt.Errorf("no case of %q was played: these scenarios, or this machine, have none", h.Way)
	}

	return err
}

func newHarness(o Options) (*harness, error) {
	h := &harness{planner: planner{Options: o, report: newReport(), learned: map[string][]string{}}, ports: newPorts()}
	if h.Progress == nil {
		h.Progress = func(int, int, string) {}
	}
	if h.Log == nil {
		h.Log = io.Discard
	}
	if _, err := h.scenarios(); err != nil {
		return nil, err // before a table of nothing
	}
	if h.Way != "" && !slices.Contains(ways, h.Way) {
		return nil, fmt.Errorf("there is no way to die %q, only %s", h.Way, strings.Join(ways, ", "))
	}
	if h.Bug != "" && !slices.ContainsFunc(Bugs, func(b Bug) bool { return b.Name == h.Bug }) {
		return nil, fmt.Errorf("there is no seeded bug %q; daycare chaos --bugs lists them", h.Bug)
	}

	var err error
	if h.Binary, err = filepath.Abs(o.Binary); err != nil {
		return nil, fmt.Errorf("find the binary: %w", err)
	}
	parent, err := filepath.Abs(where(o.Dir))
	if err != nil {
		return nil, fmt.Errorf("find the folder of cases: %w", err)
	}
	if err := sweep(parent, h.Log); err != nil {
		return nil, err
	}
	if h.dir, h.lock, err = newFolder(parent); err != nil {
		return nil, fmt.Errorf("make folder of cases: %w", err)
	}
	if h.shared, err = newServer(); err != nil {
		return nil, fmt.Errorf("listen for answers: %w", err)
	}

	h.made.h, h.secret, h.stalls = h, newSecret(), newStallClock()
	return h, nil
}

// where is a folder in memory: what the disk does to a sync is played by itself.
func where(dir string) string {
	if dir != "" {
		return dir
	}
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() && os.Getenv("TMPDIR") == "" {
		return "/dev/shm"
	}

	return os.TempDir()
}

// close keeps the folder if a case in it failed, and of it what cases left.
func (h *harness) close() error {
	defer h.lock.Close()
	h.stalls.close()
	err := h.shared.close()
	if len(h.report.Failures) > 0 {
		return errors.Join(err, h.made.remove(), os.RemoveAll(filepath.Join(h.dir, seededName)), os.Remove(filepath.Join(h.dir, lockName)))
	}

	return errors.Join(err, os.RemoveAll(h.dir))
}

// pick is a figure of the flags, or the one of the length.
func (h *planner) pick(flag, short, normal, full int) int {
	if flag >= 0 {
		return flag
	}
	switch h.Length {
	case Short:
		return short
	case Full:
		return full
	default:
		return normal
	}
}
