package agents

import (
	"context"
	"errors"
	"fmt"

	"daycare/engine/cuid"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
)

// control works on an item that changes the agent rather than speaks to it. Its
// record closes it.
func (a *agent) control(ctx context.Context, id string) error {
	items, err := a.intake.claim(id)
	if err != nil || len(items) == 0 {
		return err
	}

	switch it := items[0]; it.Kind {
	case message.Reset:
		return a.reset(it.ID, "user", it.Text)
	case message.Permission:
		return a.permits.decided(ctx, it)
	case message.Compact:
		return a.compact(ctx, it)
	case message.Rewind:
		return a.rewind(it)
	case message.Mark:
		return a.intake.close(it, &record.Mark{Name: it.Text, Item: it.ID})
	default:
		return fmt.Errorf("item %s: unknown kind %q", it.ID, it.Kind)
	}
}

// reset ends the session: id and files stay, the context is empty.
func (a *agent) reset(item, reason, text string) error {
	if _, err := a.journal.append(&record.Reset{Session: cuid.Unique(), V: record.Version,
		Item: item, Reason: reason, Message: text}); err != nil {
		return err
	}
	if err := a.journal.barrier(); err != nil {
		return err
	}
	if item != "" {
		if err := a.intake.done(item); err != nil {
			return err
		}
	}
	if _, err := a.journal.history.Rotate(); err != nil {
		return err
	}

	a.journal.emit(event.AgentReset, "", event.Reason{Reason: reason})
	return a.files.cacheState()
}

// rewind takes the newest part of the conversation out of the context. It stays in
// the file. What cannot be found is closed with the reason, and changes nothing.
func (a *agent) rewind(it inbox.Item) error {
	to, err := a.journal.history.RewindTo(it.Text)
	if errors.Is(err, record.ErrNoRecord) {
		return a.intake.close(it, &record.Note{Text: "cannot rewind: " + err.Error(), Item: it.ID, Refused: true})
	}
	if err != nil {
		return err
	}

	return a.intake.close(it, &record.Rewind{To: to, Item: it.ID})
}
