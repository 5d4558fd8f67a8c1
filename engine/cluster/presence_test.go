package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/address"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// Every machine knows which ones there are, in the order of their names, how many agents each has awake, and who
// has an agent; of one that is gone it knows it after its lease.
func TestWhoIsThere(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
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
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
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
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
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
	t.Parallel()
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
	t.Parallel()
	var orphans []string
	for i := range adoptedAtOnce {
		orphans = append(orphans, fmt.Sprint("agent", i))
	}
	all := make(chan struct{})
	var came atomic.Int32
	var ended atomic.Int32
	takeOver(t.Context(), orphans, func(string) {
		if came.Add(1) == adoptedAtOnce {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(30 * time.Second):
			t.Error("the others are not taken over meanwhile")
		}
		time.Sleep(time.Millisecond)
		ended.Add(1)
	})
	if n := ended.Load(); n != adoptedAtOnce {
		t.Errorf("%d of %d are taken over when it ends", n, adoptedAtOnce)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	takeOver(over, orphans, func(agent string) { t.Errorf("%s is taken over after the end", agent) })
}

// noted is a change of a bucket.
type noted struct {
	jetstream.KeyValueEntry
	key, value string
	removed    bool
	revision   uint64
}

func (n noted) Key() string        { return n.key }
func (n noted) Value() []byte      { return []byte(n.value) }
func (n noted) Revision() uint64   { return max(1, n.revision) }
func (n noted) Created() time.Time { return time.Now().Add(-time.Hour) }
func (n noted) Operation() jetstream.KeyValueOp {
	if n.removed {
		return jetstream.KeyValueDelete
	}
	return jetstream.KeyValuePut
}

// A machine knows which others are gone once it has heard itself for a whole lease without a gap, and not while it does not.
func TestWhoIsKnownToBeGone(t *testing.T) {
	t.Parallel()
	const lease = time.Hour
	p := newPresence("a", "a", lease, nil, slog.New(slog.DiscardHandler))
	p.cards = &cards{}
	since := func(boot string, age time.Duration) { p.seen[boot] = time.Now().Add(-age) }
	check := func(when string, sure, gone, unknown bool, orphans ...string) {
		t.Helper()
		if got := p.sure(); got != sure {
			t.Errorf("%s: sure is %v", when, got)
		}
		if got := p.dead("b"); got != gone {
			t.Errorf("%s: b is gone: %v", when, got)
		}
		if got := p.dead("x"); got != unknown {
			t.Errorf("%s: who never was there is gone: %v", when, got)
		}
		if p.dead("a") {
			t.Errorf("%s: this machine itself is gone", when)
		}
		got := p.orphans()
		if slices.Sort(got); !slices.Equal(got, orphans) {
			t.Errorf("%s: to be taken over are %q, want %q", when, got, orphans)
		}
	}
	for agent, o := range map[string]string{"of-a": `{"boot":"a"}`, "of-b": `{"boot":"b"}`, "of-x": `{"boot":"x"}`,
		"left": `{"boot":"a","left":true}`, "torn": "{", "asleep": `{"boot":"b"}`} {
		p.noteOwner(noted{key: agent, value: o})
	}
	p.noteOwner(noted{key: "asleep", removed: true})

	check("at first", false, false, false, "left")
	p.noteNode(noted{key: "a", value: `{"name":"a","v":1}`})
	p.noteNode(noted{key: "b", value: `{"name":"b"}`})
	if skew := p.says["a"].skew; skew < lease-time.Minute || p.says["b"].skew != 0 || p.says["a"].Version != 1 || p.says["b"].Name != "b" {
		t.Errorf("they say %+v", p.says)
	}
	begun := p.heard
	check("just heard", false, false, false, "left")
	p.heard = time.Now().Add(-lease)
	check("heard for a lease", true, false, true, "left", "of-x")
	since("b", lease)
	check("b is silent", true, true, true, "left", "of-b", "of-x")
	since("a", lease)
	check("it does not hear itself", false, false, false, "left")
	if !p.away() {
		t.Error("it does not hear itself, and is there")
	}
	p.noteNode(noted{key: "a", value: "{"})
	if !p.heard.After(begun) || p.away() {
		t.Error("after a gap it is not heard anew")
	}
	check("after the gap", false, false, false, "left")
	heard := p.heard
	p.noteNode(noted{key: "a", value: `{"name":"a"}`})
	if p.heard != heard {
		t.Error("without a gap it is heard anew")
	}
	p.heard = time.Now().Add(-lease)
	for _, boot := range []string{"a", "b"} {
		p.noteNode(noted{key: boot, removed: true})
	}
	if _, says := p.says["b"]; says || !p.seen["b"].IsZero() || p.seen["a"].IsZero() || p.says["a"].Name != "a" {
		t.Errorf("after both have left they are %v, and say %+v", p.seen, p.says)
	}
	p.full = time.Now()
	if !p.away() {
		t.Error("servers without room are there")
	}
	if p.full = time.Now().Add(-fullFor); p.away() {
		t.Error("servers that had no room are not there")
	}
}

// Why servers do not take something is what they say; that none answers says nothing.
func TestTrouble(t *testing.T) {
	t.Parallel()
	p := newPresence("a", "a", time.Hour, nil, slog.New(slog.DiscardHandler))
	l := leader{p: p}
	says := &jetstream.APIError{ErrorCode: codeNoResources}
	for _, test := range []struct {
		err, want error
		full      bool
	}{{nil, nil, false}, {&jetstream.APIError{}, &jetstream.APIError{}, false}, {errors.New("no answer"), nil, false}, {says, says, true}} {
		p.refused(test.err)
		if got := l.Trouble(); (got == nil) != (test.want == nil) || p.away() != test.full {
			t.Errorf("after %v the trouble is %v, and it is full: %v", test.err, got, p.away())
		}
	}
}

// Which machine an agent falls to does not depend on those that are gone, or that may not work on it.
func TestWhoTakesOverWhenOthersAreGone(t *testing.T) {
	t.Parallel()
	p := newPresence("a", "a", time.Hour, nil, nil)
	p.cards = &cards{known: map[string]card{"only-a": {Descriptor: address.Descriptor{Node: "a"}},
		"only-b": {Descriptor: address.Descriptor{Node: "b"}}}}
	p.says["a"] = machine{Name: "a", Version: version}
	p.says["b"] = machine{Name: "b", Version: version + 1}
	for age, want := range map[time.Duration]map[string]bool{
		0:         {"any": false, "only-a": true, "only-b": false},
		time.Hour: {"any": true, "only-a": true, "only-b": false},
	} {
		p.seen["b"] = time.Now().Add(-age)
		for agent, mine := range want {
			if got := p.first(agent); got != mine {
				t.Errorf("with b silent for %v %s falls to a: %v", age, agent, got)
			}
		}
	}
}

// A machine that leaves is not one for the others at once; one that joins with a long lease, after the servers were
// wiped, need not wait for it.
func TestLeavingAndComingBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := clustertest.Serve(t, dir, 0)
	a, b := joinWith(t, s, t.TempDir(), time.Minute), joinWith(t, s, t.TempDir(), time.Minute)
	until(t, "both are known", func() bool { return len(a.Machines()) == 2 })
	b.Close()
	until(t, "one is", func() bool { return len(a.Machines()) == 1 })

	wiped(t, s, dir)
	until(t, "the servers have a log again", func() bool {
		_, err := a.presence.store.js.Stream(t.Context(), streamName)
		return err == nil
	})
}

