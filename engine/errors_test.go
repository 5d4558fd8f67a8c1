package engine

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/folders"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

// What an agent does to another one that is not there is an error each time.
func TestAgentsCannotReachWhatIsNotThere(t *testing.T) {
	h := newHousehold(t, Limits{})
	one, none := h.person("one"), strings.Repeat("a", 24)
	ctx := t.Context()
	_, post := h.Post(ctx, message.Incoming{Origin: one, Agent: none, Text: "x"})
	_, deliver := h.Deliver(ctx, message.Incoming{Agent: none, Text: "x"})
	_, await := h.System.Await(ctx, none, "item")
	_, lent := h.Family.Await(ctx, none, "item")
	_, history := h.Family.History(ctx, one, none, 1)
	_, stop := h.Family.Stop(ctx, one, none)
	_, work := h.Work(ctx, one, none)
	_, file := h.ReadFile(ctx, none, address.File)
	_, write := h.WriteFile(ctx, none, address.File, []byte("{}"), "")
	_, family := h.System.Family(ctx, none)
	_, child := h.child(none, "c", false)
	for what, err := range map[string]error{
		"post": post, "deliver": deliver, "await": await, "await for another": lent, "history": history, "stop": stop,
		"work": work, "read": file, "write": write, "family": family, "child": child,
		"say":     h.Say(ctx, one, none, message.Address{}, "key", "x"),
		"share":   h.Share(ctx, one, none, "@web", "key"),
		"note":    h.Note(ctx, none, one, "key", "x"),
		"profile": h.Profile(ctx, none, permission.ReadOnly, "", "me"),
	} {
		if !errors.Is(err, message.ErrUnknownAgent) {
			t.Errorf("%s: %v, want that there is no such agent", what, err)
		}
	}

	if h.Related(one, none) {
		t.Error("an agent that is not there works for the same person")
	}
	if id, ok := h.Stranger(one, none); ok {
		t.Errorf("%s, which is not there, is a stranger", id)
	}
	if h.AtWork(none, time.Time{}) {
		t.Error("an agent that is not there is at work")
	}
}

// A right is shared with agents that the giver started, under a name that can be read,
// and only where the giver has it.
func TestWhatMayBeShared(t *testing.T) {
	h := newHousehold(t, Limits{})
	one := h.person("one")
	child, err := h.child(one, "c", false)
	must(t, err)

	for tag, want := range map[string]error{"nonsense": permission.ErrTag, "@web": ErrNotHeld} {
		if err := h.Share(t.Context(), one, child.ID, tag, "key"); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", tag, err, want)
		}
	}
	must(t, record.UpdateState(h.vol, h.folder(one), func(s *record.State) { s.Permissions.Web = true }))
	must(t, h.Share(t.Context(), one, child.ID, "@web", "key"))
	if err := h.Share(t.Context(), child.ID, one, "@web", "key"); !errors.Is(err, ErrStranger) {
		t.Errorf("a child shares with its parent: %v", err)
	}

	writeFile(t, h.folder(one)+"/state.json", "{")
	if err := h.Share(t.Context(), one, child.ID, "@exec:git", "key2"); err == nil {
		t.Error("a right was shared although it cannot be read what the agent has")
	}
}

// What users talk to by an address stays: it is not killed, but reset or removed.
func TestWhatCanBeKilled(t *testing.T) {
	s := newStill(t)
	terminal := Terminal()
	for _, tt := range []struct {
		name string
		d    address.Descriptor
		want error
	}{
		{"a chat's", address.Descriptor{Type: address.User, Connector: "c", ChannelID: "1", UserID: "u"}, ErrProtected},
		{"the terminal's own", address.Descriptor{Type: address.User, Connector: "terminal", ChannelID: "default",
			UserID: terminal.UserID}, ErrProtected},
		{"another one of the terminal", address.Descriptor{Type: address.User, Connector: "terminal", UserID: terminal.UserID}, nil},
		{"a task's", address.Descriptor{Type: address.Cron, ID: strings.Repeat("t", 24), Name: "task"}, ErrProtected},
		{"a colleague", address.Descriptor{Type: address.Permanent, Name: "Ops"}, nil},
	} {
		a, err := s.System.Create(t.Context(), tt.d)
		must(t, err)
		if err := s.Kill(t.Context(), a.ID); !errors.Is(err, tt.want) || err == nil != (tt.want == nil) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if got, err := s.Agent(t.Context(), a.ID); err != nil || (got.State == event.Ended) != (tt.want == nil) {
			t.Errorf("%s is %s afterwards: %v", tt.name, got.State, err)
		}
	}
}

