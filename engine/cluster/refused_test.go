package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"

	"daycare/engine/address"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/message"
)

// eachRefused runs an operation once for each request that it makes to the servers, which refuse that one, and once more
// without. The error has to say so.
func eachRefused(t *testing.T, w *clustertest.Way, least int, do func(n int) error) {
	t.Helper()
	someRefused(t, w, 1, least, do)
}

// someRefused is eachRefused for each request of so many.
func someRefused(t *testing.T, w *clustertest.Way, of, least int, do func(n int) error) {
	t.Helper()
	for n := 1; ; n += of {
		w.Refuse(n)
		err := do(n)
		met := w.Met()
		switch {
		case met == "" && err != nil:
			t.Fatalf("nothing was refused: %v", err)
		case met == "":
			if n <= least {
				t.Errorf("there are %d requests", n-1)
			}
			return
		case err != nil && !strings.Contains(err.Error(), clustertest.Refused) && !strings.HasPrefix(met, "$JS.API.DIRECT.GET."+streamName):
			t.Errorf("request %d, to %s, was refused: %v, want what servers say", n, met, err)
		}
		if n > 500 {
			t.Fatalf("it never ends: %v", err)
		}
	}
}

// elsewhere is how a process that is no machine reaches the servers, with root as its workspace.
func elsewhere(url, root string) Config {
	return Config{Servers: []string{url}, Root: root, Volume: disk.NewVolume(root), Covers: covered, Shared: sharedByTests,
		Lease: testLease, Log: slog.New(slog.DiscardHandler)}
}

// below are the files in a folder.
func below(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, rerr := filepath.Rel(root, path)
		all[filepath.ToSlash(rel)] = string(data)

		return errors.Join(err, rerr)
	})
	if err != nil {
		t.Fatal(err)
	}

	return all
}

// loaded brings an agent with a small file and a large one, a file that was attached, and files of all machines into a cluster.
func loaded(t *testing.T, s *server.Server) (want map[string]string) {
	t.Helper()
	large, file, id := strings.Repeat("large ", 20_000), cuid.New(), cuid.New()
	want = map[string]string{"files/" + file + ".json": `{"name":"a.txt"}` + "\n", "files/" + file + "__a.txt": "attached",
		"SOUL.md": "be kind", "memory/large.md": large, "cron/daily/runs.jsonl": "one\n"}
	one := newcomer("0/", address.Descriptor{Type: address.User, ID: id, Connector: "c", ChannelID: "room"}, "")
	one.Files = func() (map[string][]byte, error) {
		return map[string][]byte{"history.jsonl": []byte("hello\n"), "blobs/x": []byte(large)}, nil
	}
	if _, err := Import(t.Context(), elsewhere(s.ClientURL(), workspaceWith(t, want)), Load{Agents: []Newcomer{one},
		Arrived: func(Arrival) {}}); err != nil {
		t.Fatal(err)
	}
	want["agents/"+id+"/history.jsonl"], want["agents/"+id+"/blobs/x"] = "hello\n", large

	return want
}

// A machine that servers refuse something while it joins says what they say, or has all that it needs; then it joins.
func TestAJoinOfWhichARequestIsRefused(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	w := clustertest.WayTo(t, s)
	for n := 1; ; n++ {
		root := t.TempDir()
		c := elsewhere(w.URL, root)
		c.ID, c.Name = "id", fmt.Sprint("m", n)
		w.Refuse(n)
		m, err := Join(t.Context(), c)
		met := w.Met()
		w.Allow()
		if err != nil {
			where := strings.HasPrefix(met, "$JS.API.STREAM.") && !strings.Contains(err.Error(), "open ")
			if where || !strings.Contains(err.Error(), clustertest.Refused) || !strings.Contains(err.Error(), "join the cluster") {
				t.Errorf("request %d, to %s: %v", n, met, err)
			}
			continue
		}

		h := &host{Node: m, t: t, root: root, vol: c.Volume}
		h.make("one")
		h.own("one")
		if err := m.Announce(address.Meta{ID: hurt, Handle: "0/"}, false); err != nil || !m.knows(hurt) {
			t.Errorf("after request %d the machine knows the agent: %v, %v", n, m.knows(hurt), err)
		}
		h.Release("one", false)
		m.Close()
		if met == "" {
			if n < 12 {
				t.Errorf("there are %d requests", n-1)
			}
			return
		}
	}
}

