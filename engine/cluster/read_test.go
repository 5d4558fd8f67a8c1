package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/crash"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/watch"
)

// vanishing has a file of an agent be removed while its folder is read for the nth time.
func (m *host) vanishing(agent, name string, n int) {
	m.t.Helper()
	before := m.covers
	m.covers = func(one string) bool {
		if one == name {
			if n--; n == 0 {
				os.Remove(m.path(agent, name))
			}
		}
		return before(one)
	}
	m.t.Cleanup(func() { m.covers = before })
}

// A folder that cannot be read whole is not claimed: its agent would lose what is missing.
func TestAFolderThatCannotBeReadIsNotClaimed(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := newHost(t, s)
	const name = "history.jsonl"
	for n := 1; n <= 4; n++ {
		agent := fmt.Sprint("agent", n)
		a.make(agent)
		if err := os.WriteFile(a.path(agent, name), []byte("1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if n > 2 { // the cluster has it already
			a.own(agent)
			a.Release(agent, false)
		}
		before, err := a.store.last(t.Context(), agent)
		if err != nil {
			t.Fatal(err)
		}
		a.vanishing(agent, name, 1+(n-1)%2)
		err = a.Acquire(agent)
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is acquired: %v", agent, err)
		}
		if _, owned := a.owned[agent]; owned {
			t.Errorf("%s is owned", agent)
		}
		if after, err := a.store.last(t.Context(), agent); n == 1 && (err != nil || after.seq != before.seq) {
			t.Errorf("its log ends with %+v, %v", after, err)
		}
	}

	a.make("marked/" + markName)
	if err := a.Acquire("marked"); err == nil {
		t.Error("an agent is acquired whose mark cannot be read")
	}
	if newest, err := a.store.last(t.Context(), "marked"); err != nil || newest.seq > 0 {
		t.Errorf("its log has %+v, %v", newest, err)
	}
	if _, err := (offers{a.Node}).answer(demand{Agent: "marked"}); err == nil {
		t.Error("a folder is offered whose mark cannot be read")
	}
	if _, err := (offers{a.Node}).answer(demand{Agent: "marked", Quick: true}); err == nil {
		t.Error("what is noted of a folder is offered, and cannot be read")
	}
}

// An agent whose folder cannot be read whole, or whose contents the servers do not take, is not given up: the next owner would
// not have all of it.
func TestAFolderThatIsNotReplicatedIsNotGivenUp(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	var said saying
	a := joinWith(t, s, t.TempDir(), testLease, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&said, nil)) })
	for agent, fails := range map[string]func(agent string){
		"unread":  func(agent string) { a.vanishing(agent, "history.jsonl", 1) },
		"refused": func(string) { a.store = &failing{store: a.store, left: 1} },
		"removed": func(agent string) { os.RemoveAll(a.folder(agent)) },
	} {
		a.make(agent)
		a.own(agent)
		add(t, a.open(agent, "history.jsonl"), "1")
		if err := os.WriteFile(a.path(agent, "state.json"), bytes.Repeat([]byte("x"), inlineMost+1), 0o600); err != nil {
			t.Fatal(err)
		}
		before := a.store
		fails(agent)
		a.Release(agent, false)
		a.store = before
		if text := said.String(); !strings.Contains(text, "agent="+agent+" ") || !strings.Contains(text, "not given up") {
			t.Errorf("of %s it says %q", agent, text)
		}
		if newest, err := a.store.last(t.Context(), agent); err != nil || newest.released {
			t.Errorf("%s is given up: %v", agent, err)
		}
		if e, err := a.presence.store.handles.owners.Get(t.Context(), agent); err != nil || !strings.Contains(string(e.Value()), a.Boot()) {
			t.Errorf("nobody looks after %s: %v, %v", agent, e, err)
		}
		if m, err := readMark(a.folder(agent)); agent != "removed" && (err != nil || !m.Owned) {
			t.Errorf("the folder of %s is marked %+v, %v", agent, m, err)
		}
	}
}

