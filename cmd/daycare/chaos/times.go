package chaos

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// What is checked of time. A machine that has too much to do makes everything late, so a
// clock of the harness's own measures how late it is by itself.

const (
	latestWake = 5 * time.Second  // from acceptance to the turn of an agent without work
	latestStop = 10 * time.Second // from SIGTERM to the end of the process
	latestNote = 5 * time.Second  // from the platform's answer to the record of the delivery, while a call is in progress
	neighbour  = 5 * time.Second  // the 99th percentile of answers while another agent is in trouble
)

// late: an agent that has nothing else to do begins with a message soon. The time counts
// within the life that took the message up: a turn that a death cut continues in the next one,
// and messages join it there.
func (c *checker) late(v view) {
	if !c.play.timed() {
		return
	}
	if what := c.play.user.overdue; what != "" {
		c.violate("late: %s", what)
	}
	said := v.byKey()
	for _, a := range v.agents {
		busy := time.Time{} // until when the agent had other work
		for _, t := range a.turns() {
			for _, m := range t.messages {
				s, ours := said[m.key()]
				if !ours || !s.accepted || s.removed || s.item != m.Item {
					continue
				}
				began := outside(m.At, c.play.ahead)
				from := latest(s.at, busy, c.play.user.lifeOf(began))
				if waited := began.Sub(from); waited > latestWake+c.play.h.stalls.between(from, began) {
					c.violate("late: %s was accepted, and its agent, which had no other work, began %s later", s.key,
						waited.Round(time.Millisecond))
				}
			}

			busy = latest(busy, outside(t.end, c.play.ahead))
		}
	}
}

// outside is a moment of the daemon's clock by the clock of the harness: in its last lives
// the daemon believes that it is days later.
func outside(at time.Time, ahead time.Duration) time.Time {
	if ahead > 0 && at.After(time.Now().Add(ahead/2)) {
		return at.Add(-ahead)
	}
	return at
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// diedAt is when a life ended; now, if it has not.
func (w *world) diedAt(life int) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if died, ok := w.ended[life]; ok {
		return died
	}

	return time.Now()
}

// lifeOf is when the life began in which a moment lies.
func (w *world) lifeOf(at time.Time) (began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, died := range w.ended {
		if died.Before(at) {
			began = latest(began, died)
		}
	}

	return began
}

// quick: messages of these hooks are answered soon, though another agent is in trouble.
func quick(hooks ...string) func(u *user, v view) error {
	return func(u *user, v view) error {
		var took []time.Duration
		for _, s := range v.said {
			if !slices.Contains(hooks, s.hook) {
				continue
			}
			for _, r := range v.replies {
				if r.chat == s.hook && r.life == s.life && strings.HasPrefix(r.text, s.key+" ") {
					took = append(took, r.at.Sub(s.at)-u.stalls.between(s.at, r.at))
					break
				}
			}
		}

		slices.Sort(took)
		if n := len(took); n > 0 && took[(99*n+99)/100-1] > neighbour {
			return fmt.Errorf("late: of %d messages to agents beside one in trouble, "+
				"the 99th percentile was answered after %s, want %s", n, took[(99*n+99)/100-1], neighbour)
		}

		return nil
	}
}

// A stallClock notes when this process itself did not get on: then nobody did.
type stallClock struct {
	mu     sync.Mutex
	stalls []stall
	stop   chan struct{}
	ended  sync.WaitGroup
}

// A stall is a time by which this process was late.
type stall struct {
	at time.Time
	by time.Duration
}

const stallTick = 50 * time.Millisecond

func newStallClock() *stallClock {
	c := &stallClock{stop: make(chan struct{})}
	c.ended.Go(func() {
		for {
			before := time.Now()
			select {
			case <-c.stop:
				return
			case <-time.After(stallTick):
			}

			if by := time.Since(before) - stallTick; by > stallTick/2 {
				c.mu.Lock()
				c.stalls = append(c.stalls, stall{before, by})
				c.mu.Unlock()
			}
		}
	})

	return c
}

func (c *stallClock) close() {
	close(c.stop)
	c.ended.Wait()
}

// stallShare is how much later a daemon may be than this process, which has nothing to do
// but to wait: a message passes several threads of several processes, each of which waits
// for its turn.
const stallShare = 8

// between is how much later than on an idle machine something may be.
func (c *stallClock) between(from, to time.Time) (sum time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.stalls) - 1; i >= 0; i-- {
		s := c.stalls[i]
		if s.at.Add(s.by + stallTick).Before(from) {
			break
		}
		if s.at.Before(to) {
			sum += stallShare * s.by
		}
	}

	return sum
}