// exportRefused: an export of which a request is refused says so, or it has all; tried again, it has.
func exportRefused(t *testing.T, of int) {
	t.Helper()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	want := loaded(t, s)
	w := clustertest.WayTo(t, s)
	someRefused(t, w, of, 20, func(n int) error {
		root := t.TempDir()
		_, err := Export(t.Context(), elsewhere(w.URL, root))
		if again := err; again != nil {
			w.Allow()
			if disk.Exists(filepath.Join(root, "agents")) {
				t.Errorf("request %d was refused (%v), and the folder of agents is there", n, err)
			}
			if _, again = Export(t.Context(), elsewhere(s.ClientURL(), root)); again != nil {
				t.Errorf("after request %d: %v", n, again)
			}
		}
		got := below(t, root)
		if !strings.Contains(got["agents/handles.jsonl"], `"0/"`) {
			t.Errorf("after request %d the handles are %q", n, got["agents/handles.jsonl"])
		}
		delete(got, "agents/handles.jsonl")
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("without request %d (-want +got):\n%.1000s", n, diff)
		}

		return err
	})
}

// importRefused: an import of which a request is refused says so, or it has brought all; done again, it brings what is
// missing, and nothing twice.
func importRefused(t *testing.T, of int) {
	t.Helper()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	w := clustertest.WayTo(t, s)
	m := newHost(t, s)
	large := strings.Repeat("large ", 20_000)
	ledgers := map[string]string{}
	for n := range 200 {
		ledgers[fmt.Sprintf("cron/%d/runs.jsonl", n)] = "one\n"
	}
	if _, err := Import(t.Context(), elsewhere(s.ClientURL(), workspaceWith(t, ledgers)), Load{}); err != nil {
		t.Fatal(err)
	}

	someRefused(t, w, of, 25, func(n int) error {
		file, id, child := cuid.New(), cuid.New(), cuid.New()
		files := map[string]string{"files/" + file + ".json": `{"name":"a.txt"}`, "files/" + file + "__a.txt": "attached",
			fmt.Sprintf("memory/%d.md", n): fmt.Sprint(n), fmt.Sprintf("memory/large%d.md", n): large + fmt.Sprint(n),
			fmt.Sprintf("cron/%d/runs.jsonl", n): "two\n"}
		d := address.Descriptor{Type: address.User, ID: id, Connector: "c", ChannelID: id}
		one := newcomer(fmt.Sprintf("%d/", n), d, "hello\n")
		one.Open = true
		other := newcomer(fmt.Sprintf("%d/3", n), address.Descriptor{Type: address.Subagent, ID: child, ParentAgentID: id}, "")
		other.Files = func() (map[string][]byte, error) { return map[string][]byte{"blobs/x": []byte(large + child)}, nil }
		load := Load{Agents: []Newcomer{one, other}, Arrived: func(Arrival) {}}
		root := workspaceWith(t, files)
		_, err := Import(t.Context(), elsewhere(w.URL, root), load)
		if err != nil {
			w.Allow()
			if _, err := Import(t.Context(), elsewhere(s.ClientURL(), root), load); err != nil {
				t.Errorf("after request %d: %v", n, err)
			}
		}

		until(t, "the machine knows the agents", func() bool { return m.knows(id) && m.knows(child) })
		if all := m.Agents(); all[id].Handle != fmt.Sprintf("%d/", n) || all[child].Handle != fmt.Sprintf("%d/3", n) {
			t.Errorf("after request %d the handles are %q and %q", n, all[id].Handle, all[child].Handle)
		}
		if got, err := m.Claim(d.Key(), cuid.New()); err != nil || got != id {
			t.Errorf("after request %d its address leads to %q, %v", n, got, err)
		}
		for agent, name := range map[string]string{id: "history.jsonl", child: "blobs/x"} {
			there, err := m.newest(t.Context(), m.store, agent, damagedIn)
			if err != nil {
				t.Fatal(err)
			}
			data, err := there[name].bytes(t.Context(), m.store)
			if text := string(data); err != nil || len(there) != 1 || text != "hello\n" && text != large+child {
				t.Errorf("after request %d agent %s has %d files, %d bytes, %v", n, agent, len(there), len(data), err)
			}
		}
		if e, err := m.presence.store.handles.owners.Get(t.Context(), id); err != nil || !strings.Contains(string(e.Value()), "left") {
			t.Errorf("after request %d nobody looks after what has work left: %v", n, err)
		}
		if data, ok, err := m.Fetch("file." + file + ".content"); !ok || err != nil || string(data) != "attached" {
			t.Errorf("after request %d what was attached is %q, %v", n, data, err)
		}
		m.hasInBucket(files, map[string]string{fmt.Sprintf("cron/%d/runs.jsonl", n): "two\none\n"})

		return err
	})
}

