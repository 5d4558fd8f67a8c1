package chaos

import (
	"context"
	"fmt"
	"time"
)

// live waits until this life ends: by its death, or (true) in order, when all is
// said and done.
func (p *play) live(ctx context.Context, d *daemon, armed Death) (ended bool) {
	var clock <-chan time.Time
	if armed.After > 0 {
		if armed.Busy {
			p.user.awaitAccepted(ctx, d)
		}
		clock = time.After(armed.After)
	}
	alone := func() {}
	if p.Pauses != nil {
		var end func()
		alone, end = p.pause(ctx, d)
		defer end()
	}

	next := time.NewTimer(2 * poll)
	defer next.Stop()
	w := newWatch(p)
	for {
		select {
		case <-d.exited:
			p.checkExit(d, armed)
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
		case now := <-next.C:
			switch w.look(now) {
			case nothingHappens:
				p.result.violate("stuck: nothing happened for %s: %s", nothingFor, p.check.waitsFor())
				d.stuck()
				return false
			case greeting:
				p.greet(ctx)
			case settled:
				alone()
				return p.end(ctx, d, armed)
			}
			// Looking at hundreds of agents, or at a long history, would take a processor.
			next.Reset(min(max(2*poll, 9*time.Since(now)), nothingFor/4))
		}
	}
}

// A watch looks at a life as it continues.
type watch struct {
	p       *play
	through time.Time // since when the user has nothing more to say
	quiet   int       // how often in a row nothing was left to do
	looked  time.Time // when progress was measured
	figure  int64     // that grows with all that happens
	since   time.Time // when it grew last
}

// What a look at a life shows.
type sight int

const (
	goesOn sight = iota
	nothingHappens
	greeting // it is time to say hello once more
	settled
)

// nothingFor is how long nothing may happen while there is something to do: longer than
// the pauses after a try that failed, as far as scenarios have them.
const nothingFor = 8 * time.Second

func newWatch(p *play) *watch {
	now := time.Now()
	return &watch{p: p, through: now, looked: now, since: now}
}

func (w *watch) look(now time.Time) sight {
	said := w.p.allSaid()
	if !said {
		w.quiet, w.through = 0, now
		if now.Sub(w.looked) < nothingFor/32 {
			return goesOn
		}
	}

	rest, size, err := w.p.follow.rest()
	if err != nil {
		rest = err.Error() // someone writes to it at this moment
	}
	w.looked = now
	if figure := size + w.p.user.happenings(); figure != w.figure {
		w.figure, w.since = figure, now
	}
	if w.quiet++; rest != "" || !said {
		w.quiet = 0
	}

	// Where nothing is left to do, nothing has to happen: the look that shows it may have come late.
	switch p := w.p; {
	case w.quiet == 0 && p.timed() && !p.Scenario.Fails && now.Sub(w.since) > nothingFor+p.h.stalls.between(w.since, now):
		return nothingHappens
	case !said:
		return goesOn
	case p.troubles() > p.greeted && (w.quiet > 1 || p.broken() && now.Sub(w.through) > owedAfter):
		w.quiet, w.through = 0, now
		return greeting
	case w.quiet > 1:
		return settled
	}

	return goesOn
}

// happenings is a figure that grows with everything that the world sees.
func (w *world) happenings() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.replies) + len(w.said)
	for _, s := range w.said {
		if s.accepted {
			n++
		}
	}

	return int64(n)
}

// awaitAccepted waits until the daemon has accepted something in this life, but not
// forever: it may have enough to do with what it has.
func (u *user) awaitAccepted(ctx context.Context, d *daemon) {
	limited, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	before := u.acceptances()
	_ = until(limited, func() bool { return !d.alive() || u.acceptances() > before })
}

// owedAfter is when a disk that failed once is given its chance to write what it
// owes: that rides with the next write.
const owedAfter = 300 * time.Millisecond

func (p *play) troubles() int {
	if p.broken() {
		return p.result.Deaths + 1
	}
	return p.result.Deaths
}

// greet says one more thing to each agent: it shows that they still work after a death, and
// has them clean up.
func (p *play) greet(ctx context.Context) {
	p.greeted = p.troubles()
	var all []step
	for _, hook := range p.Scenario.hooks() {
		all = append(all, say(hook, fmt.Sprintf("again%d%s", p.greeted, hook), "hello"))
	}
	if p.Scenario.Chat != "" {
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
	within := latestStop
	if !p.timed() {
		within = patience
	}
	if began := time.Now(); !d.stop(within) && !d.stop(p.h.stalls.between(began, time.Now())) {
		p.result.violate("late: it did not end within %s of SIGTERM", within)
		d.stuck()
		return false
	}
	if d.code() == 0 {
		return true
	}

	p.checkExit(d, armed)
	return false
}
