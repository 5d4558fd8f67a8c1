package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"daycare/engine/event"
	"daycare/engine/message"
)

// connectors are the connectors in force. They can be changed while they receive and
// send: those that stay are not disturbed.
type connectors struct {
	deliver message.Deliver
	failed  func(id string, err error, again time.Duration)

	change sync.Mutex // one start, change or end at a time

	mu   sync.Mutex
	all  map[string]*connection
	ctx  context.Context // what they receive under; nil: nothing is received
	runs sync.WaitGroup
}

// A connection is one connector and how it does.
type connection struct {
	Connector
	state  string // of Run, one word for people
	last   string // why it failed last
	cancel context.CancelFunc
	done   chan struct{}
}

func newConnectors(deliver message.Deliver, failed func(string, error, time.Duration)) *connectors {
	return &connectors{deliver: deliver, failed: failed, all: map[string]*connection{}}
}

// get is the connector of an id.
func (l *connectors) get(id string) (Connector, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.all[id]
	if !ok {
		return nil, false
	}
	return k.Connector, true
}

// answers reports whether answers to an address are promised.
func (l *connectors) answers(to message.Address) bool {
	c, ok := l.get(to.Connector)
	if !ok {
		return false
	}
	if a, ok := c.(Answerer); ok {
		return a.Answers(to)
	}
	return true
}

// any reports whether one of the connectors is such.
func (l *connectors) any(such func(Connector) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.all {
		if such(k.Connector) {
			return true
		}
	}
	return false
}

// set puts these connectors in force. One that is there already goes on; one that
// is gone, or that another of its id replaces, has ended before the new ones begin,
// so that a port or a session can be used again.
func (l *connectors) set(list []Connector) error {
	now := map[string]Connector{}
	for _, c := range list {
		if now[c.ID()] != nil {
			return fmt.Errorf("two connectors have the id %q", c.ID())
		}
		now[c.ID()] = c
	}
	l.change.Lock()
	defer l.change.Unlock()
	l.mu.Lock()
	var gone []*connection
	for id, k := range l.all {
		if k.Connector != now[id] {
			gone = append(gone, k)
		}
	}
	l.mu.Unlock()
	halt(gone)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range gone {
		delete(l.all, k.ID())
	}
	for id, c := range now {
		if l.all[id] == nil {
			k := &connection{Connector: c, state: "off"}
			l.all[id] = k
			l.start(k)
		}
	}
	return nil
}

// receive runs all connectors until ctx ends, and returns when all have ended.
func (l *connectors) receive(ctx context.Context) {
	l.change.Lock()
	l.mu.Lock()
	l.ctx = ctx
	for _, k := range l.all {
		l.start(k)
	}
	l.mu.Unlock()
	l.change.Unlock()

	<-ctx.Done()
	l.change.Lock()
	defer l.change.Unlock()
	l.mu.Lock()
	l.ctx = nil
	l.mu.Unlock()
	l.runs.Wait()
}

// start runs one connector, if anything is received. mu is held.
func (l *connectors) start(k *connection) {
	if l.ctx == nil {
		return
	}
	ctx, cancel := context.WithCancel(l.ctx)
	k.cancel, k.done = cancel, make(chan struct{})
	l.runs.Go(func() {
		defer cancel()
		defer close(k.done)
		l.run(ctx, k)
	})
}

// halt ends connectors and waits until they have ended.
func halt(list []*connection) {
	for _, k := range list {
		if k.cancel != nil {
			k.cancel()
		}
	}
	for _, k := range list {
		if k.cancel != nil {
			<-k.done
		}
	}
}

// run runs a connector, restarted with a growing pause when it fails.
func (l *connectors) run(ctx context.Context, k *connection) {
	for pause := restartFirst; ; {
		began := time.Now()
		l.setState(k, "running", nil)
		err := guard(func() error { return k.Run(ctx, l.deliver) })
		if ctx.Err() != nil {
			l.setState(k, "stopped", nil)
			return
		}
		if time.Since(began) > restartLast {
			pause = restartFirst
		}
		l.setState(k, "failing", err)
		l.failed(k.ID(), err, pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, restartLast)
	}
}

func (l *connectors) setState(k *connection, state string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k.state = state
	if err != nil {
		k.last = err.Error()
	}
}

// services is how each connector does.
func (l *connectors) services() []event.Service {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]event.Service, 0, len(l.all))
	for id, k := range l.all {
		list = append(list, event.Service{ID: id, State: k.state, LastError: k.last})
	}
	return list
}

// Receive runs all connectors until ctx ends, each restarted with a growing pause
// when it fails, and returns when all have ended. What they can send is not
// affected: Send works while Run does not.
func (s *System) Receive(ctx context.Context) error {
	s.actors.connectors.receive(ctx)
	return nil
}

// Connect puts these connectors in force instead of those before. What has the same
// id and is the same value goes on undisturbed; promised answers leave by the new
// connector of their id. It returns when those that are no more have ended.
func (s *System) Connect(list []Connector) error { return s.actors.connectors.set(list) }

// Connectors is how each connector does.
func (s *System) Connectors() []event.Service { return s.actors.connectors.services() }