// What was edited in a file that the log has is replicated with the claim; where servers do not take it, the agent is not owned.
func TestAnEditOfWhatTheLogHas(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := newHost(t, s)
	for i, text := range []string{"small", strings.Repeat("large", inlineMost)} {
		agent := fmt.Sprint("agent", i)
		a.make(agent)
		if err := os.WriteFile(a.path(agent, "state.json"), []byte("before"), 0o600); err != nil {
			t.Fatal(err)
		}
		a.own(agent)
		a.Release(agent, false)
		if err := os.WriteFile(a.path(agent, "state.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		before := a.store
		a.store = refusing{before}
		err := a.Acquire(agent)
		a.store = before
		if _, owned := a.owned[agent]; (err == nil) != (text == "small") || owned != (err == nil) {
			t.Errorf("an edit of %d bytes: %v; owned: %v", len(text), err, owned)
		}
		if !somewhere(t, a.root, "state.json", text) {
			t.Errorf("an edit of %d bytes is gone", len(text))
		}
		files, err := a.newest(t.Context(), a.store, agent, time.Second)
		want := "before" // it is the claim alone
		if text == "small" {
			want = text
		}
		if got := string(files["state.json"].tail); err != nil || got != want {
			t.Errorf("the log has %q, %v", got, err)
		}
	}
}

// refusing is a store that keeps no contents.
type refusing struct{ store }

var errRefused = errors.New("seeded by a test")

func (refusing) put(context.Context, string, []byte) error { return errRefused }

// More files than a message can name are one object, which has to be kept before it is named.
func TestManyFilesAreKeptOrRefused(t *testing.T) {
	t.Parallel()
	segments := []segment{{Op: opSnapshot}}
	for n := range 10 {
		segments = append(segments, content(opPut, fmt.Sprintf("blobs/%d", n), 0, bytes.Repeat([]byte{'x'}, inlineMost)))
	}
	if list, err := fit(t.Context(), refusing{}, segments); !errors.Is(err, errRefused) {
		t.Errorf("%d segments, %v", len(list), err)
	}
}

// crowded is a store in which another machine comes first with the nth message.
type crowded struct {
	store
	n    int
	crux func()
}

func (c *crowded) publish(ctx context.Context, unit string, expect uint64, m logged) (uint64, error) {
	if c.n--; c.n == 0 {
		c.crux()
	}
	return c.store.publish(ctx, unit, expect, m)
}

// overtakes appends a message of another machine to the log of an agent.
func (m *host) overtakes(s store, agent string) {
	m.t.Helper()
	newest, err := s.last(m.t.Context(), agent)
	if err == nil {
		_, err = s.publish(m.t.Context(), agent, newest.seq, logged{n: newest.n + 1, owner: "other", id: cuid.New(),
			body: encode([]segment{{Op: opClaim}})})
	}
	if err != nil {
		m.t.Error(err)
	}
}

// A machine that is replaced while it claims an agent, or removes it, does not have it, and takes nothing from the other one.
func TestReplacedInBetween(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := newHost(t, s)
	a.make("one")
	a.own("one")
	a.Release("one", false)
	if err := os.WriteFile(a.path("one", "state.json"), []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	before := a.store
	a.store = &crowded{store: before, n: 2, crux: func() { a.overtakes(before, "one") }}
	err := a.Acquire("one")
	a.store = before
	if _, owned := a.owned["one"]; !errors.Is(err, disk.ErrFenced) || owned {
		t.Errorf("acquired: %v; owned: %v", err, owned)
	}

	a.make("two")
	a.own("two")
	add(t, a.open("two", "history.jsonl"), "1")
	u, _, _ := a.unit(a.path("two", "history.jsonl"))
	a.overtakes(before, "two")
	if _, err := a.presence.store.noteOwner(t.Context(), "two", owner{Boot: "other"}); err != nil {
		t.Fatal(err)
	}
	if err := u.renew(); !errors.Is(err, disk.ErrFenced) {
		t.Errorf("renewed: %v", err)
	}
	if err := a.Retire("two"); !errors.Is(err, disk.ErrFenced) {
		t.Errorf("removed: %v", err)
	}
	if log, err := before.read(t.Context(), "two"); err != nil || len(log) < 3 || log[len(log)-1].owner != "other" {
		t.Errorf("the log has %d messages, %v", len(log), err)
	}
	if e, err := a.presence.store.handles.owners.Get(t.Context(), "two"); err != nil || !strings.Contains(string(e.Value()), "other") {
		t.Errorf("its owner is noted as %v, %v", e, err)
	}
}

// stuck is a store that appends nothing.
type stuck struct{ store }

func (stuck) publish(context.Context, string, uint64, logged) (uint64, error) { return 0, errRefused }

// A claim that servers do not take in its time has failed.
func TestAClaimThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := (links{store: stuck{a.store}}).publishOnce(ctx, "one", 0, logged{n: 1, id: "x"}); !errors.Is(err, errRefused) {
		t.Errorf("published: %v", err)
	}
	for want := range 2 { // the answer comes, or is lost
		m := logged{n: uint64(want + 1), id: fmt.Sprint(want), owner: "x"}
		newest, err := a.store.last(t.Context(), "lost")
		if err != nil {
			t.Fatal(err)
		}
		seq, err := (links{store: &silent{store: a.store, left: want}}).publishOnce(t.Context(), "lost", newest.seq, m)
		if last, lerr := a.store.last(t.Context(), "lost"); err != nil || lerr != nil || last.seq != seq || last.id != m.id {
			t.Errorf("with %d lost answers it is at %d, %v; the log ends with %+v, %v", want, seq, err, last, lerr)
		}
	}
	before := a.store
	a.make("large")
	if err := os.WriteFile(a.path("large", "state.json"), bytes.Repeat([]byte("x"), inlineMost+1), 0o600); err != nil {
		t.Fatal(err)
	}
	a.store = refusing{before}
	all := state{files: map[string]file{"state.json": {tail: bytes.Repeat([]byte("x"), inlineMost+1)}, "inbox.jsonl": {}}}
	if err := a.write(t.Context(), demand{Agent: "large"}, all, "x"); !errors.Is(err, errRefused) {
		t.Errorf("written without its contents: %v", err)
	}
	all.files["state.json"] = file{object: "missing", base: 1}
	if err := a.write(t.Context(), demand{Agent: "large"}, all, "x"); err == nil {
		t.Error("written without a content that is lost")
	}
	if err := a.Acquire("large"); !errors.Is(err, errRefused) {
		t.Errorf("acquired without its contents: %v", err)
	}
	if newest, err := before.last(t.Context(), "large"); err != nil || newest.seq > 0 {
		t.Errorf("the log has %+v, %v", newest, err)
	}
	a.store = stuck{before}
	ctx, cancel = context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	err := a.claim(ctx, "one")
	a.store = before
	if _, owned := a.owned["one"]; err == nil || owned {
		t.Errorf("claimed: %v; owned: %v", err, owned)
	}
}

// What an owner has is written again from its folder only if all of it can be read: as much as the log had, and nothing else.
func TestASnapshotOfWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int64]string{0: "", 3: "123", 5: "12345", 6: "error"} {
		if data, err := readFirst(path, n); (err != nil) != (want == "error") || err == nil && string(data) != want {
			t.Errorf("the first %d bytes are %q, %v", n, data, err)
		}
	}

	a.make("one")
	a.own("one")
	add(t, a.open("one", "history.jsonl"), "1")
	u, _, _ := a.unit(a.path("one", "history.jsonl"))
	if err := os.Remove(a.path("one", "history.jsonl")); err != nil {
		t.Fatal(err)
	}
	for _, exact := range []bool{true, false} {
		if list, err := u.snapshot(exact); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("exact %v: %d segments, %v", exact, len(list), err)
		}
	}
	before, err := a.store.last(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "who is there is known", a.presence.sure)
	if at, err := u.seed(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("written again: %+v, %v", at, err)
	}
	if after, err := a.store.last(t.Context(), "one"); err != nil || after.seq != before.seq {
		t.Errorf("the log ends with %+v, %v", after, err)
	}
}

