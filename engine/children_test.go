package engine

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/cuid"
	"daycare/engine/folders"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// A circle of parents, which a hand edit can make, ends every walk through a family.
func TestACircleOfParentsIsWalkedOnce(t *testing.T) {
	s := newStill(t)
	var ids []string
	for _, name := range []string{"a", "b"} {
		meta, err := s.System.lifecycle.registrar.create(address.Descriptor{
			Type: address.Subagent, ID: strings.Repeat(name, 24), Name: name,
			ParentAgentID: strings.Repeat(map[string]string{"a": "b", "b": "a"}[name], 24)})
		must(t, err)
		ids = append(ids, meta.ID)
		spend(t, s.System, meta.ID, 1)
	}

	for _, id := range ids {
		if a, err := s.Agent(t.Context(), id); err != nil || a.OwnCost != 1 || a.Cost < 2 {
			t.Errorf("%+v, %v", a, err)
		}
		if line := s.Line(id); len(line) > maxDepth {
			t.Errorf("it has %d ancestors", len(line))
		}
		if above := s.approvals.lineage(id); len(above) != 2 {
			t.Errorf("it works for %v", above)
		}
		if s.descends(id, strings.Repeat("c", 24)) {
			t.Error("it descends from an agent outside of the circle")
		}
		if family, err := s.System.Family(t.Context(), id); err != nil || len(family) != 2 {
			t.Errorf("a family of %d, %v", len(family), err)
		}
	}

	if list, err := s.Agents(t.Context()); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
	must(t, s.Kill(t.Context(), ids[0]))

	for _, id := range ids {
		if !s.ended(id) {
			t.Errorf("%s lives on", id)
		}
	}
}

// A subagent ends when it had no work for its time to live, and never without one.
func TestIdleSubagentsEndAfterTheirTime(t *testing.T) {
	for _, tt := range []struct {
		ttl   time.Duration
		waits bool // an item waits
		ends  bool
	}{{0, false, false}, {time.Hour, false, false}, {time.Nanosecond, true, false}, {time.Nanosecond, false, true}} {
		s := newStill(t)
		f := NewFamily(s.System, func() Limits { return Limits{TTL: tt.ttl} })
		parent := s.colleague(t)
		meta, err := s.System.lifecycle.registrar.create(address.Descriptor{
			Type: address.Subagent, ID: strings.Repeat("c", 24), Name: "c", ParentAgentID: parent})
		must(t, err)
		if tt.waits {
			_, err := s.Deliver(t.Context(), message.Incoming{Agent: meta.ID, Text: "x"})
			must(t, err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- f.Run(ctx) }()
		if tt.ends {
			waitFor(t, "its end", func() bool { return s.ended(meta.ID) })
		}

		time.Sleep(20 * time.Millisecond)
		cancel()
		must(t, <-ran)
		if s.ended(meta.ID) != tt.ends || s.ended(parent) {
			t.Errorf("%+v: it has ended: %v", tt, !tt.ends)
		}
	}
}

// An agent that waits for a place is at work for its parent.
func TestAChildInLineIsAtWork(t *testing.T) {
	let := make(chan struct{})
	h := newHouseWith(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
		select {
		case <-let:
		case <-ctx.Done():
		}
		return echo(func(string, inbox.Item) {})(ctx, rt)
	}, Options{Awake: func() int { return 1 }})
	f := NewFamily(h.System, func() Limits { return Limits{} })
	parent := h.deliver(from("one", "hello")).Agent
	_, err := f.Create(t.Context(), address.Descriptor{Type: address.Subagent, ID: address.ChildID(parent, "c"),
		ParentAgentID: parent, Name: "c", CallID: "c"}, message.Incoming{Origin: parent, Text: "do it", Dedupe: "k"})
	must(t, err)

	// Not at once: what is delivered before the system runs is in line only when it does.
	waitFor(t, "a child at work while it waits for its place", func() bool { return len(f.Running(t.Context(), parent)) == 1 })
	close(let)
	waitFor(t, "its end", func() bool { return len(f.Running(t.Context(), parent)) == 0 })
}

// An agent whose first state cannot be made is not made, and whoever asked is told why.
func TestAnAgentWithoutAStateIsNotMade(t *testing.T) {
	why := errors.New("no such model")
	s := newStill(t, func(o *Options) { o.NewState = func(address.Descriptor) ([]byte, error) { return nil, why } })
	_, deliver := s.Deliver(t.Context(), from("one", "x"))
	_, made := s.System.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	_, next := s.System.Create(t.Context(), address.Descriptor{Type: address.User, Connector: "terminal", UserID: "u"})
	_, child := s.Family.Create(t.Context(), address.Descriptor{Type: address.Permanent, ID: cuid.New(), Name: "Child"},
		message.Incoming{Text: "x"})
	for what, err := range map[string]error{"a first message": deliver, "by hand": made, "of the terminal": next, "by an agent": child} {
		if !errors.Is(err, why) {
			t.Errorf("%s: %v", what, err)
		}
	}

	if n := len(s.index.All()); n != 0 {
		t.Errorf("%d agents were made", n)
	}
}

