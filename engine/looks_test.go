package engine

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/inbox"
)

// At the end what is on its way and what stands in line is kept for the next start, each with one
// result; what stands in line is not even tried.
func TestAtTheEndWhatStandsInLineIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := newSlowRoom()
		p := newPost(map[string]Connector{"room": room})
		for _, id := range []string{"first", "second", "third"} {
			p.promise("a", id, "x", nil)
		}
		synctest.Wait()
		p.close(time.Second)

		for _, id := range []string{"first", "second", "third"} {
			if f := p.only(t, id); !f.Kept || f.Final || f.Error != "" {
				t.Errorf("%s: %+v, want it kept", id, f)
			}
		}
		close(room.tries)
		var tried []string
		for key := range room.tries {
			tried = append(tried, key)
		}

		if len(tried) != 1 {
			t.Errorf("tried were %v, want the first alone", tried)
		}
	})
}

// An agent is at work while it has an item or shows that it works: not because it is in memory,
// and not when it has ended.
func TestWhenAnAgentIsBusy(t *testing.T) {
	show, shown := make(chan event.State), make(chan struct{})
	h := newHouse(t, t.TempDir(), func(ctx context.Context, rt Runtime) error {
		answer := echo(func(string, inbox.Item) {})
		for {
			if err := answer(ctx, rt); err != nil {
				return err
			}
			select {
			case state := <-show:
				answer = func(context.Context, Runtime) error { return nil } // what comes from now on waits
				rt.Show(state, "")
				shown <- struct{}{}
			case <-rt.Inbox.Arrived():
			case <-ctx.Done():
				return nil
			}
		}
	})
	r := h.deliver(from("one", "hello"))
	if _, err := h.Await(t.Context(), r.Agent, r.Item); err != nil {
		t.Fatal(err)
	}
	if h.actors.busy(r.Agent) || h.actors.busy("nobody") {
		t.Error("an agent that has shown nothing is busy")
	}

	for _, state := range []event.State{event.Thinking, event.Idle, event.UsingTool, event.Idle} {
		show <- state
		<-shown
		if h.actors.busy(r.Agent) != (state != event.Idle) {
			t.Errorf("an agent that shows %s is busy: %v", state, h.actors.busy(r.Agent))
		}
	}

	h.deliver(from("one", "another"))
	if !h.actors.busy(r.Agent) {
		t.Error("an agent with an item is not busy")
	}
}

// Whoever a user wrote to last is an agent of a user that is there: no colleague, and none
// whose folder was taken away.
func TestTheForegroundIsThere(t *testing.T) {
	root := t.TempDir()
	h := newHouse(t, root, echo(func(string, inbox.Item) {}))
	write := func(channel string) string {
		r := h.deliver(from(channel, "x"))
		_, err := h.Await(t.Context(), r.Agent, r.Item) // one at work would end with its folder
		must(t, err)
		return r.Agent
	}
	older := write("older")
	time.Sleep(2 * time.Millisecond) // inboxes tell times in milliseconds
	newer := write("newer")
	if err := h.end(); err != nil {
		t.Fatal(err)
	}

	const house = "tz4a98xxat96iws9zmbrgj3a"
	descriptor, err := address.Encode(address.Descriptor{Type: address.Permanent, ID: house, Name: "Ops"})
	at := func(id string, minute int) error {
		when := time.Now().Add(time.Duration(minute) * time.Minute) // a file is written no earlier than its messages are
		return os.Chtimes(filepath.Join(root, "agents", id, inbox.FileName), when, when)
	}
	dir := filepath.Join(root, "agents", house)
	said := []byte(readFile(t, filepath.Join(root, "agents", newer, inbox.FileName)))
	if err := errors.Join(err, os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, address.File), descriptor, 0o600),
		os.WriteFile(filepath.Join(dir, "state.json"), []byte("{}\n"), 0o600),
		os.WriteFile(filepath.Join(dir, inbox.FileName), said, 0o600),
		at(older, 1), at(newer, 2), at(house, 3)); err != nil {
		t.Fatal(err)
	}

	h = newHouse(t, root, echo(func(string, inbox.Item) {}))
	if id, ok := h.Foreground(); !ok || id != newer {
		t.Errorf("the foreground is %s, want %s", id, newer)
	}
	away := filepath.Join(root, "away")
	must(t, os.Rename(filepath.Join(root, "agents", newer), away))
	h.folderWatch.rescan(newer)
	if id, ok := h.Foreground(); !ok || id != older {
		t.Errorf("without its folder the foreground is %s, want %s", id, older)
	}

	must(t, os.Rename(away, filepath.Join(root, "agents", newer)))
	h.folderWatch.rescan(newer)
	if id, ok := h.Foreground(); !ok || id != newer {
		t.Errorf("back again the foreground is %s, want %s", id, newer)
	}
}

// A line of an inbox that is broken while its agent is awake is told when the inbox is let go.
func TestALineThatIsBrokenMeanwhileIsTold(t *testing.T) {
	root := t.TempDir()
	h := newHouse(t, root, echo(func(string, inbox.Item) {}))
	r := h.deliver(from("one", "hello"))
	if _, err := h.Await(t.Context(), r.Agent, r.Item); err != nil {
		t.Fatal(err)
	}

	e, _, err := h.acquire(r.Agent) // it stays in memory
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, "agents", r.Agent, inbox.FileName)
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), `{"`, `{"x" `, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}

	next := h.deliver(from("one", "again"))
	if _, err := h.Await(t.Context(), next.Agent, next.Item); err != nil {
		t.Fatal(err)
	}
	e.release()
	if wrong := h.problems.Of(r.Agent); len(wrong) != 1 || wrong[0].File != path {
		t.Errorf("told are %+v", wrong)
	}
}

// Whose agent an edit makes an owner's comes before those of others, without another message.
func TestAnEditMakesAnOwner(t *testing.T) {
	s := newStill(t, func(o *Options) { o.Owns = func(d address.Descriptor) bool { return d.UserID == "boss" } })
	write := func(user string) string {
		in := from("room of "+user, "hello")
		in.From.UserID = user
		r, err := s.Deliver(t.Context(), in)
		must(t, err)
		time.Sleep(2 * time.Millisecond) // inboxes tell times in milliseconds
		return r.Agent
	}
	owners, other := write("boss"), write("guest")
	if id, _ := s.Foreground(); id != owners {
		t.Errorf("the foreground is %s, want the owner's", id)
	}
	path := filepath.Join(s.System.folder(other), address.File)
	writeFile(t, path, strings.Replace(readFile(t, path), `"guest"`, `"boss"`, 1))
	s.System.reread(other, true)
	if id, _ := s.Foreground(); id != other {
		t.Errorf("after the edit it is %s, want the one with the newer message", id)
	}
}
