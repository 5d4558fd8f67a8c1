package crash

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A Virtual is a clock that is frozen until it is moved, for playing days in seconds. While there is one, Now is its
// time, and Wait and Sleep wait for it. It is of the whole process.
type Virtual struct {
	mu     sync.Mutex
	now    time.Time
	waits  map[string]*alarm // by name: a loop that waits anew does not wait for the earlier time any more
	woken  map[string]bool   // loops whose time came, and that do not wait again yet
	sleeps map[*alarm]bool
}

// An alarm is what waits for a time.
type alarm struct {
	at   time.Time
	ring chan time.Time // has room for one
}

var virtual atomic.Pointer[Virtual]

// Simulate freezes the time at a moment, until Stop.
func Simulate(at time.Time) *Virtual {
	v := &Virtual{now: at.Round(0), waits: map[string]*alarm{}, woken: map[string]bool{}, sleeps: map[*alarm]bool{}}
	virtual.Store(v)

	return v
}

// Stop ends the simulation: the clock of the machine applies again, and nothing waits any more.
func (v *Virtual) Stop() {
	virtual.CompareAndSwap(v, nil)
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.waits {
		a.ring <- v.now
	}
	for a := range v.sleeps {
		a.ring <- v.now
	}
	clear(v.waits)
	clear(v.sleeps)
}

// Now is the time that it shows.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// Next is the earliest time that something waits for.
func (v *Virtual) Next() (at time.Time, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.each(func(a *alarm) {
		if !ok || a.at.Before(at) {
			at, ok = a.at, true
		}
	})

	return at, ok
}

// Busy reports whether a loop whose time came is still at work.
func (v *Virtual) Busy() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.woken) > 0
}

// Waits reports whether a loop waits for a time.
func (v *Virtual) Waits(name string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.waits[name] != nil
}

// Forget forgets all loops: the engine that they were of has ended.
func (v *Virtual) Forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.waits)
	clear(v.woken)
}

// Sleeping is how many goroutines are in Sleep: work that goes on at a later time.
func (v *Virtual) Sleeping() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.sleeps)
}

// Move sets the time, and wakes all that waited for it. Time does not go back.
func (v *Virtual) Move(to time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if to.After(v.now) {
		v.now = to.Round(0)
	}
	for name, a := range v.waits {
		if !a.at.After(v.now) {
			a.ring <- v.now
			v.woken[name] = true
			delete(v.waits, name)
		}
	}
	for a := range v.sleeps {
		if !a.at.After(v.now) {
			a.ring <- v.now
			delete(v.sleeps, a)
		}
	}
}

func (v *Virtual) each(do func(*alarm)) {
	for _, a := range v.waits {
		do(a)
	}
	for a := range v.sleeps {
		do(a)
	}
}

// wait is Wait; a loop that need not wait is woken at once.
func (v *Virtual) wait(name string, d time.Duration) <-chan time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	a := &alarm{v.now.Add(max(d, 0)), make(chan time.Time, 1)}
	if delete(v.woken, name); d > 0 {
		v.waits[name] = a
		return a.ring
	}
	delete(v.waits, name)
	v.woken[name] = true
	a.ring <- v.now

	return a.ring
}

func (v *Virtual) sleep(ctx context.Context, d time.Duration) error {
	v.mu.Lock()
	a := &alarm{v.now.Add(d), make(chan time.Time, 1)}
	v.sleeps[a] = true
	v.mu.Unlock()
	select {
	case <-a.ring:
		return nil
	case <-ctx.Done():
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.sleeps, a)
		return context.Cause(ctx)
	}
}

// Wait returns a channel that gets the time after d, for a loop that looks at Now then; after most at the latest, so
// that a clock which jumps makes nothing later than this. Each loop of a process has a name.
func Wait(name string, d, most time.Duration) <-chan time.Time {
	if v := virtual.Load(); v != nil {
		return v.wait(name, d)
	}
	return time.After(min(max(d, 0), most))
}

// Never is Wait for a loop that waits for no time now: a channel that gets nothing.
func Never(name string) <-chan time.Time {
	if v := virtual.Load(); v != nil {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.waits, name)
		delete(v.woken, name)
	}

	return nil
}

// Sleep pauses work for d. Its error is the cause of ctx's end.
func Sleep(ctx context.Context, d time.Duration) error {
	if v := virtual.Load(); v != nil {
		return v.sleep(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
