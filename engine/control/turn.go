package control

import (
	"slices"

	"daycare/engine/event"
)

// A turnFilter picks the events of the turn that one item is worked on in. The
// turn is known from turn.started, or from item.taken where the item was folded
// into a turn that ran already; a turn that began again after a retry or a
// restart is found again by its next turn.started.
type turnFilter struct {
	agent, item string
	old         bool   // the item was accepted before: its turn may be long over
	id          string // the turn; "" before the item was taken
	over        bool   // its turn.finished was seen
}

// ofAgent is what the feed keeps: the events of the agent that the message is
// for, or of all where only the engine knows which that is. The turn is picked
// out when an event is told: the feed is older than the item.
func ofAgent(id string) func(event.Event) bool {
	return func(e event.Event) bool { return id == "" || e.Agent == id }
}

func (t *turnFilter) teller(out *sseWriter) teller {
	return teller{
		event: func(e event.Event) error {
			if !t.tells(e) {
				return nil
			}
			return out.event(e)
		},
		// A hole in the events of all agents says nothing about this turn.
		gap:   func(Gap) error { return nil },
		flush: out.flush,
	}
}

// tells decides about one event and learns from it.
func (t *turnFilter) tells(e event.Event) bool {
	if e.Agent != t.agent {
		return false
	}
	switch body := e.Body.(type) {
	case event.Item:
		if body.Item != t.item {
			return false
		}
		if e.Type == event.ItemTaken && e.Turn != "" {
			t.id, t.over = e.Turn, false
		}
		return e.Type != event.ItemQueued // the stream began with it
	case event.Started:
		if slices.Contains(body.Items, t.item) {
			t.id, t.over = e.Turn, false
		}
	case event.Finished:
		if e.Turn == t.id {
			t.over = true
		}
		return false // made of the outcome
	}
	return t.id != "" && e.Turn == t.id
}

// tail reports whether events of the turn are still to come once its outcome is
// known.
func (t *turnFilter) tail(o event.Outcome) bool {
	return !t.over && (t.id != "" || o.Turn != "" && !t.old)
}
