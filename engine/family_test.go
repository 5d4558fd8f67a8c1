package engine

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	"daycare/engine/workspace"
)

// a household is a house whose agents may have children. What agents were told is
// kept; those named in hold stay at work until they are let go.
type household struct {
	*house
	*Family
	root string

	mu   sync.Mutex
	told []inbox.Item
	hold map[string]chan struct{} // by the agent's name
}

func newHousehold(t *testing.T, limits Limits, connectors ...Connector) *household {
	h := &household{root: filepath.Join(t.TempDir(), workspace.Home), hold: map[string]chan struct{}{}}
	h.house = newHouse(t, h.root, func(ctx context.Context, rt Runtime) error {
		h.mu.Lock()
		hold := h.hold[rt.Meta.Name]
		h.mu.Unlock()
		if hold != nil {
			select {
			case <-hold:
			case <-ctx.Done():
				return nil
			}
		}
		return echo(func(_ string, it inbox.Item) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.told = append(h.told, it)
			if it.Kind == message.Permission { // as agents do before an item is done; whoever answered may have been faster
				_, _ = h.approvals.asks.Settle(it.Token, permission.Decision(it.Decision), it.By, it.At)
			}
		})(ctx, rt)
	}, connectors...)
	h.Family = NewFamily(h.System, func() Limits { return limits })
	return h
}

// person is an agent of a user in a chat, who has just written.
func (h *household) person(chat string) string {
	r := h.deliver(from(chat, "hello"))
	if _, err := h.System.Await(h.t.Context(), r.Agent, r.Item); err != nil {
		h.t.Fatal(err)
	}
	return r.Agent
}

// child starts a child; wait holds it at work.
func (h *household) child(parent, name string, wait bool) (event.Agent, error) {
	if wait {
		h.mu.Lock()
		h.hold[name] = make(chan struct{})
		h.mu.Unlock()
	}
	return h.Family.Create(h.t.Context(), address.Descriptor{Type: address.Subagent, ID: address.ChildID(parent, name),
		ParentAgentID: parent, Name: name, CallID: name},
		message.Incoming{Origin: parent, Text: "do it", Dedupe: "call:" + parent + "/" + name})
}

func (h *household) items() (list []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, it := range h.told {
		list = append(list, it.Text)
	}
	return list
}

func TestLimitsOfChildren(t *testing.T) {
	h := newHousehold(t, Limits{Children: 2, Running: 3})
	one, two := h.person("one"), h.person("two")
	for _, name := range []string{"a", "b"} {
		if _, err := h.child(one, name, true); err != nil {
			t.Fatal(err)
		}
	}
	var limit *LimitError
	if _, err := h.child(one, "c", true); !errors.As(err, &limit) || limit.Setting != "agents.maxChildren" {
		t.Errorf("the third child of one agent: %v, want the limit agents.maxChildren", err)
	}
	if _, ok := h.index.Get(address.ChildID(one, "c")); ok {
		t.Error("the child that was refused exists")
	}
	if _, err := h.child(one, "b", true); err != nil {
		t.Errorf("a repeated start of a child that there is: %v", err)
	}
	if _, err := h.child(two, "d", true); err != nil {
		t.Fatal(err)
	}
	if _, err := h.child(two, "e", true); !errors.As(err, &limit) || limit.Setting != "agents.maxRunningChildren" {
		t.Errorf("the fourth of all: %v, want the limit agents.maxRunningChildren", err)
	}
	if n := len(h.Running(t.Context(), one)); n != 2 {
		t.Errorf("%d children are at work, want 2", n)
	}
	h.mu.Lock()
	close(h.hold["a"])
	h.mu.Unlock()
	for deadline := time.Now().Add(time.Minute); len(h.Running(t.Context(), one)) > 1 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if _, err := h.child(one, "f", true); err != nil {
		t.Errorf("after one has ended its work: %v", err)
	}
	if _, err := h.child(address.ChildID(one, "b"), "grandchild", false); err == nil {
		t.Error("a subagent started one of its own")
	}
}

