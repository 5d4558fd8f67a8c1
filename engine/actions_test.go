package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/address"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/folders"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/watch"
	"daycare/engine/workspace"
)

// idle is an agent that leaves its items where they are until it is stopped.
func idle(ctx context.Context, _ Runtime) error { <-ctx.Done(); return nil }

// What users do to an agent that nobody knows is an error each time, and changes nothing.
func TestActionsOnUnknownAgents(t *testing.T) {
	h := newHousehold(t, Limits{})
	none := strings.Repeat("a", 24)
	_, agent := h.Agent(t.Context(), none)
	_, waiting := h.Inbox(t.Context(), none)
	_, draft := h.Draft(t.Context(), none)
	_, page := h.System.History(t.Context(), none, 0, 1)
	_, fork := h.Fork(t.Context(), none, 0, "")
	_, stop := h.System.Stop(t.Context(), none, "")
	_, remove := h.Remove(t.Context(), none, true)
	_, grants := h.Grants(t.Context(), none)
	for what, err := range map[string]error{"agent": agent, "inbox": waiting, "draft": draft, "history": page,
		"fork": fork, "stop": stop, "remove": remove,
		"grants": grants, "rewindable": h.Rewindable(t.Context(), none, ""), "kill": h.Kill(t.Context(), none),
		"drop":  h.Drop(t.Context(), none, "i"),
		"front": h.Front(t.Context(), none, "i"), "give": h.Give(t.Context(), none, "@web", "me", nil),
		"revoke": h.Revoke(t.Context(), none, "@web", "me", nil)} {
		if !errors.Is(err, message.ErrUnknownAgent) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if all, awake, queued := h.Counts(); all+awake+queued != 0 {
		t.Errorf("there are %d agents, %d awake, %d items", all, awake, queued)
	}
}

// What waits is listed, counted, moved and dropped.
func TestItemsThatWait(t *testing.T) {
	h := newHouse(t, t.TempDir(), idle)
	first := h.deliver(from("one", "first"))
	second := h.deliver(from("one", "second"))
	id := first.Agent
	waitFor(t, "the agent to wake", func() bool { _, awake, _ := h.Counts(); return awake == 1 })
	list := func() (texts string) {
		t.Helper()
		all, err := h.Inbox(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range all {
			if w.State != "waiting" || w.Bytes == 0 || w.At.IsZero() || w.Type != string(message.Text) {
				t.Errorf("%+v", w)
			}
			texts += w.Text + " "
		}
		return texts
	}
	if got := list(); got != "first second " {
		t.Errorf("waiting are %s", got)
	}
	if all, awake, queued := h.Counts(); all != 1 || awake != 1 || queued != 2 {
		t.Errorf("there are %d agents, %d awake, %d items", all, awake, queued)
	}
	if a, err := h.Agent(t.Context(), id); err != nil || a.Queued != 2 || a.OldestAt == nil || !a.Running || a.State != event.Queued {
		t.Errorf("%+v, %v", a, err)
	}
	if err := h.Front(t.Context(), id, second.Item); err != nil || list() != "second first " {
		t.Errorf("%v, waiting are %s", err, list())
	}
	if err := h.Drop(t.Context(), id, first.Item); err != nil || list() != "second " {
		t.Errorf("%v, waiting are %s", err, list())
	}
	for what, err := range map[string]error{"drop": h.Drop(t.Context(), id, first.Item), "front": h.Front(t.Context(), id, first.Item)} {
		if !errors.Is(err, inbox.ErrUnknown) {
			t.Errorf("%s of what is gone: %v", what, err)
		}
	}
	e, _ := h.awake(id)
	e.mu.Lock()
	_, err := e.box.Take(second.Item)
	e.mu.Unlock()
	if all, lerr := h.Inbox(t.Context(), id); err != nil || lerr != nil || len(all) != 1 || all[0].State != "taken" {
		t.Errorf("taken is %+v, %v, %v", all, err, lerr)
	}
	if a, err := h.Agent(t.Context(), id); err != nil || a.Queued != 0 {
		t.Errorf("%+v, %v", a, err)
	}
	dropped, moved := 0, 0
	events, _ := h.events.Since(0)
	for _, ev := range events {
		switch {
		case ev.Type == event.ItemDropped && ev.Agent == id && ev.Body == (event.Item{Item: first.Item}):
			dropped++
		case ev.Type == event.ItemMoved && ev.Agent == id && ev.Body == (event.Item{Item: second.Item}):
			moved++
		}
	}
	if dropped != 1 || moved != 1 {
		t.Errorf("told %d times of the item that was dropped, %d times of the one that was moved", dropped, moved)
	}
	if err := h.end(); err != nil {
		t.Fatal(err)
	}
	if all, awake, queued := h.Counts(); all != 1 || awake != 0 || queued != 1 {
		t.Errorf("after the end there are %d agents, %d awake, %d items", all, awake, queued)
	}
}

// A stop ends the turn that an agent is in, and only that.
func TestStop(t *testing.T) {
	stopped := make(chan error, 1)
	inTurn := make(chan bool, 1)
	h := newHousehold(t, Limits{})
	h.hold["x"] = nil
	room := newHouse(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
		turn, end := rt.Turn(ctx)
		defer end()
		if _, err := rt.Inbox.Take(rt.Inbox.Open()[0].ID); err != nil {
			return err
		}
		rt.Show(event.Thinking, "of it")
		inTurn <- true
		<-turn.Done()
		stopped <- context.Cause(turn)
		<-ctx.Done()
		return nil
	})
	r := room.deliver(from("one", "x"))
	<-inTurn
	if a, err := room.Agent(t.Context(), r.Agent); err != nil || a.State != event.Thinking || a.Detail != "of it" {
		t.Errorf("%+v, %v", a, err)
	}
	waits := room.deliver(from("one", "y"))
	for item, want := range map[string]bool{waits.Item: false, "none": false} { // the turn is not theirs
		if was, err := room.Stop(t.Context(), r.Agent, item); was != want || err != nil {
			t.Errorf("stop of %s: %v, %v", item, was, err)
		}
	}
	if was, err := room.Stop(t.Context(), r.Agent, r.Item); !was || err != nil {
		t.Errorf("stop: %v, %v", was, err)
	}
	if err := <-stopped; err != ErrStopped {
		t.Errorf("the turn ended by %v", err)
	}
	one := h.person("one")
	if was, err := h.System.Stop(t.Context(), one, ""); was || err != nil {
		t.Errorf("stop of an agent at rest: %v, %v", was, err)
	}
	e, err := h.entry(one)
	if err != nil {
		t.Fatal(err)
	}
	if _, end := e.turn(t.Context()); !e.stopTurn("") {
		t.Error("a turn is not found")
	} else if end(); e.stopTurn("") {
		t.Error("a turn that is over was stopped")
	}
}

// A right is given by name, and taken back from all that have it from the agent.
func TestGiveAndRevoke(t *testing.T) {
	h := newHousehold(t, Limits{})
	one, two := h.person("one"), h.person("two")
	child, err := h.child(one, "c", false)
	if err != nil {
		t.Fatal(err)
	}
	ops, err := h.Family.Create(t.Context(),
		address.Descriptor{Type: address.Permanent, Name: "Ops", CreatedBy: child.ID}, message.Incoming{})
	if err != nil {
		t.Fatal(err)
	}
	if got := h.heirs(one); !slices.Equal(sorted(got), sorted([]string{child.ID, ops.ID})) || len(h.heirs(two)) != 0 ||
		!slices.Equal(h.heirs(child.ID), []string{ops.ID}) {
		t.Errorf("heirs of one are %v", got)
	}
	for _, id := range []string{one, ops.ID, two} {
		if err := record.UpdateState(h.vol, h.folder(id),
			func(s *record.State) { s.Permissions.Exec = []string{"git"}; s.Permissions.Web = true }); err != nil {
			t.Fatal(err)
		}
	}
	left := map[string]bool{}
	err = h.Revoke(t.Context(), one, " @web", "me", func(agent string, set permission.Set) {
		left[agent] = set.Web
		if !slices.Equal(set.Exec, []string{"git"}) {
			t.Errorf("%s has %+v left", h.name(agent), set)
		}
	})
	if diff := cmp.Diff(map[string]bool{one: false, ops.ID: false}, left); err != nil || diff != "" {
		t.Errorf("%v: revoked of (-want +got):\n%s", err, diff)
	}
	if err := h.Revoke(t.Context(), one, "nonsense", "me", nil); !errors.Is(err, permission.ErrTag) {
		t.Errorf("%v", err)
	}

	// An agent that has ended can do nothing any more, and there is nothing to take away.
	must(t, h.Kill(t.Context(), ops.ID))
	less := 0
	err = h.Revoke(t.Context(), child.ID, "@web", "me", func(string, permission.Set) { less++ })
	if !errors.Is(err, fault.NotGranted) || less != 1 {
		t.Errorf("of a family of which one has ended: %v, revoked of %d", err, less)
	}
	if err := h.Revoke(t.Context(), ops.ID, "@web", "me", func(string, permission.Set) { less++ }); err == nil || less != 1 {
		t.Errorf("of an agent that has ended: %v, revoked of %d", err, less)
	}
	if err := h.Revoke(t.Context(), one, "@plan", "me", nil); err == nil {
		t.Error("what is no right was revoked")
	}
	if err := errors.Join(h.Give(t.Context(), two, "@read:/srv/", "the owner", []permission.Script{{Path: "/s"}}),
		h.Profile(t.Context(), two, permission.ReadOnly, "", "the owner")); err != nil {
		t.Fatal(err)
	}
	if err := h.Give(t.Context(), two, "nonsense", "me", nil); !errors.Is(err, permission.ErrTag) {
		t.Errorf("%v", err)
	}
	var got []string
	h.mu.Lock()
	for _, it := range h.told {
		if it.Kind != message.Permission {
			continue
		}
		got = append(got, fmt.Sprint(it.Decision, " ", it.Tag, " by ", it.By))
		if it.Decision == string(permission.Always) && (!permission.IsGeneral(two, it.Tag, it.SHA256) || len(it.Scripts) != 1 ||
			it.Token != "") { // the token of a request would make it an answer
			t.Errorf("given is %+v", it)
		}
	}
	h.mu.Unlock()
	if diff := cmp.Diff(sorted([]string{"revoked @web by me", "revoked @web by me", "revoked @web by me", "always @read:/srv by the owner",
		"profile read-only by the owner"}), sorted(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if set, err := h.Grants(t.Context(), two); err != nil || !set.Web {
		t.Errorf("%+v, %v", set, err)
	}
}

func sorted(list []string) []string { return slices.Sorted(slices.Values(list)) }

// A family is known from any of its members; a circle made by hand ends.
func TestFamilies(t *testing.T) {
	h := newHousehold(t, Limits{})
	one, two := h.person("one"), h.person("two")
	child, err := h.child(one, "c", true)
	if err != nil {
		t.Fatal(err)
	}
	if line := h.Line(child.ID); !slices.Equal(line, []string{one}) || h.Line(one) != nil || h.Line("nobody") != nil {
		t.Errorf("ancestors are %v", line)
	}
	for id, want := range map[string]string{child.ID: one, one: one, two: two, "nobody": "nobody"} {
		if got := h.Root(id); got.ID != want {
			t.Errorf("the root of %s is %s", h.name(id), got.ID)
		}
	}
	begin := time.Now()
	if !h.AtWork(child.ID, begin.Add(time.Hour)) || h.AtWork(one, begin.Add(time.Hour)) || h.AtWork("nobody", time.Time{}) {
		t.Error("who is at work is not known")
	}
	log, _, err := record.Open(h.vol, h.folder(one), time.Now, slog.New(slog.DiscardHandler))
	if err == nil {
		_, err = log.Append(&record.Start{Session: "s", V: record.Version})
	}
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	if !h.AtWork(one, begin.Add(-time.Hour)) || h.AtWork(one, begin.Add(time.Hour)) {
		t.Error("an agent that worked since is not known")
	}

	if _, ok := h.Asked(one); ok {
		t.Error("a request that nobody made")
	}
	p, _, err := h.approvals.asks.Ask(one, permission.Owner{}, mustGeneral(t, "@web"))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := h.Asked(one); !ok || got.Token != p.Token {
		t.Errorf("%+v, %v", got, ok)
	}
	if _, ok := h.Asked(two); ok {
		t.Error("a request of somebody else")
	}
	if asks, err := h.Asks(t.Context()); err != nil || len(asks) != 1 || asks[0].Token != p.Token {
		t.Errorf("%+v, %v", asks, err)
	}
	if a, err := h.Agent(t.Context(), one); err != nil || a.State != event.WaitingPermission {
		t.Errorf("%+v, %v", a, err)
	}

	h.Cancel(t.Context(), child.ID)
	if _, err := h.Family.Stop(t.Context(), two, child.ID); !errors.Is(err, ErrStranger) {
		t.Errorf("a stranger stops the child: %v", err)
	}
	for range 2 {
		if a, err := h.Family.Stop(t.Context(), one, child.ID); err != nil || a.State != event.Ended {
			t.Errorf("its parent stops it: %+v, %v", a, err)
		}
	}
	if err := h.Note(t.Context(), one, two, "key", "by the way"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "a note", func() bool { return slices.Contains(h.items(), "by the way") })
}

// What a user removed comes back as it was, found by any of its names, unless someone
// else has its address now.
func TestTrash(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	meta, _ := h.index.Get(one)
	if list, err := h.Trash(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	removed := func(id string) event.Trashed {
		t.Helper()
		time.Sleep(2 * time.Millisecond) // the trash tells times in milliseconds
		if _, err := h.Remove(t.Context(), id, false); err != nil {
			t.Fatal(err)
		}
		list, err := h.Trash(t.Context())
		if err != nil || len(list) == 0 || list[0].ID != id {
			t.Fatalf("%+v, %v", list, err)
		}
		return list[0]
	}
	for _, by := range []func(event.Trashed) string{
		func(t event.Trashed) string { return t.Name }, func(t event.Trashed) string { return t.ID },
		func(t event.Trashed) string { return t.Handle },
		func(t event.Trashed) string { return strings.TrimSuffix(t.Handle, "/") + "/" },
		func(t event.Trashed) string { return t.ID[:address.MinPrefix] },
	} {
		lost := removed(one)
		if lost.Handle != meta.Handle || lost.Type != string(address.User) || time.Since(lost.At).Abs() > time.Minute {
			t.Errorf("%+v", lost)
		}
		if _, err := h.Agent(t.Context(), one); !errors.Is(err, message.ErrUnknownAgent) {
			t.Errorf("it is there after its removal: %v", err)
		}
		a, err := h.Restore(t.Context(), by(lost))
		if err != nil || a.ID != one || a.Handle != meta.Handle || a.State == event.Ended {
			t.Errorf("%q: %+v, %v", by(lost), a, err)
		}
	}
	if _, err := h.Restore(t.Context(), one); !errors.Is(err, folders.ErrNoTrash) {
		t.Errorf("what is not in the trash: %v", err)
	}
	lost := removed(one)
	if other := h.person("one"); other == one {
		t.Fatal("the same agent")
	}
	if _, err := h.Restore(t.Context(), lost.ID); !errors.Is(err, folders.ErrTaken) {
		t.Errorf("its address is somebody else's: %v", err)
	}
	if _, err := h.Restore(t.Context(), lost.ID[:address.MinPrefix-1]); !errors.Is(err, folders.ErrNoTrash) {
		t.Errorf("too short a beginning: %v", err)
	}
	if err := os.Rename(filepath.Join(h.root, "trash", lost.Name),
		filepath.Join(h.root, "trash", "20200102T030405.000Z-"+lost.ID)); err != nil {
		t.Fatal(err)
	}
	for _, odd := range []string{"notes", "20200102T030405.000Z-short", "yesterday-" + lost.ID} {
		if err := os.MkdirAll(filepath.Join(h.root, "trash", odd), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(h.root, "trash", "20210102T030405.000Z-"+lost.ID), "a file")
	two := h.person("two")
	if list, err := h.Trash(t.Context()); err != nil || len(list) != 1 || list[0].At.Year() != 2020 {
		t.Errorf("%+v, %v", list, err)
	}
	removed(two)
	again := removed(h.person("two"))
	var several *address.Ambiguous
	if _, err := h.Restore(t.Context(), again.Title); again.Title != "" && !errors.As(err, &several) {
		t.Errorf("two of one name: %v", err)
	}
	if err := os.WriteFile(filepath.Join(h.root, "trash", again.Name, "state.json"), []byte("{broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	var f finding.Finding
	if _, err := h.Restore(t.Context(), again.Name); !errors.As(err, &f) {
		t.Errorf("a state that is broken: %v", err)
	}
	if err := os.Remove(filepath.Join(h.root, "trash", again.Name, address.File)); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Restore(t.Context(), again.Name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a descriptor: %v", err)
	}
}

// A fork continues from a conversation: with its context and rights, under a name of its own,
// and with no grant for one request.
func TestFork(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	dir := h.folder(one)
	if _, err := h.Fork(t.Context(), one, 0, ""); !errors.Is(err, record.ErrNoRecord) {
		t.Errorf("of an empty history: %v", err)
	}
	for to, want := range map[string]error{"": record.ErrNoRecord, "mark": record.ErrNoRecord} {
		if err := h.Rewindable(t.Context(), one, to); !errors.Is(err, want) {
			t.Errorf("to %q: %v", to, err)
		}
	}
	sha, err := record.PutBlob(h.vol, dir, "a long output")
	if err != nil {
		t.Fatal(err)
	}
	log, _, err := record.Open(h.vol, dir, time.Now, slog.New(slog.DiscardHandler))
	if err == nil {
		_, err = log.Append(&record.Start{Session: "s", V: record.Version}, &record.TurnBegin{Turn: "t", Attempt: 1},
			&record.User{Item: "i", Text: "question"},
			&record.Assistant{Turn: "t", Finish: record.FinishToolUse,
				ToolCalls: []record.ToolCall{{ID: "c", Name: "x", Arguments: []byte("{}")}, {ID: "d", Name: "x", Arguments: []byte("{}")}}},
			&record.ToolResult{ToolCallID: "c", Status: record.StatusOK, Output: record.Output{Blob: sha}},
			&record.ToolResult{ToolCallID: "d", Status: record.StatusOK, Output: record.Output{Blob: strings.Repeat("0", 64)}},
			&record.Assistant{Turn: "t", Text: "answer", Finish: record.FinishEndTurn},
			&record.TurnEnd{Turn: "t", Reason: record.ReasonDone})
	}
	if err := errors.Join(err, log.Close()); err != nil {
		t.Fatal(err)
	}
	if err := record.UpdateState(h.vol, dir, func(s *record.State) {
		s.Permissions = permission.Set{WorkingDir: "/w", Exec: []string{"git"},
			Grants: []permission.Grant{{Tag: "@exec:git"}, {Tag: "@exec:rm", SHA256: "1"}}}
		s.Queue, s.Budget, s.Provider.Model = "steer", &record.Budget{Tokens: 7}, "m"
	}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"": "fork of ", "mine": "mine"} {
		a, err := h.Fork(t.Context(), one, 0, name)
		if err != nil || !strings.HasPrefix(a.Name, want) || a.ID == one || a.Model != "m" || a.Queue != "steer" {
			t.Fatalf("%+v, %v", a, err)
		}
		state, _, _, err := record.ReadState(h.folder(a.ID))
		if err != nil || state.Permissions.WorkingDir != "/w" || len(state.Permissions.Grants) != 1 ||
			state.Budget.Tokens != 7 || state.Session.Parent != one || state.Announced == nil || state.Seq == 0 {
			t.Errorf("%+v, %v", state, err)
		}
		if c, err := record.ContextOf(h.folder(a.ID)); err != nil || len(c.Entries) != 5 {
			t.Errorf("it sees %+v, %v", c, err)
		}
		if text, err := record.ReadBlob(h.folder(a.ID), sha); err != nil || text != "a long output" {
			t.Errorf("the long output: %q, %v", text, err)
		}
		if page, err := h.System.History(t.Context(), a.ID, 0, 100); err != nil || len(page.Records) == 0 ||
			!bytes.Contains(page.Records[0], []byte("forkedFrom")) {
			t.Errorf("%s, %v", page.Records, err)
		}
	}
	if _, err := h.Fork(t.Context(), one, 99, ""); !errors.Is(err, record.ErrNoRecord) {
		t.Errorf("after a record that is not there: %v", err)
	}
	if err := h.Rewindable(t.Context(), one, ""); err != nil {
		t.Errorf("to its newest turn: %v", err)
	}
}

// A mark that waits to be set is a place to go back to.
func TestRewindableToAMarkThatWaits(t *testing.T) {
	h := newHouse(t, t.TempDir(), idle)
	r := h.deliver(message.Incoming{From: message.Address{Connector: "c", ChannelID: "1", UserID: "u"}, Kind: message.Mark, Text: "here"})
	if err := h.Rewindable(t.Context(), r.Agent, "here"); err != nil {
		t.Error(err)
	}
	if err := h.Rewindable(t.Context(), r.Agent, "there"); !errors.Is(err, record.ErrNoRecord) ||
		!strings.Contains(err.Error(), "cannot rewind") {
		t.Error(err)
	}
}

// moody is a chat that takes reactions.
type moody struct {
	chatRoom
	seen string
	err  error
}

func (m *moody) React(_ context.Context, to message.Address, id, emoji string) error {
	m.seen = to.ChannelID + " " + id + " " + emoji
	return m.err
}
func (*moody) Interim() bool { return true }

// What an agent says outside of its answers goes to its chat, or to one of the same user.
func TestSayAndReact(t *testing.T) {
	room := &moody{}
	h := newHousehold(t, Limits{}, room)
	chat := func(channel, user string) string {
		r := h.deliver(message.Incoming{From: message.Address{Connector: "room", ChannelID: channel, UserID: user}, Text: "hello"})
		if _, err := h.System.Await(t.Context(), r.Agent, r.Item); err != nil {
			t.Fatal(err)
		}
		return r.Agent
	}
	one, same, other := chat("1", "u"), chat("2", "u"), chat("3", "v")
	to := message.Address{Connector: "room", ChannelID: "1", UserID: "u"}
	if err := h.Say(t.Context(), one, "", to, "key", "1122"); err != nil {
		t.Error(err)
	}
	if err := h.Say(t.Context(), one, same, message.Address{}, "key2", "33"); err != nil {
		t.Error(err)
	}
	room.mu.Lock()
	if !slices.Equal(room.sent, []string{"key.0", "key.1", "key2"}) {
		t.Errorf("sent are %v", room.sent)
	}
	room.fail = []error{&message.NotSent{Err: errors.New("no such chat"), Final: true}}
	room.mu.Unlock()
	if err := h.Say(t.Context(), one, "", to, "key3", "44"); err == nil || !strings.Contains(err.Error(), "no such chat") {
		t.Errorf("what the chat refuses: %v", err)
	}
	for what, err := range map[string]error{"of somebody else": h.Say(t.Context(), one, other, to, "k", "x"),
		"of nobody": h.Say(t.Context(), one, "nobody", to, "k", "x")} {
		if err == nil {
			t.Errorf("a chat %s is spoken to", what)
		}
	}
	for _, none := range []message.Address{{}, {Connector: "terminal", ChannelID: "1"}} {
		if err := h.Say(t.Context(), one, "", none, "k", "x"); !errors.Is(err, ErrNoChat) {
			t.Errorf("%+v: %v", none, err)
		}
	}
	if !h.Reacts("room") || h.Reacts("c") {
		t.Error("who takes reactions is not known")
	}
	if err := h.React(t.Context(), to, "m", "!"); err != nil || room.seen != "1 m !" {
		t.Errorf("%q, %v", room.seen, err)
	}
	room.err = errors.New("refused")
	if err := h.React(t.Context(), to, "m", "!"); !errors.Is(err, room.err) {
		t.Errorf("%v", err)
	}
	if err := h.React(t.Context(), message.Address{Connector: "c"}, "m", "!"); !errors.Is(err, ErrNoReaction) {
		t.Errorf("%v", err)
	}
	e, err := h.entry(one)
	if err != nil {
		t.Fatal(err)
	}
	rt := Runtime{&runtimeParts{Meta: &e.meta, entry: e}}
	if !rt.Interim(to) || rt.Interim(message.Address{Connector: "c"}) || !rt.Answers(to) ||
		rt.Answers(message.Address{Connector: "terminal"}) {
		t.Error("a seat does not know its chat")
	}
}

// A message is delivered when all parts are; the newest error is what is said until then.
func TestDelivered(t *testing.T) {
	put := func(list ...message.Result) chan message.Result {
		results := make(chan message.Result, len(list))
		for _, f := range list {
			results <- f
		}
		return results
	}
	if err := delivered(t.Context(), put(message.Result{Parts: 2}, message.Result{Error: "busy"},
		message.Result{Part: 1, Parts: 2})); err != nil {
		t.Error(err)
	}
	if err := delivered(t.Context(), put(message.Result{Parts: 2},
		message.Result{Error: "gone", Final: true})); err == nil || err.Error() != "gone" {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		over, cancel := context.WithCancel(t.Context())
		results := put(message.Result{Parts: 2}, message.Result{Error: "busy"})
		go func() {
			synctest.Wait() // it has heard of both, and waits for more
			cancel()
		}()
		if err := delivered(over, results); err == nil || !strings.Contains(err.Error(), "busy") {
			t.Error(err)
		}
	})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := delivered(over, put()); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Error(err)
	}
}

// A copy that works in the place of its original is found; an agent that a user lets
// work elsewhere is not sure to be one.
func TestElsewhere(t *testing.T) {
	base := t.TempDir()
	id := strings.Repeat("a", 24)
	ws, original, plain := filepath.Join(base, "ws"), filepath.Join(base, "original"), filepath.Join(base, "plain")
	for _, dir := range []string{ws, filepath.Join(original, ".daycare", "agents", id), plain} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(ws, filepath.Join(base, "link")); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		dir, part, from string
		sure            bool
	}{
		"nowhere": {}, "here": {ws, "", "", false}, "below": {ws + "/sub", "", "", false}, "by a link": {base + "/link", "", "", false},
		"the original": {original, "", original, true}, "its own folder there": {original + "/.daycare/agents/" + id, "", original, true},
		"a part of it": {original + "/docs", "docs", original, true}, "gone": {base + "/gone", "", base + "/gone", true},
		"a person's choice": {plain, "", plain, false},
	} {
		from, sure := folders.Elsewhere(workspace.At(ws), id, address.Descriptor{WorkspaceDir: tt.part}, permission.Set{WorkingDir: tt.dir})
		if from != tt.from || sure != tt.sure {
			t.Errorf("%s: %q, %v, want %q, %v", name, from, sure, tt.from, tt.sure)
		}
	}
}

// An answer in a file that cannot be delivered is tried again, without another save.
func TestAnAnswerInAFileThatCannotBeDeliveredIsTriedAgain(t *testing.T) {
	h := newHousehold(t, Limits{})
	p, _, err := h.approvals.asks.Ask(h.person("one"), permission.Owner{}, mustGeneral(t, "@web:a.example"))
	must(t, err)
	path := filepath.Join(h.root, "permissions", p.Token+".json")
	answer := strings.Replace(readFile(t, path), `"decision": null`, `"decision": "always"`, 1)
	met := crash.Arm(t, "enospc@inbox.write#1")
	writeFile(t, path, answer)
	waitFor(t, "the answer in the log", func() bool { old, _ := h.answered(p.Token); return old.Decision == permission.Always })
	if failed := met(); len(failed) != 1 {
		t.Errorf("failed were %v, want the first delivery", failed)
	}
}

// Answers in files count, and who was late is told who was first.
func TestAnswersInFiles(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	ask := func(tag string) permission.Pending {
		t.Helper()
		p, _, err := h.approvals.asks.Ask(one, permission.Owner{}, mustGeneral(t, tag))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	path := func(p permission.Pending) string { return filepath.Join(h.root, "permissions", p.Token+".json") }
	answer := func(p permission.Pending, picture, d string) {
		t.Helper()
		if err := os.WriteFile(path(p), []byte(strings.Replace(picture, `"decision": null`, `"decision": "`+d+`"`, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logged := func(p permission.Pending) (string, string) {
		old, _ := h.answered(p.Token)
		return string(old.Decision), old.DecidedBy
	}
	p := ask("@web:a.example")
	picture := readFile(t, path(p))
	answer(p, picture, "once")
	waitFor(t, "an answer in a file", func() bool { d, by := logged(p); return d == "once" && by == "file" })
	answer(p, picture, "always")
	h.answeredByHand()
	late := func() (n int) {
		events, _ := h.events.Since(0)
		for _, ev := range events {
			if strings.Contains(fmt.Sprint(ev.Body), "always came too late: once by file") {
				n++
			}
		}
		return n
	}
	waitFor(t, "the late answer", func() bool { return late() == 1 })
	if _, err := os.Stat(path(p)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the late file stays: %v", err)
	}
	if earlier, err := h.Decide(t.Context(), p.Token[:permission.CodeLength], permission.Deny,
		"me"); err != nil || earlier == nil || earlier.Decision != permission.Once {
		t.Errorf("by the beginning of its token: %+v, %v", earlier, err)
	}
	if _, err := h.Decide(t.Context(), p.Token[:permission.CodeLength-1], permission.Deny, "me"); !errors.Is(err, permission.ErrUnknown) {
		t.Errorf("by too few letters: %v", err)
	}
	q := ask("@web:b.example")
	if _, err := h.Decide(t.Context(), q.Token, permission.Prefix, "me"); !errors.Is(err, permission.ErrNoPrefix) {
		t.Errorf("a rule that is not offered: %v", err)
	}
	if err := h.Kill(t.Context(), one); !errors.Is(err, ErrProtected) {
		t.Errorf("an agent that an address maps to: %v", err)
	}
	if _, err := h.Remove(t.Context(), one, true); err != nil {
		t.Fatal(err)
	}
	if d, by := logged(q); d != "expired" || !strings.Contains(by, "has ended") {
		t.Errorf("a request of an agent that was removed is %q by %s", d, by)
	}
}

// An agent that has ended gets messages again when a user takes its end out of state.json, and not while the file is broken.
func TestAUserRevivesAnAgent(t *testing.T) {
	h := newHousehold(t, Limits{})
	meta, err := h.index.Create(address.Descriptor{Type: address.Permanent, Name: "Ops"}, []byte("{}\n"))
	must(t, err)
	must(t, h.Kill(t.Context(), meta.ID))
	hello := message.Incoming{Agent: meta.ID, Text: "hello"}
	path := filepath.Join(h.folder(meta.ID), "state.json")
	for _, ended := range []string{"", "{"} {
		if ended != "" {
			writeFile(t, path, ended)
		}
		if _, err := h.Deliver(t.Context(), hello); !errors.Is(err, message.ErrUnknownAgent) {
			t.Errorf("with %q as state.json: %v, want ErrUnknownAgent", ended, err)
		}
	}

	writeFile(t, path, "{}\n")
	if _, err := h.Deliver(t.Context(), hello); err != nil {
		t.Errorf("without its end: %v", err)
	}
}

// An agent of the terminal that is made by hand keeps its channel, if it has one; each other gets the next number.
func TestTheChannelOfAnAgentOfTheTerminal(t *testing.T) {
	s := newStill(t)
	had := map[string]bool{}
	for _, given := range []string{"", "9", ""} {
		a, err := s.System.Create(t.Context(), address.Descriptor{Type: address.User, Connector: "terminal", ChannelID: given, UserID: "u"})
		must(t, err)
		m, _ := s.System.index.Get(a.ID)
		if got := m.Descriptor.ChannelID; got == "" || given != "" && got != given || had[got] {
			t.Errorf("made with the channel %q it has %q", given, got)
		}
		had[m.Descriptor.ChannelID] = true
	}
	again := address.Descriptor{Type: address.User, Connector: "terminal", ChannelID: "9", UserID: "u"}
	if a, err := s.System.Create(t.Context(), again); err != nil || len(s.System.index.All()) != 3 {
		t.Errorf("one whose channel there is already: %+v, %v", a, err)
	}
	if _, err := s.System.Create(t.Context(), address.Descriptor{Type: address.User, Connector: "chat", UserID: "u"}); err == nil {
		t.Error("an agent of a chat was made without one")
	}
}

// Someone who waits for an agent that is removed keeps nothing of it in memory: an agent that is made with its id
// is another one.
func TestAnAgentInThePlaceOfARemovedOne(t *testing.T) {
	h := newHouse(t, t.TempDir(), echo(func(string, inbox.Item) {}))
	d := address.Descriptor{Type: address.Permanent, ID: strings.Repeat("a", 24), Name: "Ops"}
	_, err := h.Create(t.Context(), d)
	must(t, err)
	e, _, err := h.actors.acquire(d.ID)
	must(t, err)
	_, err = h.Remove(t.Context(), d.ID, true)
	must(t, err)
	_, err = h.Create(t.Context(), d)
	must(t, err)
	r := h.deliver(message.Incoming{Agent: d.ID, Text: "hello"})
	if end, err := h.Await(t.Context(), d.ID, r.Item); err != nil || end.Item != r.Item {
		t.Errorf("the new agent: %+v, %v", end, err)
	}
	e.release()
}

// The end of an agent that was removed meanwhile is an error, and makes no folder.
func TestTheEndOfAnAgentThatWasRemoved(t *testing.T) {
	s := newStill(t)
	id := s.colleague(t)
	_, err := s.Remove(t.Context(), id, true)
	must(t, err)
	if err := s.System.retire(t.Context(), id, "killed"); !errors.Is(err, message.ErrUnknownAgent) || disk.Exists(s.System.folder(id)) {
		t.Errorf("%v; its folder is there: %v", err, disk.Exists(s.System.folder(id)))
	}
}

// An agent that is known and has not worked, and one that has ended, are not busy.
func TestWhoIsBusy(t *testing.T) {
	s := newStill(t)
	r, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	e, box, err := s.System.actors.acquire(r.Agent)
	must(t, err)
	if !s.System.actors.busy(r.Agent) || box.Len() != 1 {
		t.Error("an agent with an item is not busy")
	}
	e.end()
	if s.System.actors.busy(r.Agent) {
		t.Error("an agent that has ended is busy")
	}
	id := s.colleague(t)
	_, err = s.System.actors.entry(id)
	must(t, err)
	if s.System.actors.busy(id) {
		t.Error("an agent whose inbox is closed is busy")
	}
}

// A mistake in the file of a request is reported; an answer that was saved while the folder was away is found.
func TestAnswersInAFolderThatIsMoved(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	p, _, err := h.approvals.asks.Ask(one, permission.Owner{}, mustGeneral(t, "@web:a.example"))
	must(t, err)
	dir := filepath.Join(h.root, "permissions")
	picture := readFile(t, filepath.Join(dir, p.Token+".json"))
	writeFile(t, filepath.Join(dir, p.Token+".json"), "{")
	waitFor(t, "a report", func() bool {
		return slices.ContainsFunc(told(h.house), func(e event.Event) bool {
			f, ok := e.Body.(event.File)
			return ok && e.Type == event.FileInvalid && strings.HasSuffix(f.File, p.Token+".json")
		})
	})
	must(t, os.Rename(dir, dir+"-away"))
	writeFile(t, filepath.Join(dir+"-away", p.Token+".json"), strings.Replace(picture, `"decision": null`, `"decision": "once"`, 1))
	must(t, os.Rename(dir+"-away", dir))
	waitFor(t, "the answer", func() bool { old, _ := h.answered(p.Token); return old.Decision == permission.Once })
}

// A folder of an agent that is put there while the folder of all agents is away is found.
func TestAgentsInAFolderThatIsMoved(t *testing.T) {
	h := newHouse(t, t.TempDir(), idle)
	a, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	<-h.Looked()
	const id = "abcdefghijklmnopqrstuvwx"
	agents := filepath.Dir(h.folder(a.ID))
	must(t, os.Rename(agents, agents+"-away"))
	must(t, os.CopyFS(filepath.Join(agents+"-away", id), os.DirFS(filepath.Join(agents+"-away", a.ID))))
	descriptor := filepath.Join(agents+"-away", id, address.File)
	writeFile(t, descriptor, strings.Replace(readFile(t, descriptor), a.ID, id, 1))
	must(t, os.Rename(agents+"-away", agents))
	waitFor(t, "the agent", func() bool { _, ok := h.index.Get(id); return ok })
}

// A request that nobody answers in time ends, and its agent hears of it.
func TestARequestThatNobodyAnswers(t *testing.T) {
	t.Parallel()
	var asks *permission.Queue
	s := newStill(t, func(o *Options) {
		must(t, o.Asks.Close())
		var err error
		asks, _, err = permission.OpenQueue(o.Volume, o.Root, time.Now, 300*time.Millisecond)
		must(t, err)
		o.Asks = asks
	})
	t.Cleanup(func() { asks.Close() })
	id := s.colleague(t)
	p, _, err := asks.Ask(id, permission.Owner{}, mustGeneral(t, "@web"))
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.watchAsks(ctx, watch.New(s.System.log)); close(ended) }()
	waitFor(t, "its end", func() bool { return len(s.waiting(id)) == 1 })
	waitFor(t, "its place in the log", func() bool {
		old, _ := s.answered(p.Token)
		return old.Decision == permission.Expired && old.DecidedBy == "clock"
	})
	stop()
	<-ended
}
