package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/address"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/crash/crashtest"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/message"
)

func ignoreMet(address.Meta, bool) {}

// until waits for what happens on another machine.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// Many machines make agents at once: each address is one agent, each handle is given once, and an
// agent keeps the one that it has.
func TestIdsAndHandlesAreSettled(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	hosts := []*host{newHost(t, s), newHost(t, s), newHost(t, s)}
	var mu sync.Mutex
	owners, handles := map[string]map[string]bool{}, map[string]string{}
	var making sync.WaitGroup
	for i, h := range hosts {
		making.Go(func() {
			for n := range 20 {
				key := fmt.Sprint("user\x00", n)
				id, err := h.Claim(key, cuid.New())
				if err != nil {
					t.Error(err)
					return
				}
				handle := ""
				for serial := n; handle == ""; serial++ {
					if handle, err = h.Number(fmt.Sprint(serial, "/"), id); err != nil {
						t.Error(err)
						return
					}
				}

				mu.Lock()
				if owners[key] == nil {
					owners[key] = map[string]bool{}
				}
				owners[key][id] = true
				if had := handles[id]; had != "" && had != handle {
					t.Errorf("machine %d: agent %s has the handles %s and %s", i, id, had, handle)
				}
				handles[id] = handle
				mu.Unlock()
			}
		})
	}
	making.Wait()

	given := map[string]string{}
	for id, handle := range handles {
		if other := given[handle]; other != "" {
			t.Errorf("handle %s belongs to %s and %s", handle, other, id)
		}
		given[handle] = id
	}
	for key, ids := range owners {
		if len(ids) != 1 {
			t.Errorf("%q leads to %d agents", key, len(ids))
		}
	}
	if len(owners) != 20 || len(handles) != 20 {
		t.Errorf("%d addresses, %d agents", len(owners), len(handles))
	}
}

// A removed agent is gone on all machines: its address is free, its handle is not, and who had
// it open before cannot bring it back. A folder with its id is a new agent.
func TestRetiredAgents(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	d := address.Descriptor{Type: address.User, Connector: "x", ChannelID: "one"}
	m := address.Meta{ID: cuid.New(), Handle: "0/", Descriptor: d}
	met, parted := make(chan string, 10), make(chan string, 10)
	go b.Watch(t.Context(), func(string) {}, func(string) {}, func(m address.Meta, _ bool) { met <- m.Handle },
		func(id string) { parted <- id })
	if id, err := a.Claim(d.Key(), m.ID); err != nil || id != m.ID {
		t.Fatal(id, err)
	}
	if handle, err := a.Number(m.Handle, m.ID); err != nil || handle != m.Handle {
		t.Fatal(handle, err)
	}
	a.make(m.ID)
	a.own(m.ID)
	add(t, a.open(m.ID, "history.jsonl"), "1")
	if err := a.Announce(m, false); err != nil {
		t.Fatal(err)
	}
	if got := <-met; got != m.Handle {
		t.Errorf("met %s", got)
	}
	a.Release(m.ID, false)
	b.own(m.ID) // and so it has a folder there, too

	b.Release(m.ID, false)
	a.own(m.ID)
	if err := os.RemoveAll(a.folder(m.ID)); err != nil {
		t.Fatal(err)
	}
	if err := a.Retire(m.ID); err != nil {
		t.Fatal(err)
	}
	if got := <-parted; got != m.ID {
		t.Errorf("parted %s", got)
	}
	until(t, "the folder is moved away", func() bool { return !disk.Exists(b.folder(m.ID)) })
	if err := b.Acquire(m.ID); err == nil {
		t.Error("a removed agent is acquired where it has no folder")
	}
	if id, err := b.Claim(d.Key(), "another"); err != nil || id != "another" {
		t.Errorf("the address leads to %s, %v", id, err)
	}
	if handle, err := b.Number(m.Handle, "another"); err != nil || handle != "" {
		t.Errorf("the handle was given again: %q, %v", handle, err)
	}

	if err := os.Rename(filepath.Join(b.root, "away", m.ID), b.folder(m.ID)); err != nil {
		t.Fatal(err)
	}
	if err := b.Acquire(m.ID); !errors.Is(err, message.ErrUnknownAgent) || disk.Exists(b.folder(m.ID)) {
		t.Errorf("a folder that was left over makes a removed agent again: %v", err)
	}
	b.make(m.ID)
	add(t, b.open(m.ID, "history.jsonl"), "new")
	b.own(m.ID)
	b.Release(m.ID, false)
	a.own(m.ID)
	if got, err := os.ReadFile(a.path(m.ID, "history.jsonl")); err != nil || string(got) != "new\n" {
		t.Errorf("the new agent has %q, %v", got, err)
	}
}

