package tools

import "sync"

// Asked is what calls asked a user for, by the call: paths that were looked at then. The
// runtime runs such a call only when it was allowed, so what was asked for, and nothing else
// that a link leads to by then, is open to it. Its methods may be called from any goroutine.
type Asked[T any] struct {
	mu    sync.Mutex
	calls map[string]T
}

// maxAsked is how many calls are remembered that were never run.
const maxAsked = 1000

// Put remembers what a call asks for.
func (a *Asked[T]) Put(call string, what T) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls == nil || len(a.calls) >= maxAsked {
		a.calls = map[string]T{}
	}
	a.calls[call] = what
}

// Take returns what a call asked for, and forgets it.
func (a *Asked[T]) Take(call string) T {
	a.mu.Lock()
	defer a.mu.Unlock()
	what := a.calls[call]
	delete(a.calls, call)
	return what
}
