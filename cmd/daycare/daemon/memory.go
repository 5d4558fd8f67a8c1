package daemon

import (
	"context"
	"net/http"
	"os"
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"sync"
	"time"
)

// restAfter is how long after the start, and after an agent has left memory, the
// process gives back what it holds.
const restAfter = 2 * time.Second

// SaveMemory lets the heap grow by half, not to the double, before it is collected,
// if GOGC does not say otherwise. Agents keep little in memory and wait for the
// disk and for models: a smaller heap is worth more than the time to collect it. A small
// heap may grow by spare while it is collected often: with a few agents at work, collecting it
// each few megabytes took a third of the processor time of a turn. It may also from the
// beginning: two collections were a sixth of a start.
func SaveMemory() { saveMemory() }

var saveMemory = sync.OnceFunc(func() {
	if os.Getenv("GOGC") != "" {
		return
	}
	p := pace{percent: spare * 100 / smallest, last: time.Now()}
	debug.SetGCPercent(p.percent)
	afterEachCollection(func() {
		if p.collected(time.Now(), inUse()) {
			debug.SetGCPercent(p.percent)
		}
	})
})

const (
	leastGrowth = 50          // percent
	spare       = 16 << 20    // bytes by which a heap may grow that is collected often, however small it is
	smallest    = 4 << 20     // bytes: what the percentage is of while the heap is smaller, as the runtime has it
	often       = time.Second // what is less between two collections is often
)

// A pace is how much a heap may grow before it is collected again.
type pace struct {
	percent int
	last    time.Time // when it was collected
}

// collected notes a collection that left so many bytes in use, and reports whether the percentage is another one now.
func (p *pace) collected(now time.Time, inUse uint64) (changed bool) {
	next := leastGrowth
	if now.Sub(p.last) < often {
		next = int(max(leastGrowth, spare*100/max(inUse, smallest)))
	}
	p.last = now
	if next >= p.percent*9/10 && next <= p.percent*11/10 && next != leastGrowth {
		return false // nearly as before: to change it stops the program for a moment
	}
	changed = next != p.percent
	p.percent = next

	return changed
}

// inUse is how many bytes were in use when the heap was last collected.
func inUse() uint64 {
	size := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	runtimemetrics.Read(size)
	return size[0].Value.Uint64()
}

// afterEachCollection calls do once the heap was collected, each time.
func afterEachCollection(do func()) {
	collected := new(*byte) // a pointer, as small things without one share their memory
	runtime.AddCleanup(collected, func(do func()) {
		do()
		afterEachCollection(do)
	}, do)
}

// restOnceLooked gives back what it took to look at all agents, which may be long after the start.
func (l *life) restOnceLooked(ctx context.Context, looked <-chan struct{}) error {
	select {
	case <-looked:
		l.rested()
	case <-ctx.Done():
	}

	<-ctx.Done()
	return nil
}

// longRequest is from how long on a request was the stream of a page or a terminal that was open.
const longRequest = 5 * time.Second

// restAfterStreams calls rest when a stream has ended: what a page or a terminal needed is given back when it is closed.
func restAfterStreams(h http.Handler, rest func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		h.ServeHTTP(w, r)
		if time.Since(began) > longRequest {
			rest()
		}
	})
}

// rested begins the time after which memory is given back.
func (l *life) rested() { l.rest.Reset(restAfter) }

// giveBack returns to the system what work that is over needed.
func giveBack() {
	debug.FreeOSMemory()
	dropPages()
}

// A calm gives memory back once no turn has ended for a while, if the process has much more than it had when it last
// gave memory back: what many turns at once needed stays with the process otherwise, because a program that has
// nothing to do collects nothing. A few turns grow it too little for the collection to be worth it.
type calm struct {
	held  func() uint64
	give  func()
	timer *time.Timer // nil: no turn has ended yet

	mu  sync.Mutex
	low uint64 // bytes that it had when memory was last given back, or less
}

// grown is by how many bytes more a process gives memory back, or by a quarter of what it had if that is more.
const grown = 16 << 20

func newCalm() *calm { return &calm{held: held, give: giveBack} }

// worked is called when a turn has ended.
func (c *calm) worked() {
	if c.timer == nil {
		c.timer = time.AfterFunc(restAfter, c.look)
		return
	}
	c.timer.Reset(restAfter)
}

// look gives memory back if the process has much.
func (c *calm) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.held()
	if now > c.low+max(grown, c.low/4) {
		c.give()
		c.low = c.held()
		return
	}
	c.low = min(c.low, now)
}

func (c *calm) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

// held is how many bytes the Go runtime has of the system and has not given back.
func held() uint64 {
	sizes := []runtimemetrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	runtimemetrics.Read(sizes)
	return sizes[0].Value.Uint64() - sizes[1].Value.Uint64()
}
