package cluster

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"daycare/engine/cluster/clustertest"
	"daycare/engine/disk"
)

// heardFigures is who needs the figures of all machines.
type heardFigures struct {
	mu    sync.Mutex
	own   string
	there map[string]Figure
	knows map[string]bool // better than the servers
}

func (h *heardFigures) Join(own string, there iter.Seq[Figure]) {
	h.own, h.there = own, map[string]Figure{}
	for one := range there {
		h.Heard(one)
	}
}

func (h *heardFigures) Heard(one Figure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if key := one.Machine + "." + one.Name; !h.knows[key] {
		h.there[key] = one
	}
}

func (h *heardFigures) All() iter.Seq[Figure] {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Values(slices.Collect(maps.Values(h.there)))
}

func (h *heardFigures) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.there)
}

// of is what was heard under a key; "": nothing.
func (h *heardFigures) of(key string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.there[key].Data)
}

// called joins a machine with an id.
func called(t *testing.T, id string, s *server.Server, ways ...*clustertest.Way) *host {
	t.Helper()
	return joinWith(t, s, t.TempDir(), testLease, func(c *Config) {
		c.ID = id
		for _, w := range ways {
			c.Servers = []string{w.URL}
		}
	})
}

// What a machine says of itself all hear: those that listen, those that listen later, and those that join later. After servers
// were wiped they get it again: of each machine what it said last.
func TestFigures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := clustertest.Serve(t, dir, 0)
	a, b := called(t, "a", s), called(t, "b", s)
	said := func(h *host, name, text string) {
		t.Helper()
		if err := h.Say(t.Context(), name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	here, there, later := &heardFigures{}, &heardFigures{}, &heardFigures{}
	a.Listen(here)
	if n := here.size(); here.own != "a" || n > 0 {
		t.Errorf("machine %q begins with %d figures", here.own, n)
	}
	said(a, "day.1", "10")
	said(b, "day.1", "20")
	heard := func(f *heardFigures, ones, twos string) {
		t.Helper()
		until(t, "all is heard", func() bool { return f.of("a.day.1") == ones && f.of("b.day.1") == twos })
	}
	heard(here, "10", "20")
	kv := a.presence.store.handles.figures
	if _, err := kv.Put(t.Context(), "nothing", []byte("of no machine")); err != nil {
		t.Fatal(err)
	}
	if err := kv.Delete(t.Context(), "b.day.2"); err != nil {
		t.Fatal(err)
	}
	said(b, "day.1", "21")
	heard(here, "10", "21")
	until(t, "they are kept for who listens later", func() bool {
		b.figures.mu.Lock()
		defer b.figures.mu.Unlock()
		return len(b.figures.early) == 2 && string(b.figures.early["b.day.1"].Data) == "21"
	})
	b.Listen(there)
	heard(there, "10", "21")
	c := called(t, "c", s)
	c.Listen(later)
	heard(later, "10", "21")
	if here.size() != 2 || later.size() != 2 {
		t.Errorf("heard are %d and %d figures", here.size(), later.size())
	}

	here.Heard(Figure{"a", "day.1", []byte("11")}) // what it says of itself and the servers had not got
	here.mu.Lock()
	here.knows = map[string]bool{"a.day.1": true}
	here.mu.Unlock()
	wiped(t, s, dir)
	heard(there, "11", "21")
	heard(here, "11", "21")
	all := map[string]string{}
	until(t, "the servers have all again", func() bool {
		for _, key := range []string{"a.day.1", "b.day.1"} {
			if e, err := kv.Get(t.Context(), key); err == nil {
				all[key] = string(e.Value())
			}
		}
		return all["a.day.1"] == "11" && all["b.day.1"] == "21"
	})
}

// Of what the servers have already, a machine writes only its own again, and only what differs.
func TestFiguresThatAreThere(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := called(t, "a", s)
	kv := a.presence.store.handles.figures
	put := func(key, text string) (revision uint64) {
		t.Helper()
		revision, err := kv.Put(t.Context(), key, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	same, _, _ := put("a.same", "1"), put("a.old", "1"), put("b.newer", "2")
	h := &heardFigures{}
	h.Join("a", slices.Values([]Figure{{"a", "same", []byte("1")}, {"a", "old", []byte("2")}, {"b", "newer", []byte("1")},
		{"b", "lost", []byte("3")}}))
	a.figures.restore(t.Context()) // nobody listens
	a.Listen(&heardFigures{})
	a.figures.mu.Lock()
	a.figures.listens = h
	a.figures.mu.Unlock()
	a.figures.restore(t.Context())
	got := map[string]string{}
	for _, key := range []string{"a.same", "a.old", "b.newer", "b.lost"} {
		e, err := kv.Get(t.Context(), key)
		if err != nil {
			t.Fatal(key, err)
		}
		if got[key] = string(e.Value()); key == "a.same" && e.Revision() != same {
			t.Error("what is the same was written again")
		}
	}
	if diff := cmp.Diff(map[string]string{"a.same": "1", "a.old": "2", "b.newer": "2", "b.lost": "3"}, got); diff != "" {
		t.Errorf("the servers have (-want +got):\n%s", diff)
	}
}

// Without servers a machine says so, and nothing is lost: it says it again.
func TestFiguresWithoutServers(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	w := clustertest.WayTo(t, s)
	a := called(t, "a", s, w)
	eachRefused(t, w, 1, func(n int) error {
		err := a.Say(t.Context(), "day", []byte("1"))
		if errors.Is(err, disk.ErrAway) != strings.HasPrefix(w.Met(), "$KV.dc-figures.") { // it hears them, too
			t.Errorf("request %d, to %q: %v", n, w.Met(), err)
		}
		return err
	})
	for name, tt := range map[string]struct {
		one      Figure
		requests int
	}{"missing": {Figure{"b", "x", []byte("1")}, 1}, "its own": {Figure{"a", "day", []byte("2")}, 2}} {
		one := tt.one
		for n := 1; n <= tt.requests; n++ {
			w.Refuse(n)
			if err := a.figures.again(t.Context(), one); err == nil && !strings.Contains(w.Met(), ".CONSUMER.") {
				t.Errorf("%s, with request %d refused: nothing is said", name, n)
			}
		}
		w.Allow()
		if err := a.figures.again(t.Context(), one); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if e, err := a.figures.keep.handles.figures.Get(t.Context(), one.Machine+"."+one.Name); err != nil ||
			string(e.Value()) != string(one.Data) {
			t.Errorf("%s: the servers have %v, %v", name, e, err)
		}
	}

	s.Shutdown()
	until(t, "the machine knows it", a.Away)
	if err := a.Say(t.Context(), "day", []byte("3")); !errors.Is(err, disk.ErrAway) {
		t.Errorf("without servers: %v", err)
	}
}
