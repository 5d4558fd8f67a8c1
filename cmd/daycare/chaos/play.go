package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/record"
)

// A Death is how one life ends before its time.
type Death struct {
	Failpoint string        // as DAYCARE_FAILPOINT has it; "": none
	Cut       Cut           // the power goes with the process; "": it does not
	After     time.Duration // kill -9 this long after the start; 0: not by the clock
	Busy      bool          // After counts from the first message that is accepted
}

// String is a death as --kill takes it: kill@#17:100, or kill@#17:0/names where the
// power is cut too.
func (d Death) String() string {
	if d.Cut != "" {
		return d.Failpoint + "/" + string(d.Cut)
	}
	return d.Failpoint
}

// ParseDeaths reads what a failing case was printed with.
func ParseDeaths(s string) ([]Death, error) {
	var deaths []Death
	for one := range strings.SplitSeq(s, ",") {
		point, cut, _ := strings.Cut(strings.TrimSpace(one), "/")
		if !strings.Contains(point, "@") {
			return nil, fmt.Errorf("%q is not ACTION@POINT#K[:PERCENT][/CUT]", one)
		}
		deaths = append(deaths, Death{Failpoint: point, Cut: Cut(cut)})
	}
	return deaths, nil
}

// A Case is a scenario and how its lives end; the life after the last death ends in
// order.
type Case struct {
	Way      string // of dying: what the report calls it
	Scenario *Scenario
	Deaths   []Death
	Bug      string
	Root     string        // "": a folder in memory; else an empty one, on the file system under test
	Patience time.Duration // 0: the usual
	// Lost is called instead of killing, where the file system dies too.
	Lost func(d *daemon) error
	// Random is where deaths come from when there is no list; the zero Death is none.
	Random   func(life int) Death
	Mirrored bool // the power is cut in this case
}

// patience is how long a case may take before it counts as stuck. It is long, because
// a machine may have much else to do, and a case that is stuck ends all the same.
const patience = time.Minute

// A play is a case under way.
type play struct {
	Case
	h      *harness
	dir    string // of the case
	root   string // the .daycare directory
	mirror string
	user   *user
	life   int
	result *Result
	// arguments are what is called; none: the daemon is started.
	arguments []string
	check     *checker
	known     map[string]line // of the workspace that the case begins with
	said      chan struct{}   // closed when the user is through with the scenario
	failed    error           // and why, if not by saying everything

	greeted int // troubles that were followed by a greeting
}

func (h *harness) play(ctx context.Context, c Case) (*Result, error) {
	p, err := h.newPlay(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", c.Scenario.Name, err)
	}
	defer h.shared.remove(p.user.world)
	limit := c.Patience
	if limit == 0 {
		limit = patience
	}
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errStuck)
	defer cancel()
	if err := p.lives(ctx); err != nil {
		return nil, fmt.Errorf("play %s: %w", c.Scenario.Name, err)
	}
	p.result.Seconds = time.Since(began).Seconds()

	return p.result, nil
}

var errStuck = errors.New("it does not get on")

// lives plays one life after the other, while the user goes on as if nothing was.
func (p *play) lives(ctx context.Context) error {
	inner, cancel := context.WithCancel(ctx)
	if p.Scenario.Command != nil {
		if err := p.callAll(inner); err != nil || len(p.result.Violations) > 0 {
			cancel()
			return err
		}
	}
	p.talk(inner, p.Scenario.Steps)
	defer func() {
		cancel()
		<-p.said
	}()
	for ; ; p.life++ {
		d, armed, err := p.begin()
		if err != nil {
			return err
		}
		ended := p.live(inner, d, armed)
		p.seen(d)
		switch {
		case p.outOfTime(ctx):
			return ctx.Err()
		case ended:
			p.check.atEnd()
			return nil
		}
		if len(p.result.Violations) == 0 {
			if err := p.afterDeath(armed); err != nil {
				return err
			}
		}
		if len(p.result.Violations) > 0 {
			return nil // what comes of it is of no interest
		}
	}
}

// talk has the user do steps, beside everything else.
func (p *play) talk(ctx context.Context, steps []step) {
	p.said = make(chan struct{})
	go func() {
		defer close(p.said)
		p.failed = playAll(ctx, p.user, steps)
	}()
}

// outOfTime: the harness is to end, as opposed to the case being stuck.
func (p *play) outOfTime(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), errStuck)
}

// begin starts the next life with the death that is its lot.
func (p *play) begin() (*daemon, Death, error) {
	var armed Death
	switch {
	case p.Random != nil:
		armed = p.Random(p.life)
	case p.life < len(p.Deaths):
		armed = p.Deaths[p.life]
	}
	d, err := launch{binary: p.h.Binary, workspace: filepath.Dir(p.root), arguments: p.arguments, dir: p.dir, life: p.life,
		failpoint: armed.Failpoint, mirror: p.mirror, bug: p.Bug, collects: p.Random != nil}.start()
	return d, armed, err
}

