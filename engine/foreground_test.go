package engine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// Who wrote last is found without a look at all agents, and stays right as users write,
// agents go and owners change.
func TestTheForegroundIsKeptRightWithoutALookAtAllAgents(t *testing.T) {
	h := newHousehold(t, Limits{})
	owner := "ada"
	h.recent.owns = func(d address.Descriptor) bool { return d.UserID == owner }
	write := func(channel, user string) string {
		return h.deliver(message.Incoming{From: message.Address{Connector: "c", ChannelID: channel, UserID: user}, Text: "x"}).Agent
	}
	want := func(id, why string) {
		t.Helper()
		before := h.index.Visited()
		if got, ok := h.Foreground(); !ok || got != id {
			t.Errorf("%s: the foreground is %s (%v), want %s", why, h.name(got), ok, h.name(id))
		}
		if n := h.index.Visited() - before; n > 0 {
			t.Errorf("%s: %d agents were looked at", why, n)
		}
	}
	for range 50 {
		write("x", "someone")
	}

	first, second, bob := write("1", "ada"), write("2", "ada"), write("3", "bob")
	for i, id := range []string{first, second, bob} { // the times of files are not that exact
		path, at := filepath.Join(h.folder(id), inbox.FileName), time.Now().Add(time.Duration(i-3)*time.Second)
		must(t, os.Chtimes(path, at, at))
	}
	h.Foreground() // the files are looked at once
	want(second, "an owner before others")
	h.deliver(message.Incoming{Agent: bob, Kind: message.System, Text: "x"})
	h.deliver(message.Incoming{Agent: first, Kind: message.System, Text: "x"})
	want(second, "messages of agents do not count")
	write("1", "ada")
	want(first, "the other one is written to")
	if _, err := h.Remove(t.Context(), first, true); err != nil {
		t.Fatal(err)
	}

	want(second, "the newest is removed")
	time.Sleep(2 * time.Millisecond) // inboxes tell times in milliseconds
	third := write("4", "ada")
	want(third, "a new agent")
	owner = "bob"
	h.OwnersChanged()
	h.Foreground()
	want(bob, "another owner")
	owner = "nobody"
	h.OwnersChanged()
	h.Foreground()
	want(third, "no owner")
	mine := h.deliver(message.Incoming{From: message.Address{Connector: "terminal", ChannelID: "9", UserID: "u"}, Text: "x"}).Agent
	want(mine, "an agent of the terminal")
	if err := h.Kill(t.Context(), mine); err != nil {
		t.Fatal(err)
	}

	want(third, "the newest has ended")
}
