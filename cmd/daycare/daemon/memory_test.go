package daemon

import (
	"net/http"
	"net/http/httptest"
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
