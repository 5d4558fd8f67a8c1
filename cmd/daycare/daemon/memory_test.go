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

// A heap may grow by half; one that is collected often and is small by spare, until it is collected less often.
func TestPace(t *testing.T) {
	p, now := pace{percent: leastGrowth}, time.Now()
	for _, one := range []struct {
		after   time.Duration
		mib     uint64
		percent int
		changed bool
	}{
		{0, 4, 50, false}, // the first says nothing of how often
		{time.Second / 10, 4, 400, true},
		{time.Second / 3, 1, 400, false},
		{time.Second / 3, 8, 200, true},
		{time.Second / 3, 8, 200, false},
		{time.Second / 3, 16, 100, true},
		{time.Second / 3, 100, 50, true},
		{time.Second / 3, 8, 200, true},
		{2 * time.Second, 8, 50, true}, // memory was given back, or there is little to do
		{time.Minute, 8, 50, false},
	} {
		now = now.Add(one.after)
		if changed := p.collected(now, one.mib<<20); p.percent != one.percent || changed != one.changed {
			t.Errorf("%v after the last, with %d MiB in use: it may grow by %d %%, changed %v; want %d, %v",
				one.after, one.mib, p.percent, changed, one.percent, one.changed)
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
