package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"daycare/engine/address"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// After the servers were wiped, an agent that sleeps continues from the folder of the machine that had it last,
// whichever needs it first; one without the folder, or with a new one, asks, too.
func TestWhoHadAnAgentLast(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	t.Parallel()
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

// A machine that was killed and is back has the folders of the process that does not report any more: it is not waited for.
func TestWhoHadAnAgentLastIsBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const one = "one"
	s := clustertest.Serve(t, dir, 0)
	named := func(c *Config) { c.ID = "m" + filepath.Base(c.Root) }
	a, b := joinWith(t, s, t.TempDir(), testLease, named), joinWith(t, s, t.TempDir(), testLease, named)
	a.make(one)
	for _, h := range []*host{a, b} {
		h.own(one)
		add(t, h.open(one, "history.jsonl"), h.root)
		h.Release(one, false)
	}
	b.die()
	back := joinWith(t, s, b.root, testLease, named)
	until(t, "the lease of the process before is over", func() bool { return a.presence.dead(b.Boot()) })

	wiped(t, s, dir)
	there := &message.Elsewhere{}
	until(t, "the machine that had it last is known", func() bool { return errors.As(a.Acquire(one), &there) })
	if there.Node != back.Boot() {
		t.Errorf("it is to be at %q, want %q", there.Node, back.Boot())
	}
	back.own(one)
	if got := back.lines(one, "history.jsonl"); !slices.Equal(got, []string{a.root, b.root}) {
		t.Errorf("history is %q", got)
	}
}

// Numbers grow over a wipe: what a machine had before it is older than what another one had after it, also when
// the servers are wiped again.
func TestWhoHadAnAgentLastAfterTwoWipes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const one = "one"
	s := clustertest.Serve(t, dir, 0)
	a, b := newHost(t, s), newHost(t, s)
	write := func(h *host, lines ...string) {
		t.Helper()
		until(t, "it is owned", func() bool { return h.Acquire(one) == nil })
		l, _, err := h.vol.OpenLog(h.path(one, "history.jsonl"), disk.LogOptions{Name: "history"})
		if err != nil {
			t.Fatal(err)
		}
		add(t, l, lines...)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		h.Release(one, false)
	}
	a.make(one)
	write(a, "1", "2", "3", "4", "5", "6")
	write(b, "7")
	again := wiped(t, s, dir)
	write(b, "8") // and so it begins the log anew
	wiped(t, again, dir)
	there := &message.Elsewhere{}
	until(t, "the machine that had it last is known", func() bool { return errors.As(a.Acquire(one), &there) })
	if there.Node != b.Boot() {
		t.Errorf("it is to be at %q, want %q", there.Node, b.Boot())
	}
	until(t, "that machine has it", func() bool { return b.Acquire(one) == nil })
	if got, want := b.lines(one, "history.jsonl"), []string{"1", "2", "3", "4", "5", "6", "7", "8"}; !slices.Equal(got, want) {
		t.Errorf("history is %q", got)
	}
}

// Servers that have lost the end of a log get it again from the machine that had the agent last.
func TestTheEndOfALogWasLost(t *testing.T) {
	t.Parallel()
	d := newDamaged(t)
	d.closed()
	d.b.Release(hurt, false)
	d.lose(func(all []uint64) []uint64 { return all[len(all)-3:] })
	d.b.own(hurt)
	if got := d.b.lines(hurt, "history.jsonl"); !slices.Equal(got, d.want) {
		t.Errorf("history is %q", got)
	}
	d.b.Release(hurt, false)
	d.c.own(hurt)
	if got := d.c.lines(hurt, "history.jsonl"); !slices.Equal(got, d.want) {
		t.Errorf("on another machine, history is %q", got)
	}
}

// A machine that fails to open an agent, because its log is damaged, still knows how much of it is in its folder.
func TestADamagedLogLeavesTheMark(t *testing.T) {
	t.Parallel()
	d := newDamaged(t)
	d.closed()
	d.b.Release(hurt, false)
	d.a.own(hurt) // so that the folder of b is not the newest
	d.a.Release(hurt, false)
	before, err := readMark(d.b.folder(hurt))
	if err != nil {
		t.Fatal(err)
	}
	d.lose(func(all []uint64) []uint64 { return all[len(all)-4 : len(all)-3] })
	if err := d.b.Acquire(hurt); err == nil {
		t.Fatal("it is opened")
	}
	if after, err := readMark(d.b.folder(hurt)); err != nil || after.N == 0 || after.N != before.N {
		t.Errorf("the mark is %+v, %v, was %+v", after, err, before)
	}
}

