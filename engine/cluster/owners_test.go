package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"daycare/engine/cluster/clustertest"
	"daycare/engine/message"
)

// hasty is a store behind whose answers something else happens before they are heard.
type hasty struct {
	store
	published func(m logged)
	asked     func()
}

func (h hasty) publish(ctx context.Context, unit string, expect uint64, m logged) (uint64, error) {
	seq, err := h.store.publish(ctx, unit, expect, m)
	h.published(m)
	return seq, err
}

func (h hasty) last(ctx context.Context, unit string) (logged, error) {
	newest, err := h.store.last(ctx, unit)
	h.asked()
	return newest, err
}

// noted is the machine that looks after an agent, as the bucket says.
func (m *host) noted(agent string) (o owner) {
	m.t.Helper()
	e, err := m.presence.store.handles.owners.Get(m.t.Context(), agent)
	if err == nil {
		err = json.Unmarshal(e.Value(), &o)
	}
	if err != nil {
		m.t.Errorf("%s: %v", agent, err)
	}
	return o
}

// A machine takes an agent as soon as another one has given it up, before that one has noted it. It is noted as the one that
// looks after it, so that the agent is taken over when it dies.
func TestANoteOfTheNextOwnerStays(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	before := a.store
	for agent, open := range map[string]bool{"slept": false, "left": true} {
		a.make(agent)
		a.own(agent)
		a.store = hasty{before, func(m logged) {
			if m.released {
				b.own(agent)
			}
		}, func() {}}
		a.Release(agent, open)
		a.store = before
		if got := a.noted(agent); got != (owner{Boot: b.Boot()}) {
			t.Errorf("%s: %+v looks after it", agent, got)
		}
	}

	b.die()
	until(t, "they are taken over", func() bool {
		list := a.presence.orphans()
		return slices.Contains(list, "slept") && slices.Contains(list, "left")
	})
}

// A machine that was too late for an agent notes who was quicker, unless that one has given it up meanwhile, and a third one has
// taken it.
func TestANoteOfTheWinnerIsNotOfAnEarlierOne(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b, c := newHost(t, s), newHost(t, s), newHost(t, s)
	a.make("one")
	a.own("one")
	a.Release("one", false)
	before := a.store
	asked := 0
	a.store = hasty{before, func(logged) {}, func() {
		switch asked++; asked {
		case 1:
			b.own("one") // the claim of a comes behind it
		case 3: // after it was refused, a looks who was quicker
			b.Release("one", false)
			c.own("one")
		}
	}}
	err := a.Acquire("one")
	a.store = before
	if there, ok := errors.AsType[*message.Elsewhere](err); !ok || there.Node != b.Boot() {
		t.Fatalf("acquired: %v", err)
	}
	if got := a.noted("one"); got != (owner{Boot: c.Boot()}) {
		t.Errorf("%+v looks after it", got)
	}
}