// The outcome of an item says what its turn used, whatever kind of token it was.
func TestTheOutcomeOfAnItem(t *testing.T) {
	t.Parallel()
	s := newStill(t)
	r, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	hist, _, err := record.Open(s.vol, s.folder(r.Agent), time.Now, slog.New(slog.DiscardHandler))
	must(t, err)
	must(t, hist.Begin("session"))
	_, err = hist.Append(&record.TurnBegin{Turn: "t", Items: []string{r.Item}}, &record.User{Item: r.Item, Text: "hello",
		Context: &message.Context{MessageID: "m1"}},
		&record.Assistant{Turn: "t", Finish: record.FinishEndTurn, Text: "well", Provider: "p", Model: "m", Cost: 3,
			Tokens: record.Tokens{Input: 100, CacheRead: 20, CacheWrite: 3, Output: 7}},
		&record.TurnEnd{Turn: "t", Items: []string{r.Item}, Reason: record.ReasonDone})
	must(t, errors.Join(err, hist.Barrier(), hist.Close()))
	box, _, err := inbox.Open(s.vol, s.folder(r.Agent), inbox.NewQuota(1<<20), time.Now)
	must(t, err)
	_, err = box.Take(r.Item)
	must(t, errors.Join(err, box.Done(r.Item), box.Close()))

	o, err := s.System.Await(t.Context(), r.Agent, r.Item)
	must(t, err)
	if o.Text != "well" || o.Turn != "t" || o.Reason != record.ReasonDone || o.Work.Input != 123 || o.Work.Output != 7 ||
		math.Abs(o.Cost-3) > 1e-9 {
		t.Errorf("outcome %+v", o)
	}
	p, err := s.System.Item(t.Context(), r.Agent, r.Item)
	must(t, err)
	if p.State != "done" || p.Text != "hello" || p.Type != string(message.Text) || p.EndedAt.Before(p.At) || p.Outcome.Text != "well" ||
		p.MessageID != "m1" {
		t.Errorf("item %+v", p)
	}
	if _, awake := s.System.actors.awake(r.Agent); awake {
		t.Error("a look at an item left its agent in memory")
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	second, err := s.Deliver(t.Context(), from("one", "later"))
	must(t, err)
	p, err = s.System.Item(t.Context(), r.Agent, second.Item)
	must(t, err)
	if p.State != "waiting" || p.Text != "later" || p.Outcome != nil {
		t.Errorf("item %+v", p)
	}
	e, taken, err := s.System.actors.acquire(second.Agent)
	must(t, err)
	_, err = taken.Take(second.Item)
	must(t, err)
	if p, err = s.System.Item(t.Context(), r.Agent, second.Item); err != nil || p.State != "taken" {
		t.Errorf("item %+v, %v", p, err)
	}
	e.release()
	if _, err := s.System.Item(t.Context(), r.Agent, "none"); !errors.Is(err, inbox.ErrUnknown) {
		t.Errorf("an item that never was: %v", err)
	}
	history := filepath.Join(s.System.folder(r.Agent), "history.jsonl")
	must(t, os.Chtimes(history, time.Now(), time.Now()))
	if _, err := s.System.Item(ctx, r.Agent, "none"); !errors.Is(err, context.Canceled) {
		t.Errorf("who waits no longer for what may be saved at this moment gets %v", err)
	}
	if _, err := s.System.Await(ctx, second.Agent, second.Item); !errors.Is(err, context.Canceled) {
		t.Errorf("who waits no longer gets %v", err)
	}
	must(t, errors.Join(os.Remove(history), os.Mkdir(history, 0o700)))
	if p, err := s.System.Item(t.Context(), r.Agent, r.Item); err == nil || errors.Is(err, inbox.ErrUnknown) {
		t.Errorf("an item of a history that cannot be read is %+v, %v", p, err)
	}
}

// A folder in the place of a file of an agent is an error of each call that needs the file, and not an empty answer.
func TestAFolderInThePlaceOfAFile(t *testing.T) {
	h := newHousehold(t, Limits{})
	for name, calls := range map[string]map[string]func(id string) error{
		"inbox.jsonl": {
			"inbox": func(id string) error { _, err := h.Inbox(t.Context(), id); return err },
			"item":  func(id string) error { _, err := h.Item(t.Context(), id, "item"); return err },
		},
		"draft.json": {
			"draft": func(id string) error { _, err := h.Draft(t.Context(), id); return err },
		},
		"state.json": {
			"cost": func(id string) error { _, err := h.actors.readCost(id); return err },
			"kill": func(id string) error { return h.Kill(t.Context(), id) },
			"a message": func(id string) error { // it may have ended
				_, err := h.Deliver(t.Context(), message.Incoming{Agent: id, Text: "x"})
				return err
			},
			"a long message": func(id string) error {
				_, err := h.mailroom.spill(id, inbox.Item{Text: "long"})
				return err
			},
		},
		"history.jsonl": {
			"session": func(id string) error { _, err := h.Family.Session(t.Context(), id, id); return err },
		},
		"descriptor.json": {
			"update": func(id string) error { _, err := h.Update(t.Context(), "", id, "new", ""); return err },
		},
	} {
		meta, err := h.index.Create(address.Descriptor{Type: address.Permanent, Name: "a"}, []byte("{}\n"))
		must(t, err)
		path := filepath.Join(h.folder(meta.ID), name)
		must(t, errors.Join(os.RemoveAll(path), os.MkdirAll(filepath.Join(path, "full"), 0o700)))
		for call, do := range calls {
			if err := do(meta.ID); err == nil {
				t.Errorf("%s with a folder as %s: no error", call, name)
			}
		}
	}
}

// What an untrusted message is from is what was said of it, else the chat it came from.
func TestTheSourceOfAnUntrustedMessage(t *testing.T) {
	s := newStill(t)
	for said, want := range map[string]string{"a mail": "a mail", "": "a message of the service c/one", "-": ""} {
		in := from("one", "hello")
		in.Untrusted, in.Source = said != "-", strings.Trim(said, "-")
		r, err := s.Deliver(t.Context(), in)
		must(t, err)
		e, box, err := s.System.actors.acquire(r.Agent)
		must(t, err)
		if it, err := box.Read(r.Item); err != nil || it.Source != want {
			t.Errorf("said to be from %q, it is from %q, %v, want %q", said, it.Source, err, want)
		}
		e.release()
	}
}

// An item that cannot be read is not one that never was.
func TestAnItemThatCannotBeRead(t *testing.T) {
	s := newStill(t)
	r, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	e, _, err := s.System.actors.acquire(r.Agent)
	must(t, err)
	defer e.release()
	path := filepath.Join(s.System.folder(r.Agent), inbox.FileName)
	must(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o700)))
	if p, err := s.System.Item(t.Context(), r.Agent, r.Item); err == nil || errors.Is(err, inbox.ErrUnknown) {
		t.Errorf("%+v, %v", p, err)
	}
}

