package transcript

import (
	"time"

	"daycare/engine/control"
	"daycare/engine/event"
)

// maxProgress is how much of what a running tool prints is kept, in bytes.
const maxProgress = 16 << 10

// Needs is what an event makes worth asking for.
type Needs struct {
	History bool // there are new records
	Reload  bool // what is here may be wrong
	Inbox   bool
	Draft   bool // some of the streaming answer was missed
}

// Event takes an event of the agent.
func (t *Transcript) Event(e control.RawEvent) (n Needs) {
	switch e.Type {
	case event.TurnStarted:
		t.turn = Turn{ID: e.Turn, Began: e.At}
		n.History, n.Inbox = true, true
	case event.MessageDelta, event.MessageThinking:
		n.Draft = apply(e, func(d event.Delta) bool {
			t.turn.Retry = nil
			return t.text.delta(streamed[e.Type], e, d)
		})
	case event.ToolStarted:
		n.History = true
		apply(e, func(c event.Tool) bool { return t.text.started(t.cards, e, c) })
	case event.ToolProgress:
		apply(e, t.cards.progress)
	case event.ToolFinished:
		n.History = true
		apply(e, t.cards.finished)
	case event.SubAgentStart, event.SubAgentProgress, event.SubAgentEnd:
		t.cards.subAgent(e)
	case event.Retry:
		apply(e, func(a event.Attempt) bool { return t.retry(e.At, a) })
	case event.TurnFinished:
		t.turn = Turn{}
		n.History, n.Inbox = true, true
	case event.ItemQueued, event.ItemDropped, event.ItemEdited, event.ItemMoved, event.ItemDone:
		n.Inbox = true
	case event.ItemTaken:
		n.Inbox, n.History = true, true
	case event.AgentCompacted, event.HookSaid, event.PermissionRequested, event.PermissionDecided, event.OutboxFailed:
		n.History = true
	case event.AgentReset:
		n.History, n.Inbox = true, true
	case event.FileEdited, control.GapType:
		n.Reload, n.Inbox = true, true
	}

	return n
}

// streamed is what the events of an answer that streams add to.
var streamed = map[event.Type]kind{event.MessageDelta: answer, event.MessageThinking: thinking}

// apply decodes the body of an event for f; one that cannot be read is passed over.
func apply[T any](e control.RawEvent, f func(T) bool) bool {
	body, err := control.Body[T](e)
	return err == nil && f(body)
}

// under returns the block of this kind that is being streamed; nil: none.
func (x *text) under(k kind) *block {
	for i := len(x.live) - 1; i >= 0; i-- {
		if x.live[i].kind == k && x.live[i].streak {
			return x.live[i]
		}
	}

	return nil
}

// delta continues what streams. It reports a hole: text that was missed before it.
func (x *text) delta(k kind, e control.RawEvent, d event.Delta) (hole bool) {
	b := x.under(k)
	if b != nil && d.Offset == 0 && b.text != "" {
		b.streak = false // the answer before; its record is on its way
		b = nil
	}
	if b == nil {
		if d.Offset > 0 {
			return true
		}
		b = &block{kind: k, position: position{At: e.At, Turn: e.Turn}, streak: true}
		x.live = append(x.live, b)
	}
	have := len(b.text)
	switch {
	case d.Offset > have:
		return true
	case d.Offset+len(d.Text) > have:
		if b.grown.Len() != have { // it was filled in from elsewhere
			b.grown.Reset()
			b.grown.WriteString(b.text)
		}
		b.grown.WriteString(d.Text[have-d.Offset:])
		b.text = b.grown.String()
	}

	return false
}

// Draft fills in the current answer from what is on disk.
func (t *Transcript) Draft(d event.Draft, at time.Time) {
	fill := func(k kind, text string) {
		b := t.text.under(k)
		switch {
		case text == "":
			return
		case b == nil:
			t.text.live = append(t.text.live, &block{kind: k, position: position{At: at, Turn: d.Turn}, streak: true, text: text})
		case len(text) > len(b.text):
			b.text = text
		}
	}
	if d.Turn == "" || t.turn.ID != "" && d.Turn != t.turn.ID {
		return
	}
	fill(thinking, d.Thinking)
	fill(answer, d.Text)
}

func (x *text) started(cs cards, e control.RawEvent, c event.Tool) bool {
	for _, l := range x.live { // what was said before the call is complete
		l.streak = false
	}
	if _, ok := cs[c.Call]; ok {
		return false
	}
	b := &block{kind: card, position: position{At: e.At, Turn: e.Turn},
		tool: &tool{call: call{ID: c.Call, Name: c.Name, Arguments: c.Arguments}, began: e.At}}
	cs[c.Call] = b
	x.live = append(x.live, b)
	return true
}

func (cs cards) progress(p event.Progress) bool {
	b, ok := cs[p.Call]
	if ok && b.tool.status == "" {
		b.tool.progress += p.Text
		if over := len(b.tool.progress) - maxProgress; over > 0 {
			b.tool.progress = b.tool.progress[over:]
		}
	}

	return ok
}

func (cs cards) finished(c event.Tool) bool {
	b, ok := cs[c.Call]
	if ok && b.tool.status == "" {
		b.finish(c.Status, c.Output, "", c.MS)
	}

	return ok
}

func (t *Transcript) retry(at time.Time, a event.Attempt) bool {
	t.turn.Retry, t.turn.Until = &a, at.Add(time.Duration(a.InMS)*time.Millisecond)
	if !a.Discard {
		return true
	}
	kept := t.text.live[:0]
	for _, l := range t.text.live {
		if !l.streak {
			kept = append(kept, l)
		}
	}
	t.text.live = kept
	return true
}
