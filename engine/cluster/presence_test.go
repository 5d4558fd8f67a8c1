package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// Every machine knows which ones there are, in the order of their names, how many agents each has awake, and who
// has an agent; of one that is gone it knows it after its lease.
func TestWhoIsThere(t *testing.T) {
	s := clustertest.Serve(t, t.TempDir(), 0)
	above := t.TempDir()
	b, a := join(t, s, filepath.Join(above, "b")), join(t, s, filepath.Join(above, "a"))
	const one, two = "aaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbb"
	for _, agent := range []string{one, two} {
		a.make(agent)
		a.own(agent)
	}
	known := func(m *host, want ...Machine) func() bool {
		return func() bool { return reflect.DeepEqual(plain(m.Machines()), want) }
	}
	of := func(m *host, awake int) Machine {
		return Machine{Boot: m.Boot(), Name: filepath.Base(m.root), Format: version, Awake: awake}
	}
	for _, m := range []*host{a, b} {
		until(t, "both are known", known(m, of(a, 2), of(b, 0)))
		if got := m.Owner(one); got != a.Boot() {
			t.Errorf("the agent is at %q, want %q", got, a.Boot())
		}
		if got := m.Owner("cccccccccccccccccccccccc"); got != "" {
			t.Errorf("an agent that there is not is at %q", got)
		}
	}

	a.Release(two, false)
	until(t, "one agent is let go of", known(b, of(a, 1), of(b, 0)))
	until(t, "nobody has it", func() bool { return b.Owner(two) == "" })
	b.own(two)
	until(t, "another machine has it", known(a, of(a, 1), of(b, 1)))
	b.die()
	until(t, "a machine is gone", known(a, of(a, 1)))
}

// An attachment that one machine keeps another one fetches; one that no machine kept does not exist.
func TestAttachmentsAreFetched(t *testing.T) {
	s := clustertest.Serve(t, t.TempDir(), 0)
	a, b := newHost(t, s), newHost(t, s)
	if err := a.Keep("file.x.content", []byte("text")); err != nil {
		t.Fatal(err)
	}
	if data, ok, err := b.Fetch("file.x.content"); err != nil || !ok || string(data) != "text" {
		t.Errorf("%q, %v, %v", data, ok, err)
	}
	if data, ok, err := b.Fetch("file.y.content"); err != nil || ok || data != nil {
		t.Errorf("what nobody kept is %q, %v, %v", data, ok, err)
	}
}

// All machines know which one leads, or that none does.
func TestWhoLeads(t *testing.T) {
	s := clustertest.Serve(t, t.TempDir(), 0)
	a, b := newHost(t, s), newHost(t, s)
	if boot, err := b.Leading(t.Context(), "clock"); err != nil || boot != "" {
		t.Errorf("nobody leads: %q, %v", boot, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- a.Lead(ctx, "clock", func(ctx context.Context) error { close(begun); <-ctx.Done(); return nil })
	}()
	<-begun
	if boot, err := b.Leading(t.Context(), "clock"); err != nil || boot != a.Boot() {
		t.Errorf("%q leads, %v, want %q", boot, err, a.Boot())
	}
	cancel()
	if err := <-ended; err != nil && !strings.Contains(err.Error(), "canceled") {
		t.Error(err)
	}
	until(t, "nobody leads", func() bool { boot, err := b.Leading(t.Context(), "clock"); return err == nil && boot == "" })
}

// plain are machines without how far their clocks are off.
func plain(list []Machine) []Machine {
	for i := range list {
		list[i].Skew = 0
	}
	return list
}

// An agent falls to one of the machines that know the newest format of logs.
func TestWhoTakesOver(t *testing.T) {
	falls := func(agent, boot string, formats map[string]int) bool {
		p := &presence{boot: boot, lease: time.Minute, seen: map[string]time.Time{}, says: map[string]machine{},
			beside: beside{cards: &cards{}}}
		for other, format := range formats {
			p.seen[other], p.says[other] = time.Now(), machine{Version: format}
		}
		return p.first(agent)
	}
	for i := range 20 {
		agent := fmt.Sprint("agent", i)
		same := map[string]int{"a": version, "b": version}
		if falls(agent, "a", same) == falls(agent, "b", same) {
			t.Errorf("%s falls to both of two machines, or to none", agent)
		}
		if !falls(agent, "a", map[string]int{"a": version, "b": version - 1}) {
			t.Errorf("%s does not fall to the machine that is newer", agent)
		}
		if falls(agent, "a", map[string]int{"a": version, "b": version + 1}) {
			t.Errorf("%s falls to the machine that is older", agent)
		}
	}
}

// Agents of a machine that is gone are taken over beside each other: one that takes long holds up no other.
func TestManyAreTakenOverAtOnce(t *testing.T) {
	var orphans []string
	for i := range adoptedAtOnce {
		orphans = append(orphans, fmt.Sprint("agent", i))
	}
	all := make(chan struct{})
	var came atomic.Int32
	takeOver(t.Context(), orphans, func(string) {
		if came.Add(1) == adoptedAtOnce {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(30 * time.Second):
			t.Error("the others are not taken over meanwhile")
		}
	})
}

// An agent whose descriptor names a machine, or that of one above it, is owned by that machine alone. While that one is gone
// nobody takes it over; another process of that name does.
func TestAnAgentOfOneMachine(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, t.TempDir(), 0)
	a, b := newHost(t, s), newHost(t, s)
	const one, child = "one", "child"
	only := b.presence.name
	ids := []string{strings.Repeat("a", 24), strings.Repeat("b", 24)}
	for i, d := range []address.Descriptor{{Node: only}, {ParentAgentID: ids[0]}} {
		a.make(ids[i])
		a.own(ids[i]) // it is new, and nobody knows better
		if err := a.Announce(address.Meta{ID: ids[i], Handle: []string{one, child}[i], Descriptor: d}, false); err != nil {
			t.Fatal(err)
		}
		a.Release(ids[i], true)
	}
	for _, id := range ids {
		until(t, "it is known where it works", func() bool {
			there, ok := errors.AsType[*message.Elsewhere](a.Acquire(id))
			return ok && there.Node == b.Boot()
		})
		b.own(id)
	}

	b.die()
	until(t, "the machine is gone", func() bool { return a.presence.dead(b.Boot()) })
	if err := a.Acquire(ids[1]); !errors.Is(err, disk.ErrAway) || !strings.Contains(err.Error(), only) {
		t.Errorf("without that machine: %v", err)
	}
	if list := a.presence.orphans(); len(list) > 0 {
		t.Errorf("taken over are %q", list)
	}
	b = join(t, s, b.root)
	until(t, "it takes them over", func() bool { return len(b.presence.orphans()) == 2 })
	for _, id := range ids {
		b.own(id)
	}
}