// hasInBucket checks what belongs to all machines; other are names whose content is another one.
func (m *host) hasInBucket(files, other map[string]string) {
	m.t.Helper()
	all := maps.Clone(files)
	maps.Copy(all, other)
	for name, want := range all {
		if !m.files.covers(name) {
			continue
		}
		until(m.t.(*testing.T), name+" is in the bucket", func() bool { _, known := m.files.of(name); return known })
		f, _ := m.files.of(name)
		if data, err := m.files.content(m.t.Context(), f); err != nil || f.SHA != sum([]byte(want)) {
			m.t.Errorf("%s has %.40q, %v", name, data, err)
		}
	}
}

// A repair of which a request is refused says so, or has mended the log; done again, it has.
func TestARepairOfWhichARequestIsRefused(t *testing.T) {
	t.Parallel()
	for name, folder := range map[string]bool{"from a folder": true, "from the log": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clustertest.Serve(t, clustertest.Store(t), 0)
			w := clustertest.WayTo(t, s)
			a := join(t, s, t.TempDir())
			large := strings.Repeat("large ", 20_000)
			eachRefused(t, w, 15, func(n int) error {
				id := strings.Repeat("a", 20) + fmt.Sprintf("%04d", n)
				a.make(id + "/blobs")
				err := errors.Join(os.WriteFile(a.path(id, "history.jsonl"), []byte("hello\n"), 0o600),
					os.WriteFile(a.path(id, "blobs/x"), []byte(large), 0o600))
				a.own(id)
				if err = errors.Join(err, a.Announce(address.Meta{ID: id, Handle: id}, false)); err != nil {
					t.Fatal(err)
				}
				a.Release(id, false)
				if folder {
					err = a.store.purge(t.Context(), id, 1<<62)
				} else { // a message that does not follow
					newest, lerr := a.store.last(t.Context(), id)
					_, err = a.store.publish(t.Context(), id, newest.seq, logged{n: newest.n + 1, owner: "x", id: "x",
						body: encode([]segment{content(opAppend, "history.jsonl", 99, []byte("x"))}), ending: ending{released: true}})
					err = errors.Join(err, lerr, os.RemoveAll(a.folder(id)))
				}
				if err != nil {
					t.Fatal(err)
				}

				first := mending(t, w.URL, id)
				w.Allow()
				until(t, "it is mended", func() bool { return mending(t, s.ClientURL(), id) == nil })
				files, err := a.newest(t.Context(), a.store, id, time.Second)
				blob, berr := files["blobs/x"].bytes(t.Context(), a.store)
				if err != nil || berr != nil || string(files["history.jsonl"].tail) != "hello\n" || string(blob) != large {
					t.Errorf("after request %d the log has %d files, %d bytes, %v, %v (%v)", n, len(files), len(blob), err, berr, first)
				}

				return nil
			})
		})
	}
}

// mending repairs an agent.
func mending(t *testing.T, url, id string) (failed error) {
	t.Helper()
	c := elsewhere(url, t.TempDir())
	c.Lease = 50 * time.Millisecond // it reads those that are there, and waits for no others
	r := Repair{Write: true, Only: []string{id}, HoleFor: 50 * time.Millisecond, Found: func(d Damage) { failed = d.Err }}
	_, err := r.Run(t.Context(), c)

	return errors.Join(err, failed)
}

