package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"daycare/engine/crash"
)

// A play is a running case.
type play struct {
	Case
	ground
	process
	conversation
	h         *harness
	result    *Result
	arguments []string // of the command to run; empty: the daemon is started
	check     *checker
}

// A ground is where a case runs.
type ground struct {
	dir     string          // the folder of the case
	root    string          // the .daycare directory
	mirror  string          // what of root is durable; "": no power is cut in this case
	address string          // host:port where the daemon listens for webhooks
	listen  string          // and for the chat platform; "": none
	known   map[string]line // lines of the workspace that the case begins with, by path
}

// A process is one life of the program under test.
type process struct {
	life   int           // number of the life, from 0
	pid    atomic.Int64  // process id
	follow *follower     // reads the logs that this life writes
	ahead  time.Duration // how far the daemon's clock is ahead, from the next life on
}

// A conversation is the user's side of a case.
type conversation struct {
	user    *user
	said    chan struct{} // closed when the user has played all steps
	failed  error         // why the user stopped before the last step; nil: they did not
	greeted int           // number of troubles after which a greeting was sent
}

func (h *harness) play(ctx context.Context, c Case) (*Result, error) {
	p, err := h.newPlay(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", c.Scenario.Name, err)
	}

	return p.run(ctx)
}

// run plays a case that was prepared.
func (p *play) run(ctx context.Context) (*Result, error) {
	defer p.h.shared.remove(p.user.world)
	limit := p.Patience
	if limit == 0 {
		limit = patience
	}

	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errStuck)
	defer cancel()
	if err := p.lives(ctx); err != nil {
		return nil, fmt.Errorf("play %s: %w", p.Scenario.Name, err)
	}

	p.result.Seconds = time.Since(began).Seconds()

	return p.result, nil
}

var errStuck = errors.New("it does not get on")

// lives plays one life after the other, while the user continues as if nothing was.
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
		case outOfTime(ctx):
			return ctx.Err()
		case ended && p.Late && p.ahead == 0:
			p.offerAgain(inner)
			continue
		case ended:
			p.check.atEnd()
			return nil
		}

		if len(p.result.Violations) == 0 {
			if err := p.afterDeath(d, armed); err != nil {
				return err
			}
		}
		if len(p.result.Violations) > 0 {
			return nil // what comes of it is of no interest
		}
	}
}

// lateBy is how much later platforms offer again what was accepted. The window in which
// daycare remembers is seven days.
const lateBy = 3 * 24 * time.Hour

// offerAgain has the next life begin days later, and platforms offer again all that was
// accepted: to them a delivery is new as long as they do not know better.
func (p *play) offerAgain(ctx context.Context) {
	p.ahead = lateBy
	var all []step
	for _, s := range p.user.sayings() {
		if s.again == nil || !s.accepted {
			continue
		}
		all = append(all, func(ctx context.Context, _ *user) error {
			return until(ctx, func() bool { _, ok := s.again(ctx); return ok })
		})
	}

	p.talk(ctx, all)
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
func outOfTime(ctx context.Context) bool {
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

	if p.life > 0 {
		if err := p.writeSettings(); err != nil {
			return nil, armed, err
		}
	}

	p.follow = newFollower(p.root, p.known)
	l := launch{binary: p.h.Binary, workspace: filepath.Dir(p.root), arguments: p.arguments, dir: p.dir, life: p.life,
		failpoint: armed.Failpoint, mirror: p.mirror, bug: p.Bug, secret: p.h.secret, ahead: p.ahead, limit: p.Limit,
		collects: p.Random != nil}
	p.user.begins(p.life)
	d, err := l.start()
	if err == nil {
		p.pid.Store(int64(d.cmd.Process.Pid))
	}

	return d, armed, err
}

// checkExit: it may die as it was told to, it may give up on a disk that was made to
// fail, and it may refuse to start and say why.
func (p *play) checkExit(d *daemon, armed Death) {
	switch {
	case d.died() || d.killed:
	case p.broken() && armed != (Death{}) &&
		(d.code() == exitDisk || d.code() == 1 && strings.Contains(d.said(), crash.Message(armed.Failpoint))):
		p.result.GaveUp++
	default:
		p.result.violate("it ended with %s, armed with %q; its last words: %s", d.cmd.ProcessState, armed.Failpoint, d.said())
	}
}

// exitDisk is the exit code that says that durable storage failed.
const exitDisk = 75

// afterDeath does what happens between two lives: the power comes back, a user
// looks into the files, everything is compared.
func (p *play) afterDeath(d *daemon, armed Death) error {
	p.user.died(d.endedAt(armed))
	p.result.Deaths++
	if armed.Cut != "" {
		p.user.power.Lock()
		err := cutPower(p.root, p.mirror, armed.Cut)
		p.user.mirror = crash.OpenMirror(p.mirror)
		p.user.power.Unlock()
		if err != nil {
			return err
		}
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
