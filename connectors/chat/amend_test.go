package chat

import (
	"context"
	"errors"
	"strings"
	"testing"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// What waits here is edited and dropped here, also over a restart, and only by its sender.
func TestWaitingMessagesAreAmended(t *testing.T) {
	w := newWorld()
	w.refuse = inbox.ErrFull
	o := Options{Allow: []string{"eve", "bob"}}
	d := w.desk(o, talker{w})
	take := func(p Post) {
		t.Helper()
		if err := d.Take(t.Context(), w.deliver, p); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"one", "two", "three"} {
		p := from("eve", key, key)
		p.MessageID = key
		take(p)
	}
	foreign := from("bob", "e0", "stolen")
	foreign.Amends, foreign.From.ChannelID, foreign.Group = "three", "c-eve", true
	take(foreign)
	edit := from("eve", "e1", "zwei")
	edit.Amends, edit.Quote = "two", "before"
	take(edit)
	gone := from("eve", "e2", "")
	gone.Amends, gone.Deleted = "one", true
	take(gone)

	d = w.desk(o, talker{w}) // a new process
	d.waiting.heads()
	var texts []string
	for _, in := range d.waiting.all {
		texts = append(texts, in.Text)
	}
	if got := strings.Join(texts, "|"); got != "> before\n\nzwei|three" {
		t.Errorf("%q waits, want the edited text and the message that was left alone", got)
	}
}

// The host amends what is queued; of the rest the agent hears without a turn, in groups only
// if it is for us. A disk that is full has the platform offer it again.
func TestAmendmentsGoToTheHostOrAreNotes(t *testing.T) {
	w := newWorld()
	var asked []message.Amendment
	queued, failure := true, error(nil)
	d := w.desk(Options{Allow: []string{"eve"}}, talker{w})
	d.host.Agents = amender{w, func(a message.Amendment) (bool, error) {
		asked = append(asked, a)
		return queued, failure
	}}
	p := from("eve", "e1", "better")
	p.Amends = "m1"
	take := func() error { return d.Take(t.Context(), w.deliver, p) }
	if err := take(); err != nil || len(w.taken) != 0 || len(asked) != 1 || asked[0].MessageID != "m1" || asked[0].Text != "better" ||
		asked[0].From.Connector == "" {
		t.Fatalf("%v: asked %+v, delivered %+v; want the queued message edited and no note", err, asked, w.taken)
	}

	p.Text = "" // of a picture whose caption was removed
	if err := take(); err != nil || asked[1].Deleted || asked[1].Text != "" {
		t.Fatalf("%v: asked %+v; want the text removed, and the message kept", err, asked[1])
	}
	p.Text = "better"

	queued, failure = false, disk.ErrFull
	if err := take(); !errors.Is(err, disk.ErrFull) {
		t.Errorf("on a full disk: %v, want its error", err)
	}
	failure = nil
	p.Group = true
	if err := take(); err != nil || len(w.taken) != 0 {
		t.Errorf("%v: chatter of a group that was edited is delivered: %+v", err, w.taken)
	}
	p.Addressed = true
	if err := take(); err != nil || len(w.taken) != 1 || !w.taken[0].Silent ||
		w.taken[0].Text != "The person edited message m1. It now reads:\n\nbetter" {
		t.Fatalf("%v: delivered %+v, want a silent note", err, w.taken)
	}
	p.Group, p.Text, p.Key, p.Deleted = false, "", "e2", true
	if err := take(); err != nil || len(w.taken) != 2 || w.taken[1].Text != "The person deleted message m1." || !w.taken[1].Silent {
		t.Fatalf("%v: delivered %+v, want a silent note", err, w.taken)
	}

	p.From.UserID = "mallory"
	if err := take(); err != nil || len(w.taken) != 2 || len(w.heard()) != 0 {
		t.Errorf("%v: a stranger's edit got an answer or an effect: %q", err, w.heard())
	}
}

// amender is a world whose queue can be amended.
type amender struct {
	*world
	amend func(message.Amendment) (bool, error)
}

func (a amender) Amend(_ context.Context, m message.Amendment) (bool, error) { return a.amend(m) }
