package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/address"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/crash"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// A log is not shortened while what is on disk is another thing than what it has: what would be removed is the only copy.
func TestALogOfAnEditedFolderIsNotShortened(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make("one")
	a.own("one")
	l := a.open("one", "history.jsonl")
	add(t, l, "1", "2", "3")
	if err := a.vol.WriteFile("state", a.path("one", "state.json"), []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(a.path("one", "state.json"), []byte(`{"a":2}`), 0o600); err != nil {
		t.Fatal(err)
	}

	u, _, _ := a.unit(a.path("one", "state.json"))
	u.mu.Lock()
	u.since = 2 * snapshotAfter
	u.mu.Unlock()
	u.shorten()
	a.die()
	b.own("one")
	if got := b.lines("one", "history.jsonl"); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("history is %q", got)
	}
}

// A folder that cannot be read whole is not offered: the log would be written again without what is missing.
func TestAFolderThatCannotBeReadIsNotOffered(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := newHost(t, s)
	a.make("one")
	a.own("one")
	add(t, a.open("one", "history.jsonl"), "1")
	a.Release("one", false)
	if o, err := (offers{a.Node}).answer(demand{Agent: "one"}); err != nil || !o.Folder {
		t.Fatalf("offered %+v, %v", o, err)
	}

	if o, err := (offers{a.Node}).answer(demand{Agent: "two"}); err != nil || o.Folder {
		t.Errorf("of an agent without a folder offered %+v, %v", o, err)
	}

	a.covers = func(name string) bool { // it is removed while it is read
		os.Remove(a.path("one", name))
		return covered(name)
	}
	if o, err := (offers{a.Node}).answer(demand{Agent: "one"}); !errors.Is(err, fs.ErrNotExist) || o.Folder {
		t.Errorf("offered %+v, %v", o, err)
	}
}

// Who was replaced, and gives an agent up, does not take back that another machine has it.
func TestReleaseOfAReplacedOwner(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make("one")
	a.own("one")
	add(t, a.open("one", "history.jsonl"), "1")
	a.silence()
	b.own("one")
	go a.presence.run(a.ctx)
	until(t, "it reaches the servers again", func() bool { return !a.Away() })

	a.Release("one", false)
	if m, err := readMark(a.folder("one")); err != nil || !m.Owned {
		t.Errorf("its folder is marked %+v, %v", m, err)
	}
	e, err := b.presence.store.handles.owners.Get(t.Context(), "one")
	if err != nil || !strings.Contains(string(e.Value()), b.Boot()) {
		t.Errorf("the owner is noted as %v, %v", e, err)
	}
}

// A folder that is not synced is not marked as given up: after a power cut it would be taken for what the log has.
func TestReleaseOfAFolderThatIsNotSynced(t *testing.T) {
	said := &saying{}
	a := joinWith(t, clustertest.Serve(t, clustertest.Store(t), 0), t.TempDir(), testLease, func(c *Config) {
		c.Log = slog.New(slog.NewTextHandler(said, nil))
	})
	a.make("one")
	a.own("one")
	add(t, a.open("one", "history.jsonl"), "1")
	crash.Arm(t, "eacces@claim.dirsync#1")
	a.Release("one", false)
	crash.Arm(t, "")
	if m, err := readMark(a.folder("one")); err != nil || !m.Owned || !strings.Contains(said.String(), "not given up in order") {
		t.Errorf("its folder is marked %+v, %v; the log says %s", m, err, said)
	}
}

