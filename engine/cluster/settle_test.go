package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/address"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// An agent that was removed from a cluster can be imported again; one whose handle cannot be had gets the next that is free.
func TestImportedAgain(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := newHost(t, s)
	bring := func(one Newcomer) (got Arrival) {
		t.Helper()
		load := Load{Agents: []Newcomer{one}, Arrived: func(a Arrival) { got = a }}
		if _, err := Import(t.Context(), elsewhere(s.ClientURL(), t.TempDir()), load); err != nil {
			t.Fatal(err)
		}
		return got
	}
	one := newcomer("7/", address.Descriptor{Type: address.User, ID: cuid.New(), Connector: "c", ChannelID: "room"}, "hello\n")
	if got := bring(one); got.Handle != "7/" || got.Kept != "" {
		t.Errorf("arrived is %+v", got)
	}
	if _, err := a.presence.store.handles.owners.Get(t.Context(), one.ID); !errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("some machine is to look after an agent without work: %v", err)
	}
	until(t, "the machine knows it", func() bool { return a.knows(one.ID) })
	a.own(one.ID)
	before, err := a.store.last(t.Context(), one.ID)
	if err == nil {
		err = errors.Join(os.RemoveAll(a.folder(one.ID)), a.Retire(one.ID))
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := bring(one); got.Handle != "7/" || got.Kept != "" {
		t.Errorf("arrived again is %+v", got)
	}
	after, err := a.store.last(t.Context(), one.ID)
	if err != nil || after.n <= before.n || after.retired {
		t.Errorf("its log ends with %+v, %v", after, err)
	}
	a.own(one.ID)
	if got := a.lines(one.ID, "history.jsonl"); !slices.Equal(got, []string{"hello"}) {
		t.Errorf("its history is %q", got)
	}

	child := newcomer("7/2", address.Descriptor{Type: address.Subagent, ID: cuid.New(), ParentAgentID: one.ID}, "child\n")
	if got := bring(child); got.Handle != "7/2" || got.Kept != "" {
		t.Errorf("a child that comes later is %+v", got)
	}
	for handle, want := range map[string]string{"99999999999999999999/": "0/", "x/": "1/", "": "2/"} {
		other := newcomer(handle, address.Descriptor{Type: address.User, ID: cuid.New(), Connector: "c", ChannelID: handle + "hall"}, "")
		if got := bring(other); got.Handle != "0/" && got.Handle != "1/" && got.Handle != "2/" {
			t.Errorf("instead of %q the handle is %q, want one like %q", handle, got.Handle, want)
		}
	}
}

// changing is a bucket of which a value changes before one is removed.
type changing struct {
	jetstream.KeyValue
	change func(key string)
}

func (c changing) Delete(ctx context.Context, key string, opts ...jetstream.KVDeleteOpt) error {
	c.change(key)
	return c.KeyValue.Delete(ctx, key, opts...)
}

