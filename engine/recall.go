package engine

import (
	"sync"
	"time"
)

// A recall remembers what was read from the files of agents, for as long as these look as they did: a list of
// agents looks at the files of all and reads those that changed. It may be used from many goroutines.
type recall[L look, T any] struct {
	mu    sync.Mutex
	known map[string]recalled[L, T] // by agent
}

// A look is how files look. Equal ones saw the same content if the earlier one lasts.
type look interface {
	comparable
	Lasts(looked time.Time) bool
}

type recalled[L look, T any] struct {
	look  L
	value T
}

// maxRecalled bounds the memory; beyond it all are forgotten.
const maxRecalled = 10_000

// of returns what read returns, or has returned when the files looked as they do now. sure is false where their look
// proves nothing, whole where what was read must not be remembered.
func (r *recall[L, T]) of(id string, look func() (now L, sure bool), read func() (value T, whole bool)) T {
	begun := time.Now()
	now, sure := look() // before they are read: they may be written in between
	if sure {
		r.mu.Lock()
		known, ok := r.known[id]
		r.mu.Unlock()
		if ok && known.look == now {
			return known.value
		}
	}

	value, whole := read()
	if sure && whole && now.Lasts(begun) {
		r.mu.Lock()
		if r.known == nil || len(r.known) >= maxRecalled {
			r.known = map[string]recalled[L, T]{}
		}
		r.known[id] = recalled[L, T]{now, value}
		r.mu.Unlock()
	}

	return value
}
