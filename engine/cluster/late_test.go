package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/address"
	"daycare/engine/cluster/clustertest"
)

// A machine hears late of what it has written itself. A file that it has changed again, or removed, since then is not changed
// back, and lines that are added meanwhile do not come before older ones.
func TestAFileIsNotChangedBack(t *testing.T) {
	t.Parallel()
	h := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	s := h.presence.files
	const task, ledger = "cron/a/task.md", "cron/a/runs.jsonl"
	gave := map[string][]shared{}
	agree := func(name string) {
		t.Helper()
		if err := s.agree(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		f, _ := s.of(name)
		gave[name] = append(gave[name], f)
	}

	for _, text := range []string{"1", "2", ""} {
		h.save(task, text)
		agree(task)
		for _, old := range gave[task] {
			s.heard(task, old)
			if err := s.agree(t.Context(), task); err != nil || h.has(task) != text {
				t.Fatalf("after the revision %d it has %q instead of %q, %v", old.revision, h.has(task), text, err)
			}
		}
	}

	for _, line := range []string{"1", "2", "3"} {
		h.record(ledger, line)
		if line == "3" { // its machine hears of an older state before this line is shared
			s.heard(ledger, gave[ledger][0])
		}
		agree(ledger)
	}
	if got := h.has(ledger); got != "1\n2\n3\n" {
		t.Errorf("the lines are %q", got)
	}
}

// A ledger is shared when its writer is done with it, not with half a line, and not as one that was removed while it is rotated.
func TestALedgerBetweenTwoStates(t *testing.T) {
	t.Parallel()
	h := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	s := h.presence.files
	const name = "cron/a/runs.jsonl"
	h.record(name, "1")
	if err := s.agree(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	for _, between := range []string{"1\n2", ""} {
		release := h.vol.Turn(s.path(name))
		h.save(name, between)
		done := make(chan error, 1)
		go func() { done <- s.agree(t.Context(), name) }()
		time.Sleep(100 * time.Millisecond) // long enough to read a file, if nothing is waited for
		h.save(name, "1\n22\n")
		release()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if f, _ := s.of(name); string(f.Data) != "1\n22\n" {
			t.Errorf("%q is shared", f.Data)
		}
	}
}

// What another machine wrote is taken in, also over a removal, and so is all that a new watch brings, but for what this
// machine wrote since it began.
func TestRevisionsOfFiles(t *testing.T) {
	t.Parallel()
	file := func(sha string, revision uint64) shared { return shared{SHA: sha, revision: revision} }
	b := newBucket()
	b.heard("a", file("one", 5))
	want := func(name, sha string, revision uint64) {
		t.Helper()
		if f, _ := b.of(name); f.SHA != sha || f.revision != revision {
			t.Errorf("%s is %q of revision %d, want %q of %d", name, f.SHA, f.revision, sha, revision)
		}
	}
	want("a", "one", 5)
	b.gave("a", file("", 5))
	b.heard("a", file("one", 5))
	want("a", "", 5)
	b.heard("a", file("", 6))
	want("a", "", 6)
	b.heard("a", file("two", 7))
	want("a", "two", 7)

	b.gave("before", file("x", 8))
	b.anew()
	b.gave("new", file("x", 3))
	b.gave("gone", file("", 2))
	b.replace(map[string]shared{"a": file("restored", 1), "gone": file("y", 2), "other": file("z", 4)})
	want("a", "restored", 1)
	want("new", "x", 3)
	want("gone", "", 2)
	want("other", "z", 4)
	want("before", "", 0)
	b.replace(map[string]shared{})
	want("new", "", 0)
}

// The card of an agent is not changed back by what its machine hears late, and one that it removed does not come back. What a
// new watch brings is true, whatever its revisions are.
func TestACardIsNotChangedBack(t *testing.T) {
	t.Parallel()
	h := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	h.silence() // it hears nothing by itself
	h.jobs.Wait()
	c, id := h.cards, strings.Repeat("a", 24)
	var met, parted int
	c.listen(func(Agent) { met++ }, func(string) { parted++ })
	written := func(name string) (e jetstream.KeyValueEntry) {
		t.Helper()
		m := address.Meta{ID: id, Handle: "1/", Descriptor: address.Descriptor{Name: name}}
		err := h.Announce(m, false)
		if err == nil {
			e, err = c.keep.handles.agents.Get(t.Context(), cardKey+id)
		}
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	one, two := written("one"), written("two")
	c.note(one)
	if got := c.Agents()[id].Name; got != "two" || met != 0 {
		t.Errorf("after what it heard late it is called %q, met %d times", got, met)
	}
	if e := written("one"); e.Revision() <= two.Revision() {
		t.Error("the name that it had first is not written again")
	}

	c.forget(id, two.Revision())
	c.note(two)
	if len(c.Agents()) > 0 || met != 0 {
		t.Errorf("after it was removed there are %v", slices.Collect(maps.Keys(c.Agents())))
	}
	c.note(noted{key: cardKey + id, removed: true, revision: two.Revision() + 1})
	if parted != 1 {
		t.Errorf("it parted %d times", parted)
	}
	c.note(noted{key: cardKey + id, value: `{"handle":"1/"}`, revision: two.Revision() + 2})
	c.anew()
	c.note(noted{key: cardKey + id, value: `{"handle":"2/"}`, revision: 3})
	if got := c.Agents()[id].Handle; got != "2/" || met != 2 {
		t.Errorf("after a new watch its handle is %q, met %d times", got, met)
	}
}