// replacedAndWiped are two machines on servers that have lost all: b has taken an agent over from a, which is not heard of and does
// not know. a has written lines into the history, each by itself, and b one more, "2".
func replacedAndWiped(t *testing.T, agent string, lines ...string) (s *server.Server, a, b *host, former, now *disk.Log) {
	dir := t.TempDir()
	s = clustertest.Serve(t, dir, 0)
	a, b = newHost(t, s), newHost(t, s)
	a.make(agent)
	a.own(agent)
	former = a.open(agent, "history.jsonl")
	for _, line := range lines {
		add(t, former, line)
	}
	a.silence() // it works on
	b.own(agent)
	now = b.open(agent, "history.jsonl")
	add(t, now, "2")
	wiped(t, s, dir)

	return s, a, b, former, now
}

// A machine that does not know that another one has taken an agent over does not begin its log anew when the servers are wiped,
// although it is the first to write.
func TestAFormerOwnerDoesNotBeginTheLogAnew(t *testing.T) {
	t.Parallel()
	const one = "one"
	s, a, b, former, now := replacedAndWiped(t, one, "1")
	go a.presence.run(a.ctx) // it is heard of again
	if err := write(former, "former"); !errors.Is(err, disk.ErrFenced) {
		t.Errorf("the former owner's barrier: %v, want ErrFenced", err)
	}
	add(t, now, "3")
	if got := b.lines(one, "history.jsonl"); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("history is %q", got)
	}
	now.Close()
	b.Release(one, false)
	c := newHost(t, s)
	c.own(one)
	if got := c.lines(one, "history.jsonl"); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("another machine reads %q", got)
	}
}

// Servers that were wiped number messages anew, and never with the numbers that they had: else a machine that was cut off could
// append to what another one has, because its last message and that of the other one have the same number.
func TestNumbersOfAWipedLogDoNotComeAgain(t *testing.T) {
	t.Parallel()
	const one = "one"
	_, a, b, former, now := replacedAndWiped(t, one, strings.Split("123456789", "")...)
	add(t, now, "3")
	before := a.owned[one].last
	for n := 4; b.owned[one].last < before; n++ {
		add(t, now, fmt.Sprint(n))
	}
	want := b.lines(one, "history.jsonl")
	go a.presence.run(a.ctx) // it is heard of again
	if err := write(former, "former"); !errors.Is(err, disk.ErrFenced) {
		t.Errorf("the former owner's barrier: %v, want ErrFenced", err)
	}
	add(t, now, "last")
	if got := b.lines(one, "history.jsonl"); !slices.Equal(got, append(want, "last")) {
		t.Errorf("history is %q, want %q", got, want)
	}
}

// The same of what machines write into buckets, such as leases and shared files.
func TestRevisionsOfAWipedBucketDoNotComeAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := clustertest.Serve(t, dir, 0)
	a := newHost(t, s)
	before, err := a.presence.store.handles.leases.Create(t.Context(), "x", []byte("1"))
	if err != nil {
		t.Fatal(err)
	}

	wiped(t, s, dir)
	var after uint64
	for end := time.Now().Add(time.Minute); after == 0 && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		after, err = a.presence.store.handles.leases.Create(t.Context(), "x", []byte("2"))
	}
	if err != nil || after <= before+1_000 {
		t.Errorf("%v: the revision is %d, and was %d before", err, after, before)
	}
}

// A machine that was taken for gone, while another one began the log anew from an older folder after the servers were wiped, does
// not write any more, and does not wait for ever: it opens the agent as the other one left it.
func TestWhoWasTakenForGoneIsFenced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const one = "one"
	s := clustertest.Serve(t, dir, 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make(one)
	for _, h := range []*host{a, b, a} {
		h.own(one)
		l := h.open(one, "history.jsonl")
		add(t, l, h.Boot())
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		h.Release(one, false)
	}
	a.own(one)
	gone := a.open(one, "history.jsonl")
	add(t, gone, "1", "2", "3")

	a.silence()
	until(t, "its lease is over", func() bool { return b.presence.dead(a.Boot()) })
	b.presence.mu.Lock()
	b.presence.seen[a.Boot()] = time.Now().Add(-2 * goneAfter)
	b.presence.mu.Unlock()
	wiped(t, s, dir)
	until(t, "it is begun anew", func() bool { return b.Acquire(one) == nil })
	refused := make(chan error, 1)
	go func() { refused <- write(gone, "late") }()
	select {
	case err := <-refused:
		if !errors.Is(err, disk.ErrFenced) {
			t.Errorf("its barrier: %v, want ErrFenced", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("its barrier waits for ever")
	}
	if got := b.lines(one, "history.jsonl"); !slices.Equal(got, []string{a.Boot(), b.Boot()}) {
		t.Errorf("history is %q", got)
	}
}
