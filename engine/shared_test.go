package engine

import (
	"testing"

	"daycare/engine/address"
	"daycare/engine/message"
)

// Who writes in a group has an agent there, or all share one, or those of a thread; each edits only
// their own messages.
func TestAgentsThatAGroupShares(t *testing.T) {
	s := newStill(t)
	group := message.Address{Connector: "room", ChannelID: "g"}
	thread := message.Address{Connector: "room", ChannelID: "g", ThreadID: "t"}
	say := func(user, id string, of *message.Address) message.Receipt {
		t.Helper()
		from := message.Address{Connector: "room", ChannelID: "g", UserID: user, ThreadID: "t"}
		r, err := s.Deliver(t.Context(), message.Incoming{From: from, For: of, Route: &from, Text: id, Dedupe: "room:" + id,
			Context: message.Context{MessageID: id}})
		must(t, err)
		return r
	}
	own, ada, bob, there := say("ada", "1", nil), say("ada", "2", &group), say("bob", "3", &group), say("bob", "4", &thread)
	if ada.Agent != bob.Agent || own.Agent == ada.Agent || there.Agent == ada.Agent || there.Agent == own.Agent {
		t.Errorf("agents: own %s, the group's %s and %s, the thread's %s", own.Agent, ada.Agent, bob.Agent, there.Agent)
	}
	for id, want := range map[string]message.Address{ada.Agent: group, there.Agent: thread,
		own.Agent: {Connector: "room", ChannelID: "g", UserID: "ada"}} {
		meta, ok := s.index.Get(id)
		if got := meta.Descriptor.Address(); !ok || got != want || meta.Descriptor.Type != address.User {
			t.Errorf("%s is at %+v, want %+v", id, got, want)
		}
	}

	edit := func(user string) bool {
		t.Helper()
		done, err := s.Amend(t.Context(), message.Amendment{For: &group, MessageID: "2", Text: "zwei",
			From: message.Address{Connector: "room", ChannelID: "g", UserID: user}})
		must(t, err)
		return done
	}
	if edit("bob") {
		t.Error("a queued message is edited by another one than its sender")
	}
	if !edit("ada") {
		t.Error("a queued message is not edited by its sender")
	}
}
