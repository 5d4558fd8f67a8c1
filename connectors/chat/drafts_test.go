package chat

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
)

// A pad is a platform whose messages can be edited.
type pad struct {
	talker
	fail error
}

func (p *pad) Post(ctx context.Context, to message.Address, key, replyTo, text string) (string, error) {
	return "id1", p.Say(ctx, to, "", "post: "+text)
}

func (p *pad) Edit(ctx context.Context, to message.Address, id, text string) error {
	if p.fail != nil {
		return p.fail
	}
	return p.Say(ctx, to, "", "edit "+id+": "+text)
}

func (p *pad) Split(text string) []string { return []string{text[:min(len(text), 100)]} }

// asking is a world in which each turn works for a message of ada.
type asking struct{ *world }

func (a asking) Item(context.Context, string, string) (event.Posted, error) {
	return event.Posted{MessageID: "m1", Route: &event.Route{Connector: "chat", ChannelID: "c1", UserID: "ada", ThreadID: "t"}}, nil
}

var toThread = message.Address{Connector: "chat", ChannelID: "c1", UserID: "ada", ThreadID: "t"}

// streaming runs a desk that shows answers while they are written.
func streaming(t *testing.T, w *world, p *pad, during func(d *Desk)) {
	t.Helper()
	o := Options{}
	d := w.desk(o, p)
	d.host.Agents = asking{w}
	d.host.Talk = func(string) Talk { return Talk{Stream: true} }
	d.who.host, d.drafts.host = d.host, d.host
	watching(t, w, d, func() { during(d) })
}

func (w *world) delta(offset int, text string) {
	w.Publish(event.Event{Type: event.MessageDelta, Agent: "agent1", Body: event.Delta{Offset: offset, Text: text}})
	synctest.Wait()
}

func (w *world) turn() {
	w.Publish(event.Event{Type: event.TurnStarted, Agent: "agent1", Body: event.Started{Items: []string{"i"}}})
	synctest.Wait()
}

// An answer is shown while it is written, at the pace of the platform, and becomes the answer; a
// second try edits the same message, also in the next process.
func TestAnswersAreShownWhileTheyAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := &pad{talker: talker{w}}
		long := strings.Repeat("word ", 10)
		out := message.Outgoing{ID: "out1", Agent: "agent1", To: toThread, Text: "the whole"}
		streaming(t, w, p, func(d *Desk) {
			w.turn()
			w.delta(0, "short")
			if got := w.heard(); len(got) > 0 {
				t.Errorf("after a few letters was shown %q", got)
			}
			w.delta(5, long)
			for i := range 20 {
				w.delta(5+len(long)+i, "x")
			}
			if got := w.heard(); len(got) != 1 || got[0] != "c1: post: short"+long+" …" {
				t.Errorf("shown was %q, want the beginning, once", got)
			}
			time.Sleep(draftEvery)
			w.delta(25+len(long), "y")
			if got := w.heard(); len(got) != 1 || !strings.HasPrefix(got[0], "c1: edit id1: short") || !strings.HasSuffix(got[0], "y …") {
				t.Errorf("later was shown %q, want all that is written", got)
			}
			w.delta(9999, "lost in between")
			remote, ok, err := d.Finish(t.Context(), out)
			if got := w.heard(); remote != "id1" || !ok || err != nil || len(got) != 1 || got[0] != "c1: edit id1: the whole" {
				t.Errorf("finished as %q, %v, %v, said %q", remote, ok, err, got)
			}
			time.Sleep(time.Minute)
			w.delta(0, long)
			if got := w.heard(); len(got) > 0 {
				t.Errorf("after the end was shown %q", got)
			}
		})
		streaming(t, w, p, func(d *Desk) { // a new process, which does not know that it was sent
			if remote, ok, err := d.Finish(t.Context(), out); remote != "id1" || !ok || err != nil {
				t.Errorf("the second try: %q, %v, %v", remote, ok, err)
			}
			out.ID = "out2"
			if _, ok, err := d.Finish(t.Context(), out); ok || err != nil {
				t.Errorf("another answer took the message of the first: %v", err)
			}
		})
	})
}

