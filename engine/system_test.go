package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/address"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/watch"
)

// A house is a System on real files, with agents that the test plays.
type house struct {
	*System
	t     *testing.T
	index *address.Index
	end   func() error
}

// newHouse opens a System on root; start plays every agent.
func newHouse(t *testing.T, root string, start StartFunc, connectors ...Connector) *house {
	t.Helper()
	return newHouseWith(t, root, start, Options{Connectors: connectors})
}

// newHouseWith is newHouse with some of the options set.
func newHouseWith(t *testing.T, root string, start StartFunc, o Options) *house {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	left := replicate(t, root, &o)
	vol := o.Volume
	if vol == nil {
		vol = disk.NewVolume(root)
	}
	index, _, err := address.Load(vol, root, log)
	if err != nil {
		t.Fatal(err)
	}
	asks, _, err := permission.OpenQueue(vol, root, time.Now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	watcher := watch.New(log)
	o.Root, o.Volume, o.Index, o.Events, o.Asks, o.Watcher, o.Log = root, vol, index, event.NewStream("t"), asks, watcher, log
	o.Grace, o.NewState = 100*time.Millisecond, func(address.Descriptor) ([]byte, error) { return []byte("{}\n"), nil }
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{System: s, t: t, index: index}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- watcher.Run(ctx) }()
	go func() { done <- s.Run(ctx, start) }()
	h.end = sync.OnceValue(func() error {
		cancel()
		return errors.Join(<-done, <-done, asks.Close(), index.Close(), left())
	})
	t.Cleanup(func() {
		if err := h.end(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *house) deliver(in message.Incoming) message.Receipt {
	h.t.Helper()
	r, err := h.Deliver(context.Background(), in)
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

func from(channel, text string) message.Incoming {
	return message.Incoming{From: message.Address{Connector: "c", ChannelID: channel, UserID: "u"}, Text: text}
}

// echo plays an agent that handles each item at once and goes to sleep when there
// is none.
func echo(handled func(agent string, it inbox.Item)) StartFunc {
	return func(ctx context.Context, rt Runtime) error {
		for {
			heads := rt.Inbox.Open()
			if len(heads) == 0 || ctx.Err() != nil {
				return nil
			}
			items, err := rt.Inbox.Take(heads[0].ID)
			if err != nil {
				return err
			}
			handled(rt.Meta.ID, items[0])
			if err := rt.Inbox.Done(heads[0].ID); err != nil {
				return err
			}
		}
	}
}

func TestNothingIsLostBetweenSleepAndDelivery(t *testing.T) {
	// The agent sleeps as soon as it can, so deliveries keep meeting the moment
	// between its last look and its sleep.
	var mu sync.Mutex
	got := map[string]int{}
	h := newHouse(t, t.TempDir(), echo(func(_ string, it inbox.Item) {
		mu.Lock()
		got[it.Text]++
		mu.Unlock()
	}))
	const senders, each = 4, 50
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				r := h.deliver(from("one", fmt.Sprintf("%d.%d", s, i)))
				if _, err := h.Await(context.Background(), r.Agent, r.Item); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if len(got) != senders*each {
		t.Errorf("%d messages handled, want %d", len(got), senders*each)
	}
	for text, n := range got {
		if n != 1 {
			t.Errorf("message %s was handled %d times", text, n)
		}
	}
	if all := h.index.All(); len(all) != 1 {
		t.Errorf("%d agents for one address", len(all))
	}
}

// Whoever waits for an item gets how its turn ended from the agent that recorded it. Of an item that was not in the newest
// turn the history says it; here it has none.
func TestTheAgentSaysHowItsNewestTurnEnded(t *testing.T) {
	h := newHouse(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
		for ctx.Err() == nil {
			for _, head := range rt.Inbox.Open() {
				items, err := rt.Inbox.Take(head.ID)
				if err != nil {
					return err
				}
				if items[0].Text == "a turn" {
					rt.Ended([]string{"another", head.ID}, record.Outcome{Turn: "t", Reason: "done", Text: "as kept", Cost: 2})
				}
				if err := rt.Inbox.Done(head.ID); err != nil {
					return err
				}
			}
			select {
			case <-rt.Inbox.Arrived():
			case <-ctx.Done():
			}
		}
		return nil
	})
	for text, want := range map[string]event.Outcome{"a turn": {Turn: "t", Reason: "done", Text: "as kept", Cost: 2},
		"no turn": {Reason: "dropped"}} {
		r := h.deliver(from("one", text))
		o, err := h.Await(t.Context(), r.Agent, r.Item)
		want.Agent, want.Item = r.Agent, r.Item
		if diff := cmp.Diff(want, o); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
}

// A start looks who has work while deliveries come already. An entry that it found may
// go to sleep before it gets to it: the agent is woken all the same.
func TestAnAgentIsWokenAlthoughItsEntryGoesToSleep(t *testing.T) {
	woken := make(chan string, 10)
	h := newHouse(t, t.TempDir(), func(_ context.Context, rt Runtime) error {
		woken <- rt.Meta.ID
		return nil
	})
	meta, err := h.lifecycle.registrar.create(address.Descriptor{Type: address.User, Connector: "chat", ChannelID: "c", UserID: "u"})
	if err != nil {
		t.Fatal(err)
	}
	e, err := h.entry(meta.ID)
	if err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	if err := e.load(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		h.wake(meta.ID)
		close(done)
	}()
	time.Sleep(50 * time.Millisecond) // it has the entry, and waits for its lock
	e.sleep()
	e.mu.Unlock()
	<-done
	select {
	case <-woken:
	case <-time.After(time.Minute):
		t.Error("the agent was not woken")
	}
}

func TestASlowAgentDelaysNoOther(t *testing.T) {
	release := make(chan struct{})
	started := make(chan struct{}, 1)
	h := newHouse(t, t.TempDir(), echo(func(_ string, it inbox.Item) {
		if it.Text == "slow" {
			started <- struct{}{}
			<-release
		}
	}))
	slow := h.deliver(from("slow", "slow"))
	<-started
	for i := range 20 {
		r := h.deliver(from(fmt.Sprint("quick", i), "quick"))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		if _, err := h.Await(ctx, r.Agent, r.Item); err != nil {
			t.Fatalf("agent %d waited for the slow one: %v", i, err)
		}
		cancel()
	}
	close(release)
	if _, err := h.Await(context.Background(), slow.Agent, slow.Item); err != nil {
		t.Error(err)
	}
}

func TestAPanickingAgentStopsNoOther(t *testing.T) {
	h := newHouse(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
		if rt.Meta.Descriptor.ChannelID == "bad" {
			panic("seeded")
		}
		return echo(func(string, inbox.Item) {})(ctx, rt)
	})
	bad := h.deliver(from("bad", "x")).Agent
	r := h.deliver(from("good", "x"))
	if _, err := h.Await(context.Background(), r.Agent, r.Item); err != nil {
		t.Error(err)
	}
	waitFor(t, "its failure is shown", func() bool {
		a, err := h.Agent(t.Context(), bad)
		must(t, err)
		return a.State == event.Failing && strings.HasPrefix(a.Detail, "panic: seeded")
	})
}

func TestWhatWaitsIsFoundAtTheNextStart(t *testing.T) {
	root := t.TempDir()
	h := newHouse(t, root, func(ctx context.Context, _ Runtime) error { <-ctx.Done(); return nil })
	r := h.deliver(from("one", "kept"))
	if err := h.end(); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	newHouse(t, root, echo(func(agent string, it inbox.Item) { got <- agent + it.ID }))
	if id := <-got; id != r.Agent+r.Item {
		t.Errorf("handled %s, want %s", id, r.Agent+r.Item)
	}
}

// An item says how far its agent's history had come when it was accepted, also where the
// agent slept.
func TestAnItemNotesHowFarHistoryHadCome(t *testing.T) {
	root := t.TempDir()
	got := make(chan int64, 1)
	h := newHouse(t, root, echo(func(_ string, it inbox.Item) { got <- it.After }))
	r := h.deliver(from("one", "first"))
	if after := <-got; after != 0 {
		t.Errorf("the first item notes record %d, and there was none", after)
	}
	if err := h.end(); err != nil {
		t.Fatal(err)
	}
	hist, _, err := record.Open(disk.NewVolume(root), filepath.Join(root, "agents", r.Agent), time.Now, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	_, err = hist.Append(&record.Start{Session: "s", V: record.Version}, &record.Mark{Name: "m"})
	if err := errors.Join(err, hist.Close()); err != nil {
		t.Fatal(err)
	}
	h = newHouse(t, root, echo(func(_ string, it inbox.Item) { got <- it.After }))
	h.deliver(from("one", "second"))
	if after := <-got; after != 2 {
		t.Errorf("the second item notes record %d, want 2", after)
	}
}

func TestForegroundIsFoundOnDisk(t *testing.T) {
	root := t.TempDir()
	h := newHouse(t, root, echo(func(string, inbox.Item) {}))
	h.deliver(from("older", "x"))
	time.Sleep(2 * time.Millisecond) // times in an inbox are milliseconds
	newer := h.deliver(from("newer", "x"))
	older, _ := h.index.Lookup(address.Descriptor{Type: address.User, Connector: "c", ChannelID: "older", UserID: "u"})
	h.deliver(message.Incoming{Agent: older, Kind: message.System, Text: "does not count"})
	if err := h.end(); err != nil {
		t.Fatal(err)
	}
	h = newHouse(t, root, echo(func(string, inbox.Item) {}))
	if id, ok := h.Foreground(); !ok || id != newer.Agent {
		t.Errorf("foreground %s, want %s", id, newer.Agent)
	}
}

// chatRoom is a connector that notes what it sends and fails as it is told.
type chatRoom struct {
	mu   sync.Mutex
	fail []error // of the next tries
	sent []string
}

func (*chatRoom) ID() string { return "room" }
func (*chatRoom) Run(ctx context.Context, _ message.Deliver) error {
	<-ctx.Done()
	return nil
}
func (c *chatRoom) Send(_ context.Context, out message.Outgoing) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.fail) > 0 {
		err := c.fail[0]
		c.fail = c.fail[1:]
		if err != nil {
			return "", err
		}
	}
	c.sent = append(c.sent, out.Key())
	return "remote", nil
}
func (*chatRoom) Split(text string) []string {
	parts := []string{}
	for part := range slices.Chunk([]byte(text), 2) {
		parts = append(parts, string(part))
	}
	return parts
}

func TestAnswersKeepTheirOrderAndGoOnWhereTheyWere(t *testing.T) {
	t.Parallel()
	room := &chatRoom{fail: []error{nil, &message.NotSent{Err: errors.New("busy"), After: time.Millisecond}}}
	h := newHouse(t, t.TempDir(), echo(func(string, inbox.Item) {}), room)
	results := make(chan message.Result, 20)
	send := func(id, text string, done map[int]bool) {
		h.senders.send(message.Promise{Since: time.Now(), Done: done, Report: func(f message.Result) { results <- f },
			Outgoing: message.Outgoing{ID: id, Text: text, To: message.Address{Connector: "room", ChannelID: "1"}}})
	}
	send("a", "112233", nil)
	send("b", "1122", map[int]bool{0: true})
	var delivered []string
	for len(delivered) < 4 {
		f := <-results
		if f.Delivered() {
			delivered = append(delivered, fmt.Sprintf("%s.%d retry %v", f.Out, f.Part, f.Retry))
		}
	}
	want := []string{"a.0 retry false", "a.1 retry true", "a.2 retry false", "b.1 retry false"}
	if !slices.Equal(delivered, want) {
		t.Errorf("delivered %v, want %v", delivered, want)
	}
	room.mu.Lock()
	defer room.mu.Unlock()
	if want := []string{"a.0", "a.1", "a.2", "b.1"}; !slices.Equal(room.sent, want) {
		t.Errorf("sent %v, want %v", room.sent, want)
	}
}

func TestAFinalRefusalGivesUp(t *testing.T) {
	room := &chatRoom{fail: []error{&message.NotSent{Err: errors.New("the chat is gone"), Final: true}}}
	h := newHouse(t, t.TempDir(), echo(func(string, inbox.Item) {}), room)
	results := make(chan message.Result, 5)
	h.senders.send(message.Promise{Since: time.Now(), Report: func(f message.Result) { results <- f },
		Outgoing: message.Outgoing{ID: "a", Text: "x", To: message.Address{Connector: "room", ChannelID: "1"}}})
	if f := <-results; !f.Final || f.Error == "" {
		t.Errorf("result %+v, want final with its reason", f)
	}
}

func TestAtTheEndUndeliveredAnswersAreKept(t *testing.T) {
	room := &chatRoom{fail: slices.Repeat([]error{errors.New("down")}, 100)}
	h := newHouse(t, t.TempDir(), echo(func(string, inbox.Item) {}), room)
	results := make(chan message.Result, 200)
	h.senders.send(message.Promise{Since: time.Now(), Report: func(f message.Result) { results <- f },
		Outgoing: message.Outgoing{ID: "a", Text: "x", To: message.Address{Connector: "room", ChannelID: "1"}}})
	<-results // the first failure
	if err := h.end(); err != nil {
		t.Fatal(err)
	}
	close(results)
	var last message.Result
	for f := range results {
		last = f
	}
	if !last.Kept {
		t.Errorf("last result %+v, want kept", last)
	}
}

func TestKillAndRemove(t *testing.T) {
	root := t.TempDir()
	h := newHouse(t, root, func(ctx context.Context, rt Runtime) error {
		if rt.Meta.Descriptor.ChannelID == "busy" {
			<-ctx.Done()
			return nil
		}
		return echo(func(string, inbox.Item) {})(ctx, rt)
	})
	ctx := context.Background()
	user := h.deliver(from("one", "x"))
	if _, err := h.Await(ctx, user.Agent, user.Item); err != nil {
		t.Fatal(err)
	}
	if err := h.Kill(ctx, user.Agent); !errors.Is(err, ErrProtected) {
		t.Errorf("kill of a user's agent: %v, want ErrProtected", err)
	}
	parent, err := h.Create(ctx, address.Descriptor{Type: address.Permanent, Name: "Ops"})
	if err != nil {
		t.Fatal(err)
	}
	child, err := h.Create(ctx, address.Descriptor{Type: address.Subagent, ParentAgentID: parent.ID, Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	grandchild, err := h.Create(ctx, address.Descriptor{Type: address.Subagent, ParentAgentID: child.ID, Name: "y"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Kill(ctx, parent.ID); err != nil {
		t.Fatal(err)
	}
	if got, want := ends(h), []string{grandchild.ID + " killed", child.ID + " killed", parent.ID + " killed"}; !slices.Equal(got, want) {
		t.Errorf("the ends are told as %q, want the youngest first: %q", got, want)
	}
	for _, id := range []string{parent.ID, child.ID} {
		if _, err := h.Deliver(ctx, message.Incoming{Agent: id, Text: "x"}); !errors.Is(err, message.ErrUnknownAgent) {
			t.Errorf("posting to a dead agent: %v, want ErrUnknownAgent", err)
		}
		if st, _, _, err := record.ReadState(h.folder(id)); err != nil || st.Ended == nil {
			t.Errorf("agent %s is not marked as ended: %v", id, err)
		}
	}
	busy := h.deliver(from("busy", "x"))
	if _, err := h.Remove(ctx, busy.Agent, false); !errors.Is(err, ErrBusy) {
		t.Errorf("removal of a busy agent: %v, want ErrBusy", err)
	}
	trash, err := h.Remove(ctx, busy.Agent, true)
	if err != nil {
		t.Fatal(err)
	}
	if items, err := inbox.ReadAll(trash); err != nil || len(items) != 1 {
		t.Errorf("the item did not go along: %d items, %v", len(items), err)
	}
	if _, awake := h.lifecycle.actors.awake(busy.Agent); awake || !slices.Contains(ends(h), busy.Agent+" removed") {
		t.Errorf("the removed agent is still in memory: %v; the ends are %q", awake, ends(h))
	}
	if again := h.deliver(from("busy", "x")); again.Agent == busy.Agent {
		t.Error("the next message went to the removed agent")
	}
}

// Who watches is told of each item once: when it waits. What is delivered again is not news.
func TestADeliveryIsTold(t *testing.T) {
	h := newHouse(t, t.TempDir(), idle)
	in := from("one", "hello")
	in.Dedupe = "key"
	first, again := h.deliver(in), h.deliver(in)
	queued := 0
	for _, e := range told(h) {
		if i, ok := e.Body.(event.Item); ok && e.Type == event.ItemQueued && e.Agent == first.Agent && i.Item == first.Item {
			queued++
		}
	}
	if queued != 1 || !again.Duplicate {
		t.Errorf("it is told %d times, want once; delivered again it is %+v", queued, again)
	}
}

// ends are the agents that have ended, and why, in their order.
func ends(h *house) (list []string) {
	for _, e := range told(h) {
		if r, ok := e.Body.(event.Reason); ok && e.Type == event.AgentEnded {
			list = append(list, e.Agent+" "+r.Reason)
		}
	}

	return list
}

// Who ends an agent waits until it has ended, as long as there is time.
func TestAnAgentIsEndedWhenItsKillReturns(t *testing.T) {
	release := make(chan struct{})
	var ended atomic.Bool
	h := newHouse(t, t.TempDir(), func(ctx context.Context, _ Runtime) error {
		<-ctx.Done()
		<-release
		time.Sleep(20 * time.Millisecond)
		ended.Store(true)
		return nil
	})
	made, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	h.deliver(message.Incoming{Agent: made.ID, Text: "x"})
	waitFor(t, "the agent to wake", func() bool { _, awake, _ := h.Counts(); return awake == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := h.Kill(ctx, made.ID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("kill of an agent that does not end: %v, want that there was no time", err)
	}
	close(release)
	if err := h.Kill(t.Context(), made.ID); err != nil || !ended.Load() {
		t.Errorf("kill: %v; the agent has ended: %v", err, ended.Load())
	}
}

// Who stops daycare waits for its agents, which write down where they are.
func TestAgentsHaveEndedWhenTheSystemHas(t *testing.T) {
	var ended atomic.Bool
	h := newHouse(t, t.TempDir(), func(ctx context.Context, _ Runtime) error {
		<-ctx.Done()
		time.Sleep(300 * time.Millisecond) // longer than the grace that senders have
		ended.Store(true)
		return nil
	})
	h.deliver(from("one", "x"))
	waitFor(t, "the agent to wake", func() bool { _, awake, _ := h.Counts(); return awake == 1 })
	if err := h.end(); err != nil || !ended.Load() {
		t.Errorf("the end: %v; the agent has ended: %v", err, ended.Load())
	}
}

func TestAFolderCopiedInIsAnAgent(t *testing.T) {
	root := t.TempDir()
	h := newHouse(t, root, echo(func(string, inbox.Item) {}))
	events := h.events.Subscribe(t.Context())
	const id = "abcdefghijklmnopqrstuvwx"
	temp := filepath.Join(t.TempDir(), id)
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(temp, "descriptor.json"),
		[]byte(`{"type":"permanent","id":"`+id+`","name":"Copy"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(temp, filepath.Join(root, "agents", id)); err != nil {
		t.Fatal(err)
	}
	wait := func(kind event.Type) {
		t.Helper()
		for e := range events {
			if e.Type == kind && e.Agent == id {
				return
			}
		}
	}
	wait(event.AgentCreated)
	if r := h.deliver(message.Incoming{Agent: "Copy", Text: "hello"}); r.Agent != id {
		t.Errorf("delivered to %s, want %s", r.Agent, id)
	}
	wait(event.AgentSlept) // an agent at work writes into its folder while it is removed
	if err := os.RemoveAll(filepath.Join(root, "agents", id)); err != nil {
		t.Fatal(err)
	}
	wait(event.AgentEnded)
	if _, err := h.Deliver(t.Context(), message.Incoming{Agent: id, Text: "x"}); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("delivery to a folder that is gone: %v", err)
	}
}

func TestARefusedFolderIsAnAgentOnceItsDescriptorIsMended(t *testing.T) {
	root := t.TempDir()
	h := newHouse(t, root, echo(func(string, inbox.Item) {}))
	first := h.deliver(from("someone", "x"))
	const id = "abcdefghijklmnopqrstuvwx"
	descriptor := filepath.Join(root, "agents", id, "descriptor.json")
	if err := os.CopyFS(filepath.Join(root, "agents", id), os.DirFS(filepath.Join(root, "agents", first.Agent))); err != nil {
		t.Fatal(err)
	}
	events := h.events.Subscribe(t.Context())
	wait := func(kind event.Type, agent string) {
		t.Helper()
		for e := range events {
			if e.Type == kind && e.Agent == agent {
				return
			}
		}
	}
	wait(event.FileInvalid, id) // it has the address of the first
	data, err := os.ReadFile(descriptor)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(root, "agents", "notes.txt"), "no agent")
	writeFile(t, descriptor, "{")
	wait(event.FileInvalid, id) // it is looked at after each edit
	mended := bytes.Replace(data, []byte("someone"), []byte("another"), 1)
	if err := os.WriteFile(descriptor, mended, 0o600); err != nil {
		t.Fatal(err)
	}
	wait(event.AgentCreated, id)
	if left := h.problems.Of(id); len(left) > 0 {
		t.Errorf("still reported are %+v", left)
	}
	if all := h.actors.watcher.Degraded(); len(all) > 0 {
		t.Errorf("not watched are %q, want that files beside the agents are left alone", all)
	}
	if r := h.deliver(from("another", "hello")); r.Agent != id {
		t.Errorf("delivered to %s, want %s", r.Agent, id)
	}
}

// A folder that is refused and then removed is not watched any more.
func TestARefusedFolderThatIsRemoved(t *testing.T) {
	root := t.TempDir()
	h := newHouse(t, root, idle)
	<-h.Looked()
	const refused, later = "abcdefghijklmnopqrstuvwx", "bcdefghijklmnopqrstuvwxa"
	dir := func(id string) string { return filepath.Join(root, "agents", id) }
	put := func(id, text string) {
		part := filepath.Join(root, "part")
		must(t, os.Mkdir(part, 0o700))
		writeFile(t, filepath.Join(part, address.File), text)
		must(t, os.Rename(part, dir(id)))
	}
	put(refused, "{")
	waitFor(t, "its report", func() bool { return len(h.problems.Of(refused)) > 0 })
	must(t, os.RemoveAll(dir(refused)))
	put(later, `{"type":"permanent","id":"`+later+`","name":"Ops"}`)
	waitFor(t, "what came later", func() bool { _, ok := h.index.Get(later); return ok })
	waitFor(t, "the end of its watch", func() bool { return len(h.actors.watcher.Degraded()) == 0 })
}

func TestAnEndedAgentStaysEnded(t *testing.T) {
	root := t.TempDir()
	h := newHouse(t, root, echo(func(string, inbox.Item) {}))
	ctx := context.Background()
	a, err := h.Create(ctx, address.Descriptor{Type: address.Permanent, Name: "Ops"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Kill(ctx, a.ID); err != nil {
		t.Fatal(err)
	}
	if err := h.end(); err != nil {
		t.Fatal(err)
	}
	h = newHouse(t, root, echo(func(string, inbox.Item) { t.Error("a dead agent works") }))
	if _, err := h.Deliver(ctx, message.Incoming{Agent: a.ID, Text: "x"}); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("posting to an agent that ended before the restart: %v, want ErrUnknownAgent", err)
	}
}

// Who takes the end out of state.json has the agent back at its next message, without a restart.
func TestAHandRevivesAnAgent(t *testing.T) {
	answered := make(chan string, 1)
	h := newHouse(t, t.TempDir(), echo(func(_ string, it inbox.Item) { answered <- it.Text }))
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Kill(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second answer is from what memory keeps
		_, err := h.Deliver(t.Context(), message.Incoming{Agent: a.ID, Text: "x"})
		if !errors.Is(err, message.ErrUnknownAgent) {
			t.Fatalf("posting to an agent that has ended: %v, want ErrUnknownAgent", err)
		}
	}
	if err := os.WriteFile(filepath.Join(h.folder(a.ID), "state.json"), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if now, err := h.Agent(t.Context(), a.ID); err != nil || now.State == event.Ended {
		t.Errorf("it is shown as %s, %v", now.State, err)
	}
	h.deliver(message.Incoming{Agent: a.ID, Text: "are you back?"})
	if text := <-answered; text != "are you back?" {
		t.Errorf("it works on %q", text)
	}
	if h.ended(a.ID) {
		t.Error("it works and counts as one that has ended")
	}
}

func TestABrokenStateDoesNotReviveAnAgent(t *testing.T) {
	root := t.TempDir()
	h := newHouse(t, root, echo(func(string, inbox.Item) {}))
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Kill(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	if err := h.end(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "agents", a.ID, "state.json")
	for name, content := range map[string]string{"half a file": `{"ended": {"at": "20`, "a bad member": `{"ended": 7}`} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		h = newHouse(t, root, echo(func(string, inbox.Item) { t.Error("a dead agent works") }))
		if _, err := h.Deliver(t.Context(), message.Incoming{Agent: a.ID, Text: "x"}); !errors.Is(err, message.ErrUnknownAgent) {
			t.Errorf("%s: posting to an agent that has ended: %v, want ErrUnknownAgent", name, err)
		}
		if now, err := h.Agent(t.Context(), a.ID); err != nil || now.State != event.Ended {
			t.Errorf("%s: it is shown as %s, %v", name, now.State, err)
		}
		if err := h.end(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestABrokenStateDoesNotProtectFromBeingKilled(t *testing.T) {
	h := newHouse(t, t.TempDir(), echo(func(string, inbox.Item) {}))
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(h.folder(a.ID), "state.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := h.Kill(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Deliver(t.Context(), message.Incoming{Agent: a.ID, Text: "x"}); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("posting to a killed agent: %v, want ErrUnknownAgent", err)
	}
	kept, err := filepath.Glob(path + ".conflict-*")
	if err != nil || len(kept) != 1 {
		t.Errorf("the broken file is kept as %v, %v; want one copy", kept, err)
	}
}

func TestEmptyAndOversizedMessagesAreRefused(t *testing.T) {
	h := newHouse(t, t.TempDir(), echo(func(string, inbox.Item) {}))
	ctx := context.Background()
	if _, err := h.Deliver(ctx, from("one", " \n")); !errors.Is(err, ErrEmpty) {
		t.Errorf("empty: %v", err)
	}
	if _, err := h.Deliver(ctx, from("one", string(make([]byte, inbox.MaxItemBytes+1)))); !errors.Is(err, inbox.ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if n := len(h.index.All()); n != 0 {
		t.Errorf("a refused message made %d agents", n)
	}
}

// An agent that is being removed accepts nothing more, also while someone still waits for
// something of it: it would be lost with its folder.
func TestAnAgentThatIsBeingRemovedAcceptsNothing(t *testing.T) {
	h := newHouse(t, t.TempDir(), echo(func(string, inbox.Item) {}))
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	e, _, err := h.acquire(a.ID)
	must(t, err)
	defer e.release()
	must(t, e.halt(t.Context()))
	if r, err := h.Deliver(t.Context(), message.Incoming{Agent: a.ID, Text: "x"}); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("accepted as %+v, %v", r, err)
	}
	if !h.actors.ended(a.ID) {
		t.Error("it passes for an agent that lives")
	}
}

// A message does not bring an agent back whose folder was taken away.
func TestAMessageMakesNoFolderOfAnAgentThatIsGone(t *testing.T) {
	h := newHouse(t, t.TempDir(), echo(func(string, inbox.Item) {}))
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	e, err := h.entry(a.ID)
	must(t, err)
	must(t, os.RemoveAll(h.folder(a.ID)))
	e.end()
	if _, err := e.open(); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("opened: %v", err)
	}
	if disk.Exists(h.folder(a.ID)) {
		t.Error("its folder is there again")
	}
}

// An agent that has ended is not in memory, whether it slept when it was ended or someone wrote
// to it since: a daemon that runs for a year ends many.
func TestAgentsThatEndedAreNotInMemory(t *testing.T) {
	root := t.TempDir()
	h := newHouse(t, root, echo(func(string, inbox.Item) {}))
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	must(t, h.Kill(t.Context(), a.ID))
	write := func() {
		t.Helper()
		if _, err := h.Deliver(t.Context(), message.Incoming{Agent: a.ID, Text: "x"}); !errors.Is(err, message.ErrUnknownAgent) {
			t.Errorf("written to after its end: %v", err)
		}
		if _, in := h.awake(a.ID); in {
			t.Error("written to after its end, it is in memory")
		}
	}
	if _, in := h.awake(a.ID); in {
		t.Error("after its end it is in memory")
	}
	write()
	must(t, h.end())

	h = newHouse(t, root, echo(func(string, inbox.Item) {}))
	write()
}

// An agent is announced once, with its first message or when it is made by hand.
func TestANewAgentIsAnnouncedOnce(t *testing.T) {
	h := newHouse(t, t.TempDir(), idle)
	first := h.deliver(from("one", "hello")).Agent
	h.deliver(from("one", "again"))
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.User, Connector: "terminal", UserID: "u"})
	must(t, err)
	made := map[string]int{}
	for _, e := range told(h) {
		if e.Type == event.AgentCreated {
			made[e.Agent]++
		}
	}
	if len(made) != 2 || made[first] != 1 || made[a.ID] != 1 {
		t.Errorf("announced are %v, want %s and %s once", made, first, a.ID)
	}
}

// The terminal's own agent is that of the user of this machine.
func TestTheTerminalsUser(t *testing.T) {
	if u, err := user.Current(); err == nil && Terminal().UserID != u.Username {
		t.Errorf("it is %q's, want %q's", Terminal().UserID, u.Username)
	}
}

// Two connectors with one id are no system.
func TestConnectorsHaveTheirOwnIDs(t *testing.T) {
	_, err := New(Options{Connectors: []Connector{&chatRoom{}, &chatRoom{}}, Files: Files{Root: t.TempDir()},
		Reports: Reports{Events: event.NewStream("t"), Log: slog.New(slog.DiscardHandler)}})
	if err == nil {
		t.Error("no error")
	}
}

// Who waits for an item that is dropped hears so.
func TestADroppedItemIsAwaited(t *testing.T) {
	s := newStill(t)
	r, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	must(t, s.Drop(t.Context(), r.Agent, r.Item))
	if o, err := s.System.Await(t.Context(), r.Agent, r.Item); err != nil || o.Reason != "dropped" {
		t.Errorf("%+v, %v", o, err)
	}
}

// An agent whose folder is taken away while it works ends, and is not started again for what waits.
func TestAnAgentWithoutItsFolderIsNotStartedAgain(t *testing.T) {
	var runs atomic.Int32
	s := newStill(t)
	r, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- s.System.Run(ctx, func(_ context.Context, rt Runtime) error {
			runs.Add(1)
			return errors.Join(os.RemoveAll(rt.Dir), fmt.Errorf("%w: history.jsonl", record.ErrGone))
		})
	}()
	waitFor(t, "its end", func() bool { _, awake := s.System.awake(r.Agent); return runs.Load() > 0 && !awake })
	stop()
	must(t, <-ended)
	if n := runs.Load(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// An agent that has ended needs no more tries to wake it, and none that waited for one is left.
func TestAnAgentThatHasEndedIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t, t.TempDir(), idle)
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	waitFor(t, "the start", func() bool { return h.actors.start.Load() != nil })
	must(t, h.Kill(t.Context(), a.ID))
	w := h.actors.waker
	w.unwoken(a.ID, syscall.EMFILE) // meanwhile
	waitFor(t, "the last try", func() bool {
		h.wake(a.ID)
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.trouble[a.ID] == nil
	})
}

// What an agent shows ends with its run, also while someone still needs its inbox.
func TestWhatAnAgentShowsEndsWithItsRun(t *testing.T) {
	let := make(chan struct{})
	h := newHouse(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
		rt.Show(event.Thinking, "")
		select {
		case <-let:
		case <-ctx.Done():
		}
		return echo(func(string, inbox.Item) {})(ctx, rt)
	})
	r := h.deliver(from("one", "hello"))
	e, _, err := h.acquire(r.Agent)
	must(t, err)
	defer e.release()
	state := func() event.State {
		a, err := h.Agent(t.Context(), r.Agent)
		must(t, err)
		return a.State
	}
	waitFor(t, "it shows that it works", func() bool { return state() == event.Thinking })
	close(let)
	waitFor(t, "its end", func() bool { return h.rests(r.Agent) })
	if now := state(); now != event.Idle {
		t.Errorf("it shows %s", now)
	}
}

// Agents that sleep are counted with what waits for them, and are not awake.
func TestHowManyAgentsThereAre(t *testing.T) {
	s := newStill(t)
	r, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	_, err = s.Deliver(t.Context(), from("one", "again"))
	must(t, err)
	s.colleague(t)
	if agents, awake, queued := s.Counts(); agents != 2 || awake != 0 || queued != 2 {
		t.Errorf("%d agents, %d awake, %d items, want 2, 0 and 2", agents, awake, queued)
	}
	list, err := s.Agents(t.Context())
	must(t, err)
	for _, a := range list {
		if waits := a.ID == r.Agent; waits != (a.OldestAt != nil && time.Since(*a.OldestAt) < time.Hour) {
			t.Errorf("%+v, want that its oldest item is of today: %v", a, waits)
		}
	}
}
