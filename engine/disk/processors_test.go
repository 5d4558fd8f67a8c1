package disk

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// There are more processors while barriers crowd, and for a moment after it.
func TestProcessorsBesideTheDisk(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	defer func() {
		lent.Store(nil)
		runtime.SetDefaultGOMAXPROCS()
	}()
	synctest.Test(t, func(t *testing.T) {
		LendProcessors()
		usual := runtime.GOMAXPROCS(0)
		want := func(when string, n int) {
			t.Helper()
			synctest.Wait()
			if got := runtime.GOMAXPROCS(0); got != n {
				t.Fatalf("%s: %d processors, want %d", when, got, n)
			}
		}
		d := NewVolume(t.TempDir()).flusher
		barriers := func(n int) {
			for range n {
				d.enter()
				d.leave()
			}
		}

		barriers(2 * crowd)
		if usual > 1 {
			want("one barrier after the other", usual)
		}
		for range usual - 1 {
			d.enter()
		}
		barriers(crowd - 1)
		time.Sleep(2 * time.Second)
		barriers(crowd - 1)
		want("now and then many at once", usual)
		barriers(1)
		want("many at once", usual+extra)

		time.Sleep(crowdLasts - time.Second)
		barriers(crowd)
		time.Sleep(crowdLasts - time.Second)
		want("and once more", usual+extra)
		time.Sleep(2 * time.Second)
		want("after it", usual)
	})
}

// A number that the user gives stays.
func TestProcessorsThatTheUserGives(t *testing.T) {
	t.Setenv("GOMAXPROCS", "3")
	LendProcessors()
	if lent.Load() != nil {
		t.Error("the number of processors may change")
	}
}