// A removal that the servers did not hear of whole is finished by the next who tries it, and by
// whoever wants the agent.
func TestFailedWithdrawal(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	d := address.Descriptor{Type: address.User, Connector: "x", ChannelID: "one"}
	m := address.Meta{ID: cuid.New(), Handle: "0/", Descriptor: d}
	if id, err := a.Claim(d.Key(), m.ID); err != nil || id != m.ID {
		t.Fatal(id, err)
	}
	a.make(m.ID)
	a.own(m.ID)
	if err := a.Announce(m, false); err != nil {
		t.Fatal(err)
	}
	until(t, "the other machine knows it", func() bool { return len(b.Agents()) == 1 })
	if err := os.RemoveAll(a.folder(m.ID)); err != nil {
		t.Fatal(err)
	}

	here := a.cards.away
	a.cards.away = func() bool { return true }
	if err := a.Retire(m.ID); !errors.Is(err, disk.ErrAway) {
		t.Errorf("retired without the servers: %v", err)
	}
	if len(a.Agents()) != 1 {
		t.Error("the machine has forgotten what the servers have not")
	}
	a.cards.away = here
	if err := b.Acquire(m.ID); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("a removed agent is acquired: %v", err)
	}
	until(t, "both machines have forgotten it", func() bool { return len(a.Agents())+len(b.Agents()) == 0 })
	if id, err := b.Claim(d.Key(), "another"); err != nil || id != "another" {
		t.Errorf("the address leads to %s, %v", id, err)
	}
	if err := a.cards.withdraw(m.ID); err != nil {
		t.Errorf("withdrawn again: %v", err)
	}
	if id, err := a.Claim(d.Key(), "third"); err != nil || id != "another" {
		t.Errorf("the address leads to %s, %v", id, err)
	}
}

