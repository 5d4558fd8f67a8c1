package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/cluster/clustertest"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// What was behind a barrier on a machine that died is there on the next one.
func TestTakeover(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make("one")
	a.own("one")
	history := a.open("one", "history.jsonl")
	add(t, history, "1", "2", "3")
	big := strings.Repeat("x", 3*inlineMost)
	a.make("one/blobs")
	for name, content := range map[string]string{"state.json": "{}", "blobs/big": big} {
		if err := a.vol.WriteFile("state", a.path("one", name), []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Acquire("one"); !errors.As(err, new(*message.Elsewhere)) {
		t.Fatalf("acquired while its owner lives: %v", err)
	}

	a.die()
	if err := write(history, "late"); !errors.Is(err, disk.ErrAway) {
		t.Errorf("a barrier of a dead node: %v", err)
	}
	b.own("one")
	if got := b.lines("one", "history.jsonl"); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("history is %q", got)
	}
	if got := strings.Join(b.lines("one", "blobs/big"), ""); got != big {
		t.Errorf("the large file has %d bytes, want %d", len(got), len(big))
	}
	add(t, b.open("one", "history.jsonl"), "4")
}

// A machine that does not know that it was replaced cannot append, and is told.
func TestZombieIsFenced(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	lost := make(chan string, 1)
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	go a.Watch(watching, func(string) {}, func(agent string) { lost <- agent }, ignoreMet, func(string) {})
	a.make("one")
	a.own("one")
	history := a.open("one", "history.jsonl")
	add(t, history, "1")

	a.silence() // it works on, but nobody hears of it
	b.own("one")
	add(t, b.open("one", "history.jsonl"), "2")
	if err := write(history, "zombie"); !errors.Is(err, disk.ErrFenced) {
		t.Errorf("the zombie's barrier: %v, want ErrFenced", err)
	}
	select {
	case agent := <-lost:
		if agent != "one" {
			t.Errorf("lost %s", agent)
		}
	case <-time.After(time.Minute):
		t.Error("nobody was told that the agent is lost")
	}
	if got := b.lines("one", "history.jsonl"); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("history is %q", got)
	}
}

