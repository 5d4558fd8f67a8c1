package engine

import (
	"context"
	"errors"

	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// Amend edits or drops the queued message that an amendment is about. It returns false if
// there is none: the message is in a turn or answered, was never accepted, or is another
// user's.
func (m *mailroom) Amend(_ context.Context, a message.Amendment) (bool, error) {
	id, ok := m.amended(a)
	if !ok || a.MessageID == "" {
		return false, nil
	}
	e, box, err := m.actors.acquire(id)
	if err != nil {
		return false, err
	}
	defer e.release()
	for _, h := range box.Open() {
		if h.Kind != message.Text || h.Connector != a.From.Connector {
			continue
		}
		it, err := box.Read(h.ID)
		if err != nil || it.Context.MessageID != a.MessageID || it.Route != nil && !sameUser(*it.Route, a.From) {
			continue
		}

		if a.Deleted {
			err = box.Drop(h.ID)
		} else {
			err = box.Edit(h.ID, m.redact.Text(a.Text))
		}
		switch {
		case errors.Is(err, inbox.ErrTaken), errors.Is(err, inbox.ErrUnknown):
			return false, nil
		case err != nil:
			return false, err
		}

		kind := event.ItemEdited
		if a.Deleted {
			kind = event.ItemDropped
		}
		m.events.Emit(event.Event{Type: kind, Agent: id,
			Body: event.Item{Item: h.ID, Kind: string(h.Kind), Text: beginning(m.redact.Text(a.Text))}})

		return true, nil
	}

	return false, nil
}

// amended is the agent that has the message, if it was made already.
func (m *mailroom) amended(a message.Amendment) (string, bool) {
	if a.Agent != "" {
		id, err := m.index.Resolve(a.Agent)
		return id, err == nil
	}

	return m.index.Lookup(ownerOf(a.From, a.For))
}

func sameUser(one, other message.Address) bool {
	return one.UserID == other.UserID && one.ChannelID == other.ChannelID
}