// A request to another machine is an ordinary one: its body may be large, and its answer streams.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	more := make(chan string)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			w.Header().Set("X-Caller", r.Header.Get("X-Caller"))
			w.WriteHeader(http.StatusAccepted)
			if _, err := io.Copy(w, r.Body); err != nil {
				t.Error(err)
			}
		case "/stream":
			for {
				select {
				case text := <-more:
					if _, err := io.WriteString(w, text); err != nil {
						return
					}
				case <-r.Context().Done():
					close(more)
					return
				}
			}
		}
	})
	go func() {
		_ = b.Answer(t.Context(), func(caller []byte, r *http.Request) (*http.Response, error) {
			r.Header.Set("X-Caller", string(caller))
			return serveInto(handler, r), nil
		})
	}()
	ask := func(method, path, body string) (resp *http.Response) {
		until(t, "the machine answers", func() bool {
			r, err := http.NewRequestWithContext(t.Context(), method, "http://x"+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			resp, err = a.Ask(b.boot, []byte(`"me"`), r)
			return err == nil
		})
		return resp
	}

	for _, size := range []int{0, 10, 3 << 20} {
		body := strings.Repeat("x", size)
		resp := ask(http.MethodPost, "/echo?a=b", body)
		got, err := io.ReadAll(resp.Body)
		if err != nil || string(got) != body || resp.StatusCode != http.StatusAccepted || resp.Header.Get("X-Caller") != `"me"` {
			t.Errorf("%d bytes: %d bytes come back, %d %v %v", size, len(got), resp.StatusCode, resp.Header, err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}

	resp := ask(http.MethodGet, "/stream", "")
	for _, text := range []string{"one", "two"} {
		more <- text
		got := make([]byte, 3)
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != text {
			t.Errorf("%q %v", got, err)
		}
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-more: // the handler ends when nobody reads it
	case <-time.After(30 * time.Second):
		t.Error("the handler works on for nobody")
	}

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Ask("nobody", nil, r); err == nil {
		t.Error("a machine that is not there answers")
	}
}

// An export of which a step fails leaves no workspace that has some of the agents, and can be
// tried again.
func TestFailedExports(t *testing.T) {
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := newHost(t, s)
	d := address.Descriptor{Type: address.User, Connector: "x", ChannelID: "one"}
	m := address.Meta{ID: cuid.New(), Handle: "0/", Descriptor: d}
	a.make(m.ID)
	a.own(m.ID)
	add(t, a.open(m.ID, "history.jsonl"), "1")
	if err := a.Announce(m, false); err != nil {
		t.Fatal(err)
	}
	file := cuid.New()
	err := errors.Join(a.Keep("file."+file+".reference", []byte(`{"name":"a.txt"}`)), a.Keep("file."+file+".content", []byte("text")))
	if err != nil {
		t.Fatal(err)
	}

	export := func(root string) error {
		_, err := Export(t.Context(), Config{Servers: []string{s.ClientURL()}, Root: root, Volume: disk.NewVolume(root), Covers: covered,
			Log: slog.New(slog.DiscardHandler)})
		return err
	}
	for _, fault := range []string{"eio", "emfile"} { // a volume remembers the first one
		crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
			root := t.TempDir()
			return func() error {
				failed := export(root)
				if !disk.Exists(filepath.Join(root, "agents")) { // else it is whole
					if err := export(root); err != nil {
						t.Errorf("after %v: %v", failed, err)
					}
				}
				for path, want := range map[string]string{"agents/" + m.ID + "/history.jsonl": "1\n", "files/" + file + "__a.txt": "text"} {
					if data, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(data) != want {
						t.Errorf("after %v %s has %q, %v", failed, path, data, err)
					}
				}
				return failed
			}
		}, "export.unlink")
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "agents"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := export(root); err == nil {
		t.Error("exported over a folder of agents")
	}
}

// meanwhile is a store of which something happens between two answers, once.
type meanwhile struct {
	store
	happens func()
}

func (m *meanwhile) read(ctx context.Context, unit string) ([]logged, error) {
	m.happens()
	m.happens = func() {}
	return m.store.read(ctx, unit)
}

// While agents are exported they work on: their logs are shortened, and some are removed.
func TestExportOfAgentsThatWork(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := newHost(t, s)
	ids := map[string]func(id string){
		"shortened": func(id string) {
			u := a.owned[id]
			u.mu.Lock()
			u.written, u.since = snapshotAt+1, snapshotAfter+1
			u.mu.Unlock()
			add(t, a.open(id, "inbox.jsonl"), "2")
			until(t, "the log is shortened", func() bool {
				log, err := a.store.read(t.Context(), id)
				return err == nil && len(log) > 0 && log[0].n > 1
			})
		},
		"removed": func(id string) {
			if err := a.Retire(id); err != nil {
				t.Error(err)
			}
		},
		"removed before": func(string) {},
	}
	for name, happens := range ids {
		id := cuid.New()
		a.make(id)
		a.own(id)
		add(t, a.open(id, "history.jsonl"), "1")
		if name == "removed before" {
			if err := a.Retire(id); err != nil {
				t.Fatal(err)
			}
		}
		root := t.TempDir()
		w := &workingCopy{root: root, vol: disk.NewVolume(root), covers: covered, log: slog.New(slog.DiscardHandler)}
		ok, err := w.export(t.Context(), &meanwhile{a.store, func() { happens(id) }}, id)
		data, rerr := os.ReadFile(filepath.Join(w.folder(id), "history.jsonl"))
		if err != nil || ok != (name == "shortened") || ok != (rerr == nil && string(data) == "1\n") {
			t.Errorf("%s: %v, %v, %q", name, ok, err, data)
		}
	}
}

// A machine that was away while an agent was removed does not bring it back.
func TestRestoreBringsNothingBack(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	d := address.Descriptor{Type: address.User, Connector: "x", ChannelID: "one"}
	m := address.Meta{ID: cuid.New(), Handle: "0/", Descriptor: d}
	if id, err := a.Claim(d.Key(), m.ID); err != nil || id != m.ID {
		t.Fatal(id, err)
	}
	if handle, err := a.Number(m.Handle, m.ID); err != nil || handle != m.Handle {
		t.Fatal(handle, err)
	}
	a.make(m.ID)
	a.own(m.ID)
	if err := a.Announce(m, false); err != nil {
		t.Fatal(err)
	}
	until(t, "the other machine knows it", func() bool { return len(b.Agents()) == 1 })
	if err := a.Retire(m.ID); err != nil {
		t.Fatal(err)
	}
	until(t, "the other machine has heard of it", func() bool { return len(b.Agents()) == 0 })

	late := &cards{keep: b.cards.keep, notes: b.cards.notes, known: map[string]card{m.ID: {Handle: m.Handle, Descriptor: d}}}
	late.restore(t.Context())
	now := &cards{keep: b.cards.keep, notes: b.cards.notes, known: map[string]card{}}
	if err := now.load(t.Context()); err != nil || len(now.known) > 0 {
		t.Errorf("the cluster has the agent %v again, %v", now.known, err)
	}
	if id, err := b.Claim(d.Key(), "another"); err != nil || id != "another" {
		t.Errorf("the address leads to %s, %v", id, err)
	}
}

// serveInto is the answer of a handler, as it comes.
func serveInto(h http.Handler, r *http.Request) *http.Response {
	ctx, cancel := context.WithCancel(r.Context())
	body, pipe := io.Pipe()
	w := &piped{header: http.Header{}, Writer: pipe, begun: make(chan int, 1)}
	go func() {
		h.ServeHTTP(w, r.WithContext(ctx))
		w.WriteHeader(http.StatusOK)
		pipe.Close()
	}()
	status := http.StatusOK
	select {
	case status = <-w.begun:
	case <-time.After(time.Second): // it has nothing to say yet
	}

	return &http.Response{StatusCode: status, Header: w.header, Body: ended{body, cancel}}
}

type piped struct {
	io.Writer
	header http.Header
	once   sync.Once
	begun  chan int
}

func (p *piped) Header() http.Header    { return p.header }
func (p *piped) WriteHeader(status int) { p.once.Do(func() { p.begun <- status }) }
func (p *piped) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.Writer.Write(b)
}

