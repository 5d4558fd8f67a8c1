package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// others plays the other machines: who owns which agent, and what they accept.
type others struct {
	mu       sync.Mutex
	owned    map[string]bool   // here
	at       map[string]string // the machine that owns an agent
	calls    []string
	accepted []inbox.Item
	asked    int // how often it was asked for an item
	lost     int // how many of the next forwards are accepted without an answer
	refuse   int // how many of the next forwards are refused, as by a machine that does not answer
	watch    func(ctx context.Context, adopt, lose func(string))
	parted   func(string)
	known    map[string]bool // announced, and ended or not
	retired  []string
	stays    error         // what Retire answers
	edited   []string      // agents
	state    string        // state.json of every agent of another machine; "": none answers
	leads    chan struct{} // closed when this machine runs the connectors; nil: it does from the beginning
}

func newOthers() *others { return &others{owned: map[string]bool{}, at: map[string]string{}} }

func (o *others) Acquire(agent string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if node := o.at[agent]; node != "" {
		return &message.Elsewhere{Node: node}
	}
	if !o.owned[agent] {
		o.calls = append(o.calls, "acquire")
	}
	o.owned[agent] = true

	return nil
}

func (o *others) Release(agent string, open bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.owned, agent)
	o.calls = append(o.calls, fmt.Sprint("release open=", open))
}

func (o *others) Forward(_ context.Context, node, agent string, it inbox.Item) (message.Receipt, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refuse > 0 {
		o.refuse--
		return message.Receipt{}, &message.Elsewhere{Node: node}
	}
	r := message.Receipt{Agent: agent, Item: it.ID}
	for _, had := range o.accepted {
		r.Duplicate = r.Duplicate || had.ID == it.ID
	}
	o.accepted = append(o.accepted, it)
	if o.lost > 0 {
		o.lost--
		return message.Receipt{}, &message.Elsewhere{Node: node}
	}

	return r, nil
}

func (o *others) Item(_ context.Context, node, agent, item string) (event.Posted, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.refuse > 0 {
		o.refuse--
		return event.Posted{}, &message.Elsewhere{Node: node}
	}
	for i, had := range o.accepted {
		if had.ID != item {
			continue
		}
		p := event.Posted{Agent: agent, Item: item, State: "waiting"}
		if o.asked++; o.asked > 2 {
			p.State, p.Outcome = "done", &event.Outcome{Agent: agent, Item: item, Reason: "done", Text: o.accepted[i].Text}
		}
		return p, nil
	}

	return event.Posted{}, inbox.ErrUnknown
}

func (o *others) State(_ context.Context, node, _ string) ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state == "" {
		return nil, &message.Elsewhere{Node: node}
	}
	return []byte(o.state), nil
}

func (o *others) Claim(_, id string) (string, error)      { return id, nil }
func (o *others) Number(handle, _ string) (string, error) { return handle, nil }

func (o *others) Announce(m address.Meta, ended bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.known == nil {
		o.known = map[string]bool{}
	}
	o.known[m.ID] = ended

	return nil
}

func (o *others) Edited(agent string, names ...string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if slices.Equal(names, settingFiles) {
		o.edited = append(o.edited, agent)
	}
	return nil
}

func (o *others) Retire(agent string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.retired = append(o.retired, agent)
	return o.stays
}

func (o *others) Lead(ctx context.Context, _ string, do func(context.Context) error) error {
	if o.leads != nil {
		select {
		case <-o.leads:
		case <-ctx.Done():
			return nil
		}
	}

	return do(ctx)
}

func (o *others) Watch(ctx context.Context, adopt, lose func(string), _ func(address.Meta, bool), parted func(string)) {
	o.mu.Lock()
	o.parted = parted
	o.mu.Unlock()
	if o.watch != nil {
		o.watch(ctx, adopt, lose)
	}
	<-ctx.Done()
}

func (o *others) took() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]string(nil), o.calls...)
}

func (o *others) move(agent, node string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at[agent] = node
}

// newHouseAmong is a house on one of several machines.
func newHouseAmong(t *testing.T, o *others, start StartFunc) *house {
	t.Helper()
	return newHouseWith(t, t.TempDir(), start, Options{Files: Files{Peers: o}})
}

