package chat

import (
	"context"
	"errors"
	"fmt"
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
	o := Options{Settings: Settings{Allow: []string{"eve", "bob"}}}
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
	headsOf(d)
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
	d := w.desk(Options{Settings: Settings{Allow: []string{"eve"}}}, talker{w})
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

// What happens to a message of a group is for its agent if the message was, and is nothing if
// someone else did it. Of whom it is, a platform does not need to say.
func TestWhatHappensToMessagesOfGroups(t *testing.T) {
	w := newWorld()
	d := w.desk(Options{Settings: Settings{Allow: []string{"eve", "bob"}}}, talker{w})
	take := func(user, id string, change func(p *Post)) {
		t.Helper()
		p := Post{Key: id + user + t.Name(), MessageID: id, Group: true, Addressed: true, Text: "text", Sender: "Eve",
			From: message.Address{ChannelID: "group", UserID: user, ThreadID: "t"}}
		change(&p)
		if err := d.Take(t.Context(), w.deliver, p); err != nil {
			t.Fatal(err)
		}
	}
	said := func(*Post) {}
	gone := func(p *Post) {
		p.Amended, p.Text, p.Addressed, p.Sender = Amended{Amends: p.MessageID, Deleted: true}, "", false, ""
		p.From.ThreadID = ""
	}
	take("eve", "1", said)
	take("eve", "2", said)
	take("eve", "3", func(p *Post) { p.Addressed = false })
	w.taken = nil
	take("bob", "1", gone)                                              // it is not his
	take("", "3", gone)                                                 // it was not for us
	take("eve", "4", func(p *Post) { gone(p); p.Amends = "3" })         // nor for that reason
	take("", "99", gone)                                                // nobody knows it
	take("bob", "2", func(p *Post) { gone(p); p.Deleted = false })      // an edit that is forged
	take("", "2", gone)                                                 // a platform that does not say who
	take("eve", "1", func(p *Post) { gone(p); p.Key = "again" })        // and one that does
	take("mallory", "1", func(p *Post) { gone(p); p.Key = "stranger" }) // who has no access
	if len(w.taken) != 2 || len(w.heard()) != 0 {
		t.Fatalf("delivered %+v, want the two deletions", w.taken)
	}
	for i, id := range []string{"2", "1"} {
		in := w.taken[i]
		if in.Text != "The person deleted message "+id+"." || in.From.UserID != "eve" || in.From.ThreadID != "t" || !in.Silent {
			t.Errorf("delivered %+v, want the deletion of %s by eve", in, id)
		}
	}
	for i := range maxWritten {
		take("eve", fmt.Sprint("more", i), said)
	}
	if _, known := d.who.written.known[messageOf{"group", "2"}]; known || len(d.who.written.known) != maxWritten {
		t.Errorf("%d messages are remembered, want the newest %d", len(d.who.written.known), maxWritten)
	}
}

// amender is a world whose queue can be amended.
type amender struct {
	*world
	amend func(message.Amendment) (bool, error)
}

func (a amender) Amend(_ context.Context, m message.Amendment) (bool, error) { return a.amend(m) }
