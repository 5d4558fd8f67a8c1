package crash

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// moved is how far Now is ahead of the system's clock, in nanoseconds.
var moved atomic.Int64

// setClock reads the environment once.
var setClock = sync.OnceFunc(func() {
	ahead := os.Getenv("DAYCARE_FAILPOINT_CLOCK")
	if ahead == "" {
		return
	}
	d, err := time.ParseDuration(ahead)
	if err != nil {
		fmt.Fprintf(os.Stderr, "daycare: DAYCARE_FAILPOINT_CLOCK: %v\n", err)
		os.Exit(2)
	}

	moved.Add(int64(d))
})

// Now is the time that is written into files and compared with what files say. A harness
// can move it, as a user, a battery that ran out or a time server moves the clock. Like
// the clock of a machine that was started anew it has no monotonic part once it moved.
func Now() time.Time {
	if v := virtual.Load(); v != nil {
		return v.Now()
	}
	setClock()
	if d := time.Duration(moved.Load()); d != 0 {
		return time.Now().Add(d).Round(0)
	}

	return time.Now()
}

func shift(d time.Duration) { moved.Add(int64(d)) }
