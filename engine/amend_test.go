package engine

import (
	"errors"
	"testing"

	"daycare/engine/address"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// A sender edits and deletes what is queued; of others, in other chats, and what is in a turn
// nothing changes.
func TestSendersAmendWhatIsQueued(t *testing.T) {
	h := newHouse(t, t.TempDir(), idle)
	events := h.events.Subscribe(t.Context())
	send := func(id string) message.Receipt {
		in := from("room", id)
		in.Context.MessageID, in.Dedupe = id, "c:"+id
		in.Route = &in.From
		return h.deliver(in)
	}
	first, second := send("one"), send("two")
	e, box, err := h.actors.acquire(first.Agent)
	must(t, err)
	defer e.release()
	amend := func(id, user, channel, text string, deleted bool) bool {
		t.Helper()
		done, err := h.Amend(t.Context(), message.Amendment{From: message.Address{Connector: "c", ChannelID: channel, UserID: user},
			Agent: first.Agent, MessageID: id, Text: text, Deleted: deleted})
		must(t, err)
		return done
	}

	for _, tt := range []struct {
		id, user, channel string
		done              bool
	}{{"two", "u", "room", true}, {"two", "mallory", "room", false}, {"two", "u", "elsewhere", false}, {"three", "u", "room", false},
		{"", "u", "room", false}} {
		if done := amend(tt.id, tt.user, tt.channel, "edited by "+tt.user, false); done != tt.done {
			t.Errorf("editing %q of %s in %s: %v, want %v", tt.id, tt.user, tt.channel, done, tt.done)
		}
	}
	if done, err := h.Amend(t.Context(), message.Amendment{From: message.Address{Connector: "d", ChannelID: "room", UserID: "u"},
		Agent: first.Agent, MessageID: "two", Text: "edited by d"}); done || err != nil {
		t.Errorf("from another connector: %v, %v", done, err)
	}
	if it, err := box.Read(second.Item); err != nil || it.Text != "edited by u" {
		t.Errorf("%v: the queued item reads %q", err, it.Text)
	}
	var edited event.Event
	for edited = range events {
		if edited.Type == event.ItemEdited {
			break
		}
	}
	if i, ok := edited.Body.(event.Item); !ok || i.Item != second.Item || i.Text != "edited by u" {
		t.Errorf("told is %+v", edited)
	}

	_, err = box.Take(first.Item)
	must(t, err)
	if amend("one", "u", "room", "too late", false) || amend("one", "u", "room", "", true) {
		t.Error("a message in a turn was amended")
	}
	if !amend("two", "u", "room", "", true) {
		t.Error("a queued message was not dropped")
	}
	for gone := range events {
		if i, ok := gone.Body.(event.Item); ok && gone.Type == event.ItemDropped {
			if i.Item != second.Item {
				t.Errorf("dropped is %+v", i)
			}
			break
		}
	}
	if open := box.Open(); len(open) != 1 || open[0].ID != first.Item {
		t.Errorf("open are %+v, want the first alone", open)
	}
	_, err = box.Read(second.Item)
	if err == nil {
		t.Errorf("%v: the dropped item can be read, want inbox.ErrUnknown", inbox.ErrUnknown)
	}

	if done, err := h.Amend(t.Context(), message.Amendment{From: message.Address{Connector: "c", ChannelID: "nobody", UserID: "u"},
		MessageID: "one"}); done || err != nil {
		t.Errorf("in a chat without an agent: %v, %v", done, err)
	}
	ops, err := h.Create(t.Context(), address.Descriptor{Type: address.Permanent, Name: "Ops"})
	must(t, err)
	must(t, h.Kill(t.Context(), ops.ID))
	done, err := h.Amend(t.Context(), message.Amendment{Agent: ops.ID, MessageID: "one"})
	if done || !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("a message of an agent that has ended: %v, %v", done, err)
	}
}
