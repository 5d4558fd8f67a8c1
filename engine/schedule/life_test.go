package schedule

import (
	"math/rand/v2"
	"time"
)

// A life is what happened to a computer in the years that a world lived through.
type life struct {
	restarts int // it was switched off for a while
	kills    int // the process died in the middle of a run
	forward  int // the clock was set forward
	back     int // the clock was set back, by seconds or by days
	sleeps   int // the lid was closed, at rest or in the middle of a run
	long     int // a run took so long that others came due meanwhile
}

// A longRun is a run that continues while the clock does.
type longRun struct {
	until  time.Time
	killed chan bool // it continues, or its process has died
	done   chan struct{}
}

// live lets years pass as they do for a laptop: it is put to sleep, switched off,
// killed in the middle of a run, its clock is set wrong and right again. What is
// still to be judged when the clock stands behind is left to the end. Each of these
// things happens about once in rare waits or 3 * rare runs.
func (w *world) live(r *rand.Rand, end time.Time, rare int) (happened life) {
	some := func(most time.Duration) time.Duration { return time.Duration(r.Int64N(int64(most))) }
	begin := w.now.Add(time.Second) // never back before the tasks were made: slots from before are nobody's
	jump := func(d time.Duration) { w.now = later(w.now.Add(d), begin) }
	parked := make(chan *longRun)
	w.due = func(w *world, f Firing) (Result, error) {
		switch r.IntN(3 * rare) {
		case 0: // killed before it was taken
			happened.kills++
			return w.crash()
		case 1: // and after
			happened.kills++
			w.accept(f)
			return w.crash()
		case 2:
			happened.sleeps++
			jump(some(48 * time.Hour))
		case 3:
			happened.back++
			jump(-some(36 * time.Hour))
		case 4, 5:
			happened.long++
			if r.IntN(2) == 0 {
				w.accept(f)
			}
			l := &longRun{until: w.now.Add(some(36 * time.Hour)), killed: make(chan bool)}
			parked <- l
			if <-l.killed {
				return Result{}, errCrash
			}
		}
		return Result{}, nil
	}
	var under []*longRun
	do := func(f func()) {
		done := make(chan struct{})
		go func() { defer close(done); f() }()
		select {
		case <-done:
		case l := <-parked:
			l.done = done
			under = append(under, l)
		}
	}
	finish := func(which func(*longRun) bool, killed bool) {
		var left []*longRun
		for _, l := range under {
			if !which(l) {
				left = append(left, l)
				continue
			}
			l.killed <- killed
			<-l.done
		}
		under = left
	}
	all := func(*longRun) bool { return true }
	var ahead time.Time // the latest time that ever was
	for w.now.Before(end) || w.now.Before(ahead) || len(under) > 0 {
		next := w.sched.step(w.ctx, w.now)
		work := w.work
		w.work = nil
		for _, f := range work {
			do(f)
		}
		ahead = later(ahead, w.now)
		if w.ctx.Err() != nil {
			finish(all, true)
			w.start()
			continue
		}
		if len(work) > 0 {
			continue
		}
		switch r.IntN(rare) {
		case 0:
			happened.restarts++
			w.cancel()
			finish(all, true)
			jump(some(72 * time.Hour))
			w.start()
		case 1:
			happened.sleeps++
			jump(some(48 * time.Hour))
		case 2:
			happened.forward++
			jump(some(48 * time.Hour))
		case 3:
			happened.back++
			jump(-some(36 * time.Hour))
		case 4, 5: // NTP
			happened.back++
			jump(-some(3 * time.Second))
		default:
			for _, l := range under {
				next = earlier(next, l.until)
			}
			w.now = later(next, w.now).Add(some(time.Second))
		}
		finish(func(l *longRun) bool { return !l.until.After(w.now) }, false)
	}
	w.due = nil
	w.settle()
	return happened
}