// live waits until this life ends: by its death, or (true) in order, when all is
// said and done.
func (p *play) live(ctx context.Context, d *daemon, armed Death) (ended bool) {
	var clock <-chan time.Time
	if armed.After > 0 {
		if armed.Busy {
			p.awaitAccepted(ctx, d)
		}
		clock = time.After(armed.After)
	}
	tick := time.NewTicker(2 * poll)
	defer tick.Stop()
	through := time.Now() // since when the user has nothing more to say
	for quiet := 0; ; {
		select {
		case <-d.exited:
			p.judgeExit(d, armed)
			return false
		case <-clock:
			if p.Lost != nil {
				if err := p.Lost(d); err != nil {
					p.result.violate("the power could not be cut: %v", err)
				}
			}
			d.kill()
			return false
		case <-ctx.Done():
			p.result.violate("stuck: not everything was done in time: %s", p.check.waitsFor())
			d.stuck()
			return false
		case <-tick.C:
			if !p.allSaid() {
				quiet, through = 0, time.Now()
				continue
			}
			if quiet++; !p.settled() {
				quiet = 0
			}
			switch {
			case p.survived() && (quiet > 1 || p.broken() && time.Since(through) > owedAfter):
				p.greet(ctx)
			case quiet > 1:
				return p.end(ctx, d, armed)
			}
		}
	}
}

// awaitAccepted waits until the daemon has accepted something in this life, but not
// for ever: it may have enough to do with what it has.
func (p *play) awaitAccepted(ctx context.Context, d *daemon) {
	limited, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	before := p.user.acceptances()
	_ = until(limited, func() bool { return !d.alive() || p.user.acceptances() > before })
}

// owedAfter is when a disk that failed once is given its chance to write what it
// owes: that rides with the next write.
const owedAfter = 300 * time.Millisecond

// survived reports whether something went wrong since the last greeting.
func (p *play) survived() bool { return p.troubles() > p.greeted }

func (p *play) troubles() int {
	if p.broken() {
		return p.result.Deaths + 1
	}
	return p.result.Deaths
}

// broken reports whether the case is one of a disk that fails.
func (p *play) broken() bool {
	return len(p.Deaths) > 0 && !slices.ContainsFunc([]string{"kill@", "stall@"}, func(deadly string) bool { return strings.HasPrefix(p.Deaths[0].Failpoint, deadly) })
}

// greet says one more thing to each agent: it shows that they still work after a death, and
// has them clean up.
func (p *play) greet(ctx context.Context) {
	p.greeted = p.troubles()
	var all []step
	for _, hook := range p.Scenario.hooks() {
		all = append(all, say(hook, fmt.Sprintf("again%d%s", p.greeted, hook), "hello"))
	}
	if p.Scenario.Bot {
		all = append(all, chats(fmt.Sprintf("again%dbot", p.greeted), "hello"))
	}
	p.talk(ctx, []step{together(all...)})
}

// allSaid reports whether the user is through with the scenario.
func (p *play) allSaid() bool {
	select {
	case <-p.said:
		if p.failed != nil {
			p.result.violate("the user could not go on: %v", p.failed)
		}
		return true
	default:
		return false
	}
}

// end is the orderly end of a life. A death that was armed may still come.
func (p *play) end(ctx context.Context, d *daemon, armed Death) bool {
	// One that is still starting knows no signals.
	_ = until(ctx, func() bool { return !d.alive() || p.user.reachable() })
	if !d.stop(10 * time.Second) {
		p.result.violate("stuck: it does not end at SIGTERM")
		d.stuck()
		return false
	}
	if d.code() == 0 {
		return true
	}
	p.judgeExit(d, armed)
	return false
}

// settled is a quick look whether everything is done, by the daemon's own proof;
// the check at the end is made without it.
func (p *play) settled() bool {
	agents, err := os.ReadDir(filepath.Join(p.root, "agents"))
	if err != nil {
		return false
	}
	some := false
	for _, e := range agents {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		some = true
		dir := filepath.Join(p.root, "agents", e.Name())
		box, err1 := inbox.Settled(dir)
		history, err2 := record.Settled(dir)
		if !box || !history || err1 != nil || err2 != nil {
			return false
		}
	}
	return some && noFiles(filepath.Join(p.root, "drop")) && noFiles(filepath.Join(p.root, "drop", ".taken"))
}

func noFiles(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(entries, func(e os.DirEntry) bool { return !e.IsDir() && !disk.Hidden(e.Name()) })
}

// judgeExit: it may die as it was told to, and it may give up on a disk that was
// made to fail.
func (p *play) judgeExit(d *daemon, armed Death) {
	switch {
	case d.died() || d.killed:
	case d.code() == exitDisk && p.broken() && armed != (Death{}):
		p.result.GaveUp++
	default:
		p.result.violate("it ended with %s, armed with %q; its last words: %s", d.cmd.ProcessState, armed.Failpoint, d.said())
	}
}

// exitDisk is the exit code that says that durable storage failed.
const exitDisk = 75

// afterDeath does what happens between two lives: the power comes back, a person
// looks into the files, everything is compared.
func (p *play) afterDeath(armed Death) error {
	p.user.died()
	p.result.Deaths++
	if armed.Cut != "" {
		if err := cutPower(p.root, p.mirror, armed.Cut); err != nil {
			return err
		}
		p.user.mirror = crash.OpenMirror(p.mirror)
	}
	p.check.atDeath()
	if p.Scenario.After != nil {
		return p.Scenario.After(p.user)
	}
	return nil
}

// seen keeps what a life passed.
func (p *play) seen(d *daemon) {
	passed := d.passed()
	if p.life == 0 {
		p.result.Passed = passed
	}
	for _, name := range passed {
		p.result.Reached[name] = true
	}
	if d.died() && len(passed) > 0 {
		p.result.DiedAt[passed[len(passed)-1]]++
	}
	if strings.Contains(d.said(), "panic:") {
		p.result.violate("it panicked: %s", d.said())
	}
}
