package engine

import (
	"context"
	"sync"
	"time"

	"daycare/engine/event"
)

// Receive runs all connectors until ctx ends, each restarted with a growing pause
// when it fails, and returns when all have ended. What they can send is not
// affected: Send works while Run does not.
func (s *System) Receive(ctx context.Context) error {
	var wg sync.WaitGroup
	for id, c := range s.connectors {
		wg.Go(func() { s.receive(ctx, id, c) })
	}
	wg.Wait()
	return nil
}

func (s *System) receive(ctx context.Context, id string, c Connector) {
	for pause := restartFirst; ; {
		began := time.Now()
		s.health.set(id, "running", nil)
		err := guard(func() error { return c.Run(ctx, s.Deliver) })
		if ctx.Err() != nil {
			s.health.set(id, "stopped", nil)
			return
		}
		if time.Since(began) > restartLast {
			pause = restartFirst
		}
		s.health.set(id, "failing", err)
		s.log.Error("connector failed", "connector", id, "err", err, "again", pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, restartLast)
	}
}

// Connectors is how each connector does.
func (s *System) Connectors() []event.Service {
	list := make([]event.Service, 0, len(s.connectors))
	for id := range s.connectors {
		state, last := s.health.get(id)
		list = append(list, event.Service{ID: id, State: state, LastError: last})
	}
	return list
}

// health is the state of the connectors, for people.
type health struct {
	mu    sync.Mutex
	state map[string]string
	last  map[string]string
}

func newHealth() *health { return &health{state: map[string]string{}, last: map[string]string{}} }

func (h *health) set(id, state string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state[id] = state
	if err != nil {
		h.last[id] = err.Error()
	}
}

func (h *health) get(id string) (state, last string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if state = h.state[id]; state == "" {
		state = "off"
	}
	return state, h.last[id]
}
