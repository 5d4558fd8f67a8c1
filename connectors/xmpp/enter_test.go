package xmpp

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
)

// A room that cannot be reached, or whose server put us out because it was stopped or lost us, is
// entered again, and what was said in between is read. Where somebody put us out we stay out.
func TestRoomsAreEnteredAgain(t *testing.T) {
	s, e := newServer(t, canary), &connectortest.Taker{}
	h := newHouse(s)
	h.away = true
	h.keep(teamJID, teamJID+"/Ada", "bot: before")
	host := chat.Host{Waiting: &connectortest.Keeper{}}
	c := testConnector(t, s, Options{Rooms: []string{teamJID}}, host, slog.New(slog.DiscardHandler))
	stop := connectortest.Serve(t, c, e.Deliver)
	tries := func() (n int) {
		h.did(func(h *house) { n = len(h.entered) })
		return n
	}
	for tries() == 0 {
		time.Sleep(time.Millisecond)
	}
	enter := func() { rooms{c.current.Load()}.enterMissing(t.Context()) }
	enter()
	h.did(func(h *house) { h.away = false })
	enter()
	joined(t, c)
	for {
		if _, ok := c.marks.place(teamJID); ok {
			break
		}
		time.Sleep(time.Millisecond)
	}

	leave := func(codes ...string) {
		s.there(t.Context()).put(occupant("bot", botJID+"/daycare", "unavailable", codes...))
		for f, in := c.current.Load().flow, true; in; time.Sleep(time.Millisecond) {
			f.state.Lock()
			in = f.rooms[teamJID].joined
			f.state.Unlock()
		}
	}
	for i, codes := range [][]string{{"110", "332"}, {"110", "307", "333"}} {
		h.keep(teamJID, teamJID+"/Ada", "bot: missed")
		leave(codes...)
		enter()
		joined(t, c)
		if got := e.Until(t, i+1); !slices.Equal(got, []string{"missed", "missed"}[:i+1]) {
			t.Errorf("%v: it got %q", codes, got)
		}
	}
	before := tries()
	leave("110", "307")
	if enter(); tries() != before {
		t.Error("it enters a room again that it was put out of")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
