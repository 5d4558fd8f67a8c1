package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"daycare/engine/event"
	"daycare/engine/message"
)

// connectors are the active connectors. They can be replaced while they receive and
// send: those that stay are not disturbed.
type connectors struct {
	deliver message.Deliver
	failed  func(id string, err error, again time.Duration)
	events  *event.Stream
	peers   Peers // nil: no other machine runs the same connectors

	change sync.Mutex // one start, change or end at a time

	mu   sync.Mutex
	all  map[string]*connection
	ctx  context.Context // of receiving; nil: not receiving
	runs sync.WaitGroup
}

// A connection is one connector and its state.
type connection struct {
	Connector
	state  event.Service
	cancel context.CancelFunc
	done   chan struct{}
}

func newConnectors(deliver message.Deliver, failed func(string, error, time.Duration), events *event.Stream) *connectors {
	return &connectors{deliver: deliver, failed: failed, events: events, all: map[string]*connection{}}
}

// get returns the connector with an id.
func (c *connectors) get(id string) (Connector, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.all[id]
	if !ok {
		return nil, false
	}

	return k.Connector, true
}

// answers reports whether answers to an address are promised.
func (c *connectors) answers(to message.Address) bool {
	k, ok := c.get(to.Connector)
	if !ok {
		return false
	}
	if a, ok := k.(Answerer); ok {
		return a.Answers(to)
	}

	return true
}

// any reports whether such is true for one of the connectors.
func (c *connectors) any(such func(Connector) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.all {
		if such(k.Connector) {
			return true
		}
	}

	return false
}

// set replaces the connectors by list. A connector that is in both keeps running. One that
// is gone, or replaced by another with its id, ends before the new ones start, so that
// its port or session is free again.
func (c *connectors) set(list []Connector) error {
	now := map[string]Connector{}
	for _, one := range list {
		if now[one.ID()] != nil {
			return fmt.Errorf("two connectors have the id %q", one.ID())
		}
		now[one.ID()] = one
	}

	c.change.Lock()
	defer c.change.Unlock()
	c.mu.Lock()
	var gone []*connection
	for id, k := range c.all {
		if k.Connector != now[id] {
			gone = append(gone, k)
		}
	}

	c.mu.Unlock()
	halt(gone)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range gone {
		delete(c.all, k.ID())
	}

	for id, one := range now {
		if c.all[id] == nil {
			k := &connection{Connector: one, state: event.Service{ID: id, State: event.Off}}
			c.all[id] = k
			c.start(k)
		}
	}

	return nil
}

// receive runs all connectors until ctx ends, and returns when all of them have ended.
func (c *connectors) receive(ctx context.Context) {
	c.change.Lock()
	c.mu.Lock()
	c.ctx = ctx
	for _, k := range c.all {
		c.start(k)
	}

	c.mu.Unlock()
	c.change.Unlock()

	<-ctx.Done()
	c.change.Lock()
	defer c.change.Unlock()
	c.mu.Lock()
	c.ctx = nil
	c.mu.Unlock()
	c.runs.Wait()
}

// start runs one connector, unless receiving is off. Call it with mu held.
func (c *connectors) start(k *connection) {
	if c.ctx == nil {
		return
	}
	ctx, cancel := context.WithCancel(c.ctx)
	k.cancel, k.done = cancel, make(chan struct{})
	c.runs.Go(func() {
		defer cancel()
		defer close(k.done)
		c.run(ctx, k)
	})
}

// halt cancels connectors and waits until they have ended.
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

// run runs a connector and restarts it with a growing pause when it fails.
func (c *connectors) run(ctx context.Context, k *connection) {
	for pause := restartFirst; ; {
		began := time.Now()
		err := c.lead(ctx, k, func(ctx context.Context) error {
			c.show(k, event.Connecting, nil, 0)
			up := message.WithUp(ctx, func() { c.show(k, event.Running, nil, 0) })
			return guard(func() error { return k.Run(up, c.deliver) })
		})
		if ctx.Err() != nil {
			c.show(k, event.Stopped, nil, 0)
			return
		}
		if time.Since(began) > restartLast {
			pause = restartFirst
		}

		c.show(k, event.Degraded, err, pause)
		c.failed(k.ID(), err, pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}

		pause = min(2*pause, restartLast)
	}
}

// lead runs do while no other machine runs the connector: a platform gives each message to one
// of those that ask for it.
func (c *connectors) lead(ctx context.Context, k *connection, do func(context.Context) error) error {
	if c.peers == nil {
		return do(ctx)
	}
	c.show(k, event.Standby, nil, 0)
	return c.peers.Lead(ctx, "connector."+k.ID(), func(ctx context.Context) error {
		defer c.show(k, event.Standby, nil, 0)
		return do(ctx)
	})
}

// show sets the state of a connector. One that is degraded stays so until it is connected again:
// a try is no news.
func (c *connectors) show(k *connection, state string, err error, again time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().UTC()
	s := &k.state
	if s.State == event.Degraded && state == event.Connecting {
		return
	}
	changed := s.State != state
	if s.State, s.NextTry = state, nil; changed {
		s.Since = &now
	}
	if err != nil {
		next := now.Add(again)
		changed = changed || s.LastError != err.Error()
		s.LastError, s.NextTry = err.Error(), &next
	}

	if changed && c.events != nil {
		c.events.Emit(event.Event{Type: event.ConnectorState, Body: *s})
	}
}

// services returns the state of each connector.
func (c *connectors) services() []event.Service {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := make([]event.Service, 0, len(c.all))
	for _, k := range c.all {
		list = append(list, k.state)
	}

	return list
}

// Receive runs all connectors until ctx ends, and returns when all of them have ended.
// One that fails is restarted with a growing pause. Sending does not depend on it: Send
// works while Run does not.
func (s *System) Receive(ctx context.Context) error {
	s.actors.connectors.receive(ctx)
	return nil
}

// Connect replaces the connectors by list. One with the same id and the same value keeps
// running; promised answers leave through the new connector with their id. Connect
// returns when the removed ones have ended.
func (s *System) Connect(list []Connector) error { return s.actors.connectors.set(list) }

// Connectors returns the state of each connector.
func (s *System) Connectors() []event.Service { return s.actors.connectors.services() }