// A file of JSON that cannot be read, or is too large, is not followed, and stays in the log as it was.
func TestEditedButNotRead(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	a.own("one")
	if err := a.vol.WriteFile("state", a.path("one", "state.json"), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.path("one", "state.json"), []byte(`"`+strings.Repeat("x", followMost)+`"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Edited("one", "state.json"); !errors.Is(err, beneath.ErrTooLarge) {
		t.Errorf("an edit that is too large: %v", err)
	}
	files, err := a.newest(t.Context(), a.store, "one", time.Second)
	if err != nil || string(files["state.json"].tail) != "{}" {
		t.Errorf("the log has %q, %v", files["state.json"].tail, err)
	}
}

// A folder that a claim was cut while building is not part of the one that the next claim builds.
func TestAFolderOfACutClaim(t *testing.T) {
	root := t.TempDir()
	w := &workingCopy{root: root, vol: disk.NewVolume(root), covers: covered, log: slog.New(slog.DiscardHandler)}
	cut := filepath.Join(root, "agents", ".new-claim-one", "blobs")
	if err := errors.Join(os.MkdirAll(cut, 0o700), os.WriteFile(filepath.Join(cut, "old"), []byte("old"), 0o600)); err != nil {
		t.Fatal(err)
	}
	crash.Arm(t, "eacces@claim.unlink#1")
	if _, err := w.build(t.Context(), nil, "one", nil, mark{}); err == nil || disk.Exists(w.folder("one")) {
		t.Errorf("built beside what could not be removed: %v", err)
	}
	crash.Arm(t, "")
	if _, err := w.build(t.Context(), nil, "one", nil, mark{}); err != nil {
		t.Error(err)
	}
	if found, err := w.list(w.folder("one")); err != nil || len(found) > 0 {
		t.Errorf("the folder has %v, %v", found, err)
	}
}

// What cannot be synced is not said to be durable.
func TestAFolderThatIsNotSynced(t *testing.T) {
	root := workspaceWith(t, map[string]string{"agents/one/history.jsonl": "1", "agents/one/blobs/x": "x"})
	w := &workingCopy{root: root, vol: disk.NewVolume(root), covers: covered, log: slog.New(slog.DiscardHandler)}
	files := []string{"history.jsonl", "blobs/x"}
	if err := w.sync(w.folder("one"), files); err != nil {
		t.Error(err)
	}
	for _, step := range []string{"claim.sync#1", "claim.sync#2", "claim.dirsync#1", "claim.dirsync#2"} {
		crash.Arm(t, "eacces@"+step)
		if err := w.sync(w.folder("one"), files); err == nil {
			t.Errorf("%s fails, and all is durable", step)
		}
	}
}

// Whatever step fails while an old folder is kept beside older ones, each of them stays somewhere.
func TestFoldersThatAreKeptWhileAStepFails(t *testing.T) {
	eachStep(t, "eacces", 3, func(k int, arm func(), met func() bool) {
		root := t.TempDir()
		w := &workingCopy{root: root, vol: disk.NewVolume(root), covers: covered, log: slog.New(slog.DiscardHandler)}
		keep := func(text string) error {
			dir := w.folder("one")
			err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "state.json"), []byte(text), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			return w.moveAway("one", dir)
		}
		for _, text := range []string{"1", "2"} {
			if err := keep(text); err != nil {
				t.Fatal(err)
			}
		}
		arm()
		err := keep("3")
		if failed := met(); failed != (err != nil) {
			t.Errorf("at step %d: %v", k, err)
		}
		for _, text := range []string{"1", "2", "3"} {
			if !somewhere(t, root, "state.json", text) {
				t.Errorf("at step %d (%v) the folder with %q is gone", k, err, text)
			}
		}
	})
}

// Removed says whether an agent was removed elsewhere; while the servers do not say it, its folder stays.
func TestRemovedElsewhere(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	for _, agent := range []string{"one", "two"} {
		a.make(agent)
		a.own(agent)
		a.Release(agent, false)
	}
	b.own("one")
	if err := b.Retire("one"); err != nil {
		t.Fatal(err)
	}
	b.make("marked/" + markName)
	gone, err := b.outlived("marked", logged{n: 2, ending: ending{retired: true}})
	if err == nil || gone || !disk.Exists(b.folder("marked")) {
		t.Errorf("where the mark cannot be read: %v, %v", gone, err)
	}
	before := a.store
	a.store = &failing{store: before, left: 1}
	if gone, err := a.Removed(t.Context(), "one"); err == nil || gone {
		t.Errorf("without an answer: %v, %v", gone, err)
	}
	a.store = before
	for agent, want := range map[string]bool{"one": true, "two": false, "three": false} {
		if gone, err := a.Removed(t.Context(), agent); err != nil || gone != want || disk.Exists(a.folder(agent)) != (agent == "two") {
			t.Errorf("%s is removed: %v, %v", agent, gone, err)
		}
	}
}

// A repair that cannot keep what the servers have changes nothing; one whose machine does not write says so.
func TestARepairThatFails(t *testing.T) {
	t.Parallel()
	d := newDamaged(t)
	d.closed()
	d.b.Release(hurt, false)
	d.lose(func(all []uint64) []uint64 { return all[len(all)-3 : len(all)-2] })
	before := d.messages()
	run := func(root string) Damage {
		t.Helper()
		var found Damage
		r := Repair{Write: true, HoleFor: 100 * time.Millisecond, Found: func(one Damage) { found = one }}
		if _, err := r.Run(t.Context(), elsewhere(d.s.ClientURL(), root)); err != nil {
			t.Fatal(err)
		}
		return found
	}
	root := workspaceWith(t, map[string]string{"away": "no folder"})
	if found := run(root); found.Err == nil || !slices.Equal(d.messages(), before) {
		t.Errorf("where nothing can be kept: %+v, and the log has %v, had %v", found, d.messages(), before)
	}

	ghost := offer{Machine: "ghost", N: 999, Folder: true}
	_, err := d.c.conn.Subscribe(offerSubject+"ghost", func(m *nats.Msg) {
		answer := ghost
		if strings.Contains(string(m.Data), `"write":true`) {
			answer.Error = "no room"
		}
		_ = m.Respond(jsonOf(answer))
	})
	if err == nil {
		_, err = d.c.presence.store.handles.nodes.Put(t.Context(), "ghost", []byte(`{"name":"ghost"}`))
	}
	if err != nil {
		t.Fatal(err)
	}
	found := run(t.TempDir())
	if found.From != "ghost" || found.Err == nil || !strings.Contains(found.Err.Error(), "no room") || found.Kept == "" {
		t.Errorf("where the machine does not write: %+v", found)
	}
	if e, err := d.c.presence.store.handles.owners.Get(t.Context(), hurt); err == nil {
		t.Errorf("some machine is to look after it: %s", e.Value())
	}
}

// Servers that do not answer have not lost a log, and one that was not read whole has no damage.
func TestARepairWithoutAnswers(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	if err := os.WriteFile(a.path("one", "state.json"), bytes.Repeat([]byte("x"), inlineMost+1), 0o600); err != nil {
		t.Fatal(err)
	}
	a.own("one")
	r := &Repair{store: a.presence.store, conf: Config{Covers: covered}}
	if reason, err := r.wrong(t.Context(), "one"); err != nil || reason != "" {
		t.Errorf("what is wrong: %q, %v", reason, err)
	}
	for n := 1; n <= 2; n++ { // what is not answered is not a removed agent
		if files, err := a.newest(t.Context(), &failing{store: a.store, left: n}, "one", time.Second); err == nil {
			t.Errorf("without answer %d there are %d files", n, len(files))
		}
	}
	lost := strings.Repeat("y", inlineMost+1)
	a.make("two")
	if err := os.WriteFile(a.path("two", "state.json"), []byte(lost), 0o600); err != nil {
		t.Fatal(err)
	}
	a.own("two")
	if err := a.presence.store.handles.objects.Delete(t.Context(), sum([]byte(lost))); err != nil {
		t.Fatal(err)
	}
	if reason, err := r.wrong(t.Context(), "two"); err != nil || !strings.HasPrefix(reason, "state.json: ") {
		t.Errorf("what is wrong with a lost content: %q, %v", reason, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if reason, err := r.wrong(ended, "one"); !errors.Is(err, context.Canceled) || reason != "" {
		t.Errorf("after its end: %q, %v", reason, err)
	}
	a.Close()
	if reason, err := r.wrong(t.Context(), "one"); err == nil || reason != "" {
		t.Errorf("without servers: %q, %v", reason, err)
	}
	if _, _, err := r.examine(t.Context(), address.Meta{ID: "one"}); err == nil {
		t.Error("without servers it is examined")
	}
}

// A log that a newer version has continued is not offered as far as it is understood.
func TestANewerLogIsNotOffered(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	a.own("one")
	a.Release("one", false)
	_, subject := a.presence.store.handles.logs.of("one")
	newer := &nats.Msg{Subject: subject, Header: nats.Header{"D-V": {"9"}, "D-N": {"99"}}}
	if _, err := a.conn.RequestMsg(newer, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if o, err := (offers{a.Node}).answer(demand{Agent: "one"}); !errors.Is(err, errVersion) || o.Folder {
		t.Errorf("offered %+v, %v", o, err)
	}
}

// An import that is stopped, or whose files cannot be had, says so.
func TestAnImportThatStops(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	user := func(channel string) Newcomer {
		return newcomer("0/", address.Descriptor{Type: address.User, ID: cuid.New(), Connector: "c", ChannelID: channel}, "")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var arrived []Arrival
	load := Load{Agents: []Newcomer{user("room"), user("hall")}, Arrived: func(a Arrival) { arrived = append(arrived, a); cancel() }}
	if _, err := Import(ctx, elsewhere(s.ClientURL(), t.TempDir()), load); err == nil || len(arrived) != 1 {
		t.Errorf("arrived are %+v, %v", arrived, err)
	}

	large := strings.Repeat("line\n", inlineMost)
	files := map[string]string{"cron/daily/runs.jsonl": large}
	if _, err := Import(t.Context(), elsewhere(s.ClientURL(), workspaceWith(t, files)), Load{}); err != nil {
		t.Fatal(err)
	}
	a := newHost(t, s)
	if err := a.presence.store.handles.objects.Delete(t.Context(), sum([]byte(large))); err != nil {
		t.Fatal(err)
	}
	files["cron/daily/runs.jsonl"] = "another\n"
	if _, err := Import(t.Context(), elsewhere(s.ClientURL(), workspaceWith(t, files)), Load{}); err == nil {
		t.Error("the lines of a ledger are merged with those of one that is lost")
	}

	name := "cron/daily/runs.jsonl"
	until(t, "the machine has heard of the ledger", func() bool { _, known := a.files.of(name); return known })
	a.save(name, "another\n")
	a.files.base[name] = "before"
	if err := a.files.agree(t.Context(), name); err == nil || a.has(name) != "another\n" {
		t.Errorf("merged to %d bytes, %v", len(a.has(name)), err)
	}
	if f, _ := a.files.of(name); f.SHA != sum([]byte(large)) {
		t.Error("the bucket has another ledger")
	}
}

// What an export finds in the place of a file that belongs to all machines is kept beside it.
func TestAnExportKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	shared := map[string]string{"SOUL.md": "kind", "memory/a.md": "a", "memory/b.md": "b"}
	if _, err := Import(t.Context(), elsewhere(s.ClientURL(), workspaceWith(t, shared)), Load{}); err != nil {
		t.Fatal(err)
	}
	root := workspaceWith(t, map[string]string{"SOUL.md": "brief", "memory/a.md": "a"})
	same := filepath.Join(root, "memory", "a.md")
	if err := os.Chtimes(same, time.Time{}, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := Export(t.Context(), elsewhere(s.ClientURL(), root)); err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, root: root}
	for name, want := range shared {
		if got := h.has(name); got != want {
			t.Errorf("%s has %q", name, got)
		}
	}
	if got := h.asides("SOUL.md"); !slices.Equal(got, []string{"brief"}) || len(h.asides("memory/a.md")) > 0 {
		t.Errorf("kept are %q", got)
	}
	if info, err := os.Stat(same); err != nil || info.ModTime().Unix() != 1e9 {
		t.Errorf("what is the same was written again: %v, %v", info, err)
	}
}

// What cannot be read here is tried again a few times; then a leader continues without it. A file whose name is too long for this
// machine is one.
func TestSharedFilesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	until(t, "all is known", func() bool { _, _, whole := a.files.take(); return whole })
	a.save("memory/short.md", "")
	name := "memory/" + strings.Repeat("x", 300) + ".md"
	if err := a.files.agree(t.Context(), name); err == nil {
		t.Error("a file that cannot be read is agreed on")
	}
	a.files.heardTo = 7
	for n := 1; n <= 2*sharedTries; n++ {
		if n == sharedTries+1 {
			a.files.heardTo = 9
		}
		if n == 1 {
			a.files.note(name) // it is looked at until it is settled
		}
		if a.files.settle(t.Context()) {
			t.Error("it is settled")
		}
		want := uint64(0)
		if n >= sharedTries {
			want = 7
		}
		if n == 2*sharedTries {
			want = 9
		}
		if got := a.files.triedTo; got != want {
			t.Errorf("after %d tries files are settled up to %d, want %d", n, got, want)
		}
	}
}

// A removed file takes the folders along that it leaves empty, and no others.
func TestFoldersThatARemovedFileLeaves(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	for _, dir := range []string{"memory/deep/er", "memory/full/empty"} {
		if err := os.MkdirAll(filepath.Join(a.root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	a.save("memory/full/kept.md", "kept")
	for _, name := range []string{"memory/deep/er/gone.md", "memory/full/empty/gone.md", "memory/gone.md"} {
		a.files.tidy(name)
	}
	for dir, want := range map[string]bool{"memory": true, "memory/deep": false, "memory/full": true, "memory/full/empty": false} {
		if disk.Exists(filepath.Join(a.root, dir)) != want {
			t.Errorf("%s: want that it is there: %v", dir, want)
		}
	}
}

// What other machines are answered with ends with its context, and fails without servers.
func TestWhatAnswersOtherMachinesEnds(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	post := func(context.Context, string, inbox.Item) (message.Receipt, error) {
		return message.Receipt{Seq: 1}, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Serve(ctx, post) }()
	until(t, "it answers", func() bool { _, err := b.Forward(t.Context(), a.Boot(), "one", inbox.Item{}); return err == nil })
	select {
	case err := <-ended:
		t.Fatalf("ended before its time: %v", err)
	default:
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	until(t, "it does not answer after its end", func() bool {
		_, err := b.Forward(t.Context(), a.Boot(), "one", inbox.Item{})
		return errors.As(err, new(*message.Elsewhere))
	})

	for subject, serve := range map[string]func(context.Context) error{
		itemSubject: func(ctx context.Context) error {
			return a.ServeItems(ctx, func(context.Context, string, string) (event.Posted, error) { return event.Posted{}, nil })
		},
		askSubject: func(ctx context.Context) error {
			return a.Answer(ctx, func([]byte, *http.Request) (*http.Response, error) { return nil, errRefused })
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- serve(ctx) }()
		asked := func() error {
			_, err := b.conn.Request(subject+a.Boot(), []byte(`{"method":"GET"}`), time.Second)
			return err
		}
		until(t, "it answers", func() bool { return asked() == nil })
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s ended with %v", subject, err)
		}
		until(t, subject+" is not answered any more", func() bool { return errors.Is(asked(), nats.ErrNoResponders) })
	}

	a.Close()
	for name, serve := range map[string]func() error{
		"items": func() error { return a.Serve(t.Context(), post) }, "requests": func() error { return a.Answer(t.Context(), nil) },
		"what was had": func() error { return memory{a.Node}.tell() }, "what is offered": func() error { return offers{a.Node}.tell() },
	} {
		if err := serve(); err == nil {
			t.Errorf("%s are answered without a connection", name)
		}
	}
}

// Who has read an answer whole says nothing more to the machine that gave it; who closes it earlier says so once.
func TestAnAnswerIsClosed(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	for pieces, want := range map[int]int{1: 1, 2: 0} {
		stops, inbox, name := make(chan string, 10), a.conn.NewInbox(), cuid.New()
		n := 0
		_, err := a.conn.Subscribe(inbox, func(m *nats.Msg) {
			if len(m.Data) > 0 {
				stops <- string(m.Data)
				return
			}
			p := piece("some", pieceHead, `{"status":200}`)
			if n++; n == 2 {
				p = piece("more", pieceEnd, "1")
			}
			_ = m.RespondMsg(p)
		})
		if err == nil {
			_, err = a.conn.Subscribe(askSubject+name, func(m *nats.Msg) { _ = m.Respond([]byte(inbox)) })
		}
		if err != nil {
			t.Fatal(err)
		}
		resp, err := a.Ask(name, []byte(`"me"`), newRequest(t.Context(), t, nil))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 4*pieces)
		for at := 0; at < len(got); {
			k, err := resp.Body.Read(got[at:])
			if err != nil {
				t.Fatal(err)
			}
			at += k
		}
		if err := errors.Join(resp.Body.Close(), resp.Body.Close(), a.conn.Flush()); err != nil {
			t.Error(err)
		}
		if _, err := a.conn.Request(inbox, []byte("last"), 100*time.Millisecond); err == nil {
			t.Error("it is answered")
		}
		count := 0
		for len(stops) > 0 {
			if <-stops == "stop" {
				count++
			}
		}
		if count != want {
			t.Errorf("after %d of 2 pieces %d stops are said, want %d", pieces, count, want)
		}
	}
	_, err := a.Ask("nobody", []byte(`"me"`), newRequest(t.Context(), t, nil))
	if there, ok := errors.AsType[*message.Elsewhere](err); !ok || err.Error() != there.Error() {
		t.Errorf("of a machine that is not there: %v", err)
	}
}

// Where a version of a shared file cannot be kept aside it stays, whatever step fails.
func TestAnExportThatCannotKeepWhatIsThere(t *testing.T) {
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	shared := map[string]string{"SOUL.md": "kind"}
	if _, err := Import(t.Context(), elsewhere(s.ClientURL(), workspaceWith(t, shared)), Load{}); err != nil {
		t.Fatal(err)
	}
	root := workspaceWith(t, map[string]string{"SOUL.md": "brief"})
	crash.Arm(t, "eacces@commons.write#1")
	if _, err := Export(t.Context(), elsewhere(s.ClientURL(), root)); err == nil {
		t.Error("exported")
	}
	if h := (&host{t: t, root: root}); h.has("SOUL.md") != "brief" || disk.Exists(filepath.Join(root, "agents")) {
		t.Errorf("it has %q", h.has("SOUL.md"))
	}
}

// What a crash left half done in a folder of shared files is ended when a machine joins; where that fails it does not join.
func TestLeftOversOfSharedFiles(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	root := workspaceWith(t, map[string]string{"memory/a/.tmp-x.md-1": "half", "cron/x.md": "whole"})
	a := join(t, s, root)
	if disk.Exists(filepath.Join(root, "memory/a/.tmp-x.md-1")) || a.has("cron/x.md") != "whole" {
		t.Error("what was left half done is there, or what was whole is not")
	}
	a.Close()
	until(t, "it is gone", func() bool { return s.NumClients() == 0 })
	for _, name := range []string{"memory/a/.tmp-x.md-1/y", ".tmp-SOUL.md-1/y"} {
		root := workspaceWith(t, map[string]string{name: "no file"})
		if n, err := Join(t.Context(), elsewhere(s.ClientURL(), root)); err == nil || !strings.Contains(err.Error(), ".tmp-") {
			t.Errorf("joined with %s: %v, %v", name, n, err)
		}
		until(t, "its connection is closed", func() bool { return s.NumClients() == 0 })
	}
}

// A shared file is one that no link of the user leads to.
func TestWhichSharedFilesAreHere(t *testing.T) {
	t.Parallel()
	root := workspaceWith(t, map[string]string{"memory/a.md": "a", "memory/empty.md": "", "memory/folder/x": "x", "elsewhere/b.md": "b"})
	err := errors.Join(os.Symlink(filepath.Join(root, "elsewhere/b.md"), filepath.Join(root, "memory/link.md")),
		os.Symlink(filepath.Join(root, "elsewhere"), filepath.Join(root, "memory/links")))
	if err != nil {
		t.Fatal(err)
	}
	s := &sharing{root: root, log: slog.New(slog.DiscardHandler)}
	for name, want := range map[string]string{"memory/a.md": "a", "memory/empty.md": "", "memory/missing.md": "missing",
		"none/x.md":     "missing",
		"memory/folder": "other", "memory/a.md/b": "other", "memory/link.md": "other", "memory/links/b.md": "other", "": "other",
		"memory/" + strings.Repeat("x", 300): "error"} {
		data, ok, err := s.here(name)
		got := string(data)
		switch {
		case err != nil:
			got = "error"
		case !ok:
			got = "other"
		case data == nil:
			got = "missing"
		}
		if got != want || ok && err != nil {
			t.Errorf("%.20q is %q, %v, %v", name, got, ok, err)
		}
	}
}

// A file of which a hint says that it was changed is looked at, also where neither its size nor its time show it.
func TestHintsOfSharedFiles(t *testing.T) {
	t.Parallel()
	root := workspaceWith(t, map[string]string{"memory/a.md": "1", "memory/b/c.md": "1", "memory/.git/x": "", "cron/files/x": ""})
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{"memory/a.md", "memory/b/c.md"} {
		if err := os.Chtimes(filepath.Join(root, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	s := newSharing(*sharedByTests, Config{Root: root, Log: slog.New(slog.DiscardHandler)}, nil, nil)
	s.whole = true
	look := func(what string, want ...string) {
		t.Helper()
		s.lookAtHints(s)
		names, _, _ := s.take()
		if !slices.Equal(names, want) {
			t.Errorf("%s: looked at are %q, want %q", what, names, want)
		}
	}
	s.base["memory/gone.md"] = "x"
	s.begin(s)
	look("at first", "memory/a.md", "memory/b/c.md", "memory/gone.md")
	look("then")
	if got := slices.Sorted(maps.Keys(s.folders)); !slices.Equal(got, []string{"cron", "memory", "memory/b"}) {
		t.Errorf("watched are %q", got)
	}
	hear := s.hinted(s, "memory", ".")
	hear(watch.Hint{Names: []string{"a.md"}})
	look("after a hint", "memory/a.md")
	hear(watch.Hint{Names: []string{"b"}})
	look("after a hint of a folder")
	hear(watch.Hint{Overflow: true})
	look("after too many hints", "memory/gone.md")
	if err := os.RemoveAll(filepath.Join(root, "memory/b")); err != nil {
		t.Fatal(err)
	}
	s.base["memory/b/c.md"] = "1"
	hear(watch.Hint{Names: []string{"b"}})
	look("after a folder is gone", "memory/b/c.md")
	if _, seen := s.seen["memory/b/c.md"]; seen || s.folders["memory/b"] || !s.folders["memory"] {
		t.Errorf("watched are %v, and seen %v", s.folders, s.seen)
	}
	top := s.hinted(s, ".", s.Tops...)
	top(watch.Hint{Overflow: true})
	look("after too many hints of all", "memory/b/c.md", "memory/gone.md")
	if err := os.Chtimes(filepath.Join(root, "memory/a.md"), old, old.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	top(watch.Hint{Overflow: true})
	look("after a change", "memory/a.md", "memory/b/c.md", "memory/gone.md")
}

// A machine whose lease was taken by another one stops what it does with it, and begins again when it has it.
func TestALostLease(t *testing.T) {
	t.Parallel()
	a := joinWith(t, clustertest.Serve(t, clustertest.Store(t), 0), t.TempDir(), testLease, func(c *Config) { c.Shared = nil })
	leases := a.presence.store.handles.leases
	begun, stopped := make(chan int, 10), make(chan error, 10)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		n := 0
		ended <- a.Lead(ctx, "bot", func(ctx context.Context) error {
			n++
			begun <- n
			<-ctx.Done()
			stopped <- ctx.Err()
			return ctx.Err()
		})
	}()
	<-begun
	if _, err := leases.Put(t.Context(), "bot", []byte("other")); err != nil {
		t.Fatal(err)
	}
	select {
	case <-stopped:
	case <-time.After(20 * time.Second):
		t.Fatal("it works on without its lease")
	}
	if boot, err := a.Leading(t.Context(), "bot"); err != nil || boot == a.Boot() {
		t.Errorf("%q leads, %v", boot, err)
	}
	if n := <-begun; n != 2 {
		t.Errorf("begun %d times", n)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	until(t, "it is given back", func() bool { boot, err := a.Leading(t.Context(), "bot"); return err == nil && boot == "" })
}

// A folder has what its own process wrote to the log, up to a message of another one, and what can be added of that.
func TestAStateFollowsALog(t *testing.T) {
	t.Parallel()
	appended := func(at int64, text string) []segment {
		return []segment{content(opAppend, "history.jsonl", at, []byte(text))}
	}
	var log []found
	for i, m := range []struct {
		owner    string
		segments []segment
	}{{"a", appended(0, "1")}, {"a", appended(1, "2")}, {"b", []segment{{Op: opClaim}}}, {"b", appended(2, "3")}, {"a", appended(3, "4")}} {
		log = append(log, found{logged: logged{n: uint64(i + 1), owner: m.owner}, segments: m.segments})
	}
	for boot, want := range map[string]uint64{"a": 2, "b": 0, "x": 0} {
		s := state{}
		if s.written(log, boot); s.n != want {
			t.Errorf("%s wrote up to %d, want %d", boot, s.n, want)
		}
	}
	s := state{n: 3}
	if s.written(log, "b"); s.n != 4 {
		t.Errorf("behind message 3 b wrote up to %d", s.n)
	}

	followed := func(change func(log []found) []found, begin state) (uint64, string) {
		if begin.files == nil {
			begin.files = map[string]file{}
		}
		begin.follow(t.Context(), contents{}, change(slices.Clone(log)), covered)
		return begin.n, string(begin.files["history.jsonl"].tail)
	}
	as := func(log []found) []found { return log }
	snapshot := []segment{{Op: opSnapshot}, content(opPut, "history.jsonl", 0, []byte("new"))}
	lost := []segment{{Op: opSnapshot}, {Op: opPut, File: "history.jsonl", N: 1, SHA: "x", Object: true}}
	for name, test := range map[string]struct {
		change func(log []found) []found
		begin  state
		n      uint64
		has    string
	}{
		"all":             {as, state{exact: true}, 5, "1234"},
		"of another file": {as, state{files: map[string]file{"history.jsonl": {tail: []byte("other")}}}, 0, "other"},
		"a hole":          {func(log []found) []found { return slices.Delete(log, 1, 2) }, state{exact: true}, 1, "1"},
		"a torn one":      {func(log []found) []found { log[3].err = errDamaged; return log }, state{exact: true}, 3, "12"},
		"a claim alone":   {as, state{n: 2, files: map[string]file{"history.jsonl": {tail: []byte("edited")}}}, 3, "edited"},
		"a snapshot":      {func(log []found) []found { log[3].segments = snapshot; return log[1:4] }, state{}, 4, "new"},
		"an older snapshot": {func(log []found) []found { log[0].segments = snapshot; return log[:1] },
			state{n: 1, files: map[string]file{"history.jsonl": {tail: []byte("1")}}}, 1, "1"},
		"a snapshot that is lost": {func(log []found) []found { log[3].segments = lost; return log[:4] }, state{exact: true}, 3, "12"},
		"a change that is lost":   {func(log []found) []found { log[3].segments = lost[1:]; return log }, state{exact: true}, 3, "12"},
	} {
		if n, has := followed(test.change, test.begin); n != test.n || has != test.has {
			t.Errorf("%s: up to %d it has %q, want %d and %q", name, n, has, test.n, test.has)
		}
	}
}

// A log that has lost its beginning is written again from the folder of a machine that had the agent before, with what came since.
func TestARepairFromAnOlderFolder(t *testing.T) {
	t.Parallel()
	d := newDamaged(t)
	d.closed()
	d.b.Release(hurt, false)
	d.b.Close()
	d.lose(func(all []uint64) []uint64 { return all[:1] })
	found := repair(t, d.s, true)
	if len(found) != 1 || found[0].Err != nil || found[0].UpTo < found[0].Of {
		t.Fatalf("mended %+v", found)
	}
	d.c.own(hurt)
	if got := d.c.lines(hurt, "history.jsonl"); !slices.Equal(got, d.want) {
		t.Errorf("history is %q, want %q", got, d.want)
	}
}

// An agent that is opened again as it was given up costs one message.
func TestOpenedAsItWas(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	a.own("one")
	add(t, a.open("one", "history.jsonl"), "1")
	a.Release("one", false)
	before, err := a.store.last(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	a.own("one")
	if after, err := a.store.last(t.Context(), "one"); err != nil || after.n != before.n+1 {
		t.Errorf("it costs %d messages, %v", after.n-before.n, err)
	}
}

// Pieces of an answer are given until it ends, or who asked has read enough, for whom none is wasted.
func TestPiecesAreGiven(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	for _, last := range []string{pieceEnd, pieceError, "stop"} {
		pulls, err := a.conn.SubscribeSync(a.conn.NewInbox())
		if err != nil {
			t.Fatal(err)
		}
		pieces, given := make(chan *nats.Msg, 10), make(chan error, 1)
		pieces <- piece("one")
		pieces <- piece("two", last, "x")
		pieces <- piece("three")
		go func() { given <- give(t.Context(), pulls, pieces) }()
		pull := func(want string) {
			t.Helper()
			m, err := a.conn.Request(pulls.Subject, nil, 30*time.Second)
			if err != nil || string(m.Data) != want {
				t.Errorf("pulled is %v, %v", m, err)
			}
		}
		pull("one")
		if last != "stop" {
			pull("two")
		} else if err := a.conn.Publish(pulls.Subject, []byte("stop")); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-given:
			if left := len(pieces); err != nil || left != 1 && last != "stop" || left != 2 && last == "stop" {
				t.Errorf("%s: %d pieces are left, %v", last, left, err)
			}
		case <-time.After(pieceLost - 5*time.Second):
			t.Errorf("%s: it does not end", last)
		}
	}
}
