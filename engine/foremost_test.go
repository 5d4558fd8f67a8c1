package engine

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/folders"
	"daycare/engine/message"
)

// Whoever a user wrote to last is in the foreground, and answers for the house if that
// person owns it, whatever became of other agents meanwhile: by what was seen, and by the files alone.
func TestTheForegroundIsWhomAPersonWroteToLast(t *testing.T) {
	t.Parallel()
	owns := func(o *Options) { o.Owns = func(d address.Descriptor) bool { return d.UserID == "owner" } }
	s := newStill(t, owns)
	house := s.colleague(t)
	random := rand.New(rand.NewPCG(3, 4))
	wrote, gone := map[string]int{}, map[string]bool{} // when agents were written to, and which are in the trash
	owner := map[string]bool{}
	var ids []string // in the order in which they were made
	check := func(step int, what string) {
		t.Helper()
		newest := func(only bool) (id string) {
			for agent, at := range wrote {
				if !gone[agent] && at > wrote[id] && (!only || owner[agent]) {
					id = agent
				}
			}
			return id
		}
		want := cmp.Or(newest(true), newest(false))
		if id, ok := s.Foreground(); id != want || ok != (want != "") {
			t.Fatalf("after step %d, %s: the foreground is %q, want %q", step, what, id, want)
		}
		if m, ok := s.Overseer(house); ok != (newest(true) != "") || ok && m.ID != newest(true) {
			t.Fatalf("after step %d, %s: %q answers for the house, want %q", step, what, m.ID, newest(true))
		}
	}
	check(0, "nothing")
	for step := 1; step <= 80; step++ {
		time.Sleep(11 * time.Millisecond) // file systems keep the time of a save to a hundredth of a second at worst
		what := "a message"
		switch action := random.IntN(6); {
		case action < 3 || len(ids) == 0:
			user := []string{"owner", "guest"}[random.IntN(2)]
			r, err := s.Deliver(t.Context(), message.Incoming{Text: "x",
				From: message.Address{Connector: "c", ChannelID: fmt.Sprint(random.IntN(3)), UserID: user}})
			must(t, err)
			if wrote[r.Agent] == 0 {
				ids = append(ids, r.Agent)
			}
			wrote[r.Agent], owner[r.Agent] = step, user == "owner"
		case action == 3:
			what = "a note"
			_, err := s.Deliver(t.Context(), message.Incoming{Agent: ids[random.IntN(len(ids))], Kind: message.System, Text: "x"})
			if err != nil && !errors.Is(err, message.ErrUnknownAgent) {
				t.Fatal(err)
			}
		case action == 4:
			what = "a removal"
			id := ids[random.IntN(len(ids))]
			if _, err := s.Remove(t.Context(), id, true); err == nil {
				gone[id] = true
			} else if !gone[id] {
				t.Fatal(err)
			}
		default:
			what = "a return from the trash"
			id := ids[random.IntN(len(ids))]
			if _, err := s.Restore(t.Context(), id); err == nil {
				delete(gone, id)
			} else if gone[id] && !errors.Is(err, folders.ErrTaken) {
				t.Fatal(err)
			}
		}
		check(step, what)
		if step%10 == 0 {
			s.OwnersChanged() // the files are looked at again
			check(step, "a look at the files")
		}
	}
}

// An agent that a user wrote to twice is in the foreground once: removed, it is there no more.
func TestAnAgentThatIsRemovedLeavesTheForeground(t *testing.T) {
	s := newStill(t)
	write := func(chat string) string {
		r, err := s.Deliver(t.Context(), from(chat, "x"))
		must(t, err)
		return r.Agent
	}
	stays := write("one")
	s.Foreground() // from here on it is kept right
	goes := write("two")
	write("two")
	if id, _ := s.Foreground(); id != goes {
		t.Errorf("the foreground is %q, want %q", id, goes)
	}
	_, err := s.Remove(t.Context(), goes, true)
	must(t, err)
	if id, ok := s.Foreground(); !ok || id != stays {
		t.Errorf("the foreground is %q, want %q", id, stays)
	}
}