type ended struct {
	*io.PipeReader
	cancel func()
}

func (e ended) Close() error { e.cancel(); return e.PipeReader.Close() }

// leads has machines lead one thing, until ctx ends. What comes is the number of each that begins;
// ends end the wish of one of them to lead, and most is how many led at once.
func leads(ctx context.Context, hosts []*host) (led <-chan int, ends []context.CancelFunc, most *atomic.Int32, wait func()) {
	var leading atomic.Int32
	var ending sync.WaitGroup
	most = new(atomic.Int32)
	began := make(chan int, 100)
	for i, h := range hosts {
		h.tend()
		own, end := context.WithCancel(ctx)
		ends = append(ends, end)
		ending.Go(func() {
			_ = h.Lead(own, "bot", func(ctx context.Context) error {
				if n := leading.Add(1); n > most.Load() {
					most.Store(n)
				}
				began <- i
				<-ctx.Done()
				leading.Add(-1)
				return ctx.Err()
			})
		})
	}

	return began, ends, most, ending.Wait
}

// What was used on one machine was used on all.
func TestOnce(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	for i, h := range []*host{a, b, a} {
		if first, err := h.Once(t.Context(), "signature", fmt.Sprint("delivery ", i)); err != nil || first != "delivery 0" {
			t.Errorf("%q %v", first, err)
		}
	}
	if first, err := b.Once(t.Context(), "another", "x"); err != nil || first != "x" {
		t.Errorf("%q %v", first, err)
	}
	s.Shutdown()
	if _, err := b.Once(t.Context(), "third", "x"); !errors.Is(err, disk.ErrAway) {
		t.Errorf("without servers: %v", err)
	}
}

// Of several machines one at a time leads, and another goes on when it ends.
func TestLeases(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	var hosts []*host
	for range 3 {
		hosts = append(hosts, joinWith(t, s, t.TempDir(), time.Minute)) // so that no lease lapses
	}
	ctx, cancel := context.WithCancel(t.Context())
	led, ends, most, wait := leads(ctx, hosts)
	seen := map[int]bool{}
	for range hosts {
		n := <-led
		if seen[n] {
			t.Errorf("machine %d leads again", n)
		}
		seen[n] = true
		ends[n]()
	}
	cancel()
	wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d machines led at once", n)
	}
}