// An edit by hand that does not come into the log is an error. One of a large file comes into it.
func TestEdited(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make("one")
	a.own("one")
	large := `{"text":"` + strings.Repeat("large", inlineMost) + `"}`
	edit := func(text string) error {
		t.Helper()
		if err := os.WriteFile(a.path("one", "state.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return a.Edited("one", "state.json")
	}
	for _, text := range []string{"{}", large} {
		if err := edit(text); err != nil {
			t.Errorf("an edit of %d bytes: %v", len(text), err)
		}
	}
	a.silence()
	b.own("one")
	if got := strings.Join(b.lines("one", "state.json"), " "); got != large {
		t.Errorf("the other machine has %d bytes, want %d", len(got), len(large))
	}
	if err := edit("{}"); !errors.Is(err, disk.ErrFenced) {
		t.Errorf("an edit on a machine that was replaced: %v", err)
	}
}

// What the log lacks of a file is appended to it; a file that was changed, or that has become much longer, is written
// whole, and one that is gone is removed.
func TestDifferences(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", appendMost)
	for name, test := range map[string]struct {
		had, has string
		want     op
		at       int64
	}{
		"the same": {"ab", "ab", "", 0}, "appended to": {"ab", "abc", opAppend, 2}, "changed": {"ab", "ac", opPut, 0},
		"changed and longer": {"ab", "acd", opPut, 0}, "shorter": {"ab", "a", opPut, 0}, "emptied": {"ab", "", opPut, 0},
		"much longer": {"a", "a" + long, opAppend, 1}, "too much longer": {"a", "aa" + long, opPut, 0}, "begun": {"", "a", opAppend, 0},
		"as it was not": {"?", "a", opPut, 0}, "new": {"-", "a", opPut, 0}, "gone": {"a", "-", opRemove, 0},
	} {
		had, has := map[string]*copied{"x": newCopied([]byte(test.had))}, map[string][]byte{"x": []byte(test.has)}
		if test.had == "?" {
			had["x"] = &copied{size: -1}
		}
		if test.had == "-" {
			had = nil
		}
		if test.has == "-" {
			has = nil
		}
		got := differences(had, has)
		if test.want == "" {
			if len(got) > 0 {
				t.Errorf("%s: %+v", name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Op != test.want || got[0].At != test.at || got[0].File != "x" ||
			test.want != opRemove && string(got[0].data) != test.has[test.at:] {
			t.Errorf("%s: %+v", name, got)
		}
	}
	three := map[string][]byte{"c": nil, "a": nil, "b": nil}
	if got := differences(nil, three); len(got) != 3 || got[0].File != "a" || got[1].File != "b" || got[2].File != "c" {
		t.Errorf("the order is %+v", got)
	}
}

// The folder of an agent that is owned here stays, and that of another one is moved away, when its removal is heard of.
func TestPart(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	for _, agent := range []string{"owned", "other"} {
		a.make(agent)
	}
	a.own("owned")
	for _, agent := range []string{"owned", "other", "nothing"} {
		a.part(agent)
	}
	if !disk.Exists(a.folder("owned")) || disk.Exists(a.folder("other")) || !disk.Exists(filepath.Join(a.root, "away", "other")) {
		t.Error("the folders are not where they belong")
	}
}

// A content is kept once under its checksum, and again if servers have lost a part of it. One of another checksum is damaged.
func TestContents(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	store := a.presence.store
	data := []byte(strings.Repeat("large", inlineMost))
	made := map[string]bool{}
	keep := func() {
		t.Helper()
		if err := store.put(t.Context(), sum(data), data); err != nil {
			t.Fatal(err)
		}
		info, err := store.handles.objects.GetInfo(t.Context(), sum(data))
		if err != nil {
			t.Fatal(err)
		}
		made[info.NUID] = true
		if got, err := store.get(t.Context(), sum(data)); err != nil || string(got) != string(data) {
			t.Errorf("it has %d bytes, %v", len(got), err)
		}
	}
	keep()
	keep()
	if len(made) != 1 {
		t.Errorf("it was written %d times", len(made))
	}
	for nuid := range made {
		if err := store.handles.chunks.Purge(t.Context(), jetstream.WithPurgeSubject("$O."+objectBucket+".C."+nuid)); err != nil {
			t.Fatal(err)
		}
	}
	keep()
	if len(made) != 2 {
		t.Errorf("it was written %d times", len(made))
	}
	if _, err := store.handles.objects.PutBytes(t.Context(), "other", data); err != nil {
		t.Fatal(err)
	}
	if got, err := store.get(t.Context(), "other"); !errors.Is(err, errDamaged) {
		t.Errorf("under another checksum it has %d bytes, %v", len(got), err)
	}
	if _, err := store.get(t.Context(), "missing"); err == nil || errors.Is(err, errDamaged) {
		t.Errorf("what is missing: %v", err)
	}
}

// A claim of which another machine is quicker is that one's, whose note it writes.
func TestAClaimThatComesSecond(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	a.make("one")
	before := a.store
	a.links.dead = func(string) bool { return false }
	a.store = &crowded{store: before, n: 1, crux: func() { a.overtakes(before, "one") }}
	there := &message.Elsewhere{}
	if err := a.Acquire("one"); !errors.As(err, &there) || there.Node != "other" {
		t.Errorf("acquired: %v", err)
	}
	e, err := a.presence.store.handles.owners.Get(t.Context(), "one")
	if err != nil || !strings.Contains(string(e.Value()), `"other"`) {
		t.Errorf("its owner is noted as %v, %v", e, err)
	}
}

// What a cluster knows of its agents comes back into a bucket that was lost: their cards, addresses and handles.
func TestCardsComeBack(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	w := clustertest.WayTo(t, s)
	a := joinWith(t, s, t.TempDir(), time.Minute, func(c *Config) { c.Servers = []string{w.URL} })
	d := address.Descriptor{Type: address.User, Connector: "x", ChannelID: "one"}
	one, two := address.Meta{ID: cuid.New(), Handle: "0/", Descriptor: d}, address.Meta{ID: cuid.New(), Handle: "1/"}
	for _, m := range []address.Meta{one, two} {
		if err := a.Announce(m, false); err != nil {
			t.Fatal(err)
		}
	}
	store := a.presence.store
	if err := store.js.DeleteKeyValue(t.Context(), agentsBucket); err != nil {
		t.Fatal(err)
	}
	if _, err := store.ensure(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := store.handles.agents.Put(t.Context(), handleKey+one.Handle, []byte(one.ID)); err != nil { // by another machine
		t.Fatal(err)
	}
	a.cards.restore(t.Context())
	now, err := readCards(t.Context(), store, a.cards.notes)
	if all := now.Agents(); err != nil || len(all) != 2 || all[one.ID].Descriptor != d || all[two.ID].Handle != "1/" {
		t.Errorf("there are %+v, %v", all, err)
	}
	if id, err := a.Claim(d.Key(), "other"); err != nil || id != one.ID {
		t.Errorf("the address leads to %q, %v", id, err)
	}
	if id, err := a.Claim("", "other"); err != nil || id != "other" {
		t.Errorf("no address leads to %q, %v", id, err)
	}
	for _, m := range []address.Meta{one, two} {
		if handle, err := a.Number("7/", m.ID); err != nil || handle != m.Handle {
			t.Errorf("its handle is %q, %v", handle, err)
		}
		if handle, err := a.Number(m.Handle, "other"); err != nil || handle != "" {
			t.Errorf("its handle is given to another one: %q, %v", handle, err)
		}
	}

	w.Refuse(1)
	if handle, err := a.Number("8/", one.ID); !errors.Is(err, disk.ErrAway) {
		t.Errorf("without an answer the handle is %q, %v", handle, err)
	}
	if handle, err := a.Number("8/", "other"); err != nil || handle != "8/" {
		t.Errorf("a handle that nobody has is given as %q, %v", handle, err)
	}
}

// What was agreed on is written once.
func TestWhatIsSharedIsNotedOnce(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	s := &sharing{root: root, vol: disk.NewVolume(root), agreement: agreement{base: map[string]string{}}}
	path := filepath.Join(root, sharedFile)
	s.save()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if s.save(); disk.Exists(path) {
		t.Error("it is written although nothing changed")
	}
	s.agreedOn("a", "1")
	s.agreedOn("b", "2")
	if s.save(); !disk.Exists(path) {
		t.Error("what changed is not written")
	}
	s.agreedOn("a", "")
	s.save()
	if data, err := os.ReadFile(path); err != nil || string(data) != `{"b":"2"}`+"\n" {
		t.Errorf("noted is %q, %v", data, err)
	}
	again := newSharing(Shared{}, Config{Root: root}, nil, nil)
	if len(again.base) != 1 || again.base["b"] != "2" {
		t.Errorf("read is %v", again.base)
	}
}

// One card that servers refuse does not keep the others from coming back.
func TestCardsComeBackBesideARefusedOne(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	w := clustertest.WayTo(t, s)
	a := joinWith(t, s, t.TempDir(), time.Minute, func(c *Config) { c.Servers = []string{w.URL} })
	for i := range 3 {
		if err := a.Announce(address.Meta{ID: strings.Repeat(string(rune('a'+i)), 24), Handle: fmt.Sprint(i)}, false); err != nil {
			t.Fatal(err)
		}
	}
	store := a.presence.store
	if err := store.js.DeleteKeyValue(t.Context(), agentsBucket); err != nil {
		t.Fatal(err)
	}
	if _, err := store.ensure(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}

	w.Refuse(1)
	a.cards.restore(t.Context())
	if met := w.Met(); !strings.Contains(met, agentsBucket) {
		t.Fatalf("refused was %q", met)
	}
	keys, err := store.handles.agents.Keys(t.Context())
	count := 0
	for _, key := range keys {
		if strings.HasPrefix(key, cardKey) {
			count++
		}
	}
	if err != nil || count != 2 {
		t.Errorf("%d cards of 3 came back, want 2: %q, %v", count, keys, err)
	}
}

// An agent that was removed elsewhere, and whose folder cannot be moved away, is not said to be gone.
func TestARemovedAgentWhoseFolderStays(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make("one")
	a.own("one")
	a.Release("one", false)
	b.own("one")
	if err := b.Retire("one"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.root, "away"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "nobody has it", func() bool { return a.Owner("one") == "" })
	if err := a.Acquire("one"); err == nil || errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("acquired: %v", err)
	}
}

// A forwarded item that cannot be read is answered with an error, and not posted.
func TestAForwardedItemThatCannotBeRead(t *testing.T) {
	t.Parallel()
	got := accept(t.Context(), []byte(`{"agent":`), func(context.Context, string, inbox.Item) (message.Receipt, error) {
		t.Error("it is posted")
		return message.Receipt{}, nil
	})
	if got.Moved || !strings.Contains(got.Error, "cannot be read") {
		t.Errorf("the answer is %+v", got)
	}
}

// An agent that has no log is not one with a hole in its log, which might be filled.
func TestAnAgentWithoutALog(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	if files, err := a.newest(t.Context(), a.presence.store, "one", 50*time.Millisecond); !errors.Is(err, errLost) {
		t.Errorf("it has %v, %v", files, err)
	}
}

// Files outside of the folders of agents belong to none of them.
func TestFilesOfNoAgent(t *testing.T) {
	t.Parallel()
	w := &workingCopy{root: "/x", covers: func(string) bool { return true }}
	for path, want := range map[string]bool{"/x/agents/one/a": true, "/x/agents/one/b/c": true, "/x/agents/one": false, "/x/cron/a": false,
		"/elsewhere/agents/one/a": false, "relative/a": false} {
		agent, name, ok := w.of(path)
		if ok != want || ok && (agent != "one" || "/x/agents/one/"+name != path) {
			t.Errorf("%s is %s of %q, %v", path, name, agent, ok)
		}
	}
}

// The last folders of an agent that were set aside are kept, the newest under its id.
func TestFoldersThatAreKept(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	w := &workingCopy{root: root, vol: disk.NewVolume(root), log: slog.New(slog.DiscardHandler)}
	const moved = awayKept + 2
	for n := range moved {
		dir := w.folder("one")
		err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "state.json"), fmt.Append(nil, n), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.moveAway("one", dir); err != nil {
			t.Fatal(err)
		}
	}
	all, err := os.ReadDir(filepath.Join(root, "away"))
	if err != nil || len(all) != awayKept {
		t.Fatalf("%d folders are kept, %v", len(all), err)
	}
	for n := range awayKept {
		name := "one"
		if n > 0 {
			name = fmt.Sprintf("one.%d", n)
		}
		data, err := os.ReadFile(filepath.Join(root, "away", name, "state.json"))
		if err != nil || string(data) != fmt.Sprint(moved-1-n) {
			t.Errorf("%s has %q, %v", name, data, err)
		}
	}
}

// What became of an item is asked of the machine that has its agent: what it says, what it refuses, and that it has it no more.
func TestWhatBecameOfAnItem(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	if _, err := a.Item(t.Context(), b.Boot(), "one", "x"); !errors.As(err, new(*message.Elsewhere)) {
		t.Errorf("of a machine that does not answer: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go b.ServeItems(ctx, func(_ context.Context, agent, item string) (event.Posted, error) {
		switch item {
		case "gone":
			return event.Posted{}, inbox.ErrUnknown
		case "moved":
			return event.Posted{}, &message.Elsewhere{Node: "third"}
		}
		return event.Posted{Agent: agent, Item: item, Outcome: &event.Outcome{Reason: "done", Text: "answer"}}, nil
	})
	until(t, "it answers", func() bool {
		p, err := a.Item(t.Context(), b.Boot(), "one", "x")
		return err == nil && p.Agent == "one" && p.Item == "x" && p.Outcome.Text == "answer"
	})
	if _, err := a.Item(t.Context(), b.Boot(), "one", "gone"); !errors.Is(err, inbox.ErrUnknown) {
		t.Errorf("of an item that is gone: %v", err)
	}
	there := &message.Elsewhere{}
	if _, err := a.Item(t.Context(), b.Boot(), "one", "moved"); !errors.As(err, &there) || there.Node != b.Boot() {
		t.Errorf("of an agent that has moved: %v", err)
	}
	cancelled, end := context.WithCancel(t.Context())
	end()
	if _, err := a.Item(cancelled, b.Boot(), "one", "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("of who does not wait: %v", err)
	}
}
