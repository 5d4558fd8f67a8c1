package agents

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/record"
	"daycare/tools/hooks"
)

// hookOrigin is who speaks to the model in what a hook adds.
const hookOrigin = "hook"

// maxGoOn is how often hooks may have one turn continue that the model has ended.
const maxGoOn = 3

// A hooking runs the hooks of the settings at moments of the agent's work. A hook may refuse,
// ask or add; what it decided is a note in history.
type hooking struct {
	hooks      Hooks // nil: none
	journal    *journal
	deliveries *deliveries
}

// any reports whether a hook would run; where none does a moment costs no more than this.
func (h *hooking) any(event hooks.Event, tool string) bool {
	return h != nil && h.hooks != nil && h.hooks.Any(event, tool)
}

// moment has what is the same at every moment of a turn.
func (h *hooking) moment(event hooks.Event, t *turn) hooks.Moment {
	ob := h.journal.history.Obligations()
	return hooks.Moment{Event: event, Agent: h.who(&t.self, ob.Session), Turn: t.id, Origin: t.origin, Sources: texts(ob.Sources)}
}

func (h *hooking) who(s *self, session string) hooks.Agent {
	return hooks.Agent{ID: h.journal.id, Handle: s.meta.Handle, Name: s.meta.Name, Session: session,
		History: h.journal.path("history.jsonl"), Dir: s.state.Permissions.WorkingDir}
}

// run runs the hooks of a moment while deliveries are recorded, and records what they did.
func (h *hooking) run(ctx context.Context, t *turn, m hooks.Moment) (v hooks.Verdict, err error) {
	defer t.clock.hold()()
	h.deliveries.meanwhile(func(sync.Locker) { v = h.hooks.Run(ctx, m) })
	h.journal.hooked = time.Now()
	return v, h.note(m, v)
}

// note records what hooks did. Only the agent's goroutine calls it.
func (h *hooking) note(m hooks.Moment, v hooks.Verdict) error {
	recs := h.notes(m, v)
	if len(recs) == 0 {
		return nil
	}
	_, err := h.journal.append(recs...)
	return err
}

// notes are the records of what hooks did.
func (h *hooking) notes(m hooks.Moment, v hooks.Verdict) []record.Record {
	text := v.Note(m)
	if text == "" {
		return nil
	}
	for _, notice := range v.Notices {
		h.journal.log.Warn("message of a hook", "event", m.Event, "text", notice)
		h.journal.emit(event.HookSaid, m.Turn, event.Reason{Reason: notice})
	}

	return []record.Record{&record.Note{Text: text}}
}

// added is the context of a hook as a message to the model; nil for no text.
func added(event hooks.Event, text, zone string) []record.Record {
	if text == "" {
		return nil
	}
	return []record.Record{&record.User{Text: text, Origin: hookOrigin + " " + string(event), Silent: true, Zone: zone}}
}

// opening runs what comes before the first model call of a turn: session_start, where the
// model has not answered yet in this session, and before_prompt. refused is why the turn ends
// without a call; "": it continues.
func (h *hooking) opening(ctx context.Context, t *turn) (refused string, err error) {
	if t.opened {
		return "", nil
	}
	t.opened = true
	if h.any(hooks.SessionStart, "") {
		begins, err := h.sessionBegins()
		if err != nil {
			return "", err
		}
		if begins {
			m := h.moment(hooks.SessionStart, t)
			m.Source = "startup"
			if refused, err := h.tell(ctx, t, m); refused != "" || err != nil {
				return refused, err
			}
		}
	}
	if !h.any(hooks.BeforePrompt, "") {
		return "", nil
	}
	m := h.moment(hooks.BeforePrompt, t)
	if m.Message.Text = t.said; len(t.items) > 0 {
		m.Message.Item = t.items[len(t.items)-1]
	}

	return h.tell(ctx, t, m)
}

