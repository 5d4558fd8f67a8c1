package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/address"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
)

// repair looks for damage, and mends it.
func repair(t *testing.T, s *server.Server, write bool) (found []Damage) {
	t.Helper()
	root := t.TempDir()
	r := Repair{Write: write, HoleFor: 100 * time.Millisecond, Found: func(d Damage) { found = append(found, d) }}
	n, err := r.Run(t.Context(), Config{Servers: []string{s.ClientURL()}, Root: root, Volume: disk.NewVolume(root), Covers: covered,
		Lease: testLease, Log: slog.New(slog.DiscardHandler)})
	if err != nil || n != 1 {
		t.Fatalf("%d agents, %v", n, err)
	}
	return found
}

// damaged is an agent of three machines with a long log: the first of them had it before the second, which has it now or
// had it last; the third never had it.
type damaged struct {
	t       *testing.T
	s       *server.Server
	a, b, c *host
	log     *disk.Log // of b
	want    []string
}

const hurt = "aaaaaaaaaaaaaaaaaaaaaaaa"

func newDamaged(t *testing.T) *damaged {
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	d := &damaged{t: t, s: s, a: newHost(t, s), b: newHost(t, s), c: newHost(t, s)}
	d.a.make(hurt)
	for i, h := range []*host{d.a, d.b} {
		h.own(hurt)
		l, _, err := h.vol.OpenLog(h.path(hurt, "history.jsonl"), disk.LogOptions{Name: "history"})
		if err != nil {
			t.Fatal(err)
		}
		for n := range 5 {
			line := fmt.Sprint(i, "-", n)
			add(t, l, line)
			d.want = append(d.want, line)
		}
		d.log = l
		if i == 0 {
			d.closed()
			h.Release(hurt, false)
		}
	}
	if err := d.b.Announce(address.Meta{ID: hurt, Handle: "0"}, false); err != nil {
		t.Fatal(err)
	}

	return d
}

func (d *damaged) closed() {
	d.t.Helper()
	if err := d.log.Close(); err != nil {
		d.t.Fatal(err)
	}
}

// messages are the sequences of its log.
func (d *damaged) messages() (list []uint64) {
	d.t.Helper()
	log, err := d.c.presence.store.leniently(d.t.Context(), hurt)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, m := range log {
		list = append(list, m.raw.Sequence)
	}
	return list
}

// lose takes messages of its log away, as servers do whose disk is damaged.
func (d *damaged) lose(which func(all []uint64) []uint64) {
	d.t.Helper()
	in, _ := d.c.presence.store.handles.logs.of(hurt)
	for _, seq := range which(d.messages()) {
		if err := in.SecureDeleteMsg(d.t.Context(), seq); err != nil {
			d.t.Fatal(err)
		}
	}
}

// A log that was lost or damaged is written again from the folder that has most of it, whether its machine has the agent awake, has
// given it up, or has died with it and is back. Without Write nothing changes. What the servers had is kept.
func TestRepair(t *testing.T) {
	t.Parallel()
	for name, which := range map[string]func(all []uint64) []uint64{
		"all":       func(all []uint64) []uint64 { return all },
		"the first": func(all []uint64) []uint64 { return all[:1] },
		"the middle": func(all []uint64) []uint64 {
			return all[len(all)/2 : len(all)/2+2]
		},
		"the end": func(all []uint64) []uint64 { return all[len(all)-3:] },
	} {
		for _, state := range []string{"asleep", "awake", "died"} {
			if state == "awake" && (name == "all" || name == "the end") {
				continue // its owner writes it again by itself
			}
			if state == "died" && name == "the end" {
				continue // a process that died always has more than its log: that is in away/ then
			}
			t.Run(name+" "+state, func(t *testing.T) {
				t.Parallel()
				repaired(t, which, state)
			})
		}
	}
}