// lifeRefused: whatever request is refused while an agent lives, from its address to its removal: each step says so or is
// done, and done again it is right.
func lifeRefused(t *testing.T, of int) {
	t.Helper()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	w := clustertest.WayTo(t, s)
	b := newHost(t, s)
	a := joinWith(t, s, t.TempDir(), testLease, func(c *Config) { c.Servers = []string{w.URL} })
	large := strings.Repeat("large ", 20_000)
	someRefused(t, w, of, 25, func(n int) error {
		id := cuid.New()
		d := address.Descriptor{Type: address.User, Connector: "x", ChannelID: id}
		do := func(what string, op func() error) {
			t.Helper()
			err := op()
			if met := w.Met(); err != nil && met != "" {
				err = op()
			}
			if err != nil {
				t.Fatalf("%s, without request %d, to %s: %v", what, n, w.Met(), err)
			}
		}
		owned := func() error { return a.Acquire(id) }
		do("claim", func() error { got, err := a.Claim(d.Key(), id); return either(err, got == id) })
		do("number", func() error {
			got, err := a.Number(fmt.Sprintf("%d/", n), id)
			return either(err, got == fmt.Sprintf("%d/", n))
		})
		a.make(id + "/blobs")
		do("acquire", owned)
		l := a.open(id, "history.jsonl")
		add(t, l, "1")
		a.vol.WriteFile("state", a.path(id, "blobs/x"), []byte(large))
		u := a.owned[id]
		u.mu.Lock()
		u.since = snapshotAfter + 1
		u.mu.Unlock()
		add(t, l, "2", "3") // and it is shortened
		l.Close()
		do("announce", func() error {
			return a.Announce(address.Meta{ID: id, Handle: fmt.Sprintf("%d/", n), Descriptor: d}, false)
		})
		a.Release(id, true)
		do("acquire again", owned)
		a.Release(id, false)
		refused := w.Met()
		if _, err := b.presence.store.handles.owners.Get(t.Context(), id); err == nil && refused == "" {
			t.Errorf("an agent that was given up is one to look after")
		}
		do("acquire once more", owned)
		a.Release(id, false)

		until(t, "the other machine has it", func() bool { return b.Acquire(id) == nil })
		blob, err := os.ReadFile(b.path(id, "blobs/x"))
		if got := b.lines(id, "history.jsonl"); strings.Join(got, " ") != "1 2 3" || err != nil || string(blob) != large {
			t.Errorf("without request %d, to %s, the other machine has %q and %d bytes, %v", n, refused, got, len(blob), err)
		}
		b.Release(id, false)
		do("acquire at last", owned)
		if err := os.RemoveAll(a.folder(id)); err != nil {
			t.Fatal(err)
		}
		if err := a.Retire(id); err != nil && w.Met() == "" {
			t.Errorf("retired: %v", err)
		}
		until(t, "all have forgotten it", func() bool {
			gone := b.Acquire(id) // whoever wants it ends what was left
			return errors.Is(gone, message.ErrUnknownAgent) && !a.knows(id) && !b.knows(id)
		})
		if got, err := b.Claim(d.Key(), "another"); err != nil || got != "another" {
			t.Errorf("without request %d, to %s, its address leads to %q, %v", n, w.Met(), got, err)
		}

		return nil
	})
}

// either is err, or an error if what was expected is not so.
func either(err error, ok bool) error {
	if err == nil && !ok {
		err = errors.New("it is another one")
	}
	return err
}

// A log whose end servers have lost is written again from its owner's folder, whatever request of that is refused.
func TestALogThatIsWrittenAgainWhileARequestIsRefused(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	w := clustertest.WayTo(t, s)
	b := newHost(t, s)
	a := joinWith(t, s, t.TempDir(), testLease, func(c *Config) { c.Servers = []string{w.URL} })
	large := strings.Repeat("large ", 20_000)
	eachRefused(t, w, 3, func(n int) error {
		id := cuid.New()
		a.make(id + "/blobs")
		if err := os.WriteFile(a.path(id, "blobs/x"), []byte(large), 0o600); err != nil {
			t.Fatal(err)
		}
		w.Allow()
		a.own(id)
		l := a.open(id, "history.jsonl")
		add(t, l, "1", "2")
		if err := b.store.purge(t.Context(), id, 1<<62); err != nil {
			t.Fatal(err)
		}
		w.Refuse(n)
		add(t, l, "3")
		met := w.Met()
		l.Close()
		a.Release(id, false)
		w.Allow()
		a.own(id)
		a.Release(id, false)
		b.own(id)
		blob, err := os.ReadFile(b.path(id, "blobs/x"))
		if got := b.lines(id, "history.jsonl"); strings.Join(got, " ") != "1 2 3" || err != nil || string(blob) != large {
			t.Errorf("without request %d, to %s, there are %q and %d bytes, %v", n, met, got, len(blob), err)
		}
		b.Release(id, false)

		return nil
	})
}

