package cluster

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"daycare/engine/cluster/clustertest"
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
		return Machine{Boot: m.Boot(), Name: filepath.Base(m.root), Format: a.Machines()[0].Format, Awake: awake}
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
		p := &presence{boot: boot, lease: time.Minute, seen: map[string]time.Time{}, says: map[string]machine{}}
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