// An agent is owned from its first use until its files are closed.
func TestAnAgentIsOwnedWhileItIsAwake(t *testing.T) {
	o := newOthers()
	h := newHouseAmong(t, o, echo(func(string, inbox.Item) {}))
	until(t, "agents can be woken", func() bool { return h.actors.start.Load() != nil }) // else it is given up with the message open
	r := h.deliver(from("one", "hello"))
	if _, err := h.Await(t.Context(), r.Agent, r.Item); err != nil && !errors.Is(err, inbox.ErrClosed) {
		t.Fatal(err)
	}
	until(t, "the agent is given up", func() bool {
		calls := o.took()
		return len(calls) > 0 && len(calls)%2 == 0
	})
	for i, call := range o.took() {
		if want := []string{"acquire", "release open=false"}[i%2]; call != want {
			t.Fatalf("calls %q", o.took())
		}
	}
}

// What a user saves in the folder of an agent that is awake is brought to the other machines.
func TestAnEditIsPassedOn(t *testing.T) {
	o := newOthers()
	awake, done := make(chan struct{}), make(chan struct{})
	h := newHouseAmong(t, o, func(ctx context.Context, rt Runtime) error {
		close(awake)
		select {
		case <-done:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	r := h.deliver(from("one", "hello"))
	<-awake
	defer close(done)
	o.mu.Lock()
	o.edited = nil
	o.mu.Unlock()
	if err := os.WriteFile(filepath.Join(h.folder(r.Agent), "state.json"), []byte(`{"model":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the other machines have the edit", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return slices.Contains(o.edited, r.Agent)
	})
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// A message for an agent of another machine goes there, under one id however often it is
// offered.
func TestAMessageFollowsItsAgent(t *testing.T) {
	o := newOthers()
	h := newHouseAmong(t, o, echo(func(string, inbox.Item) {}))
	first := h.deliver(from("one", "first"))
	until(t, "the agent sleeps", func() bool { _, awake := h.awake(first.Agent); return !awake })

	o.move(first.Agent, "other")
	o.mu.Lock()
	o.refuse = 2
	o.mu.Unlock()
	r := h.deliver(from("one", "second"))
	if len(o.accepted) != 1 || o.accepted[0].Text != "second" || o.accepted[0].ID != r.Item || r.Item == "" || r.Duplicate {
		t.Errorf("accepted elsewhere: %+v, receipt %+v", o.accepted, r)
	}

	// Back here, it is accepted here.
	o.move(first.Agent, "")
	if r := h.deliver(from("one", "third")); r.Item == "" || len(o.accepted) != 1 {
		t.Errorf("receipt %+v, accepted elsewhere %d", r, len(o.accepted))
	}
}

// A message that was accepted, of which the answer was lost, is offered again under its id: for its sender
// it is no duplicate.
func TestAMessageWhoseAnswerWasLostIsNoDuplicate(t *testing.T) {
	o := newOthers()
	h := newHouseAmong(t, o, echo(func(string, inbox.Item) {}))
	first := h.deliver(from("one", "first"))
	until(t, "the agent sleeps", func() bool { _, awake := h.awake(first.Agent); return !awake })
	o.move(first.Agent, "other")
	o.lost = 1
	r := h.deliver(from("one", "second"))
	if r.Duplicate || len(o.accepted) != 2 || o.accepted[0].ID != o.accepted[1].ID || r.Item != o.accepted[0].ID {
		t.Errorf("receipt %+v, accepted elsewhere %+v", r, o.accepted)
	}

	third := from("one", "third")
	third.ID, o.lost = cuid.Unique(), 1
	if r := h.deliver(third); !r.Duplicate {
		t.Errorf("the receipt does not say that the id was there: %+v", r)
	}
	o.move(first.Agent, "")
	again := from("one", "again")
	again.Dedupe = "c:1"
	if one, two := h.deliver(again), h.deliver(again); one.Duplicate || !two.Duplicate || one.Item != two.Item {
		t.Errorf("a message that comes twice: receipts %+v and %+v", one, two)
	}
}

// An agent that is kept here although it sleeps, and that another machine takes over, accepts nothing
// until it is let go; then it is whoever's the other machines say.
func TestAnAgentThatIsTakenOverAcceptsNothing(t *testing.T) {
	o := newOthers()
	h := newHouseAmong(t, o, echo(func(string, inbox.Item) {}))
	id := h.deliver(from("one", "first")).Agent
	until(t, "the agent sleeps", func() bool { _, awake := h.awake(id); return !awake })
	release, err := h.Hold(id)
	must(t, err)
	h.lose(id)
	if _, err := h.Posted(t.Context(), id, inbox.Item{Kind: message.Text, ID: cuid.Unique(), Text: "x"}); !errors.Is(err, disk.ErrFenced) {
		t.Errorf("a message: %v, want %v", err, disk.ErrFenced)
	}
	if _, err := h.Hold(id); !errors.Is(err, disk.ErrFenced) {
		t.Errorf("another hold: %v, want %v", err, disk.ErrFenced)
	}
	release()
	if _, err := h.Posted(t.Context(), id, inbox.Item{Kind: message.Text, ID: cuid.Unique(), Text: "x"}); err != nil {
		t.Errorf("a message afterwards: %v", err)
	}
}

// A fencedBox is an inbox whose file another machine has taken over.
type fencedBox struct{ inbox.Mailbox }

func (fencedBox) Accept(context.Context, inbox.Item) (message.Receipt, error) {
	return message.Receipt{}, fmt.Errorf("sync inbox: %w", disk.ErrFenced)
}

// A message that cannot be written because another machine has the agent ends the work on it here.
func TestAMessageForAnAgentThatIsTakenOver(t *testing.T) {
	o := newOthers()
	h := newHouseAmong(t, o, echo(func(string, inbox.Item) {}))
	id := h.deliver(from("one", "first")).Agent
	until(t, "the agent sleeps", func() bool { _, awake := h.awake(id); return !awake })
	e, box, err := h.acquire(id)
	must(t, err)
	e.mu.Lock()
	e.box = fencedBox{box}
	e.mu.Unlock()
	if _, err := h.Posted(t.Context(), id, inbox.Item{Kind: message.Text, ID: cuid.Unique(), Text: "x"}); !errors.Is(err, disk.ErrFenced) {
		t.Errorf("%v, want %v", err, disk.ErrFenced)
	}
	if _, _, err := h.acquire(id); !errors.Is(err, disk.ErrFenced) {
		t.Errorf("the next one finds it open: %v", err)
	}
	e.release()
	until(t, "it is let go", func() bool { now, _ := h.awake(id); return now != e })
}

// An agent of another machine is neither ended nor removed here, nor is one that is woken tried again.
func TestAnAgentOfAnotherMachineIsNotEndedHere(t *testing.T) {
	t.Parallel()
	o := newOthers()
	h := newHouseAmong(t, o, echo(func(string, inbox.Item) {}))
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	o.move(a.ID, "other")
	if err := h.Kill(t.Context(), a.ID); !errors.As(err, new(*message.Elsewhere)) {
		t.Errorf("killed: %v", err)
	}
	if _, err := h.Remove(t.Context(), a.ID, true); !errors.As(err, new(*message.Elsewhere)) || !disk.Exists(h.folder(a.ID)) {
		t.Errorf("removed: %v", err)
	}
	if h.actors.ended(a.ID) {
		t.Error("it has ended here")
	}
	o.move(a.ID, "")
	child, err := h.Create(t.Context(), address.Descriptor{Type: address.Subagent, ParentAgentID: a.ID, Name: "c"})
	must(t, err)
	o.move(child.ID, "other")
	if _, err := h.Remove(t.Context(), a.ID, true); !errors.As(err, new(*message.Elsewhere)) || !disk.Exists(h.folder(a.ID)) {
		t.Errorf("removed with a child there: %v", err)
	}

	o.move(a.ID, "other")
	h.actors.waker.unwoken(a.ID, errors.New("too many open files"))
	w := h.actors.waker
	until(t, "the agent is no longer tried", func() bool {
		h.actors.wake(a.ID)
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.trouble[a.ID] == nil
	})
}

// A removal that the other machines do not hear of can be made again: the agent is there, and has ended.
func TestARemovalThatOthersDoNotHearOf(t *testing.T) {
	o := newOthers()
	h := newHouseAmong(t, o, echo(func(string, inbox.Item) {}))
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	o.stays = disk.ErrAway
	if _, err := h.Remove(t.Context(), a.ID, false); !errors.Is(err, disk.ErrAway) {
		t.Errorf("removed: %v, want %v", err, disk.ErrAway)
	}
	if _, known := h.index.Get(a.ID); !known || !h.actors.ended(a.ID) {
		t.Errorf("it is known: %v, ended: %v, want both", known, h.actors.ended(a.ID))
	}
}

// An agent that is kept here for an answer, and for nothing else, is given up once that has left.
func TestAnAgentIsKeptForAnAnswer(t *testing.T) {
	o, room := newOthers(), newSlowRoom()
	h := newHouseWith(t, t.TempDir(), echo(func(string, inbox.Item) {}), Options{Connectors: []Connector{room}, Files: Files{Peers: o}})
	id := h.deliver(from("one", "hello")).Agent
	until(t, "the agent sleeps", func() bool { _, awake := h.awake(id); return !awake })
	h.senders.send(message.Promise{Agent: id, Since: time.Now(), Report: func(message.Result) {},
		Outgoing: message.Outgoing{ID: "answer", Text: "x", To: toRoom}})
	<-room.tries
	release, err := h.Hold(id)
	must(t, err)
	release()
	if _, awake := h.awake(id); !awake {
		t.Error("it is given up while its answer is on its way")
	}
	room.let <- nil
	until(t, "the agent is given up", func() bool { _, awake := h.awake(id); return !awake })
}

// An answer keeps its agent here until it has left: another machine would send it, too.
func TestAnAgentIsOwnedUntilItsAnswerHasLeft(t *testing.T) {
	o, room := newOthers(), newSlowRoom()
	h := newHouseWith(t, t.TempDir(), func(_ context.Context, rt Runtime) error {
		for _, f := range rt.Results.Take() {
			if !f.Delivered() {
				t.Errorf("the answer ended as %+v", f)
			}
		}
		for _, head := range rt.Inbox.Open() {
			rt.Send(message.Promise{Since: time.Now(), Report: rt.Results.Put,
				Outgoing: message.Outgoing{ID: "answer", Text: "x", To: toRoom}})
			if err := rt.Inbox.Done(head.ID); err != nil {
				return err
			}
		}
		return nil
	}, Options{Connectors: []Connector{room}, Files: Files{Peers: o}})
	owned := func(id string) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.owned[id]
	}
	id := h.deliver(from("one", "hello")).Agent
	<-room.tries
	until(t, "the agent rests", func() bool { return h.rests(id) })
	if !owned(id) {
		t.Error("it is given up while its answer is on its way")
	}
	room.let <- nil
	until(t, "it is given up", func() bool { return !owned(id) })
}

// Another machine offers the items that it forwards to whoever owns the agent, and not on.
func TestAForwardedMessageIsNotForwardedAgain(t *testing.T) {
	o := newOthers()
	h := newHouseAmong(t, o, echo(func(string, inbox.Item) {}))
	r := h.deliver(from("one", "first"))
	until(t, "the agent sleeps", func() bool { _, awake := h.awake(r.Agent); return !awake })
	o.move(r.Agent, "other")
	_, err := h.Posted(t.Context(), r.Agent, inbox.Item{Kind: message.Text, ID: cuid.Unique(), Text: "x"})
	if !errors.As(err, new(*message.Elsewhere)) || len(o.accepted) > 0 {
		t.Errorf("%v, %d accepted elsewhere", err, len(o.accepted))
	}
}

// An agent that another machine has taken over stops here, and its next message goes there.
func TestAnAgentIsLetGo(t *testing.T) {
	for name, lost := range map[string]func(h *house, id string) error{
		"by a fenced write": func(*house, string) error { return fmt.Errorf("sync history: %w", disk.ErrFenced) },
		"by the watch":      func(h *house, id string) error { h.lose(id); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOthers()
			var h *house
			ready, stopped := make(chan string, 10), make(chan error, 10)
			h = newHouseAmong(t, o, func(ctx context.Context, rt Runtime) error {
				ready <- rt.Meta.ID
				o.move(rt.Meta.ID, "other")
				if err := lost(h, rt.Meta.ID); err != nil {
					stopped <- err
					return err
				}
				<-ctx.Done()
				stopped <- context.Cause(ctx)

				return nil
			})
			r := h.deliver(from("one", "first"))
			<-ready
			if err := <-stopped; !errors.Is(err, disk.ErrFenced) {
				t.Errorf("stopped by %v", err)
			}
			until(t, "the agent is let go", func() bool { _, awake := h.awake(r.Agent); return !awake })
			if got := h.deliver(from("one", "second")); len(o.accepted) != 1 || got.Item != o.accepted[0].ID {
				t.Errorf("the second message: %+v, accepted elsewhere %+v", got, o.accepted)
			}
			until(t, "the files are closed", func() bool { _, awake := h.awake(r.Agent); return !awake })
			select {
			case id := <-ready:
				t.Errorf("agent %s was woken again", id)
			case <-time.After(50 * time.Millisecond):
			}
		})
	}
}

// An agent whose owner has ended continues here.
func TestAnOrphanIsAdopted(t *testing.T) {
	o := newOthers()
	var adopt func(string)
	got := make(chan struct{})
	o.watch = func(_ context.Context, a, _ func(string)) { adopt = a; close(got) }
	started := make(chan string, 10)
	h := newHouseAmong(t, o, func(_ context.Context, rt Runtime) error {
		started <- rt.Meta.ID
		for _, head := range rt.Inbox.Open() {
			if err := rt.Inbox.Done(head.ID); err != nil {
				return err
			}
		}
		return nil
	})
	<-got
	r := h.deliver(from("one", "first"))
	<-started
	until(t, "the agent sleeps", func() bool { _, awake := h.awake(r.Agent); return !awake })
	adopt(r.Agent)
	select {
	case id := <-started:
		if id != r.Agent {
			t.Errorf("agent %s was woken", id)
		}
	case <-time.After(time.Minute):
		t.Error("the orphan was not woken")
	}
}

// A dropped message for an agent that another machine has just made waits until that one is known here; one for
// nobody is refused after a while.
func TestALetterForAnAgentThatIsNotKnownYet(t *testing.T) {
	root := t.TempDir()
	o := newOthers()
	h := newHouseWith(t, root, echo(func(string, inbox.Item) {}), Options{Files: Files{Peers: o}})
	made := address.Meta{ID: cuid.New(), Handle: "0-7",
		Descriptor: address.Descriptor{Type: address.User, Connector: "api", ChannelID: "c"}}
	o.move(made.ID, "other")
	drop := func(name, text string, age time.Duration) {
		t.Helper()
		part, at := filepath.Join(root, "part"), time.Now().Add(-age)
		err := os.WriteFile(part, []byte(text), 0o600)
		if err = errors.Join(err, os.Chtimes(part, at, at), os.Rename(part, filepath.Join(root, "drop", name))); err != nil {
			t.Fatal(err)
		}
	}
	drop(made.ID+"__first.md", "early", 0)
	drop("nobody__old.md", "for nobody", 2*newHere)

	until(t, "what is for nobody is refused", func() bool { return disk.Exists(filepath.Join(root, "drop", "bad", "nobody__old.md")) })
	if disk.Exists(filepath.Join(root, "drop", "bad", made.ID+"__first.md")) {
		t.Error("what came early is refused")
	}
	h.index.Met(made)
	until(t, "what came early is there", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return len(o.accepted) == 1 && o.accepted[0].Text == "early"
	})
}

// Agents are introduced one by one: one that another machine has is skipped, one whose ownership is not known ends it,
// as the end of the context does.
func TestIntroductions(t *testing.T) {
	o := newOthers()
	h := newHouseAmong(t, o, idle)
	var ids []string
	for range 3 {
		meta, err := h.index.Create(address.Descriptor{Type: address.Permanent, Name: "a"}, []byte("{}\n"))
		must(t, err)
		ids = append(ids, meta.ID)
	}
	owned := func(id string) bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.owned[id]
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Introduce(ended, ids); err != nil || len(o.took()) > 0 {
		t.Errorf("after the end: %v, calls %q", err, o.took())
	}

	o.move(ids[0], "other")
	must(t, h.Introduce(t.Context(), ids[:2]))
	if calls := o.took(); !slices.Contains(calls, "acquire") || owned(ids[0]) {
		t.Errorf("calls %q, want the second agent introduced, not the first", calls)
	}
	if err := h.Introduce(t.Context(), []string{"none", ids[2]}); !errors.Is(err, message.ErrUnknownAgent) || owned(ids[2]) {
		t.Errorf("an agent that is not there: %v, want ErrUnknownAgent and no other introduced", err)
	}
}

// A connector that another machine runs is shown as one that stands by, until this machine runs it.
func TestAConnectorOfAnotherMachineStandsBy(t *testing.T) {
	o := newOthers()
	o.leads = make(chan struct{})
	h := newHouseWith(t, t.TempDir(), idle, Options{Connectors: []Connector{&hook{}}, Files: Files{Peers: o}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.Receive(ctx) }()
	defer func() { cancel(); <-done }()
	state := func() string { return h.Connectors()[0].State }
	until(t, "it stands by", func() bool { return state() == event.Standby })
	close(o.leads)
	until(t, "it runs here", func() bool { return state() != event.Standby })
}

// Who waits for the end of an item gets it of an agent on another machine, too, which may not answer at once.
func TestAwaitFollowsItsAgent(t *testing.T) {
	o := newOthers()
	h := newHouseAmong(t, o, echo(func(string, inbox.Item) {}))
	first := h.deliver(from("one", "first"))
	until(t, "the agent sleeps", func() bool { _, awake := h.awake(first.Agent); return !awake })
	o.move(first.Agent, "other")
	sent := h.deliver(from("one", "second"))
	o.mu.Lock()
	o.refuse = 2
	o.mu.Unlock()
	end, err := h.Await(t.Context(), sent.Agent, sent.Item)
	if err != nil || end.Reason != "done" || end.Text != "second" || o.asked < 3 {
		t.Errorf("it ended as %+v, %v, asked %d times", end, err, o.asked)
	}
	if end, err := h.Await(t.Context(), sent.Agent, "another"); err != nil || end.Reason != "dropped" {
		t.Errorf("an item that is gone ended as %+v, %v", end, err)
	}

	o.asked = -1000
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Await(ctx, sent.Agent, sent.Item); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait any more: %v", err)
	}
}

// What another machine announces of an agent applies here, unless this one has the agent.
func TestWhatIsAnnouncedOfAnAgent(t *testing.T) {
	o := newOthers()
	h := newHouseAmong(t, o, idle)
	theirs := address.Meta{ID: cuid.New(), Handle: "0-7",
		Descriptor: address.Descriptor{Type: address.User, Connector: "api", ChannelID: "c"}}
	h.met(theirs, true)
	if ended, known := h.index.Ended(theirs.ID); !ended || !known || !h.actors.ended(theirs.ID) {
		t.Errorf("an agent that has ended elsewhere has ended here: %v, known %v, seen %v", ended, known, h.actors.ended(theirs.ID))
	}
	h.met(theirs, false)
	if h.actors.ended(theirs.ID) {
		t.Error("an agent that is there again has ended here")
	}
	ours := h.deliver(from("one", "hello")).Agent
	until(t, "it works here", func() bool { return h.actors.runs(ours) })
	meta, _ := h.index.Get(ours)
	h.met(meta, true)
	if h.actors.ended(ours) {
		t.Error("an agent that works here has ended, because of an older announcement")
	}
	made := 0
	for _, e := range told(h) {
		if e.Type == event.AgentCreated && e.Agent == theirs.ID {
			made++
		}
	}
	if made != 1 {
		t.Errorf("the new agent was announced %d times, want once", made)
	}
}

// An agent that was removed on another machine is gone here, too.
func TestAnAgentThatIsRemovedElsewhere(t *testing.T) {
	o := newOthers()
	h := newHouseAmong(t, o, idle)
	theirs := address.Meta{ID: cuid.New(), Handle: "0-7",
		Descriptor: address.Descriptor{Type: address.User, Connector: "api", ChannelID: "c"}}
	h.met(theirs, false)
	var parted func(string)
	until(t, "the other machines are watched", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		parted = o.parted
		return parted != nil
	})
	parted(theirs.ID)
	if _, ok := h.index.Get(theirs.ID); ok || !slices.Contains(ends(h), theirs.ID+" removed on another machine") {
		t.Errorf("it is there: %v; the ends are %q", ok, ends(h))
	}

	older := h.deliver(from("older", "x")).Agent
	time.Sleep(2 * time.Millisecond) // inboxes tell times in milliseconds
	newer := h.deliver(from("newer", "x")).Agent
	if id, _ := h.Foreground(); id != newer {
		t.Errorf("the foreground is %s, want %s", id, newer)
	}
	parted(newer)
	if id, _ := h.Foreground(); id != older {
		t.Errorf("without it the foreground is %s, want %s", id, older)
	}
}
