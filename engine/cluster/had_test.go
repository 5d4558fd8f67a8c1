package cluster

import (
	"errors"
	"slices"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// After the servers were wiped, an agent that sleeps continues from the folder of the machine that had it last,
// whichever needs it first; one without the folder, or with a new one, asks, too.
func TestWhoHadAnAgentLast(t *testing.T) {
	dir := t.TempDir()
	s := clustertest.Serve(t, dir, 0)
	a, b, c, d := newHost(t, s), newHost(t, s), newHost(t, s), newHost(t, s)
	const one = "aaaaaaaaaaaaaaaaaaaaaaaa"
	a.make(one)
	for i, h := range []*host{a, b} {
		h.own(one)
		l, _, err := h.vol.OpenLog(h.path(one, "history.jsonl"), disk.LogOptions{Name: "history"})
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, []string{"1", "2"}[i])
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		h.Release(one, false)
	}

	if err := b.Announce(address.Meta{ID: one, Handle: "0-1"}, false); err != nil {
		t.Fatal(err)
	}
	until(t, "all know the agent", func() bool { return d.cards.knows(one) })
	d.make(one) // as a message for its address does that was being delivered

	wiped(t, s, dir)
	for _, h := range []*host{a, c, d} {
		there := &message.Elsewhere{}
		until(t, "the machine that had it last is known", func() bool { return errors.As(h.Acquire(one), &there) })
		if there.Node != b.Boot() {
			t.Errorf("it is to be at %q, want %q", there.Node, b.Boot())
		}
	}
	until(t, "that machine has it", func() bool { return b.Acquire(one) == nil })
	b.Release(one, false)
	until(t, "then another one", func() bool { return a.Acquire(one) == nil })
	if got := a.lines(one, "history.jsonl"); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("history is %q", got)
	}
}

// While a machine does not know which ones are alive it does not say that it had an agent last.
func TestWhoHadAnAgentLastIsNotGuessed(t *testing.T) {
	dir := t.TempDir()
	const one = "one"
	s := clustertest.Serve(t, dir, 0)
	a := joinWith(t, s, t.TempDir(), time.Minute)
	a.make(one)
	a.own(one)
	a.Release(one, false)
	wiped(t, s, dir)
	until(t, "the servers answer", func() bool { _, err := a.presence.store.ensure(t.Context(), time.Minute); return err == nil })
	if err := a.Acquire(one); !errors.Is(err, disk.ErrAway) {
		t.Errorf("begun anew: %v", err)
	}
}

// A machine that does not report any more may have had an agent last: the others wait for it.
func TestWhoHadAnAgentLastMayBeSlow(t *testing.T) {
	dir := t.TempDir()
	const one = "one"
	s := clustertest.Serve(t, dir, 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make(one)
	for _, h := range []*host{a, b} {
		h.own(one)
		h.Release(one, false)
	}
	b.die()
	until(t, "its lease is over", func() bool { return a.presence.dead(b.Boot()) })

	wiped(t, s, dir)
	until(t, "this machine knows who is there", func() bool {
		_, err := a.presence.store.ensure(t.Context(), time.Second)
		return err == nil && a.presence.sure() && !a.Away()
	})
	if err := a.Acquire(one); !errors.Is(err, disk.ErrAway) {
		t.Errorf("begun without the machine that had it last: %v", err)
	}
}
