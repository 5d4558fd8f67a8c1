package engine

import (
	"errors"
	"log/slog"
	"math"
	"sync"
	"syscall"
	"time"
)

// Pauses before an agent or a connector that failed, or an agent that could not be
// woken, is tried again (guarantee G17).
const (
	restartFirst = time.Second
	restartLast  = time.Minute
)

// A waker decides which agents may be awake. At most limit() are at a time; the
// others wait in line, and idle agents are asked to leave while anybody waits. An
// agent that could not be woken, or that failed, is tried again after a growing
// pause, and it has no place meanwhile.
type waker struct {
	try   func(id string) // wakes an agent; never called with a lock held
	limit func() int      // at least 1
	spawn func(func())    // runs something that the shutdown waits for
	log   *slog.Logger
	leave chan struct{} // receives while idle agents are to leave

	mu     sync.Mutex
	closed bool
	places
	trouble map[string]*relief // ids that are tried again
	logged  map[error]bool     // causes of failed wakes that were logged and are not over
}

// places are those of agents that may be awake at once.
type places struct {
	taken   int             // in use or granted
	lent    int             // more of them, because their owners wait for other agents
	line    []string        // ids that wait for a place, the first first
	inLine  map[string]bool // the same
	granted map[string]bool // ids that have a place and are about to use it
}

// A relief is the next try of an agent in trouble.
type relief struct {
	pause  time.Duration
	timer  *time.Timer // nil: it is due
	err    error
	asleep bool // it could not even be woken
}

func newWaker(limit func() int, try func(string), spawn func(func()), log *slog.Logger) *waker {
	return &waker{try: try, limit: limit, spawn: spawn, log: log, leave: make(chan struct{}, 16),
		places: places{inLine: map[string]bool{}, granted: map[string]bool{}}, trouble: map[string]*relief{}, logged: map[error]bool{}}
}

// take gives an agent a place, or puts it in line (false). One in trouble that is
// not due yet gets neither.
func (w *waker) take(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.trouble[id]
	switch {
	case w.granted[id]:
		delete(w.granted, id)
		return true
	case w.closed || r != nil && r.timer != nil:
	case w.inLine[id]:
		w.next() // the setting may be another by now
	case len(w.line) == 0 && w.taken < w.limit()+w.lent:
		w.taken++
		return true
	default:
		w.join(id)
	}

	return false
}

// join puts an agent at the end of the line. The lock is held.
func (w *waker) join(id string) {
	w.line, w.inLine[id] = append(w.line, id), true
	w.next()
}

// free gives a place back.
func (w *waker) free() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken--
	w.next()
}

// lend makes room for one agent more until the returned function is called: an agent
// that waits for another one must not keep it from being woken.
func (w *waker) lend() (back func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lent++
	w.next()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lent--
	}
}

// next grants free places to those who wait, and asks idle agents to leave for the
// rest. The lock is held.
func (w *waker) next() {
	for len(w.line) > 0 && !w.closed && w.taken < w.limit()+w.lent {
		id := w.line[0]
		w.line = w.line[1:]
		delete(w.inLine, id)
		w.taken++
		w.granted[id] = true
		w.spawn(func() { w.grant(id) })
	}

	for range cap(w.leave) {
		if len(w.line) == 0 {
			select {
			case <-w.leave:
				continue
			default:
				return
			}
		}
		if len(w.leave) >= len(w.line) {
			return
		}

		select {
		case w.leave <- struct{}{}:
		default:
			return
		}
	}
}

// grant wakes an agent that has a place. If it did not want it any more (it ended,
// it was removed), the place goes to the next.
func (w *waker) grant(id string) {
	w.try(id)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.granted[id] {
		delete(w.granted, id)
		w.over(id)
		w.taken--
		w.next()
	}
}

// stayed says that an idle agent which was asked to leave has work after all.
func (w *waker) stayed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next()
}

// failed has an agent whose run failed tried again after a pause, which is returned.
func (w *waker) failed(id string, err error) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.later(id, err).pause
}

// later sets the next try of an agent. The lock is held.
func (w *waker) later(id string, err error) *relief {
	r := w.trouble[id]
	if r == nil {
		r = &relief{pause: restartFirst / 2}
		w.trouble[id] = r
	}

	r.pause, r.err, r.asleep = min(2*r.pause, restartLast), err, false
	if !w.closed {
		r.timer = time.AfterFunc(r.pause, func() { w.due(id, r) })
	}

	return r
}

// due puts an agent whose pause is over in line.
func (w *waker) due(id string, r *relief) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.trouble[id] != r || w.closed {
		return
	}
	r.timer = nil
	w.join(id)
}

// unwoken has an agent that could not be woken tried again. What many agents lack at
// once, such as file descriptors, is logged once.
func (w *waker) unwoken(id string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.later(id, err)
	r.asleep = true
	known := r.pause > restartFirst
	if cause := scarce(err); cause != nil {
		known = w.logged[cause]
		w.logged[cause] = true
	}
	if !known {
		w.log.Error("cannot wake agent; retrying", "agent", id, "err", err, "again", r.pause)
	}
}

// scarce is the shortage that an error speaks of, nil if it is another error.
func scarce(err error) error {
	for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return e
		}
	}

	return nil
}

// woke says that an agent was woken: what it failed of is over, unless its runs fail.
func (w *waker) woke(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.trouble[id]; r != nil && r.asleep {
		w.over(id)
	}
}

// well says that an agent works, or that it needs no more tries.
func (w *waker) well(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over(id)
}

// over forgets the trouble of an agent. The lock is held.
func (w *waker) over(id string) {
	r := w.trouble[id]
	if r == nil {
		return
	}
	if r.timer != nil {
		r.timer.Stop()
	}

	delete(w.trouble, id)
	if len(w.trouble) == 0 && len(w.logged) > 0 {
		clear(w.logged)
		w.log.Info("all agents can be woken again")
	}
}

// waits reports whether an agent waits for a place or for its next try; err is what
// it failed of before.
func (w *waker) waits(id string) (waits bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.trouble[id]
	if r != nil {
		err = r.err
	}

	return w.inLine[id] || w.granted[id] || r != nil && r.timer != nil, err
}

// close ends all tries: a timer that fires later finds it closed.
func (w *waker) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// perAgent is how many file descriptors an agent at work may need: its two logs, three to
// save a file or run a tool, and its share of connections to models and clients.
const perAgent = 6

// awakeLimit is how many agents may be awake: as many as the setting says (0: any
// number), and no more than there are file descriptors for. (The Go runtime has raised
// the soft limit to the hard one when this runs, for this process alone: the commands
// that agents start get the soft limit that daycare was started with.)
func awakeLimit(setting int) int {
	var l syscall.Rlimit
	most := math.MaxInt32
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err == nil && l.Cur/perAgent < math.MaxInt32 {
		most = max(int(l.Cur/perAgent), 1)
	}
	if setting > 0 {
		most = min(most, setting)
	}

	return most
}