// counted counts what is asked of a bucket.
type counted struct {
	jetstream.KeyValue
	made, renewed atomic.Int32
}

func (c *counted) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	c.made.Add(1)
	return c.KeyValue.Create(ctx, key, value, opts...)
}

func (c *counted) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	c.renewed.Add(1)
	return c.KeyValue.Update(ctx, key, value, revision)
}

// A machine that waits for a lease asks for it when it may be free, and not again and again meanwhile.
func TestLeaseIsAwaitedInSilence(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	lasts := a.presence.lease
	holds := &counted{KeyValue: a.presence.store.handles.leases}
	waits := &counted{KeyValue: a.presence.store.handles.leases}
	first := lease{name: "x", boot: "first", ttl: lasts, kv: holds}
	if err := first.take(t.Context()); err != nil {
		t.Fatal(err)
	}
	done, kept := make(chan error), make(chan error, 1)
	go func() {
		_, err := first.keep(t.Context(), done)
		first.give()
		kept <- err
	}()
	second, taken := lease{name: "x", boot: "second", ttl: lasts, kv: waits}, make(chan error, 1)
	go func() { taken <- second.take(t.Context()) }()
	until(t, "it is renewed again and again", func() bool { return holds.renewed.Load() >= 12 })
	if n := waits.made.Load(); n > 4 { // once at first, and where this test was slow
		t.Errorf("asked for %d times", n)
	}
	done <- nil
	if err := errors.Join(<-kept, <-taken); err != nil {
		t.Error(err)
	}
}

// unrenewing is a bucket that refuses as many renewals.
type unrenewing struct {
	jetstream.KeyValue
	left int
}

func (r *unrenewing) Update(context.Context, string, []byte, uint64) (uint64, error) {
	if r.left--; r.left >= 0 {
		return 0, errors.New("refused")
	}
	return 1, nil
}

// A renewal that fails does not end a lease that lasts; where none works it ends before other machines may take it.
func TestRenewalsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kv := &unrenewing{left: 1}
		l := lease{name: "x", ttl: time.Minute, kv: kv, renewed: time.Now()}
		done := make(chan error, 1)
		time.AfterFunc(10*time.Minute, func() { done <- nil })
		if lost, err := l.keep(t.Context(), done); lost || err != nil {
			t.Errorf("after one that failed it is lost: %v, %v", lost, err)
		}

		kv.left, l.renewed = 1000, time.Now()
		lost, err := l.keep(t.Context(), done)
		if took := time.Since(l.renewed); !lost || err != nil || took <= l.ttl/2 || took >= l.ttl {
			t.Errorf("where all fail it is lost: %v, %v, after %v", lost, err, took)
		}
	})
}

// A machine that is cut off does not lead for ever.
func TestLeaseOfADeadMachine(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	hosts := []*host{newHost(t, s), newHost(t, s)}
	ctx, cancel := context.WithCancel(t.Context())
	led, _, _, wait := leads(ctx, hosts)
	first := <-led
	hosts[first].die()
	for n := range led {
		if n != first {
			break
		}
	}
	cancel()
	wait()
}

// Each agent is one machine's: of that which had it last.
func TestWhoHadAnAgent(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.cards.own, b.cards.own = "a", "b"
	m := address.Meta{ID: strings.Repeat("a", 24), Handle: "0/"}
	a.make(m.ID)
	if !a.Had(m.ID) || !b.Had(m.ID) {
		t.Error("an agent that the cluster does not know is not that of whoever has a folder of it")
	}
	for i, h := range []*host{a, b, a} {
		h.own(m.ID)
		if err := h.Announce(m, false); err != nil {
			t.Fatal(err)
		}
		h.Release(m.ID, false)
		other := []*host{b, a, b}[i]
		until(t, "the other one knows", func() bool { return !other.Had(m.ID) })
		if !h.Had(m.ID) {
			t.Errorf("owner %d does not have it", i)
		}
	}
}
