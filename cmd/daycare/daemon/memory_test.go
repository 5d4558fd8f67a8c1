package daemon

import (
	"net/http"
	"net/http/httptest"
	"runtime"
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