func repaired(t *testing.T, which func(all []uint64) []uint64, state string) {
	d := newDamaged(t)
	switch state {
	case "asleep":
		d.closed()
		d.b.Release(hurt, false)
	case "died":
		d.closed()
		d.b.die()
		until(t, "it is known to be gone", func() bool {
			_, err := d.c.presence.store.handles.nodes.Get(t.Context(), d.b.Boot())
			return errors.Is(err, jetstream.ErrKeyNotFound)
		})
		d.b = join(t, d.s, d.b.root)
	}
	d.lose(which)
	before := d.messages()

	found := repair(t, d.s, false)
	if len(found) != 1 || found[0].Reason == "" || found[0].Err != nil || found[0].Kept != "" || found[0].UpTo < found[0].Of {
		t.Fatalf("found %+v", found)
	}
	if got := d.messages(); !slices.Equal(got, before) {
		t.Errorf("a look has changed the log: %v, was %v", got, before)
	}
	found = repair(t, d.s, true)
	if len(found) != 1 || found[0].Err != nil || found[0].From == "" {
		t.Fatalf("mended %+v", found)
	}
	kept, err := os.ReadFile(found[0].Kept)
	if err != nil || strings.Count(string(kept), "\n") != len(before) {
		t.Errorf("kept are %d messages of %d, %v", strings.Count(string(kept), "\n"), len(before), err)
	}
	before = d.messages()
	if found = repair(t, d.s, true); len(found) > 0 || !slices.Equal(d.messages(), before) {
		t.Errorf("then found %+v, and the log has %v, had %v", found, d.messages(), before)
	}
	var hint owner
	e, err := d.c.presence.store.handles.owners.Get(t.Context(), hurt)
	if err == nil {
		err = json.Unmarshal(e.Value(), &hint)
	}
	if err != nil || hint.Left != (state != "awake") {
		t.Errorf("that it may have work is noted as %+v, %v", hint, err)
	}

	if state == "awake" {
		add(t, d.log, "and-more")
		d.want = append(d.want, "and-more")
		d.closed()
		d.b.Release(hurt, false)
	}
	for _, h := range []*host{d.c, d.a, d.b} {
		h.own(hurt)
		if got := h.lines(hurt, "history.jsonl"); !slices.Equal(got, d.want) {
			t.Errorf("history is %q, want %q", got, d.want)
		}
		h.Release(hurt, false)
	}
}

// A machine that has most and is off cannot offer it: the best of the others is used, and what is missing is known. One that is there
// and does not answer prevents it.
func TestRepairWithoutTheBest(t *testing.T) {
	t.Parallel()
	d := newDamaged(t)
	d.closed()
	d.b.Release(hurt, false)
	d.b.Close()
	ghost := func(there bool) {
		t.Helper()
		nodes := d.c.presence.store.handles.nodes
		_, err := nodes.Put(t.Context(), "ghost", []byte(`{"name":"ghost"}`))
		if !there {
			err = nodes.Delete(t.Context(), "ghost")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	d.lose(func(all []uint64) []uint64 { return all[len(all)-3 : len(all)-2] })
	ghost(true)
	found := repair(t, d.s, true)
	if len(found) != 1 || found[0].Err == nil || !strings.Contains(found[0].Err.Error(), "ghost") || found[0].Kept != "" {
		t.Errorf("with a machine that does not answer: %+v", found)
	}
	time.AfterFunc(testLease/3, func() { ghost(false) }) // while the machines are listed
	found = repair(t, d.s, true)
	if len(found) != 1 || found[0].Err != nil || found[0].UpTo >= found[0].Of || found[0].UpTo == 0 {
		t.Fatalf("mended %+v", found)
	}
	d.c.own(hurt)
	if got := d.c.lines(hurt, "history.jsonl"); len(got) < 8 || !slices.Equal(got, d.want[:len(got)]) {
		t.Errorf("history is %q, of %q", got, d.want)
	}
}

// What a newer daycare wrote is left alone; without a folder and a log there is nothing to repair with.
func TestWhatCannotBeRepaired(t *testing.T) {
	t.Parallel()
	d := newDamaged(t)
	d.closed()
	d.b.Release(hurt, false)
	for _, h := range []*host{d.a, d.b} {
		h.Close()
	}
	_, subject := d.c.presence.store.handles.logs.of(hurt)
	newer := &nats.Msg{Subject: subject, Header: nats.Header{"D-V": {"9"}, "D-N": {"99"}}}
	if _, err := d.c.conn.RequestMsg(newer, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"newer version", "start the others"} {
		if want != "newer version" {
			if err := d.c.presence.store.purge(t.Context(), hurt, 1<<62); err != nil {
				t.Fatal(err)
			}
		}
		if found := repair(t, d.s, true); len(found) != 1 || found[0].Err == nil || !strings.Contains(found[0].Err.Error(), want) {
			t.Errorf("found %+v, want %q", found, want)
		}
	}
}
