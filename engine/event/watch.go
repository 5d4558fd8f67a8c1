package event

import (
	"context"
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
	of map[string]map[*Watch]struct{}
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
		w.of = map[string]map[*Watch]struct{}{}
	}
	if w.of[one.Agent] == nil {
		w.of[one.Agent] = map[*Watch]struct{}{}
	}
	w.of[one.Agent][one] = struct{}{}
}

func (w *watches) remove(one *Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.of[one.Agent], one)
	if len(w.of[one.Agent]) == 0 {
		delete(w.of, one.Agent)
	}
}

// see hands out an event. Callers that number events hold the Stream's lock, which keeps their order.
func (w *watches) see(e Event) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	piece := !e.Replayable()
	for one := range w.of[""] {
		if one.Pieces || !piece {
			one.See(e)
		}
	}
	if e.Agent == "" {
		return
	}
	for one := range w.of[e.Agent] {
		if one.Pieces || !piece {
			one.See(e)
		}
	}
}

func (w *watches) pieces(agent string) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, of := range []string{"", agent} {
		for one := range w.of[of] {
			if one.Pieces {
				return true
			}
		}
	}

	return false
}
