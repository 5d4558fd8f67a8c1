package message

import (
	"slices"
	"sync"
)

// Fates keeps what became of an agent's answers until the agent has written it down.
// Senders put results in from any goroutine; it outlives the run of an agent that
// fails, so that the next run knows what the failed one was about to record.
type Fates struct {
	arrived chan struct{}
	mu      sync.Mutex
	list    []Fate
}

// NewFates makes an empty Fates.
func NewFates() *Fates { return &Fates{arrived: make(chan struct{}, 1)} }

// Put adds a result.
func (f *Fates) Put(fate Fate) {
	f.mu.Lock()
	f.list = append(f.list, fate)
	f.mu.Unlock()
	select {
	case f.arrived <- struct{}{}:
	default:
	}
}

// Return gives results back that were taken and could not be recorded. Nobody is told:
// whoever returns them tries again.
func (f *Fates) Return(taken []Fate) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(slices.Clip(taken), f.list...)
}

// Take removes and returns all results, oldest first.
func (f *Fates) Take() []Fate {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.list
	f.list = nil
	return list
}

// Len is the number of results that nobody took.
func (f *Fates) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.list)
}

// Has reports whether there is a result of a promise that nobody took.
func (f *Fates) Has(out string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.list, func(fate Fate) bool { return fate.Out == out })
}

// Arrived receives (capacity 1) after a result was put in: a hint to look.
func (f *Fates) Arrived() <-chan struct{} { return f.arrived }
