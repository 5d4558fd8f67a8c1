package event

import (
	"context"
	"iter"
	"slices"
	"sync"
)

// A Watch is handed events while they are emitted: all of them, in order. See must neither wait nor call the Stream.
type Watch struct {
	Agent  string // only events of this agent; "": of all
	Pieces bool   // also events that are not Replayable
	See    func(Event)
}

// watches are those of one Stream, by agent, so that an event costs nothing for who watches another agent.
type watches struct {
	mu sync.RWMutex
	of map[string][]*Watch
}

// Watch hands events to w until end is called, the first of them that has a number with the number next. See does not
// run anymore when end has returned.
func (s *Stream) Watch(w *Watch) (next uint64, end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches.add(w)

	return s.next.Load(), func() { s.watches.remove(w) }
}

// Changes returns a channel that is ready when events got a number since it was last read: for who fetches them with Since.
func (s *Stream) Changes(ctx context.Context) <-chan struct{} {
	changes := make(chan struct{}, 1)
	_, end := s.Watch(&Watch{See: func(Event) {
		select {
		case changes <- struct{}{}:
		default:
		}
	}})
	context.AfterFunc(ctx, end)

	return changes
}

// Watched reports whether anybody is handed the pieces of an agent's answers, which are costly to make.
func (s *Stream) Watched(agent string) bool { return s.Broker.Watched() || s.watches.pieces(agent) }

func (w *watches) add(one *Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of == nil {
		w.of = map[string][]*Watch{}
	}
	w.of[one.Agent] = append(w.of[one.Agent], one)
}

func (w *watches) remove(one *Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := slices.DeleteFunc(w.of[one.Agent], func(other *Watch) bool { return other == one })
	if len(rest) == 0 {
		delete(w.of, one.Agent)
		return
	}
	w.of[one.Agent] = rest
}

// see hands out an event. Callers that number events hold the Stream's lock, which keeps their order.
func (w *watches) see(e Event) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	piece := !e.Replayable()
	for one := range w.who(e.Agent) {
		if one.Pieces || !piece {
			one.See(e)
		}
	}
}

func (w *watches) pieces(agent string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for one := range w.who(agent) {
		if one.Pieces {
			return true
		}
	}

	return false
}

// who are those who watch an agent, those who watch all first. Callers hold mu.
func (w *watches) who(agent string) iter.Seq[*Watch] {
	return func(yield func(*Watch) bool) {
		for _, one := range w.of[""] {
			if !yield(one) {
				return
			}
		}
		if agent == "" {
			return
		}
		for _, one := range w.of[agent] {
			if !yield(one) {
				return
			}
		}
	}
}
