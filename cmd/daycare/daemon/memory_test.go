package daemon

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What a stream needed is given back when it ends; a short request gives nothing back.
func TestRestAfterStreams(t *testing.T) {
	for took, want := range map[time.Duration]int{time.Second: 0, time.Minute: 1} {
		synctest.Test(t, func(t *testing.T) {
			rests := 0
			h := restAfterStreams(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { time.Sleep(took) }), func() { rests++ })
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/v1/events", nil))
			if rests != want {
				t.Errorf("after a request of %v memory was given back %d times, want %d", took, rests, want)
			}
		})
	}
}

// Memory is given back when turns have ended for a while and left much, not after each few turns, and not while
// turns end.
func TestMemoryIsGivenBackAfterMuchWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		has, given := uint64(10<<20), 0
		c := &calm{held: func() uint64 { return has }}
		c.give = func() { given, has = given+1, has-has/4 }
		defer c.stop()
		after := func(what string, mib uint64, wait time.Duration, want int) {
			t.Helper()
			has = mib << 20
			c.worked()
			time.Sleep(wait)
			synctest.Wait()
			if given != want {
				t.Errorf("%s: memory was given back %d times, want %d", what, given, want)
			}
		}

		after("a first turn", 12, time.Minute, 0)
		after("in the middle of many", 120, time.Second, 0)
		after("after many", 120, time.Minute, 1) // 90 are left
		after("a few more", 110, time.Minute, 1)
		after("many more", 120, time.Minute, 2) // 90 again
		after("agents left", 20, time.Minute, 2)
		after("a few", 30, time.Minute, 2)
		after("many again", 40, time.Minute, 3)
	})
}

// A heap may grow by half, and by spare if it is small, until it is used no more than that.
func TestGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 4 << 20: 400, 8 << 20: 200, 16 << 20: 100, 32 << 20: 50, 1 << 30: 50} {
		if got := growth(live); got != want {
			t.Errorf("with %d MiB in use a heap may grow by %d %%, want %d", live>>20, got, want)
		}
	}
}

// It is looked at each time that the heap was collected, not only once.
func TestAfterEachCollection(t *testing.T) {
	var collected atomic.Int64
	afterEachCollection(func() { collected.Add(1) })
	for n := range int64(3) {
		for deadline := time.Now().Add(10 * time.Second); collected.Load() <= n; time.Sleep(time.Millisecond) {
			if runtime.GC(); time.Now().After(deadline) {
				t.Fatalf("after many collections it was called %d times", collected.Load())
			}
		}
	}
}

// What was allocated and is garbage counts until it was given back.
func TestHeld(t *testing.T) {
	before := held()
	b := make([]byte, 64<<20)
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
	with := held()
	runtime.KeepAlive(b)
	giveBack()
	if after := held(); with < before+60<<20 || after > with-60<<20 {
		t.Errorf("held %d bytes before, %d with 64 MiB more, %d after they were given back", before, with, after)
	}
}

// More threads may wait for the disk than there are processors, as often as a daemon starts here, unless the user
// says how many there are to be.
func TestProcessorsBesideTheDisk(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	runtime.SetDefaultGOMAXPROCS()
	defer runtime.SetDefaultGOMAXPROCS()
	usual := runtime.GOMAXPROCS(0)
	for range 2 {
		UseDisk()
		if n := runtime.GOMAXPROCS(0); n != usual+waitForDisk {
			t.Fatalf("%d processors, want %d and %d more", n, usual, waitForDisk)
		}
	}

	t.Setenv("GOMAXPROCS", "3")
	runtime.GOMAXPROCS(3)
	UseDisk()
	if n := runtime.GOMAXPROCS(0); n != 3 {
		t.Errorf("%d processors where GOMAXPROCS says 3", n)
	}
}