// What daycare showed before it died is corrected by the answer. A message that was deleted is sent
// anew, one that cannot be edited now is tried again, and what is written nowhere else says so.
func TestDraftsThatGoWrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		p := &pad{talker: talker{w}}
		long := strings.Repeat("word ", 10)
		streaming(t, w, p, func(*Desk) { w.turn(); w.delta(0, long) })
		out := message.Outgoing{ID: "out1", Agent: "agent1", To: toThread, Text: "the whole"}
		streaming(t, w, p, func(d *Desk) {
			w.turn() // the turn of the process before begins again
			w.delta(0, long+long)
			if got := strings.Join(w.heard(), "|"); !strings.Contains(got, "edit id1: "+long) || strings.Count(got, "post: ") != 1 {
				t.Errorf("said %q, want the message of the first process edited", got)
			}
			elsewhere := out
			elsewhere.To.ThreadID = ""
			if _, ok, _ := d.Finish(t.Context(), elsewhere); ok {
				t.Error("an answer for another thread took the message")
			}
			p.fail = errors.New("busy")
			if _, ok, err := d.Finish(t.Context(), out); ok || err == nil {
				t.Error("a failed edit is no error")
			}
			p.fail = &message.NotSent{Final: true, Err: errors.New("deleted")}
			if _, ok, err := d.Finish(t.Context(), out); ok || err != nil {
				t.Errorf("a message that is gone: %v, %v, want the answer sent anew", ok, err)
			}
			p.fail = nil
			w.turn()
			w.delta(0, long)
			w.heard()
			w.Publish(event.Event{Type: event.TurnFinished, Agent: "agent1", Body: event.Finished{Reason: "canceled"}})
			synctest.Wait()
			if got := w.heard(); len(got) != 1 || !strings.HasSuffix(got[0], "(not finished)") {
				t.Errorf("at the end of a canceled turn was said %q", got)
			}
		})
	})
}

// Where there are no buttons a reaction answers a request, of those who may answer it; other
// reactions are notes, or messages where the settings say so.
func TestReactions(t *testing.T) {
	w := newWorld()
	p := &pad{talker: talker{w}}
	d := w.desk(Options{Settings: Settings{Allow: []string{"ada", "bob"}}}, p)
	talk := Talk{}
	d.host.Talk = func(string) Talk { return talk }
	d.who.host = d.host
	ask := func() {
		w.asks = []permission.Pending{{Token: token, Agent: "agent1", Owner: permission.Owner{Connector: "chat", UserID: "ada"},
			Request: permission.Request{Tag: "@web:example.com"}}}
		d.approvals.look(t.Context())
	}
	ask()
	if got := strings.Join(w.heard(), ""); !strings.Contains(got, "post: **Permission needed**") || !strings.Contains(got, "👍") ||
		!strings.Contains(got, "/once "+token[:permission.CodeLength]) {
		t.Fatalf("the request is shown as %q", got)
	}
	react := func(user, emoji, to string) Post {
		r := post("The person reacted to message " + to + " with " + emoji)
		r.Key, r.Note, r.Reaction = fmt.Sprint(user, emoji, to), true, Reaction{To: to, Emoji: emoji}
		r.From.UserID = user
		return r
	}
	for _, no := range []Post{react("bob", "👍", "id1"), react("ada", "🎉", "id1"), react("ada", "👍", "id2")} {
		if d.says(t, w, no); w.decided != nil {
			t.Fatalf("%+v decided the request", no.Reaction)
		}
	}
	if got := d.says(t, w, react("ada", "👍🏽", "id1")); got != "c1: Allowed once." || w.decided.Decision != permission.Once {
		t.Errorf("told %q, decided %+v", got, w.decided)
	}
	w.decided = nil
	ask()
	d.says(t, w, react("ada", "❌", "id1"))
	if w.decided == nil || w.decided.Decision != permission.Deny {
		t.Errorf("decided %+v", w.decided)
	}

	if got := take(t, w, d, react("ada", "🎉", "m9")); len(got) != 1 || !got[0].Silent {
		t.Errorf("a reaction is %+v, want a note", got)
	}
	talk.Reactions = true
	if got := take(t, w, d, react("ada", "👀", "m9")); len(got) != 1 || got[0].Silent || got[0].Kind != "" {
		t.Errorf("a reaction that is an answer is %+v, want a message", got)
	}
}

// A long answer that comes in many pieces takes no memory for each of them, and no more of it is kept than a message shows.
func TestLongDraftsAreBounded(t *testing.T) {
	const n = 100_000
	d := &draft{busy: true}
	ds := &drafts{all: map[string]*draft{"agent1": d}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range n {
		ds.write(t.Context(), nil, "agent1", event.Delta{Offset: 4 * i, Text: "word"})
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; len(d.text) > draftMost+4 || took > 10 {
		t.Errorf("of %d bytes %d are kept, and they take %d MB of memory", 4*n, len(d.text), took)
	}
}