// An agent with an address that another one has is not made by hand.
func TestAnAddressIsTaken(t *testing.T) {
	s := newStill(t)
	r, err := s.Deliver(t.Context(), from("one", "hello"))
	must(t, err)
	meta, _ := s.index.Get(r.Agent)
	d := meta.Descriptor
	d.ID = ""
	_, err = s.System.lifecycle.registrar.createFresh(d, []byte("{}\n"), func(string) error { return nil })
	if !errors.Is(err, folders.ErrTaken) || !strings.Contains(err.Error(), meta.Handle+" "+meta.ID) {
		t.Errorf("%v, want %v and who has it", err, folders.ErrTaken)
	}
}

// Only a user's message of which nothing is said is asked after.
func TestWhoseMessageIsForeign(t *testing.T) {
	s := newStill(t, func(o *Options) {
		o.Foreign = func(from message.Address, sender string) string { return "the guest " + sender }
	})
	for _, tt := range []struct {
		kind       message.Kind
		said, want string
	}{{message.Text, "", "the guest Bob"}, {message.Text, "a mail", "a mail"}, {message.System, "", ""}} {
		in := from("one", "hello")
		in.Kind, in.Source, in.Context.Sender = tt.kind, tt.said, "Bob"
		r, err := s.Deliver(t.Context(), in)
		must(t, err)
		e, box, err := s.System.actors.acquire(r.Agent)
		must(t, err)
		if it, err := box.Read(r.Item); err != nil || it.Source != tt.want {
			t.Errorf("%s said to be from %q is from %q, %v, want %q", tt.kind, tt.said, it.Source, err, tt.want)
		}
		e.release()
	}
}
