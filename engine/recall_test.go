package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// lasting waits until the files of an agent have been as they are for so long that their look tells.
func lasting(t testing.TB, dir string) {
	t.Helper()
	for _, name := range []string{"state.json", "history.jsonl", inbox.FileName} {
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			stamp, ok := beneath.Look(filepath.Join(dir, name))
			if ok && stamp.Lasts(time.Now()) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %+v %v", name, stamp, ok)
			}
		}
	}
}

// talked makes agents that have answered and sleep.
func talked(t testing.TB, n int) (s *still, ids []string) {
	s = newStill(t)
	for range n {
		id := s.colleague(t)
		hist, _, err := record.Open(s.System.vol, s.System.folder(id), time.Now, slog.New(slog.DiscardHandler))
		must(t, err)
		must(t, hist.Begin("session"))
		_, err = hist.Append(&record.Assistant{Turn: "t", Text: "an answer", Finish: record.FinishEndTurn,
			Provider: "p", Model: "m", Cost: 1})
		must(t, err)
		must(t, hist.Close())
		_, err = s.Deliver(t.Context(), message.Incoming{Agent: id, Text: "x"})
		must(t, err)
		ids = append(ids, id)
	}
	for _, id := range ids {
		lasting(t, s.System.folder(id))
	}

	return s, ids
}

