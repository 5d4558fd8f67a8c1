package chat

import (
	"slices"
	"sync"

	"daycare/engine/message"
)

// maxWritten bounds how many messages of groups are remembered.
const maxWritten = 1000

// written are the newest messages of groups that were for us, and who wrote them: most platforms
// say of a deletion only which message it is of, and some not who wrote that. The zero value is
// none.
type written struct {
	mu    sync.Mutex
	known map[messageOf]writer
	order []messageOf // the oldest first
}

// messageOf identifies a message.
type messageOf struct{ channel, id string }

// A writer is who wrote a message, in which thread.
type writer struct {
	from message.Address
	name string
}

// note remembers a message of a group that is for us.
func (w *written) note(p Post) {
	if !p.Group || p.MessageID == "" || p.Note {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil {
		w.known = map[messageOf]writer{}
	}
	at := messageOf{p.From.ChannelID, p.MessageID}
	if _, again := w.known[at]; !again {
		w.order = append(w.order, at)
	}
	w.known[at] = writer{p.From, p.Sender}
	if len(w.order) > maxWritten {
		delete(w.known, w.order[0])
		w.order = slices.Delete(w.order, 0, 1)
	}
}

// complete adds to what someone did to a message what is known of the message: whose it is, in
// which thread, that it was for us. false: it is someone else's, or nobody knows whose.
func (w *written) complete(p *Post) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, ok := w.known[messageOf{p.From.ChannelID, p.Amends}]
	if !ok {
		return p.From.UserID != ""
	}
	if p.From.UserID != "" && p.From.UserID != before.from.UserID {
		return false
	}
	p.From, p.Sender, p.Addressed = before.from, before.name, true

	return true
}
