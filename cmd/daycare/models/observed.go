package models

import (
	"context"
	"iter"
	"sync/atomic"
	"time"

	"daycare/agents/providers"
	"daycare/engine/config"
	"daycare/engine/event"
)

// An observed is a provider that remembers how its last call went, for the status
// and for GET /metrics.
type observed struct {
	providers.Provider
	last atomic.Pointer[lastCall] // nil: never called
}

type lastCall struct {
	at  time.Time
	err error
}

// Stream passes everything on.
func (o *observed) Stream(ctx context.Context, req *providers.Request) iter.Seq[providers.Event] {
	return func(yield func(providers.Event) bool) {
		for ev := range o.Provider.Stream(ctx, req) {
			switch ev := ev.(type) {
			case providers.Complete:
				o.last.Store(&lastCall{at: time.Now()})
			case providers.Error:
				if ctx.Err() == nil && ailing(o.ID(), ev.Err) {
					o.last.Store(&lastCall{time.Now(), ev.Err})
				}
			}

			if !yield(ev) {
				return
			}
		}
	}
}

// ailing tells a service that fails from one that refused a request.
func ailing(id string, err error) bool {
	switch providers.Classify(id, err).Kind {
	case providers.Overflow, providers.Rejected:
		return false
	}

	return true
}

// Services are the providers in the order in which they are asked, with how they
// do as far as calls have shown it.
func (m *Chain) Services(running bool) []event.Service {
	list := []event.Service{}
	for i, p := range m.Settings {
		s := event.Service{ID: p.ID, Type: p.Type, State: "off", Model: p.Model, Detail: p.Why,
			Key: !p.APIKey.IsZero(), BaseURL: config.HideLogin(p.BaseURL)}
		if running {
			s.State = "running"
		}
		if last := m.observed[i].last.Load(); last != nil && last.err != nil {
			s.State, s.LastError = "failing", last.err.Error()
		}
		list = append(list, s)
	}

	return list
}
