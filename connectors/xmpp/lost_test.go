package xmpp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"daycare/connectors/chat"
	"daycare/connectors/connectortest"
	"daycare/engine/message"
)

// inRoom is whether the connector counts itself as in the room.
func inRoom(c *Connector) bool {
	f := c.current.Load().flow
	f.state.Lock()
	defer f.state.Unlock()
	return f.rooms[teamJID].joined
}

// A room whose server was stopped has lost us without a word: it is asked, and entered again, and what was said in between
// is read. An answer that says nothing of us changes nothing.
func TestRoomsThatLostUs(t *testing.T) {
	s, e := newServer(t, canary), &connectortest.Taker{}
	h := newHouse(s)
	host := chat.Host{Waiting: &connectortest.Keeper{}}
	c := testConnector(t, s, Options{Rooms: []string{teamJID}}, host, slog.New(slog.DiscardHandler))
	stop := connectortest.Serve(t, c, e.Deliver)
	joined(t, c)
	for {
		if _, ok := c.marks.place(teamJID); ok {
			break
		}
		time.Sleep(time.Millisecond)
	}

	check := func(condition string) {
		h.did(func(h *house) { h.forgot, h.why = true, condition })
		rooms{c.current.Load()}.check()
		if _, err := c.current.Load().await(t.Context(), "get", fileJID, node(nsInfo, "query")); err != nil { // answered later
			t.Fatal(err)
		}
	}
	for _, condition := range append([]string{"service-unavailable", "feature-not-implemented", "item-not-found"}, passing...) {
		if check(condition); !inRoom(c) {
			t.Errorf("%s: it counts as out of the room", condition)
		}
	}
	h.keep(teamJID, teamJID+"/Ada", "bot: missed")
	if check("not-acceptable"); inRoom(c) {
		t.Error("it counts as in a room that lost it")
	}
	rooms{c.current.Load()}.enterMissing(t.Context())
	if joined(t, c); !slices.Equal(e.Until(t, 1), []string{"missed"}) {
		t.Errorf("it got %q", e.Until(t, 1))
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// An answer that a room refuses because it lost us is sent again, and arrives once, also where our own server
// had taken it, and where the room says nothing for too long.
func TestAnswersToRoomsThatLostUs(t *testing.T) {
	for name, fault := range map[string]func(h *house){
		"refused at once":        func(h *house) { h.forgot = true },
		"refused later":          func(h *house) { h.forgot, h.late = true, true },
		"without a word":         func(h *house) { h.deaf = true },
		"unreachable":            func(h *house) { h.forgot, h.why = true, "remote-server-not-found" },
		"unreachable, seen late": func(h *house) { h.forgot, h.late, h.why = true, true, "remote-server-timeout" },
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, canary)
			h := newHouse(s)
			h.stable = true
			c := testConnector(t, s, Options{Rooms: []string{teamJID}}, chat.Host{}, slog.New(slog.DiscardHandler))
			stop := connectortest.Serve(t, c, (&connectortest.Taker{}).Deliver)
			joined(t, c)
			h.did(fault)
			out := message.Outgoing{ID: "out", To: message.Address{ChannelID: teamJID}, Text: "answer", Parts: 1}
			ctx, cancel := context.WithCancel(t.Context())
			if name == "without a word" {
				ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
			}
			defer cancel()
			_, err := c.Send(ctx, out)
			var not *message.NotSent
			if err == nil || errors.As(err, &not) && not.Final {
				t.Fatalf("it counts as sent, or as lost: %v", err)
			}

			h.did(func(h *house) { h.forgot, h.deaf = h.forgot && h.why == "", false })
			out.Retry = not == nil
			if _, err := c.Send(t.Context(), out); err != nil {
				t.Error(err)
			}
			h.did(func(h *house) {
				if got := h.archives[teamJID]; len(got) != 1 {
					t.Errorf("the room has %d messages: %s", len(got), fmt.Sprint(got))
				}
			})
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}
