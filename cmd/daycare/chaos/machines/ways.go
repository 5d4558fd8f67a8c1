package machines

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// A way is a way to die.
type way struct {
	name    string
	servers int // in the world
	beside  int // which world of as many servers it is played in
	times   int
	do      func(ctx context.Context, w *world, r *Row) error
}

// chats is how many conversations are held at once.
func (h *harness) chats() int {
	if h.Length == Full {
		return 24
	}
	return 8
}

// between is how many messages of each conversation are accepted between two deaths.
const between = 4

// ways are those that this length plays.
func (h *harness) ways() []way {
	stands, cut := 30*time.Second, 15*time.Second
	if h.Length == Short {
		stands, cut = 5*time.Second, 5*time.Second
	}
	if h.Upgrade != "" {
		return []way{{"upgrade", 1, 0, upgrades, upgrade}, {"upgrade", 3, 0, upgrades, upgrade}}
	}
	of := func(short, usual, full int) int { return []int{Default: usual, Short: short, Full: full}[h.Length] }
	return []way{
		{"kill -9 of machines", 1, 0, of(4, 30, 120), killMachine},
		{"black hole, then kill", 1, 0, of(1, 3, 10), cutAndKill},
		{"wiped store", 1, 0, of(1, 1, 3), wipe},
		{"wiped while late", 1, 1, of(1, 3, 3), wipeWhileLate},
		{"standing still", 1, 1, of(1, 1, 3), standStill(stands)},
		{"black hole", 1, 1, of(1, 1, 3), blackHole(func() time.Duration { return cut })},
		{"kill -9 of servers", 3, 0, of(2, 6, 22), killServer},
		{"kill -9 of both", 3, 0, of(1, 3, 12), killBoth},
	}
}

// suffer plays one way to die while users talk.
func (w *world) suffer(ctx context.Context, way way, n int) (Row, error) {
	began := time.Now()
	r := Row{Way: way.name, Servers: way.servers}
	t := w.begin(ctx, fmt.Sprintf("w%d", n), w.h.chats())
	var err error
	for range way.times {
		if err = t.more(ctx, between*t.chats); err == nil {
			err = way.do(ctx, w, &r)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = t.more(ctx, between*t.chats)
	}
	err = errors.Join(err, t.stop())
	if err == nil {
		err = t.check(ctx, &r)
	}
	r.Longest, r.Seconds = t.longest.Seconds(), time.Since(began).Seconds()

	return r, err
}

// downed does something to the machine that has most to do, while users send nothing to it.
func (w *world) downed(do func(m *machine) error) error {
	m, err := w.owner()
	if err != nil {
		return err
	}
	w.avoid(m, true)
	defer w.avoid(m, false)

	return do(m)
}

func killMachine(_ context.Context, w *world, r *Row) error {
	r.Deaths++
	return w.downed(func(m *machine) error {
		m.kill()
		return m.begin()
	})
}

// standStill suspends a machine for longer than its lease, like a laptop that is closed: it continues as if
// it still had its agents.
func standStill(d time.Duration) func(context.Context, *world, *Row) error {
	return func(ctx context.Context, w *world, r *Row) error {
		r.Stops++
		return w.downed(func(m *machine) error {
			err := m.stand(true)
			pause(ctx, d)
			return errors.Join(err, m.stand(false))
		})
	}
}

// blackHole holds all that goes between a machine and the servers. Users still send to it.
func blackHole(d func() time.Duration) func(context.Context, *world, *Row) error {
	return func(ctx context.Context, w *world, r *Row) error {
		r.Stops++
		m, err := w.owner()
		if err != nil {
			return err
		}
		m.hold(true)
		pause(ctx, d())
		m.hold(false)
		return nil
	}
}

// aboutALease is a time after which others take a machine for dead, or nearly do.
func aboutALease() time.Duration { return 2200*time.Millisecond + rand.N(1600*time.Millisecond) }

// cutAndKill kills a machine that does not reach the servers any more: what it has said since must not count.
func cutAndKill(ctx context.Context, w *world, r *Row) error {
	r.Deaths++
	m, err := w.owner()
	if err != nil {
		return err
	}
	m.hold(true)
	pause(ctx, time.Second)
	w.avoid(m, true)
	defer w.avoid(m, false)
	m.kill()
	m.cut()

	return m.begin()
}

// wipe has the servers lose all that they have.
func wipe(_ context.Context, w *world, r *Row) error {
	for _, s := range w.servers.list {
		r.ServerDeaths++
		s.kill()
		if err := os.RemoveAll(s.store); err != nil {
			return err
		}
	}

	return w.servers.Start()
}

// late is how long a machine is cut off, so that others take its agents over and accept something for them.
const late = 6 * time.Second

// wipeWhileLate has the servers lose all that they have while a machine does not know that others have taken its agents over. It is
// the first one to connect to the empty servers.
func wipeWhileLate(ctx context.Context, w *world, r *Row) error {
	r.Stops++
	former, err := w.owner()
	if err != nil {
		return err
	}
	former.hold(true)
	pause(ctx, late)
	for _, m := range w.machines {
		m.hold(true)
	}
	err = wipe(ctx, w, r)
	former.cut()
	pause(ctx, 2*time.Second)
	for _, m := range w.machines {
		m.cut()
	}

	return err
}

func killServer(ctx context.Context, w *world, r *Row) error {
	r.ServerDeaths++
	w.servers.list[rand.IntN(len(w.servers.list))].kill()
	pause(ctx, time.Second)

	return w.servers.Start()
}

func killBoth(_ context.Context, w *world, r *Row) error {
	r.Deaths++
	r.ServerDeaths++
	return w.downed(func(m *machine) error {
		w.servers.list[rand.IntN(len(w.servers.list))].kill()
		m.kill()
		return errors.Join(m.begin(), w.servers.Start())
	})
}

// upgrades is how often all machines get the other program: the new one, the old one, and the new one again.
const upgrades = 3

// upgrade ends one machine after the other in order, and starts it with the other program. Users still send to it.
func upgrade(ctx context.Context, w *world, r *Row) error {
	for _, m := range w.machines {
		r.Stops++
		if err := m.terminate(); err != nil {
			return err
		}
		if m.command[0] == w.h.Binary {
			m.command[0] = w.h.Upgrade
		} else {
			m.command[0] = w.h.Binary
		}
		if err := m.begin(); err != nil {
			return err
		}
		pause(ctx, betweenUpgrades)
	}

	return nil
}

// betweenUpgrades is how long old and new machines work beside each other.
const betweenUpgrades = 5 * time.Second

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
