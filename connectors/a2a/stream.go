package a2a

import (
	"strings"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"daycare/engine/control"
	"daycare/engine/event"
)

// A teller makes events of the protocol of those of a turn.
type teller struct {
	task    *sdk.Task
	yield   func(sdk.Event)
	working bool
	// current is the model's answer under way, as far as it was told. Each call of the model has
	// an answer of its own, and the newest one is the artifact: it takes the place of the others.
	current []byte
	told    bool // current is in the artifact
}

// happened tells of one event of the turn.
func (w *teller) happened(e control.RawEvent) {
	switch e.Type {
	case event.TurnStarted, event.ItemTaken:
		w.begin()
	case event.Retry:
		if a, err := control.Body[event.Attempt](e); err == nil && a.Discard {
			w.current, w.told = w.current[:0], false
		}
	case event.MessageDelta:
		if d, err := control.Body[event.Delta](e); err == nil {
			w.begin()
			w.delta(d)
		}
	}
}

// begin tells that the agent works on the task.
func (w *teller) begin() {
	if w.working || w.task.Status.State == sdk.TaskStateWorking {
		return
	}
	w.working = true
	w.yield(w.status(sdk.TaskStatus{State: sdk.TaskStateWorking, Timestamp: now()}))
}

// delta tells of a piece of the answer.
func (w *teller) delta(d event.Delta) {
	if d.Offset == 0 {
		w.current, w.told = w.current[:0], false
	}
	if d.Offset > len(w.current) || d.Offset+len(d.Text) <= len(w.current) {
		return // after a gap: the end of the turn has the text
	}
	text := d.Text[len(w.current)-d.Offset:]
	w.current = append(w.current, text...)
	w.text(text, w.told, false)
	w.told = true
}

// text tells of the artifact: a piece of it, or all of it.
func (w *teller) text(text string, more, last bool) {
	a := newAnswer(text)
	w.yield(&sdk.TaskArtifactUpdateEvent{TaskID: w.task.ID, ContextID: w.task.ContextID, Artifact: a, Append: more, LastChunk: last})
}

// end tells what of the answer was not told, and the state of the task.
func (w *teller) end(o event.Outcome) {
	final := *w.task
	final.Artifacts, final.Status = nil, sdk.TaskStatus{Timestamp: now()}
	finish(&final, o)
	if len(final.Artifacts) > 0 {
		whole := final.Artifacts[0].Parts[0].Text()
		rest, told := strings.CutPrefix(whole, string(w.current))
		switch {
		case !told || !w.told:
			w.text(whole, false, true)
		case rest != "":
			w.text(rest, true, true)
		}
	}
	w.yield(w.status(final.Status))
}

func (w *teller) status(s sdk.TaskStatus) *sdk.TaskStatusUpdateEvent {
	return &sdk.TaskStatusUpdateEvent{TaskID: w.task.ID, ContextID: w.task.ContextID, Status: s}
}