// tell runs the hooks of a moment and adds their context to the conversation.
func (h *hooking) tell(ctx context.Context, t *turn, m hooks.Moment) (refused string, err error) {
	v, err := h.run(ctx, t, m)
	if err != nil || ctx.Err() != nil {
		return "", err
	}
	if v.Stop || v.Decision == hooks.Deny && m.Event == hooks.BeforePrompt {
		return v.Reason, nil
	}
	if recs := added(m.Event, v.Context, t.settings.Zone); recs != nil {
		_, err = h.journal.append(recs...)
	}

	return "", err
}

// sessionBegins reports whether the model has not answered yet in this session.
func (h *hooking) sessionBegins() (bool, error) {
	c, err := h.journal.history.Context()
	if err != nil {
		return false, fmt.Errorf("read context: %w", err)
	}
	return c.Summary == nil && !slices.ContainsFunc(c.Entries, func(e *record.Entry) bool {
		_, answered := e.Rec.(*record.Assistant)
		return answered
	}), nil
}

// goOn asks the turn_end hooks whether the turn may end with an answer; why is what they
// want done first.
func (h *hooking) goOn(ctx context.Context, t *turn, answer string) (why string, err error) {
	if t.waiting || !h.any(hooks.TurnEnd, "") {
		return "", nil
	}
	m := h.moment(hooks.TurnEnd, t)
	m.Answer, m.Again = answer, t.goneOn > 0
	v, err := h.run(ctx, t, m)
	if err != nil || ctx.Err() != nil || v.Stop || v.Decision != hooks.Deny {
		return "", err
	}
	if t.goneOn >= maxGoOn || t.rounds+1 >= t.settings.Rounds {
		h.journal.log.Warn("a turn_end hook asked too often to continue, so the turn ends", "turn", t.id)
		return "", nil
	}
	t.goneOn++
	return v.Reason, nil
}

// heard are the verdicts of on_message hooks on items, in their order; nil: none.
// What agents and daycare itself tell each other is no message of that kind.
func (h *hooking) heard(ctx context.Context, s *self, turn string, items []inbox.Item) []hooks.Verdict {
	if !h.any(hooks.OnMessage, "") {
		return nil
	}
	ob := h.journal.history.Obligations()
	verdicts := make([]hooks.Verdict, len(items))
	h.deliveries.meanwhile(func(sync.Locker) {
		for i, it := range items {
			if it.Kind != message.Text {
				continue
			}
			verdicts[i] = h.hooks.Run(ctx, hooks.Moment{Event: hooks.OnMessage, Agent: h.who(s, ob.Session), Turn: turn,
				Origin: origin(it.Route), Sources: texts(ob.Sources), Message: hooks.Message{Item: it.ID, Text: it.Text}})
		}
	})
	return verdicts
}

// refuses reports whether a message is refused.
func refuses(v hooks.Verdict) bool { return v.Stop || v.Decision == hooks.Deny }

// refusedText begins the text that replaces a refused message.
const refusedText = "(A hook of the owner refused this message, so it is not shown: "

// refusedBefore is why hooks refused all messages of a turn that is taken up again; "": they
// did not.
func refusedBefore(users []*record.Entry) (why string) {
	for _, e := range users {
		rest, refused := strings.CutPrefix(e.Rec.(*record.User).Text, refusedText)
		if !refused {
			return ""
		}
		why = strings.TrimSuffix(rest, ")")
	}

	return why
}

// receive is the record of a message as its hooks left it, with what they did and added.
func (h *hooking) receive(u *record.User, v hooks.Verdict) []record.Record {
	recs := h.notes(hooks.Moment{Event: hooks.OnMessage}, v)
	if refuses(v) {
		u.Text, u.Files = refusedText+v.Reason+")", nil
		return append(recs, u)
	}

	return append(append(recs, u), added(hooks.OnMessage, v.Context, u.Zone)...)
}

// origin names who sent a message, for programs; "": a user in the agent's own chat.
func origin(route *message.Address) string {
	if route == nil {
		return ""
	}
	return strings.TrimRight(route.Connector+"/"+route.ChannelID+"/"+route.UserID, "/")
}
