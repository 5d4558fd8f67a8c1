package agents

import (
	"errors"
	"fmt"

	"github.com/nrednav/cuid2"

	"daycare/engine/inbox"
	"daycare/engine/record"
)

// rewind takes the newest part of the conversation out of the context. It stays in
// the file. What cannot be found is closed with the reason, and changes nothing.
func (a *agent) rewind(it inbox.Item) error {
	to, err := a.history.RewindTo(it.Text)
	if errors.Is(err, record.ErrNoRecord) {
		return a.close(it, &record.Note{Text: "nothing was rewound: " + err.Error(), Item: it.ID, Refused: true})
	}
	if err != nil {
		return err
	}
	return a.close(it, &record.Rewind{To: to, Item: it.ID})
}

// close writes the record that closes an item, and is done with it.
func (a *agent) close(it inbox.Item, rec record.Record) error {
	if err := a.history.Begin(cuid2.Generate()); err != nil {
		return fmt.Errorf("begin history: %w", err)
	}
	if _, err := a.append(rec); err != nil {
		return err
	}
	if err := a.barrier(); err != nil {
		return err
	}
	return a.done(it.ID)
}
