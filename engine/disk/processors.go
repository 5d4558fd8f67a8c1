package disk

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// extra is how many threads may wait for the disk while all processors compute. On two processors 64 agents accept a
	// third more messages with 2, half as many again with 6, and no more than that with 22.
	extra = 6
	// crowd is how many barriers in a second are a crowd, if all processors may wait for the disk then: one agent alone makes
	// fewer, and has only more threads to wake with more processors than the machine has.
	crowd = 16
	// crowdLasts is how long a crowd counts. To change the number of processors stops all goroutines for a moment.
	crowdLasts = 10 * time.Second
)

// lent are the processors of this process; nil: their number stays.
var lent atomic.Pointer[processors]

// LendProcessors lets goroutines compute while others wait for the disk, if GOMAXPROCS does not say how many there are to be. A
// thread that waits in fdatasync keeps one of the runtime's processors until the runtime's monitor takes it away, which it does
// at most every 20 µs: with only as many as the machine has, most goroutines that could compute wait for that. So there are
// more while many barriers are made at once.
func LendProcessors() {
	if os.Getenv("GOMAXPROCS") != "" {
		return
	}
	runtime.SetDefaultGOMAXPROCS() // those of the machine or, if it has fewer, of the container
	lent.Store(&processors{usual: runtime.GOMAXPROCS(0)})
}

// processors are more than usual while barriers crowd.
type processors struct {
	usual int

	mu    sync.Mutex
	began time.Time // of the second in which barriers are counted
	count int
	end   *time.Timer // of the crowd; nil: there was none yet
}

// wait notes that n barriers are in progress, one of which has just begun.
func (p *processors) wait(n int) {
	if p == nil || n < p.usual {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.began) > time.Second {
		p.began, p.count = now, 0
	}
	if p.count++; p.count != crowd {
		return
	}

	if p.end == nil {
		p.end = time.AfterFunc(crowdLasts, asUsual)
	} else {
		p.end.Reset(crowdLasts)
	}
	if runtime.GOMAXPROCS(0) != p.usual+extra {
		runtime.GOMAXPROCS(p.usual + extra)
	}
}

// asUsual ends a crowd. It is no function of the runtime itself, because a test in virtual time does not wait for those.
func asUsual() { runtime.SetDefaultGOMAXPROCS() }
