package message

import (
	"slices"
	"sync"
)

// Results keeps the delivery results of an agent's answers until the agent has recorded
// them. Senders add results from any goroutine. It outlives a failed run of the agent, so
// that the next run knows what the failed one was about to record.
type Results struct {
	arrived chan struct{}
	mu      sync.Mutex
	list    []Result
}

// NewResults makes an empty Results.
func NewResults() *Results { return &Results{arrived: make(chan struct{}, 1)} }

// Put adds a result.
func (f *Results) Put(result Result) {
	f.mu.Lock()
	f.list = append(f.list, result)
	f.mu.Unlock()
	select {
	case f.arrived <- struct{}{}:
	default:
	}
}

// Return puts back results that were taken but could not be recorded. It sends no notification,
// because the caller tries again.
func (f *Results) Return(taken []Result) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(slices.Clip(taken), f.list...)
}

// Take removes and returns all results, oldest first.
func (f *Results) Take() []Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.list
	f.list = nil
	return list
}

// Len returns the number of results not yet taken.
func (f *Results) Len() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.list)
}

// Has reports whether a result of a promise has not been taken yet.
func (f *Results) Has(out string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.list, func(result Result) bool { return result.Out == out })
}

// Arrived receives (capacity 1) after a result was put in: a hint to look.
func (f *Results) Arrived() <-chan struct{} { return f.arrived }
