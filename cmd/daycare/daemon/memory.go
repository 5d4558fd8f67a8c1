package daemon

import (
	"context"
	"net/http"
	"os"
	"runtime/debug"
	"time"
)

// restAfter is how long after the start, and after an agent has left memory, the
// process gives back what it holds.
const restAfter = 2 * time.Second

// SaveMemory lets the heap grow by half, not to the double, before it is collected,
// if GOGC does not say otherwise. Agents keep little in memory and wait for the
// disk and for models: a smaller heap is worth more than the time to collect it.
func SaveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
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