// What belongs to all machines is shared, taken and merged, whatever request of that is refused: the machine tries again.
func TestSharedFilesOfWhichARequestIsRefused(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	w := clustertest.WayTo(t, s)
	b := newHost(t, s)
	a := joinWith(t, s, t.TempDir(), testLease, func(c *Config) { c.Servers = []string{w.URL} })
	agreeing(t, a, b, "refused", func(n int) (met func() bool) {
		w.Refuse(n)
		return func() bool { met := w.Met() != ""; w.Allow(); return met }
	})
}

// agreeing brings files of two machines together in each way that there is, while the nth thing fails for the first one: it
// says so, and what it tries again is right.
func agreeing(t *testing.T, a, b *host, how string, fails func(n int) (met func() bool)) {
	large := strings.Repeat("large ", 20_000)
	for _, way := range []struct{ what, ours, before, theirs, want, aside string }{
		{"shared", "ours", "", "", "ours", ""},
		{"shared, and large", large, "", "", large, ""},
		{"taken", "", "", "theirs", "theirs", ""},
		{"taken, and large", "", "", large, large, ""},
		{"changed here", "ours", "before", "before", "ours", ""},
		{"changed there", "before", "before", "theirs", "theirs", ""},
		{"removed here", "", "before", "before", "", ""},
		{"removed there", "before", "before", "", "", ""},
		{"changed on both", "ours", "before", "theirs", "theirs", "ours"},
		{"a ledger", "1\n2\n", "", "1\n3\n", "1\n2\n3\n", ""},
	} {
		for n := 1; ; n++ {
			name := fmt.Sprintf("memory/%s/%s %d.md", how, way.what, n)
			if way.what == "a ledger" {
				name = fmt.Sprintf("cron/%s%d/runs.jsonl", how, n)
			}
			step := func(h *host, text string) {
				t.Helper()
				h.save(name, text)
				until(t, "it is agreed on", func() bool { return h.files.agree(t.Context(), name) == nil })
			}
			heard := func(h *host, text string) {
				t.Helper()
				until(t, "the machine hears of it", func() bool {
					f, known := h.files.of(name)
					return known && f.SHA == sum([]byte(text)) || f.SHA == "" && text == ""
				})
			}
			if way.before != "" {
				step(a, way.before)
				heard(b, way.before)
				step(b, way.before)
			}
			if way.theirs != way.before {
				step(b, way.theirs)
				heard(a, way.theirs)
			}
			a.save(name, way.ours)
			met := fails(n)
			err := a.files.agree(t.Context(), name)
			came := met()
			if err != nil && !came {
				t.Errorf("%s: %v", way.what, err)
			}
			until(t, way.what+" is agreed on", func() bool { return a.files.agree(t.Context(), name) == nil })
			heard(b, way.want)
			until(t, "the other machine has it", func() bool {
				return b.files.agree(t.Context(), name) == nil && b.has(name) == way.want
			})
			if got := a.has(name); got != way.want {
				t.Errorf("%s, where thing %d failed (%v): the machine has %.40q, want %.40q", way.what, n, err, got, way.want)
			}
			kept := a.asides(name)
			if way.aside == "" && len(kept) > 0 || way.aside != "" && (len(kept) == 0 || kept[0] != way.aside) {
				t.Errorf("%s, where thing %d failed (%v): kept are %.40q, want %q", way.what, n, err, kept, way.aside)
			}
			if !came {
				break
			}
			if n > 100 {
				t.Fatal("it never ends")
			}
		}
	}
}
