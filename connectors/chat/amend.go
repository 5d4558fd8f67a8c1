package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"daycare/engine/inbox"
	"daycare/engine/message"
)

// amend deals with a message that its sender edited or deleted. While it is queued it is
// changed where it waits; later the agent is told with its next message. In a group that is
// said only of messages to us: who knows what the others were about.
func (d *Desk) amend(ctx context.Context, deliver message.Deliver, p Post) error {
	a := message.Amendment{From: p.From, MessageID: p.Amends, Text: p.Text, Deleted: p.Deleted}
	a.Agent, a.For = d.who.reached(p)
	if q := strings.TrimSpace(p.Quote); q != "" && !a.Deleted {
		a.Text = quoted(q) + "\n\n" + a.Text
	}

	done, err := d.waiting.amend(a)
	if queue, ok := d.host.Agents.(Amender); ok && !done && err == nil {
		done, err = queue.Amend(ctx, a)
	}
	switch {
	case done && err == nil:
		d.log.Info("queued message amended by its sender", "user", p.From.UserID, "deleted", a.Deleted)
		return nil
	case err != nil && !errors.Is(err, inbox.ErrFull) && !errors.Is(err, inbox.ErrTooLarge):
		return err
	case p.Group && !p.Addressed:
		return nil
	}

	p.Note, p.Files, p.Quote = true, nil, ""
	p.Text = fmt.Sprintf("The person edited message %s. It now reads:\n\n%s", p.Amends, p.Text)
	if a.Deleted {
		p.Text = fmt.Sprintf("The person deleted message %s.", p.Amends)
	}

	return d.pass(ctx, deliver, p)
}

// amend edits or drops a message that waits; false: none with the id does.
func (w *waiting) amend(a message.Amendment) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.load(); err != nil {
		return false, err
	}
	for i, in := range w.all {
		theirs := senderOf(in) == sender{a.From.ChannelID, a.From.UserID}
		if in.Context.MessageID != a.MessageID || in.Kind != "" || in.Dedupe == w.busy || !theirs {
			continue
		}

		before := w.all
		w.all = append([]message.Incoming(nil), w.all...)
		if a.Deleted {
			w.all = append(w.all[:i], w.all[i+1:]...)
		} else {
			w.all[i].Text = a.Text
		}
		if err := w.save(); err != nil {
			w.all = before
			return false, err
		}

		return true, nil
	}

	return false, nil
}