// While servers have no room nothing is claimed, given up, removed or kept, and no handle is given.
func TestNothingIsTakenWithoutRoom(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	for _, agent := range []string{"one", "two"} {
		a.make(agent)
	}
	a.own("one")
	full := func(at time.Time) {
		a.presence.mu.Lock()
		defer a.presence.mu.Unlock()
		a.presence.full = at
	}
	full(time.Now().Add(time.Hour))
	_, claimed := a.Claim("x", "one")
	for what, err := range map[string]error{"acquired": a.Acquire("two"), "removed": a.Retire("one"), "kept": a.Keep("file.x", nil),
		"said": a.Say(t.Context(), "day", nil), "claimed": claimed} {
		if !errors.Is(err, disk.ErrAway) {
			t.Errorf("%s: %v", what, err)
		}
	}
	a.Release("one", false)
	full(time.Time{})
	if newest, err := a.store.last(t.Context(), "one"); err != nil || newest.released || newest.retired {
		t.Errorf("the log ends with %+v, %v", newest, err)
	}
	if newest, err := a.store.last(t.Context(), "two"); err != nil || newest.seq > 0 {
		t.Errorf("the log of the other one ends with %+v, %v", newest, err)
	}
	a.own("one")
	u, _, _ := a.unit(a.path("one", "state.json"))
	if err := a.Acquire("one"); err != nil {
		t.Errorf("acquired again: %v", err)
	}
	u.fence()
	if err := a.Acquire("one"); !errors.Is(err, disk.ErrFenced) {
		t.Errorf("acquired while its files are open: %v", err)
	}
}