// Starts at once must not slip through the limit together.
func TestLimitsHoldForStartsAtOnce(t *testing.T) {
	h := newHousehold(t, Limits{Children: 3})
	one := h.person("one")
	var mu sync.Mutex
	var wg sync.WaitGroup
	made := 0
	for i := range 20 {
		wg.Go(func() {
			if _, err := h.child(one, string(rune('a'+i)), true); err == nil {
				mu.Lock()
				made++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if made != 3 {
		t.Errorf("%d of 20 were started, want 3", made)
	}
}

func TestTargetOfAMessage(t *testing.T) {
	h := newHousehold(t, Limits{})
	if _, err := h.Target("nobody", ""); !errors.Is(err, ErrNobody) {
		t.Errorf("before a person wrote: %v, want ErrNobody", err)
	}
	first, second := h.person("one"), h.person("two")
	child, err := h.child(first, "c", false)
	if err != nil {
		t.Fatal(err)
	}
	ops, err := h.System.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	if err != nil {
		t.Fatal(err)
	}
	helper, err := h.System.Create(t.Context(), address.Descriptor{Type: address.Subagent, ParentAgentID: ops.ID, Name: "h"})
	must(t, err)
	for _, tt := range []struct{ from, ref, want, what string }{
		{child.ID, "", first, "a child tells its parent"},
		{helper.ID, "", second, "a child of a colleague tells whom a person wrote to last"},
		{ops.ID, "", second, "a colleague tells whom a person wrote to last"},
		{child.ID, "Ops", ops.ID, "by name"},
		{child.ID, "0/", first, "by handle"},
	} {
		if got, err := h.Target(tt.from, tt.ref); err != nil || got != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.what, got, err, tt.want)
		}
	}
}

func TestStrangersDoNotReachEachOther(t *testing.T) {
	h := newHousehold(t, Limits{})
	post := func(channel, user string) string {
		return h.deliver(message.Incoming{From: message.Address{Connector: "c", ChannelID: channel, UserID: user}, Text: "x"}).Agent
	}
	ada, other, bob := post("1", "ada"), post("2", "ada"), post("3", "bob")
	elsewhere := h.deliver(message.Incoming{From: message.Address{Connector: "d", ChannelID: "1", UserID: "ada"}, Text: "x"}).Agent
	mine := h.deliver(message.Incoming{From: Terminal(), Text: "x"}).Agent
	child, err := h.child(ada, "c", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		from, to string
		want     bool
	}{
		{ada, child.ID, true}, {child.ID, ada, true}, {ada, other, true}, {ada, bob, false}, {child.ID, bob, false},
		{bob, child.ID, false}, {mine, bob, true}, {ada, mine, false}, {ada, elsewhere, false}, {elsewhere, ada, false},
	} {
		_, err := h.Post(t.Context(), message.Incoming{Origin: tt.from, Agent: tt.to, Text: "x"})
		if (err == nil) != tt.want || err != nil && !errors.Is(err, ErrStranger) {
			t.Errorf("%s to %s: %v, want it to arrive: %v", h.name(tt.from), h.name(tt.to), err, tt.want)
		}
	}
	list, err := h.List(t.Context(), ada)
	if err != nil || len(list) != 3 {
		t.Errorf("a person in a chat is shown %d agents, want its family of 3: %v", len(list), err)
	}
}

// A right is shared only by whom is known to hold it.
func TestARightOfAnAgentWhoseStateCannotBeReadIsNotShared(t *testing.T) {
	s := newStill(t)
	id := s.colleague(t)
	child, err := s.System.Create(t.Context(), address.Descriptor{Type: address.Subagent, ParentAgentID: id, Name: "x"})
	must(t, err)
	state := filepath.Join(s.System.folder(id), "state.json")
	must(t, errors.Join(os.RemoveAll(filepath.Join(s.System.folder(id), ".state.json")), os.Remove(state), os.Mkdir(state, 0o700)))
	if err := s.Share(t.Context(), id, child.ID, "@web", "key"); err == nil || errors.Is(err, ErrNotHeld) {
		t.Errorf("%v, want that it cannot be read", err)
	}
}

// A call that a crash cut short is made again: its agent is announced once, and ended once.
func TestACallThatIsRepeated(t *testing.T) {
	h := newHousehold(t, Limits{})
	parent := h.person("one")
	child, err := h.child(parent, "a", false)
	must(t, err)
	again, err := h.child(parent, "a", false)
	must(t, err)
	made := 0
	for _, e := range told(h.house) {
		if e.Type == event.AgentCreated && e.Agent == child.ID {
			made++
		}
	}
	if again.ID != child.ID || made != 1 {
		t.Errorf("the second call made %s, the first %s; announced %d times", again.ID, child.ID, made)
	}
	for range 2 {
		_, err := h.Family.Stop(t.Context(), parent, child.ID)
		must(t, err)
	}
	if all := ends(h.house); len(all) != 1 {
		t.Errorf("the ends are %q", all)
	}
}

// Two users are one only as the same user of the same connector, and only users are.
func TestWhoIsOneUser(t *testing.T) {
	meta := func(id string, kind address.Type, connector, user string) address.Meta {
		return address.Meta{ID: id, Descriptor: address.Descriptor{Type: kind, Connector: connector, UserID: user}}
	}
	ada := meta("1", address.User, "c", "ada")
	for _, tt := range []struct {
		other address.Meta
		want  bool
	}{
		{ada, true}, {meta("2", address.User, "c", "ada"), true}, {meta("2", address.User, "d", "ada"), false},
		{meta("2", address.User, "c", "bob"), false}, {meta("2", address.Permanent, "c", "ada"), false},
	} {
		if oneUser(ada, tt.other) != tt.want || oneUser(tt.other, ada) != tt.want {
			t.Errorf("%+v: want one user: %v", tt.other, tt.want)
		}
	}
	if oneUser(meta("1", address.User, "c", ""), meta("2", address.User, "c", "")) {
		t.Error("two users of whom nothing is known are one")
	}
}

// Only a report to the agent that gave the work is answered where that was asked for.
func TestTheRouteOfAReport(t *testing.T) {
	h := newHousehold(t, Limits{})
	parent := h.person("one")
	one, err := h.child(parent, "a", false)
	if err != nil {
		t.Fatal(err)
	}
	two, err := h.child(parent, "b", false)
	if err != nil {
		t.Fatal(err)
	}
	route := message.Address{Connector: "c", ChannelID: "one"}
	for to, kept := range map[string]bool{parent: true, two.ID: false} {
		text := "done, " + to
		if _, err := h.Post(t.Context(), message.Incoming{Origin: one.ID, Agent: to, Text: text, Route: &route}); err != nil {
			t.Fatal(err)
		}
		waitFor(t, "its message", func() bool { return slices.Contains(h.items(), text) })
		h.mu.Lock()
		i := slices.IndexFunc(h.told, func(it inbox.Item) bool { return it.Text == text })
		if got := h.told[i].Route; (got != nil) != kept {
			t.Errorf("%s is answered at %v, want that the route is kept: %v", h.name(to), got, kept)
		}
		h.mu.Unlock()
	}
}

// A stop, or the end of a family, that cannot be written is an error, and the agent is at work.
func TestAnEndThatCannotBeWritten(t *testing.T) {
	h := newHousehold(t, Limits{})
	ops, err := h.System.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	if err != nil {
		t.Fatal(err)
	}
	child, err := h.child(ops.ID, "c", false)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "its work", func() bool { return len(h.items()) > 0 && !h.actors.busy(child.ID) })
	state := filepath.Join(h.root, "agents", child.ID, "state.json")
	if err := errors.Join(os.Remove(state), os.MkdirAll(filepath.Join(state, "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	_, stop := h.Family.Stop(t.Context(), ops.ID, child.ID)
	_, remove := h.System.Remove(t.Context(), child.ID, true)
	for what, err := range map[string]error{"stopped": stop, "removed": remove,
		"ended with its parent": h.System.Kill(t.Context(), ops.ID)} {
		if err == nil || errors.Is(err, ErrProtected) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if h.actors.ended(ops.ID) || h.actors.ended(child.ID) || !disk.Exists(h.folder(child.ID)) {
		t.Error("an agent has ended, or is in the trash, of which that is not written")
	}
	if err := os.RemoveAll(state); err != nil {
		t.Fatal(err)
	}
}

func (h *household) name(id string) string { m, _ := h.index.Get(id); return m.Handle + m.Name }

func TestMessagesInACircleEnd(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	if _, err := h.Post(t.Context(), message.Incoming{Origin: one, Agent: one, Text: "x", Hops: MaxHops}); err != nil {
		t.Errorf("at %d hops: %v", MaxHops, err)
	}
	if _, err := h.Post(t.Context(), message.Incoming{Origin: one, Agent: one, Text: "x", Hops: MaxHops + 1}); !errors.Is(err, ErrHops) {
		t.Errorf("at %d hops: %v, want ErrHops", MaxHops+1, err)
	}
}

func TestALongMessageGoesToAFile(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	long := strings.Repeat("täglich ", 2_000)
	for range 2 {
		r, err := h.Post(t.Context(), message.Incoming{Origin: one, Agent: one, Text: long})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.System.Await(t.Context(), r.Agent, r.Item); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(h.root), "messages", "*.md"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v, want one", files, err)
	}
	if data, err := os.ReadFile(files[0]); err != nil || string(data) != long {
		t.Errorf("the file has %d bytes, want %d: %v", len(data), len(long), err)
	}
	if got := h.items()[1]; !strings.Contains(got, files[0]) || len(got) > 3_000 {
		t.Errorf("the message is %d bytes, want a reference to %s: %.200s", len(got), files[0], got)
	}
}

func TestALongMessageIsNotWrittenThroughALink(t *testing.T) {
	outside := t.TempDir()
	for name, plant := range map[string]func(workspace string) error{
		"folder": func(w string) error { return os.Symlink(outside, filepath.Join(w, spillDir)) },
		"inside": func(w string) error {
			if err := os.Mkdir(filepath.Join(w, "secret"), 0o700); err != nil {
				return err
			}
			return os.Symlink("secret", filepath.Join(w, spillDir))
		},
	} {
		workspace := t.TempDir()
		if err := plant(workspace); err != nil {
			t.Fatal(err)
		}
		if err := writeBeneath(openRoot(t, workspace), spillDir, "x.md", "text"); err == nil {
			t.Errorf("%s: written through a symbolic link", name)
		}
	}
	workspace := t.TempDir()
	target := filepath.Join(outside, "target")
	if err := os.Mkdir(filepath.Join(workspace, spillDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(workspace, spillDir, "x.md")); err != nil {
		t.Fatal(err)
	}
	if err := writeBeneath(openRoot(t, workspace), spillDir, "x.md", "text"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("the file behind a planted link was written")
	}
}

func openRoot(t *testing.T, path string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

// The folder of the receiver became a link: nothing is written to where it leads.
func TestALongMessageIsNotWrittenIntoAReplacedFolder(t *testing.T) {
	work, outside := t.TempDir(), t.TempDir()
	s := &mailroom{place: place{root: filepath.Join(work, ".daycare")}, folders: permission.NewFolders(work)}
	mole := filepath.Join(work, "mole")
	dir := s.folder("m")
	state, err := record.EncodeState(workspace.At(work), record.State{Permissions: permission.Default(mole)})
	if err == nil {
		err = errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "state.json"), state, 0o600), os.Symlink(outside, mole))
	}
	if err != nil {
		t.Fatal(err)
	}
	if path, err := s.spill("m", inbox.Item{Origin: "o", Text: "long"}); err == nil {
		t.Errorf("written to %s", path)
	}
	if made, _ := os.ReadDir(outside); len(made) > 0 {
		t.Errorf("made %v outside", made)
	}
}

func TestAReportArrivesOnce(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	child, err := h.Family.Create(t.Context(), address.Descriptor{Type: address.Subagent, ID: address.ChildID(one, "c"), ParentAgentID: one,
		Name: "prober", Label: "probe", Task: "probe it", Route: message.Address{Connector: "chat", ChannelID: "7"}},
		message.Incoming{Origin: one, Text: "probe it"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan message.Result, 2)
	for range 2 { // as when a crash comes before the delivery was recorded
		h.senders.send(message.Promise{Since: time.Now(), Report: func(f message.Result) { done <- f },
			Outgoing: message.Outgoing{ID: "report:" + child.ID + ":t1", Text: "it works",
				To:     message.Address{Connector: message.ToAgent, ChannelID: one},
				Report: &message.Report{From: child.ID, Hops: 4}}})
		if f := <-done; !f.Delivered() {
			t.Errorf("result %+v", f)
		}
		waitFor(t, "the end of the promise", func() bool { return !h.senders.sending("") }) // until then it is the same one
	}
	items, err := inbox.ReadAll(h.folder(one))
	if err != nil {
		t.Fatal(err)
	}
	h.mu.Lock()
	items = append(items, h.told...)
	h.mu.Unlock()
	var reports []inbox.Item
	seen := map[string]bool{}
	for _, it := range items {
		if it.Origin == child.ID && !seen[it.ID] {
			seen[it.ID] = true
			reports = append(reports, it)
		}
	}
	if len(reports) != 1 {
		t.Fatalf("%d reports, want one: %+v", len(reports), reports)
	}
	it := reports[0]
	want := "[Subagent 'probe' completed]\nTask: probe it\nResult: it works\n"
	if !strings.HasPrefix(it.Text, want) || it.Hops != 4 || it.Kind != message.System {
		t.Errorf("report %+v, want it to begin with %q", it, want)
	}
	if diff := cmp.Diff(&message.Address{Connector: "chat", ChannelID: "7"}, it.Route); diff != "" {
		t.Errorf("route (-want +got):\n%s", diff)
	}
}

func TestAReportToADeadParentIsGivenUp(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	child, err := h.child(one, "c", false)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan message.Result, 1)
	h.senders.send(message.Promise{Since: time.Now(), Report: func(f message.Result) { done <- f },
		Outgoing: message.Outgoing{ID: "r", Text: "x",
			To:     message.Address{Connector: message.ToAgent, ChannelID: "abcdefghijklmnopqrstuvwx"},
			Report: &message.Report{From: child.ID}}})
	if f := <-done; !f.Final {
		t.Errorf("result %+v, want it given up", f)
	}
}

func TestStopIsForOnesOwnAgents(t *testing.T) {
	h := newHousehold(t, Limits{})
	one, two := h.person("one"), h.person("two")
	child, err := h.child(one, "c", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, asker := range []string{two, child.ID} {
		if _, err := h.Family.Stop(t.Context(), asker, child.ID); !errors.Is(err, ErrStranger) {
			t.Errorf("stopped by %s: %v, want ErrStranger", h.name(asker), err)
		}
	}
	for range 2 { // repeated after a crash
		if a, err := h.Family.Stop(t.Context(), one, child.ID); err != nil || a.State != event.Ended {
			t.Errorf("stopped by its parent: %+v, %v", a, err)
		}
	}
	if _, err := h.Post(t.Context(), message.Incoming{Origin: one, Agent: child.ID, Text: "x"}); !errors.Is(err,
		message.ErrUnknownAgent) || !strings.Contains(err.Error(), "0/0") {
		t.Errorf("a message to a dead agent: %v, want an error that names it", err)
	}
}

// An agent that is removed takes those along that it started, and what they ask.
func TestRemovedWithItsFamily(t *testing.T) {
	h := newHousehold(t, Limits{})
	one, other := h.person("one"), h.person("two")
	child, err := h.child(one, "c", true)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{child.ID, other} {
		if _, _, err := h.approvals.asks.Ask(id, permission.Owner{}, mustGeneral(t, "@read:/srv")); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Remove(t.Context(), one, false); !errors.Is(err, ErrBusy) {
		t.Errorf("removed while a child works: %v, want ErrBusy", err)
	}
	if _, err := h.Remove(t.Context(), one, true); err != nil {
		t.Fatal(err)
	}
	if _, ok := h.index.Get(child.ID); ok {
		t.Error("the child is left alone")
	}
	if trash, err := filepath.Glob(filepath.Join(h.root, "trash", "*")); err != nil || len(trash) != 2 {
		t.Errorf("in the trash: %v, %v; want both", trash, err)
	}
	if list := h.approvals.asks.List(); len(list) != 1 || list[0].Agent != other {
		t.Errorf("requests that wait: %+v, want that of the other agent alone", list)
	}
}

func mustGeneral(t *testing.T, tag string) permission.Request {
	t.Helper()
	r, err := permission.General(tag, "to look")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What an agent asked is withdrawn when it ends, and when its folder was taken away:
// a request that nobody can answer must not come up again and again.
func TestTheRequestsOfAnAgentThatEnded(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	killed, err := h.child(one, "killed", false)
	if err != nil {
		t.Fatal(err)
	}
	gone, err := h.child(one, "gone", false)
	if err != nil {
		t.Fatal(err)
	}
	var tokens []string
	for _, id := range []string{killed.ID, gone.ID} {
		p, _, err := h.approvals.asks.Ask(id, permission.Owner{}, mustGeneral(t, "@read:/srv"))
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, p.Token)
	}
	if err := h.Kill(t.Context(), killed.ID); err != nil {
		t.Fatal(err)
	}
	h.index.Forget(gone.ID)
	if _, err := h.Decide(t.Context(), tokens[1], permission.Once, "ada"); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("answered for an agent that is gone: %v", err)
	}
	if list := h.approvals.asks.List(); len(list) != 0 {
		t.Errorf("requests that wait: %+v, want none", list)
	}
	if e, err := h.Decide(t.Context(), tokens[0], permission.Once, "ada"); err != nil || e == nil || e.Decision != permission.Expired {
		t.Errorf("an answer that comes later is told %+v, %v; want that it has expired", e, err)
	}
}

// A crash between the making of an agent and its first message leaves one that never
// did anything: it is not old for that.
func TestASubagentWithoutItsFirstMessageIsNotIdle(t *testing.T) {
	h := newHousehold(t, Limits{TTL: time.Hour})
	one := h.person("one")
	made, err := h.System.Create(t.Context(),
		address.Descriptor{Type: address.Subagent, ID: address.ChildID(one, "c"), ParentAgentID: one, Name: "c", CallID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	h.reap(t.Context())
	if h.ended(made.ID) {
		t.Fatal("it was ended before it had its first message")
	}
	if again, err := h.child(one, "c", false); err != nil || again.ID != made.ID {
		t.Errorf("the call made again: %+v, %v", again, err)
	}
}

func TestIdleSubagentsEnd(t *testing.T) {
	h := newHousehold(t, Limits{TTL: 50 * time.Millisecond})
	one := h.person("one")
	idle, err := h.child(one, "idle", false)
	if err != nil {
		t.Fatal(err)
	}
	busy, err := h.child(one, "busy", true)
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); !h.ended(idle.ID) && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		h.reap(t.Context())
	}
	if !h.ended(idle.ID) {
		t.Error("the idle subagent lives on")
	}
	if h.ended(busy.ID) || h.ended(one) {
		t.Error("an agent with work, or one that is no subagent, was ended")
	}
	if _, err := record.LastAt(h.folder(idle.ID)); err != nil {
		t.Errorf("its folder cannot be read any more: %v", err)
	}
}

// Agents that are made by hand at the same moment are different agents, and no more
// than the limit allows.
func TestAgentsMadeAtOnceAreDifferent(t *testing.T) {
	h := newHousehold(t, Limits{Spawned: 30})
	var mu sync.Mutex
	ids, refused := map[string]int{}, 0
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			a, err := h.Family.Spawn(t.Context(), address.Descriptor{Type: address.User, Connector: Terminal().Connector, UserID: "u"})
			mu.Lock()
			defer mu.Unlock()
			var limit *LimitError
			switch {
			case errors.As(err, &limit):
				refused++
			case err != nil:
				t.Error(err)
			default:
				ids[a.ID]++
			}
		})
	}
	wg.Wait()
	if len(ids) != 30 || refused != 10 {
		t.Errorf("%d different agents of 30, %d refused: %v", len(ids), refused, ids)
	}
}

func TestOnlySpawnedAgentsAreCounted(t *testing.T) {
	h := newHousehold(t, Limits{Spawned: 2})
	d := address.Descriptor{Type: address.User, Connector: Terminal().Connector, UserID: "u"}
	for range 5 { // by a program
		if _, err := h.System.Create(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	var first event.Agent
	for i := range 3 {
		a, err := h.Family.Spawn(t.Context(), d)
		if i == 0 {
			first = a
		}
		var limit *LimitError
		if full := i == 2; full != errors.As(err, &limit) {
			t.Errorf("start %d: %v", i+1, err)
		}
	}
	if err := h.Kill(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Family.Spawn(t.Context(), d); err != nil {
		t.Errorf("one has ended, and the next is refused: %v", err)
	}
	if _, err := h.System.Create(t.Context(), d); err != nil {
		t.Error(err)
	}
}

// says records an answer of an agent.
func (h *household) says(id, text string) {
	h.t.Helper()
	hist, _, err := record.Open(h.System.vol, h.System.folder(id), time.Now, slog.New(slog.DiscardHandler))
	must(h.t, err)
	must(h.t, hist.Begin("session"))
	_, err = hist.Append(&record.Assistant{Turn: "t", Text: text, Finish: record.FinishEndTurn})
	must(h.t, errors.Join(err, hist.Close()))
}

// What the agent of a user in a chat makes, a task or a colleague, knows no more than
// its maker: also when that is gone, and however long the chain is.
func TestWhatAnAgentMadeKnowsWhatItsMakerKnows(t *testing.T) {
	h := newHousehold(t, Limits{})
	post := func(channel, user string) string {
		return h.deliver(message.Incoming{From: message.Address{Connector: "c", ChannelID: channel, UserID: user}, Text: "x"}).Agent
	}
	ada, bob := post("1", "ada"), post("2", "bob")
	mine := h.deliver(message.Incoming{From: Terminal(), Text: "x"}).Agent
	made := func(kind address.Type, name, by string) string {
		a, err := h.Family.Create(h.t.Context(),
			address.Descriptor{Type: kind, ID: address.ChildID(bob, name), Name: name, CreatedBy: by}, message.Incoming{})
		if err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	mole, clock, house := made(address.Permanent, "mole", bob), made(address.Cron, "clock", bob), made(address.Permanent, "ops", "")
	nested, orphan := made(address.Cron, "nested", mole), made(address.Permanent, "orphan", address.ChildID(bob, "gone"))
	beat := made(address.Cron, "house clock", mine)
	h.says(house, "to the owner alone")
	h.says(mole, "to bob")
	tried := 0
	for _, from := range []string{mole, clock, nested, orphan} {
		for _, to := range []string{ada, mine, house, beat} {
			tried++
			if _, err := h.History(t.Context(), from, to, 10); !errors.Is(err, ErrStranger) {
				t.Errorf("%s reads %s: %v", h.name(from), h.name(to), err)
			}
		}
		list, err := h.List(t.Context(), from)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			if tried++; a.ID == ada || a.ID == mine || a.ID == beat {
				t.Errorf("%s is shown %s", h.name(from), h.name(a.ID))
			}
			if want := map[string]string{mole: "to bob"}[a.ID]; a.Said != want {
				t.Errorf("%s is shown that %s says %q, want %q", h.name(from), h.name(a.ID), a.Said, want)
			}
		}
		if _, err := h.Post(t.Context(), message.Incoming{Origin: from, Agent: ada, Text: "x"}); !errors.Is(err, ErrStranger) {
			t.Errorf("%s writes to %s: %v", h.name(from), h.name(ada), err)
		}
	}
	for _, ok := range [][2]string{{bob, mole}, {bob, clock}, {bob, nested}, {mole, bob}, {mine, ada}, {house, ada}, {beat, ada}} {
		if _, err := h.History(t.Context(), ok[0], ok[1], 10); err != nil {
			t.Errorf("%s reads %s: %v", h.name(ok[0]), h.name(ok[1]), err)
		}
	}
	if _, err := h.Post(t.Context(), message.Incoming{Origin: bob, Agent: house, Text: "x"}); err != nil {
		t.Errorf("a colleague of the house is not reached: %v", err)
	}
	colleagues, _ := h.Colleagues(ada, 100)
	for _, m := range colleagues {
		if m.ID == mole || m.ID == orphan {
			t.Errorf("a person is told of the colleague of another: %s", m.Name)
		}
	}
	t.Logf("%d looks at what others said", tried)
}

// Who works for whom: the user's own agents, those of the house, and strangers.
func TestStrangersAndKin(t *testing.T) {
	h := newHousehold(t, Limits{})
	post := func(channel, user string) string {
		return h.deliver(message.Incoming{From: message.Address{Connector: "c", ChannelID: channel, UserID: user}, Text: "x"}).Agent
	}
	h.recent.owns = func(d address.Descriptor) bool { return d.UserID == "ada" }
	ada, other, bob := post("1", "ada"), post("2", "ada"), post("3", "bob")
	mine := h.deliver(message.Incoming{From: Terminal(), Text: "x"}).Agent
	ops, err := h.System.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		from, to      string
		kin, stranger bool
	}{
		{ada, other, true, false}, {ada, bob, false, true}, {bob, ada, false, false}, {mine, bob, false, true}, {mine, ada, false, false},
		{ops.ID, bob, false, true}, {ops.ID, ada, false, false}, {bob, ops.ID, false, false}, {bob, bob, true, false},
	} {
		if kin := h.Related(tt.from, tt.to); kin != tt.kin {
			t.Errorf("%s and %s are kin: %v", h.name(tt.from), h.name(tt.to), kin)
		}
		if _, stranger := h.Stranger(tt.from, tt.to); stranger != tt.stranger {
			t.Errorf("%s is a stranger to %s: %v", h.name(tt.to), h.name(tt.from), stranger)
		}
	}
}

// Whether an agent is at work is asked of agents, not of any folder that a name leads to.
func TestOnlyAgentsAreAtWork(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	child, err := h.child(one, "c", true)
	must(t, err)
	for id, want := range map[string]bool{child.ID: true, "nobody": false, "x/../" + child.ID: false, "./" + child.ID: false} {
		if got := h.AtWork(id, time.Time{}); got != want {
			t.Errorf("%s is at work: %v", id, got)
		}
	}

	h.mu.Lock()
	close(h.hold["c"])
	h.mu.Unlock()
}

// A call that is stopped ends the turn of the agent that it started; the end of everything does not: the turn
// continues at the next start.
func TestACallThatIsStopped(t *testing.T) {
	for _, ending := range []bool{false, true} {
		turns, done := make(chan context.Context, 1), make(chan struct{})
		h := newHouse(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
			turn, end := rt.Turn(context.Background())
			defer end()
			turns <- turn
			<-done
			<-ctx.Done()
			return nil
		})
		f := NewFamily(h.System, func() Limits { return Limits{} })
		id := h.deliver(from("one", "hello")).Agent
		turn := <-turns
		if ending {
			h.actors.stop(errors.New("daycare is stopping"))
		}
		f.Cancel(t.Context(), id)
		if stopped := turn.Err() != nil; stopped == ending {
			t.Errorf("at the end: %v: the turn is stopped: %v", ending, stopped)
		}
		close(done)
	}
}
