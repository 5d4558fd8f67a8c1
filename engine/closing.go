package engine

import (
	"errors"
	"fmt"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// A closing is an entry as it comes to accept nothing any more.
type closing struct{ *entry }

// refuses is why the entry accepts nothing any more; nil: it does. The lock is held.
func (e closing) refuses() error {
	switch {
	case e.ended:
		return fmt.Errorf("%w: %s has ended", message.ErrUnknownAgent, e.meta.Handle)
	case e.gone:
		return errGone
	case e.fenced:
		return fmt.Errorf("%w: %s", disk.ErrFenced, e.meta.Handle)
	}

	return nil
}

// because is an error of the mailbox, or why that was closed.
func (e closing) because(err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if why := e.refuses(); why != nil && errors.Is(err, inbox.ErrClosed) {
		return why
	}

	return err
}

// shut closes the mailbox of an agent that has ended, or continues on another machine: who waits for an item would wait for ever. The
// lock is held.
func (e closing) shut() {
	if (e.ended || e.fenced) && !e.running && e.box != nil {
		e.close()
	}
}

func (e closing) close() {
	if err := e.box.Close(); err != nil {
		e.actors.log.Error("inbox not closed", "agent", e.meta.ID, "err", err)
	}
}

// returned is called when the folder of the agent came back. Where it has been at work since before the folder went, it continues;
// else it is woken as one that sleeps.
func (e closing) returned() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = e.ended && !e.running
}