// A machine that shares no files, and lists no settings, is one like any other.
func TestAMachineThatSharesNothing(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := joinWith(t, s, t.TempDir(), testLease, func(c *Config) {
		c.Shared = nil
		c.About = func() About { return About{Program: "7", Settings: map[string]string{"x": "y"}} }
	})
	ctx, cancel := context.WithCancel(t.Context())
	tended := make(chan error, 1)
	go func() { tended <- a.Tend(ctx) }()
	if err := a.Lead(t.Context(), "clock", func(context.Context) error { return errRefused }); !errors.Is(err, errRefused) {
		t.Errorf("led: %v", err)
	}
	if boot, err := a.Leading(t.Context(), "clock"); err != nil || boot != "" {
		t.Errorf("then %q leads, %v", boot, err)
	}
	over, end := context.WithCancel(t.Context())
	end()
	led := func(context.Context) error { t.Error("it leads after its end"); return nil }
	if err := a.Lead(over, "clock", led); !errors.Is(err, context.Canceled) {
		t.Errorf("led after its end: %v", err)
	}
	select {
	case err := <-tended:
		t.Errorf("tended before its end: %v", err)
	default:
	}
	cancel()
	if err := <-tended; err != nil {
		t.Errorf("tended: %v", err)
	}
	until(t, "what it says of itself is known", func() bool {
		all := a.Machines()
		return len(all) == 1 && all[0].Program == "7" && all[0].Settings["x"] == "y"
	})
	root := t.TempDir()
	c := elsewhere(s.ClientURL(), root)
	c.Shared = nil
	if n, err := Export(t.Context(), c); n != 0 || err != nil {
		t.Errorf("exported %d, %v", n, err)
	}
	c = elsewhere(s.ClientURL(), t.TempDir())
	c.Shared = nil
	if done, err := Import(t.Context(), c, Load{}); err != nil || done.Files != 0 {
		t.Errorf("imported %+v, %v", done, err)
	}
	a.Close()
	if boot, err := a.Leading(t.Context(), "clock"); !errors.Is(err, disk.ErrAway) {
		t.Errorf("without servers %q leads, %v", boot, err)
	}
}

// Files of a folder need not be synced here where several servers have them on their disks, or one if that is asked for, and all say so.
func TestWhatIsSyncedElsewhere(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	warned := &saying{}
	log := slog.New(slog.NewTextHandler(warned, nil))
	a.syncedElsewhere(a.conn, Copies{Servers: 1}, 1, log)
	until(t, "it warns of a server that may not sync", func() bool { return strings.Contains(warned.String(), "sync_interval: always") })
	if a.syncedElsewhere(a.conn, Copies{1, Never}, 1, log) {
		t.Error("a server that does not say that it syncs is relied on")
	}
	for range 3 {
		if _, err := a.conn.Subscribe(SyncedSubject, func(m *nats.Msg) { _ = m.Respond(nil) }); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		copies, servers int
		own             OwnDisk
		want            bool
	}{{1, 1, "", false}, {2, 3, Auto, false}, {3, 3, "", true}, {3, 1, Auto, true}, {3, 4, "", false}, {5, 3, "", false},
		{3, 3, Always, false}, {1, 1, Never, true}, {1, 3, Never, true}, {1, 4, Never, false}} {
		if got := a.syncedElsewhere(a.conn, Copies{test.copies, test.own}, test.servers, log); got != test.want {
			t.Errorf("of %d copies on %d servers, own disk %q: %v", test.copies, test.servers, test.own, got)
		}
	}
}

// An agent whose descriptor names a machine, or that of one above it, is owned by that machine alone. While that one is gone
// nobody takes it over; another process of that name does.
func TestAnAgentOfOneMachine(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
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
