package daemon

import (
	"context"
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
		l.rest.Reset(restAfter)
	case <-ctx.Done():
	}

	<-ctx.Done()
	return nil
}

// giveBack returns to the system what work that is over needed.
func giveBack() {
	debug.FreeOSMemory()
	dropPages()
}