// What belongs to an agent that is there, or that was made again meanwhile, is not withdrawn.
func TestNothingElseIsWithdrawn(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	d := address.Descriptor{Type: address.User, Connector: "x", ChannelID: "one"}
	m := address.Meta{ID: cuid.New(), Handle: "0/", Descriptor: d}
	if _, err := a.Claim(d.Key(), m.ID); err != nil {
		t.Fatal(err)
	}
	a.make(m.ID)
	a.own(m.ID)
	if err := a.Announce(m, false); err != nil {
		t.Fatal(err)
	}
	agents := a.presence.store.handles.agents
	leads := func(want string) {
		t.Helper()
		if id, err := a.Claim(d.Key(), "another"); err != nil || id != want {
			t.Errorf("the address leads to %q, %v, want %q", id, err, want)
		}
	}
	if err := a.withdraw(m.ID); err != nil || !a.knows(m.ID) {
		t.Errorf("an agent that is there is withdrawn: %v", err)
	}
	leads(m.ID)
	for name, other := range map[string]string{ownerKey + sum([]byte(d.Key())): "another", ownerKey + sum([]byte("missing")): m.ID} {
		if err := a.giveBack(t.Context(), name, other); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	leads(m.ID)

	if err := errors.Join(os.RemoveAll(a.folder(m.ID))); err != nil {
		t.Fatal(err)
	}
	changed := map[string]bool{}
	a.cards.keep.handles.agents = changing{agents, func(key string) {
		value, err := agents.Get(t.Context(), key)
		if err == nil {
			_, err = agents.Put(t.Context(), key, value.Value())
		}
		if err != nil {
			t.Error(err)
		}
		changed[key] = true
	}}
	err := a.Retire(m.ID)
	a.cards.keep.handles.agents = agents
	if err != nil || len(changed) != 2 || !a.knows(m.ID) {
		t.Errorf("withdrawn while %d values change: %v; it is known: %v", len(changed), err, a.knows(m.ID))
	}
	leads(m.ID)
	if err := a.withdraw(m.ID); err != nil || a.knows(m.ID) {
		t.Errorf("withdrawn at last: %v", err)
	}
	leads("another")
}

// Which machine had an agent last is what all of those say that were there lately; an agent that is new to the cluster asks
// nobody.
func TestWhatMachinesHad(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	young := joinWith(t, s, t.TempDir(), time.Minute)
	young.make("new")
	if err := young.Acquire("new"); err != nil {
		t.Errorf("a new agent: %v", err)
	}
	young.Close()

	a := newHost(t, s)
	check := func(upTo uint64) error { return memory{a.Node}.check(t.Context(), "one", had{a.Boot(), upTo}) }
	a.make("one")
	if err := check(0); err != nil {
		t.Errorf("a new one: %v", err)
	}
	for n := range 3 {
		err := check(uint64(1))
		if n == 1 { // the cluster knows it
			a.cards.mu.Lock()
			a.cards.known["one"] = card{}
			a.cards.mu.Unlock()
			err = check(0)
		}
		if n == 2 {
			a.cards.forget("one", 0)
			os.RemoveAll(a.folder("one"))
			err = check(0)
		}
		if !a.presence.sure() && !errors.Is(err, disk.ErrAway) {
			t.Errorf("before it knows who is there, %d: %v", n, err)
		}
	}

	until(t, "who is there is known", a.presence.sure)
	says := make(chan string, 1)
	sub, err := a.conn.Subscribe(hadSubject, func(m *nats.Msg) {
		select {
		case text := <-says:
			_ = m.Respond([]byte(text))
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	a.presence.mu.Lock()
	a.presence.seen["ghost"] = time.Now().Add(-goneAfter / 2)
	a.presence.mu.Unlock()
	ghost := func(n uint64) string { return string(jsonOf(had{"ghost", n})) }
	for _, test := range []struct{ says, want string }{{ghost(4), ""}, {ghost(5), ""}, {ghost(6), "ghost"}, {"{", "broken"}} {
		says <- test.says
		err := check(5)
		there, elsewhere := errors.AsType[*message.Elsewhere](err)
		switch test.want {
		case "ghost":
			if !elsewhere || there.Node != "ghost" {
				t.Errorf("of %s: %v", test.says, err)
			}
		case "broken":
			if err == nil || elsewhere || errors.Is(err, disk.ErrAway) {
				t.Errorf("of %s: %v", test.says, err)
			}
		default:
			if err != nil {
				t.Errorf("of %s: %v", test.says, err)
			}
		}
	}
	unsubscribed(sub)
	if err := check(5); !errors.Is(err, disk.ErrAway) {
		t.Errorf("of a machine that does not answer: %v", err)
	}
	a.presence.mu.Lock()
	a.presence.seen["ghost"] = time.Now().Add(-goneAfter)
	a.presence.mu.Unlock()
	if err := check(5); err != nil {
		t.Errorf("of a machine that is gone: %v", err)
	}
}

// A log of more messages than are asked for at a time is read whole, with what is damaged in it.
func TestALongLogIsRead(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	store := a.presence.store
	if log, err := store.read(t.Context(), "one"); err != nil || len(log) > 0 {
		t.Errorf("a log that is not there has %d messages, %v", len(log), err)
	}
	const many = readAtOnce + 7
	in, subject := store.handles.logs.of("one")
	last := uint64(0)
	for n := range many {
		m := logged{n: uint64(n + 1), owner: "o", id: fmt.Sprint(n), body: encode([]segment{content(opAppend, "a", 0, nil)})}
		var err error
		if last, err = store.publish(t.Context(), "one", last, m); err != nil {
			t.Fatal(err)
		}
	}
	log, err := store.read(t.Context(), "one")
	if err != nil || len(log) != many || log[many-1].n != many || log[many-1].seq != last {
		t.Fatalf("read are %d messages, %v", len(log), err)
	}
	for i, m := range log {
		if m.n != uint64(i+1) {
			t.Fatalf("message %d is number %d", i, m.n)
		}
	}
	if _, err := store.js.Publish(t.Context(), subject, []byte("torn")); err != nil {
		t.Fatal(err)
	}
	lenient, err := store.leniently(t.Context(), "one")
	if err != nil || len(lenient) != many+1 || lenient[many-1].err != nil || !errors.Is(lenient[many].err, errDamaged) {
		t.Errorf("with what is damaged there are %d messages, %v", len(lenient), err)
	}
	if log, err := store.read(t.Context(), "one"); !errors.Is(err, errDamaged) || log != nil {
		t.Errorf("read are %d messages, %v", len(log), err)
	}
	if err := store.purge(t.Context(), "one", last); err != nil {
		t.Error(err)
	}
	if info, err := in.Info(t.Context(), jetstream.WithSubjectFilter(subject)); err != nil || info.State.Subjects[subject] != 2 {
		t.Errorf("left are %v, %v", info, err)
	}
}

// slow is a store that knows more of a log each time.
type slow struct {
	store
	heads []logged
	logs  [][]logged
	err   error
}

func (b *slow) last(context.Context, string) (logged, error) {
	head := b.heads[0]
	if len(b.heads) > 1 {
		b.heads = b.heads[1:]
	}
	return head, b.err
}

func (b *slow) read(context.Context, string) ([]logged, error) {
	log := b.logs[0]
	if len(b.logs) > 1 {
		b.logs = b.logs[1:]
	}
	return log, b.err
}

// A server that is behind is asked again, for a while; one that knows enough is not, and neither is one that fails.
func TestServersThatAreBehind(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		store *slow
		ctx   context.Context
		n     uint64
		err   error
	}{
		"enough":   {&slow{heads: []logged{{n: 3}}}, ended, 3, nil},
		"retired":  {&slow{heads: []logged{{n: 1, ending: ending{retired: true}}}}, ended, 1, nil},
		"late":     {&slow{heads: []logged{{}, {n: 2}, {n: 4}}}, t.Context(), 4, nil},
		"too late": {&slow{heads: []logged{{n: 2}}}, t.Context(), 2, nil},
		"the end":  {&slow{heads: []logged{{n: 2}}}, ended, 0, context.Canceled},
		"fails":    {&slow{heads: []logged{{n: 2}}, err: errRefused}, t.Context(), 2, errRefused},
	} {
		if head, err := (links{store: test.store}).caughtUp(test.ctx, "one", 3); head.n != test.n || !errors.Is(err, test.err) {
			t.Errorf("%s: %+v, %v", name, head, err)
		}
	}

	log := messages(content(opPut, "state.json", 0, []byte("1")), content(opPut, "inbox.jsonl", 0, []byte("x")), segment{Op: opClaim})
	torn := slices.Clone(log)
	torn[0].body = []byte("x")
	for name, test := range map[string]struct {
		store *slow
		ctx   context.Context
		files int
		err   error
	}{
		"up to a claim": {&slow{logs: [][]logged{log}}, ended, 2, nil},
		"late":          {&slow{logs: [][]logged{nil, log[:1], log[1:2], log[:2]}}, t.Context(), 2, nil},
		"a hole":        {&slow{logs: [][]logged{log[1:2]}}, ended, 0, errHole},
		"torn":          {&slow{logs: [][]logged{torn}}, t.Context(), 0, errDamaged},
		"fails":         {&slow{logs: [][]logged{nil}, err: errRefused}, t.Context(), 0, errRefused},
	} {
		files, err := links{store: test.store}.readLog(test.ctx, "one", 20, covered)
		if len(files) != test.files || !errors.Is(err, test.err) {
			t.Errorf("%s: %d files, %v", name, len(files), err)
		}
	}
}

// The folder of a removed agent in the trash is a new one should it come back: it has no mark.
func TestAFolderInTheTrashHasNoMark(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	a.own("one")
	dir, other := filepath.Join(a.root, "trash", "2020-one"), filepath.Join(a.root, "trash", "2020-two")
	err := errors.Join(os.Mkdir(filepath.Join(a.root, "trash"), 0o700), os.Rename(a.folder("one"), dir), os.Mkdir(other, 0o700),
		os.WriteFile(filepath.Join(other, markName), []byte("{}"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if m, err := readMark(dir); err != nil || m.N == 0 {
		t.Fatalf("it has %+v, %v", m, err)
	}
	if err := a.Retire("one"); err != nil {
		t.Fatal(err)
	}
	if disk.Exists(filepath.Join(dir, markName)) || !disk.Exists(dir) || !disk.Exists(filepath.Join(other, markName)) {
		t.Error("the marks are not what they should be")
	}
	if _, owned := a.owned["one"]; owned {
		t.Error("it is owned")
	}
}

// A repair is of machines whose words it understands, of the agents that it was asked for, and from a folder that there is.
func TestWhoIsAskedInARepair(t *testing.T) {
	t.Parallel()
	d := newDamaged(t)
	d.closed()
	d.b.Release(hurt, false)
	d.lose(func(all []uint64) []uint64 { return all[:1] })
	nodes := d.c.presence.store.handles.nodes
	for name, o := range map[string]offer{"empty": {Machine: "empty", N: 2000}, "older": {Machine: "older", N: 1, Folder: true}} {
		_, err := d.c.conn.Subscribe(offerSubject+name, func(m *nats.Msg) { _ = m.Respond(jsonOf(o)) })
		if err == nil {
			_, err = nodes.Put(t.Context(), name, jsonOf(machine{Name: name}))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	run := func(only ...string) (found []Damage, n int, err error) {
		r := Repair{Only: only, HoleFor: 100 * time.Millisecond, Found: func(one Damage) { found = append(found, one) }}
		n, err = r.Run(t.Context(), elsewhere(d.s.ClientURL(), t.TempDir()))
		return found, n, err
	}
	found, n, err := run()
	folders := []string{filepath.Base(d.a.root), filepath.Base(d.b.root)} // both have all, with what is left of the log
	if err != nil || n != 1 || len(found) != 1 || found[0].Of != 2000 || found[0].UpTo >= 2000 || !slices.Contains(folders, found[0].From) {
		t.Errorf("of %d found %+v, %v", n, found, err)
	}
	if found, n, err := run(hurt); err != nil || n != 1 || len(found) != 1 {
		t.Errorf("of one %d found %+v, %v", n, found, err)
	}
	if _, err := nodes.Put(t.Context(), "newer", []byte("[]")); err != nil {
		t.Fatal(err)
	}
	if found, _, err := run(); !errors.Is(err, errVersion) || len(found) > 0 {
		t.Errorf("with a newer machine found %+v, %v", found, err)
	}

	for agent, want := range map[string]bool{hurt: true, "nothing": false} {
		if o, err := (offers{d.b.Node}).answer(demand{Agent: agent, Quick: true}); err != nil || o.Folder != want || (o.N > 0) != want {
			t.Errorf("of %s is offered %+v, %v", agent, o, err)
		}
	}
}

// Whoever listens gets the cards that are there, with what changes and what is removed.
func TestCardsAreTold(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("a", 24)
	c := &cards{known: map[string]card{}, notes: slog.New(slog.DiscardHandler)}
	put := func(v any) noted {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return noted{key: cardKey + id, value: string(data)}
	}
	c.note(put(card{Handle: "0/"})) // nobody listens
	c.note(noted{key: cardKey + id, removed: true})
	c.note(put(card{Handle: "1/"}))
	var told []string
	c.listen(func(a Agent) { told = append(told, "met "+a.Handle) }, func(id string) { told = append(told, "parted "+id) })
	for _, e := range []noted{put(card{Handle: "2/"}), {key: cardKey + "x", value: "{}"}, {key: handleKey + "2/", value: id},
		{key: cardKey + id, value: "["}} {
		c.note(e)
	}
	if all := c.Agents(); len(all) != 1 || all[id].Handle != "2/" || !c.knows(id) {
		t.Errorf("known are %+v", all)
	}
	c.note(noted{key: cardKey + id, removed: true})
	if want := []string{"met 1/", "met 2/", "parted " + id}; !slices.Equal(told, want) || c.knows(id) || len(c.Agents()) > 0 {
		t.Errorf("told is %q, want %q; known are %v", told, want, c.Agents())
	}

	c.own = "me"
	for last, want := range map[string]bool{"": true, "me": true, "other": false} {
		c.known[id] = card{Last: last}
		if got := c.Had(id); got != want {
			t.Errorf("an agent of %q is had here: %v", last, got)
		}
	}
	for i := range deepest + 10 { // a circle, as an edit can make it
		c.known[fmt.Sprint(i)] = card{Descriptor: address.Descriptor{ParentAgentID: fmt.Sprint((i + 1) % (deepest + 10))}}
	}
	if got := c.machine("0"); got != "" {
		t.Errorf("an agent in a circle works on %q", got)
	}
}

// A repair of which one request is refused finds what is wrong, or says that it could not look.
func TestExaminedWhileARequestIsRefused(t *testing.T) {
	t.Parallel()
	d := newDamaged(t)
	d.closed()
	d.b.Release(hurt, false)
	d.lose(func(all []uint64) []uint64 { return all[:1] })
	w := clustertest.WayTo(t, d.s)
	a := joinWith(t, d.s, t.TempDir(), testLease, func(c *Config) { c.Servers = []string{w.URL} })
	r := &Repair{HoleFor: time.Nanosecond, store: a.presence.store, conf: Config{Covers: covered}}
	for n := 1; ; n++ {
		w.Refuse(n)
		found, _, err := r.examine(t.Context(), address.Meta{ID: hurt})
		met := w.Met()
		w.Allow()
		if err == nil && found.Reason == "" {
			t.Errorf("without request %d, to %s, nothing is wrong", n, met)
		}
		if met == "" {
			if n < 4 {
				t.Errorf("there are %d requests", n-1)
			}
			break
		}
	}

	r = &Repair{store: a.presence.store, conf: Config{Lease: time.Minute}}
	time.AfterFunc(200*time.Millisecond, a.conn.Close)
	if err := r.meet(t.Context()); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("met without a connection: %v, %v", r.nodes, err)
	}
}

// While servers do not answer, a machine does not have what all have, and waits for it.
func TestCaughtUpWithoutServers(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := newHost(t, s)
	a.make("one")
	s.Shutdown()
	until(t, "the connection is lost", func() bool { return !a.conn.IsConnected() })
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := a.files.caughtUp(ctx); !errors.Is(err, disk.ErrAway) || ctx.Err() == nil {
		t.Errorf("it has what all have: %v", err)
	}
	r := &Repair{store: a.presence.store, conf: Config{Covers: covered}}
	if reason, err := r.wrong(t.Context(), "one"); err == nil || reason != "" {
		t.Errorf("what is wrong with a log: %q, %v", reason, err)
	}
}

// A shared file that becomes a link, a folder or too large here does not count as removed: the others keep it.
func TestASharedFileThatIsNoneAnyMore(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	for name, become := range map[string]func(path string) error{
		"link":   func(path string) error { return os.Symlink(a.root, path) },
		"folder": func(path string) error { return os.Mkdir(path, 0o700) },
		"large":  func(path string) error { return os.WriteFile(path, make([]byte, sharedMost+1), 0o600) },
	} {
		name = "memory/" + name
		a.save(name, "shared")
		if err := a.files.agree(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(a.root, name)
		if err := errors.Join(os.Remove(path), become(path)); err != nil {
			t.Fatal(err)
		}
		if err := a.files.agree(t.Context(), name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if f, known := a.files.of(name); !known || f.SHA != sum([]byte("shared")) || !disk.Exists(path) {
			t.Errorf("%s: others have %+v, and it is here: %v", name, f, disk.Exists(path))
		}
	}
}

// A machine that keeps its shared files again hears of changes in all folders again.
func TestTendedAgain(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	stop := a.tend()
	for n := range 4 {
		text := fmt.Sprint("text", n)
		a.save("memory/a/x.md", text)
		until(t, text+" is shared", func() bool {
			f, known := a.files.of("memory/a/x.md")
			return known && f.SHA == sum([]byte(text))
		})
		if n == 1 { // the first change after it is found by a look at all files, the next one is not
			stop()
			if err := a.files.agree(t.Context(), "memory/a/x.md"); err != nil { // the stop may have come before the servers' answer
				t.Fatal(err)
			}
			stop = a.tend()
		}
	}
	stop()
}

// What belongs to all machines cannot be exported without servers.
func TestSharedFilesAreNotExportedWithoutServers(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.Close()
	if err := exportShared(t.Context(), a.presence.store, elsewhere("", t.TempDir())); err == nil {
		t.Error("they are exported")
	}
	if _, _, err := importShared(t.Context(), a.presence.store, elsewhere("", t.TempDir())); err == nil {
		t.Error("they are imported")
	}
}

// Machines that reported lately are waited for; a process whose machine was started again is not.
func TestWhoWasThereLately(t *testing.T) {
	t.Parallel()
	type sighting struct {
		id  string // of the machine
		age time.Duration
	}
	const lease, within = time.Minute, time.Hour
	for name, test := range map[string]struct {
		seen []sighting
		want int
	}{
		"alive":                  {[]sighting{{"a", 0}, {"b", 0}, {"", 0}}, 3},
		"silent":                 {[]sighting{{"a", 0}, {"b", 2 * lease}, {"", 2 * lease}}, 3},
		"gone":                   {[]sighting{{"a", 0}, {"b", within}, {"", within}}, 1},
		"started again":          {[]sighting{{"a", 0}, {"a", 2 * lease}, {"b", 2 * lease}}, 2},
		"again, and silent":      {[]sighting{{"a", 2 * lease}, {"a", 3 * lease}}, 2},
		"again within the lease": {[]sighting{{"a", 0}, {"a", lease / 2}}, 2},
		"without an id":          {[]sighting{{"", 0}, {"", 2 * lease}}, 2},
	} {
		p := newPresence("0", "a", lease, nil, nil)
		for i, one := range test.seen {
			boot := fmt.Sprint(i)
			p.seen[boot], p.says[boot] = time.Now().Add(-one.age), machine{ID: one.id}
		}
		if got := (memory{&Node{presence: p}}).lately(within); got != test.want {
			t.Errorf("%s: %d are waited for, want %d", name, got, test.want)
		}
	}
}
