package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/address"
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

// mute are notes whose next answer is lost.
type mute struct {
	jetstream.KeyValue
	before func()
	lost   bool
}

func (m *mute) Put(ctx context.Context, key string, value []byte) (uint64, error) {
	if m.lost {
		return m.KeyValue.Put(ctx, key, value)
	}
	m.lost = true
	m.before()
	_, err := m.KeyValue.Put(ctx, key, value)

	return 0, errors.Join(errors.New("no answer"), err)
}

// A machine that hears nothing of its note that it takes an agent is noted, and does not have it. It looks again: the agent is
// taken over, or noted for the machine that has it.
func TestANoteWhoseAnswerWasLost(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b, c := newHost(t, s), newHost(t, s), newHost(t, s)
	for agent, quicker := range map[string]func(){"left": func() {}, "taken": func() { c.own("taken") }} {
		a.make(agent)
		a.own(agent)
		a.Release(agent, true)
		notes := b.presence.store.handles.owners
		b.presence.store.handles.owners = &mute{KeyValue: notes, before: quicker}
		if err := b.Acquire(agent); err == nil {
			t.Errorf("%s is acquired without an answer", agent)
		}
		b.presence.store.handles.owners = notes
		if got := a.noted(agent); got != (owner{Boot: b.Boot()}) {
			t.Fatalf("%s: %+v looks after it", agent, got)
		}
	}

	var mu sync.Mutex
	adopted := map[string]error{}
	ctx, cancel := context.WithCancel(t.Context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		b.Watch(ctx, func(agent string) {
			err := b.Acquire(agent)
			mu.Lock()
			defer mu.Unlock()
			adopted[agent] = err
		}, func(string) {}, func(address.Meta, bool) {}, func(string) {})
	}()
	until(t, "both are looked at again", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(adopted) == 2
	})
	cancel()
	<-watched
	there, _ := errors.AsType[*message.Elsewhere](adopted["taken"])
	if adopted["left"] != nil || there == nil || there.Node != c.Boot() {
		t.Errorf("taken over: %v", adopted)
	}
	for agent, who := range map[string]*host{"left": b, "taken": c} {
		if got := a.noted(agent); got != (owner{Boot: who.Boot()}) {
			t.Errorf("%s: %+v looks after it", agent, got)
		}
	}
	if list := b.allInDoubt(); len(list) > 0 {
		t.Errorf("still in doubt: %q", list)
	}
}