// A folder that was given up is taken as it is, with what was edited meanwhile; where another
// machine went on it is built from the log, and an edit is kept aside.
func TestFolderBetweenOwners(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make("one")
	a.own("one")
	l := a.open("one", "history.jsonl")
	add(t, l, "1")
	if _, err := l.Append([]byte("unsynced\n")); err != nil { // as the marks of an inbox are
		t.Fatal(err)
	}
	l.Close()
	a.Release("one", false)
	if err := os.WriteFile(a.path("one", "state.json"), []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	draft := a.path("one", "draft.json")
	if err := os.WriteFile(draft, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}

	a.own("one")
	if !disk.Exists(draft) {
		t.Error("the folder was built again, although nobody had touched the log")
	}
	a.Release("one", false)
	b.own("one")
	if got := b.lines("one", "history.jsonl"); !slices.Equal(got, []string{"1", "unsynced"}) {
		t.Errorf("history is %q", got)
	}
	if got := b.lines("one", "state.json"); !slices.Equal(got, []string{"edited"}) {
		t.Errorf("state is %q: the edit was not replicated", got)
	}

	add(t, b.open("one", "history.jsonl"), "2")
	b.Release("one", false)
	if err := os.WriteFile(a.path("one", "state.json"), []byte("too late"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.own("one")
	if got := a.lines("one", "state.json"); !slices.Equal(got, []string{"edited"}) {
		t.Errorf("state is %q, want what the log has", got)
	}
	if data, err := os.ReadFile(filepath.Join(a.root, "away", "one", "state.json")); err != nil || string(data) != "too late" {
		t.Errorf("the edit was not kept: %q, %v", data, err)
	}
}

// What was edited while nobody owned the folder is in the log as soon as somebody does.
func TestAnEditIsReplicatedWithTheClaim(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make("one")
	a.own("one")
	add(t, a.open("one", "history.jsonl"), "1")
	a.Release("one", false)
	if err := os.WriteFile(a.path("one", "state.json"), []byte("edited"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.own("one")
	a.die()
	b.own("one")
	if got := b.lines("one", "state.json"); !slices.Equal(got, []string{"edited"}) {
		t.Errorf("state is %q", got)
	}
}

// A long log is shortened, and makes the same files.
func TestLongLogIsShortened(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make("one")
	a.own("one")
	l := a.open("one", "history.jsonl")
	var want []string
	for i := range snapshotAfter + 100 {
		want = append(want, fmt.Sprint(i))
		add(t, l, want[i])
	}
	log, err := a.store.read(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	if len(log) > 150 {
		t.Errorf("the log has %d messages", len(log))
	}
	l.Close()
	a.Release("one", false)
	b.own("one")
	if got := b.lines("one", "history.jsonl"); !slices.Equal(got, want) {
		t.Errorf("%d lines arrived, want %d", len(got), len(want))
	}
}

// manyFiles: more files than a message can name are one object.
func manyFiles(t *testing.T, many int) {
	t.Helper()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make("one/blobs")
	for i := range many {
		if err := os.WriteFile(a.path("one", fmt.Sprintf("blobs/%064d", i)), []byte(fmt.Sprint(i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.own("one")
	a.Release("one", false)
	b.own("one")
	entries, err := os.ReadDir(b.path("one", "blobs"))
	if err != nil || len(entries) != many {
		t.Errorf("%d files arrived, want %d (%v)", len(entries), many, err)
	}
	if got := b.lines("one", fmt.Sprintf("blobs/%064d", many-1)); !slices.Equal(got, []string{fmt.Sprint(many - 1)}) {
		t.Errorf("a file has %q", got)
	}
}

// The store of the cluster is wiped: its owner writes the log again from its folder.
func TestWipedStoreIsSeededAgain(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	port := s.Addr().String()[strings.LastIndex(s.Addr().String(), ":")+1:]
	a := newHost(t, s)
	a.make("one")
	a.own("one")
	l := a.open("one", "history.jsonl")
	add(t, l, "1", "2")

	s.Shutdown()
	s.WaitForShutdown()
	done := make(chan error, 1)
	go func() { done <- write(l, "3") }()
	time.Sleep(100 * time.Millisecond)
	var n int
	fmt.Sscan(port, &n)
	s = clustertest.Serve(t, clustertest.Store(t), n)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	l.Close()
	for end := time.Now().Add(time.Minute); a.Away() && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	a.Release("one", false)

	b := newHost(t, s)
	b.own("one")
	if got := b.lines("one", "history.jsonl"); !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("history is %q", got)
	}
}

// Agents with work are looked after when their owner dies, or leaves them with work.
func TestOrphans(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	for _, agent := range []string{"dead", "left", "asleep"} {
		a.make(agent)
		a.own(agent)
	}
	a.Release("left", true)
	a.Release("asleep", false)
	a.die()

	adopted := make(chan string, 100)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go b.Watch(ctx, func(agent string) {
		if err := b.Acquire(agent); err == nil {
			adopted <- agent
		}
	}, func(string) {}, ignoreMet, func(string) {})
	got := map[string]bool{}
	for len(got) < 2 {
		select {
		case agent := <-adopted:
			got[agent] = true
		case <-ctx.Done():
			t.Fatalf("adopted: %v", got)
		}
	}
	if got["asleep"] {
		t.Error("an agent without work was adopted")
	}
}

// An item reaches the machine that owns its agent, and its refusal comes back.
func TestForward(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go b.Serve(ctx, func(_ context.Context, agent string, it inbox.Item) (message.Receipt, error) {
		switch it.Text {
		case "full":
			return message.Receipt{}, inbox.ErrFull
		case "moved":
			return message.Receipt{}, fmt.Errorf("x: %w", &message.Elsewhere{Node: "third"})
		}
		return message.Receipt{Agent: agent, Item: it.ID, Seq: 7}, nil
	})

	send := func(node, text string) (message.Receipt, error) {
		return a.Forward(t.Context(), node, "one", inbox.Item{Kind: message.Text, ID: "i1", Text: text})
	}
	var r message.Receipt
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if r, err = send(b.boot, "hello"); err == nil {
			break // it answers by now
		}
	}
	if err != nil || r != (message.Receipt{Agent: "one", Item: "i1", Seq: 7}) {
		t.Errorf("receipt %+v, %v", r, err)
	}
	if _, err := send(b.boot, "full"); !errors.Is(err, fault.InboxFull) {
		t.Errorf("refusal: %v", err)
	}
	for name, call := range map[string]func() (message.Receipt, error){
		"moved":   func() (message.Receipt, error) { return send(b.boot, "moved") },
		"no node": func() (message.Receipt, error) { return send("nobody", "x") },
	} {
		if _, err := call(); !errors.As(err, new(*message.Elsewhere)) {
			t.Errorf("%s: %v, want Elsewhere", name, err)
		}
	}
}

// Names that would lead out of the folder of agents are refused.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	n := &Node{}
	for _, agent := range []string{"", "..", "a/b", `a\b`, "a.b", "a b"} {
		if err := n.Acquire(agent); err == nil {
			t.Errorf("%q was acquired", agent)
		}
	}
	log := []logged{{seq: 1, n: 1, body: encode([]segment{content(opPut, "../../x", 0, []byte("y"))})}}
	if _, err := fold(t.Context(), nil, log, covered); !errors.Is(err, errDamaged) {
		t.Errorf("a file outside of the folder: %v", err)
	}
}

// However much was edited by hand, an agent is given up with all of it.
func TestGivenUpWithManyEdits(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make("one/blobs")
	a.own("one")
	text := strings.Repeat("x", inlineMost-10)
	for i := range 30 {
		if err := os.WriteFile(a.path("one", fmt.Sprintf("blobs/%d", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a.Release("one", false)
	if err := b.Acquire("one"); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if data, err := os.ReadFile(b.path("one", fmt.Sprintf("blobs/%d", i))); err != nil || string(data) != text {
			t.Errorf("an edit has %d bytes, %v", len(data), err)
		}
	}
}

// cut is a store that takes a number of messages and then no more, as if the machine died there.
type cut struct {
	store
	left int
	took chan struct{} // closed with the last one
}

func (c *cut) publish(ctx context.Context, unit string, expect uint64, m logged) (uint64, error) {
	if c.left == 0 {
		return 0, errors.New("no answer")
	}
	seq, err := c.store.publish(ctx, unit, expect, m)
	if c.left--; c.left == 0 {
		close(c.took)
	}
	return seq, err
}

// A machine that dies right after its first claim of an agent has brought all of it into the
// cluster, or nothing: the agent is not one without files.
func TestKilledAfterTheFirstClaim(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make("one")
	if err := os.WriteFile(a.path("one", "history.jsonl"), []byte("1\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	took := make(chan struct{})
	a.store = &cut{a.store, 1, took}
	done := make(chan error, 1)
	go func() { done <- a.Acquire("one") }()
	<-took
	a.die()
	<-done

	b.own("one")
	if got := b.lines("one", "history.jsonl"); !slices.Equal(got, []string{"1", "2"}) {
		t.Errorf("history is %q", got)
	}
}

// However a claim ends, what was new in the folder that was there is kept.
func TestAnEditSurvivesAFailedClaim(t *testing.T) {
	for _, failed := range []string{"eacces@claim.rename#1", "eacces@claim.rename#2", "eacces@claim.rename#2:100",
		"eacces@claim.rename#3"} {
		t.Run(failed, func(t *testing.T) {
			s := clustertest.Serve(t, clustertest.Store(t), 0)
			a, b := newHost(t, s), newHost(t, s)
			a.make("one")
			a.own("one")
			a.Release("one", false)
			b.own("one")
			b.Release("one", false)
			if err := os.WriteFile(a.path("one", "state.json"), []byte("edited"), 0o600); err != nil {
				t.Fatal(err)
			}
			met := crash.Arm(t, failed)
			err := a.Acquire("one")
			if len(met()) == 0 {
				t.Fatalf("nothing failed: %v", err)
			}
			if err == nil {
				a.Release("one", false)
				b.own("one")
				b.Release("one", false)
			}
			crash.Arm(t, "")
			// As the next start does.
			left, err := filepath.Glob(filepath.Join(a.root, "agents", ".new-*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, dir := range left {
				os.RemoveAll(dir)
			}
			kept, err := filepath.Glob(filepath.Join(a.root, "a*", "one*", "state.json"))
			if err != nil || len(kept) != 1 {
				t.Errorf("the edit is in %q, %v", kept, err)
			}

			a.own("one")
			if data, err := os.ReadFile(filepath.Join(a.root, "away", "one", "state.json")); err != nil || string(data) != "edited" {
				t.Errorf("the edit was not kept: %q, %v", data, err)
			}
		})
	}
}

// A folder that was built from a log is on the disk before it is the agent's: what a power cut
// takes of it must not count as an edit by hand.
func TestABuiltFolderIsDurable(t *testing.T) {
	for _, failed := range []string{"eio@claim.sync#1", "eio@claim.sync#2", "eio@claim.dirsync#1", "eio@claim.dirsync#2"} {
		t.Run(failed, func(t *testing.T) {
			s := clustertest.Serve(t, clustertest.Store(t), 0)
			a, b := newHost(t, s), newHost(t, s)
			a.make("one/blobs")
			for _, name := range []string{"state.json", "blobs/1"} {
				if err := os.WriteFile(a.path("one", name), []byte(name), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			a.own("one")
			a.Release("one", false)
			crash.Arm(t, failed)
			if err := b.Acquire("one"); !errors.Is(err, disk.ErrFailed) || disk.Exists(b.folder("one")) {
				t.Errorf("acquired with %v; there is a folder: %v", err, disk.Exists(b.folder("one")))
			}
		})
	}
}

// What is edited while an agent is owned is in its log at once; a half-written edit is not, and a file that is large or gone
// stays as it was there.
func TestAnEditOfAnOwnedAgent(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	a.make("one")
	a.own("one")
	for _, step := range []struct{ text, want string }{
		{`{"a":1}`, `{"a":1}`}, {`{"a":2}`, `{"a":2}`}, {`{"a":3`, `{"a":2}`}, {"", `{"a":2}`}} {
		err := os.Remove(a.path("one", "state.json"))
		if step.text != "" {
			err = os.WriteFile(a.path("one", "state.json"), []byte(step.text), 0o600)
		}
		if err == nil {
			err = a.Edited("one", "state.json", "inbox.jsonl")
		}
		if err != nil {
			t.Fatal(err)
		}
		files, err := a.newest(t.Context(), a.links.store, "one", time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(files["state.json"].tail); got != step.want || len(files) != 1 {
			t.Errorf("after %q the log has %q and %d files, want %q", step.text, got, len(files), step.want)
		}
	}
	if err := b.Edited("one", "state.json"); err != nil {
		t.Errorf("of an agent of another machine: %v", err)
	}
	a.die()
	b.own("one")
	if got := b.lines("one", "state.json"); !slices.Equal(got, []string{`{"a":2}`}) {
		t.Errorf("state is %q", got)
	}
}

// A machine whose answers take a while, because the servers are far away or have a lot to do, joins and works.
func TestAMachineFarAway(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	w := clustertest.WayTo(t, s)
	w.Late(300 * time.Millisecond)
	for _, agent := range []string{"one", "two"} { // what all need has to be made, and is there
		m := joinWith(t, s, newRoot(t), 5*time.Second, func(c *Config) { c.Servers = []string{w.URL} })
		m.make(agent)
		m.own(agent)
	}
}

// Servers that take a connection and are too slow to say who they are, because they have a lot to do, are tried again.
func TestServersThatAreSlowAtFirst(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	w := clustertest.WayTo(t, s)
	w.Late(2 * askFor)
	time.AfterFunc(askFor, func() { w.Late(0) })
	m := joinWith(t, s, newRoot(t), 5*time.Second, func(c *Config) { c.Servers = []string{w.URL} })
	m.make("one")
}