// What is exported has whole lines alone: one that is being appended stays behind.
func TestAnExportHasWholeLines(t *testing.T) {
	s := newStill(t)
	id := s.colleague(t)
	spend(t, s.System, id, 1)
	path := filepath.Join(s.folder(id), "history.jsonl")
	whole := readFile(t, path)
	writeFile(t, path, whole+`{"seq":99,"type":"mark"`)
	var out bytes.Buffer
	must(t, folders.Export(s.System.root, id, &out))
	if text := out.String(); !strings.Contains(text, strings.TrimSuffix(whole, "\n")) || strings.Contains(text, `"seq":99`) {
		t.Errorf("the archive has half a line, or not the whole ones")
	}

	there := newStill(t)
	a, err := there.Import(t.Context(), &out, "")
	must(t, err)
	if got := readFile(t, filepath.Join(there.folder(a.ID), "history.jsonl")); got != whole {
		t.Errorf("the history is\n%s\nwant\n%s", got, whole)
	}
	if o, _, err := record.Closing(there.folder(a.ID), "none"); err != nil {
		t.Errorf("%+v, %v", o, err)
	}
}

// A subagent that sleeps is not looked at where those at work are counted.
func TestSubagentsThatSleepAreNotCounted(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	if _, err := h.child(one, "a", false); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the child to sleep", func() bool {
		_, awake := h.lifecycle.actors.awake(address.ChildID(one, "a"))
		return !awake
	})
	if left := h.lifecycle.actors.awakeSubagents(); len(left) > 0 {
		t.Errorf("%d subagents are counted, and all sleep", len(left))
	}
}

// A subagent that waits for a user, or for one of its own, is not idle, however long it has had no work.
func TestASubagentThatWaitsIsNeeded(t *testing.T) {
	s := newStill(t)
	f := NewFamily(s.System, func() Limits { return Limits{} })
	child := func(parent, name string) string {
		a, err := s.System.Create(t.Context(), address.Descriptor{Type: address.Subagent, ParentAgentID: parent, Name: name})
		must(t, err)
		return a.ID
	}
	parent := s.colleague(t)
	asks, waits, idle := child(parent, "a"), child(parent, "b"), child(parent, "c")
	for _, id := range []string{asks, child(waits, "d")} {
		_, _, err := s.asks.Ask(id, permission.Owner{}, mustGeneral(t, "@web"))
		must(t, err)
	}
	for id, want := range map[string]bool{asks: true, waits: true, idle: false} {
		if got := f.needed(id, time.Nanosecond); got != want {
			t.Errorf("%s is needed: %v", s.Line(id), got)
		}
	}
}

// All subagents without work end in one look, and by when they last worked, not by when their folders were made.
func TestIdleSubagentsEndTogether(t *testing.T) {
	s := newStill(t)
	f := NewFamily(s.System, func() Limits { return Limits{TTL: time.Hour} })
	parent := s.colleague(t)
	earlier := func() time.Time { return time.Now().Add(-2 * time.Hour) }
	var ids []string
	for _, name := range []string{"a", "b", "c"} {
		meta, err := s.System.lifecycle.registrar.create(address.Descriptor{
			Type: address.Subagent, ID: address.ChildID(parent, name), Name: name, ParentAgentID: parent})
		must(t, err)
		hist, _, err := record.Open(s.System.vol, s.System.folder(meta.ID), earlier, s.System.log)
		must(t, err)
		must(t, hist.Begin("session"))
		_, err = hist.Append(&record.TurnBegin{Turn: "t"}, &record.TurnEnd{Turn: "t", Items: []string{}, Reason: record.ReasonDone})
		must(t, errors.Join(err, hist.Barrier(), hist.Close()))
		ids = append(ids, meta.ID)
	}
	f.reap(t.Context())
	for _, id := range ids {
		if !s.ended(id) {
			t.Errorf("%s has not ended", s.index.Handle(id))
		}
	}
}

// A child that is being started counts for its parent.
func TestChildrenThatAreBeingStartedCount(t *testing.T) {
	s := newStill(t)
	f := NewFamily(s.System, func() Limits { return Limits{Children: 1} })
	one, two := s.colleague(t), s.colleague(t)
	child := func(parent, name string) address.Descriptor {
		return address.Descriptor{Type: address.Subagent, ID: address.ChildID(parent, name), Name: name, ParentAgentID: parent}
	}
	must(t, f.admit(child(one, "a")))
	must(t, f.admit(child(two, "a")))
	if err := f.admit(child(one, "b")); !errors.As(err, new(*LimitError)) {
		t.Errorf("the second of one parent: %v", err)
	}
	f.admitted(address.ChildID(one, "a"))
	must(t, f.admit(child(one, "b")))
}