// TestAListSeesWhatIsWrittenByHand: what a list remembers of files applies for as long as they are the same.
func TestAListSeesWhatIsWrittenByHand(t *testing.T) {
	s, ids := talked(t, 1)
	dir := s.System.folder(ids[0])
	listed := func() event.Agent {
		t.Helper()
		list, err := s.Agents(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		return list[0]
	}
	edit := func(name, old, changed string) {
		t.Helper()
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(data), old) {
			t.Fatalf("%s has no %s: %s", name, old, data)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(data), old, changed, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	before := listed()
	if diff := cmp.Diff(before, listed()); diff != "" || before.Said != "an answer" || before.Cost != 1 || before.Queued != 1 {
		t.Errorf("the list has %+v; the second one differs: %s", before, diff)
	}
	edit("history.jsonl", "an answer", "by a hand")
	if a := listed(); a.Said != "by a hand" {
		t.Errorf("after an edit of history.jsonl: %+v", a)
	}

	state := []byte(`{"queue":"collect","provider":{"model":"other"}}`)
	if err := os.WriteFile(filepath.Join(dir, "state.json"), state, 0o600); err != nil {
		t.Fatal(err)
	}
	if a := listed(); a.Queue != "collect" || a.Model != "other" {
		t.Errorf("after an edit of state.json: %+v", a)
	}
	edit("state.json", "other", "third") // as long as it was, and within one moment
	if a := listed(); a.Model != "third" {
		t.Errorf("after the second edit: %+v", a)
	}
	lasting(t, dir)
	listed()
	if err := os.Remove(filepath.Join(dir, "state.json")); err != nil {
		t.Fatal(err)
	}
	if a := listed(); a.Model == "third" {
		t.Errorf("after state.json was removed: %+v", a)
	}

	if err := os.Remove(filepath.Join(dir, inbox.FileName)); err != nil {
		t.Fatal(err)
	}
	if a := listed(); a.Queued != 0 || a.OldestAt != nil {
		t.Errorf("after the inbox was removed: %+v", a)
	}
}

// TestAListReadsOnlyWhatChanged counts by memory: what is read is decoded.
func TestAListReadsOnlyWhatChanged(t *testing.T) {
	s, ids := talked(t, 8)
	list := func() {
		if all, err := s.Agents(t.Context()); err != nil || len(all) != len(ids) {
			t.Error(all, err)
		}
	}
	list()
	kept := testing.AllocsPerRun(10, list) / float64(len(ids))
	read := testing.AllocsPerRun(10, func() {
		s.System.directory.stories.known, s.System.directory.backlogs.known = nil, nil
		list()
	}) / float64(len(ids))
	t.Logf("allocations for an agent: %.0f as remembered, %.0f as read", kept, read)
	if kept > 40 || kept*3 > read {
		t.Errorf("a list allocates %.0f times for each agent whose files are as they were, %.0f times where they are read", kept, read)
	}
}

// BenchmarkAgents is a list of a thousand agents.
func BenchmarkAgents(b *testing.B) {
	for _, remembered := range []bool{false, true} {
		b.Run(fmt.Sprintf("remembered=%v", remembered), func(b *testing.B) {
			s, _ := talked(b, 1000)
			for b.Loop() {
				if !remembered {
					s.System.directory.stories.known, s.System.directory.backlogs.known = nil, nil
				}
				if _, err := s.Agents(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The end of an item that is not in a history which was just saved is looked for again; that of one which is older is not.
func TestTheEndOfAnItemIsLookedForAgain(t *testing.T) {
	s := newStill(t)
	id := s.colleague(t)
	path := filepath.Join(s.folder(id), "history.jsonl")
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		age   time.Duration
		finds int // at this look; 0: never
		err   error
		looks int
	}{"saved now": {0, 3, nil, 3}, "saved before": {time.Hour, 0, nil, 1}, "unreadable": {0, 0, broken, 1}, "there": {0, 1, nil, 1}} {
		must(t, os.WriteFile(path, []byte("{}\n"), 0o600))
		must(t, os.Chtimes(path, time.Time{}, time.Now().Add(-tt.age)))
		looks := 0
		_, ok, err := s.System.mailroom.closing(t.Context(), id, "item", func(string, string) (record.Outcome, bool, error) {
			looks++
			return record.Outcome{}, looks == tt.finds, tt.err
		})
		if ok != (tt.finds > 0) || !errors.Is(err, tt.err) || looks != tt.looks {
			t.Errorf("%s: found %v, %v after %d looks", name, ok, err, looks)
		}
	}

	must(t, os.Chtimes(path, time.Time{}, time.Now()))
	gone, cancel := context.WithCancel(t.Context())
	_, ok, err := s.System.mailroom.closing(gone, id, "item", func(string, string) (record.Outcome, bool, error) {
		cancel() // who asked does not wait any more
		return record.Outcome{}, false, nil
	})
	if ok || !errors.Is(err, context.Canceled) {
		t.Errorf("for whoever is gone: found %v, %v", ok, err)
	}
}

// A lastingLook is a look at files that proves their content, or not.
type lastingLook bool

func (l lastingLook) Lasts(time.Time) bool { return bool(l) }

// What was read is remembered only where the look at the files proves what is in them, and all of it was read.
func TestOnlyWhatIsCertainIsRemembered(t *testing.T) {
	for i := range 8 {
		sure, whole, lasts := i&1 > 0, i&2 > 0, i&4 > 0
		var r recall[lastingLook, int]
		reads := 0
		for range 2 {
			r.of("agent", func() (lastingLook, bool) { return lastingLook(lasts), sure },
				func() (int, bool) { reads++; return reads, whole })
		}
		want := 2
		if sure && whole && lasts {
			want = 1
		}
		if reads != want {
			t.Errorf("a sure look: %v, a whole one: %v, one that lasts: %v: read %d times, want %d", sure, whole, lasts, reads, want)
		}
	}
}

// That an agent has nothing to do is read off its files once, and is right after they changed.
func TestAProofIsRemembered(t *testing.T) {
	s := newStill(t)
	r, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	dir := s.System.folder(r.Agent)
	must(t, s.Drop(t.Context(), r.Agent, r.Item))
	var stamp beneath.Stamp
	waitFor(t, "a stamp that tells", func() bool {
		if !s.System.settled(r.Agent) {
			t.Fatal("it has something to do")
		}
		stamp, err = beneath.StampAt(filepath.Join(dir, inbox.FileName))
		must(t, err)
		return s.index.Proved(r.Agent, address.InboxProof, stamp)
	})
	if !s.System.settled(r.Agent) {
		t.Error("with the proof it has something to do")
	}
	_, err = s.Deliver(t.Context(), from("one", "again"))
	must(t, err)
	if s.System.settled(r.Agent) {
		t.Error("after another message it has nothing to do")
	}
}
