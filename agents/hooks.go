package agents

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
	"daycare/tools/hooks"
)

// hookOrigin is who speaks to the model in what a hook adds.
const hookOrigin = "hook"

// maxGoOn is how often hooks may have one turn go on that the model has ended.
const maxGoOn = 3

// A hooking runs the hooks of the settings at moments of the agent's work. A hook may refuse,
// ask or add; what it decided is a note in history.
type hooking struct {
	hooks      Hooks // nil: there are none
	journal    *journal
	deliveries *deliveries
}

// any reports whether a hook would run; where none does a moment costs no more than this.
func (h *hooking) any(event hooks.Event, tool string) bool {
	return h != nil && h.hooks != nil && h.hooks.Any(event, tool)
}

// moment is what every moment of a turn tells.
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
	if t.clock != nil {
		release := t.clock.hold()
		defer release()
	}
	h.deliveries.meanwhile(func(func(func())) { v = h.hooks.Run(ctx, m) })
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
	}
	return []record.Record{&record.Note{Text: text}}
}

// added is what a hook tells the model between messages; nil: nothing.
func added(event hooks.Event, text, zone string) []record.Record {
	if text == "" {
		return nil
	}
	return []record.Record{&record.User{Text: text, Origin: hookOrigin + " " + string(event), Silent: true, Zone: zone}}
}

// before asks the before_tool hooks of calls that stand side by side. Those of one call run
// one after the other, those of several calls too: a policy sees them in the model's order.
// A call that cannot run for another reason has none.
func (h *hooking) before(ctx context.Context, t *turn, calls []record.ToolCall) ([]hooks.Verdict, error) {
	asks := func(c record.ToolCall) bool {
		if !h.any(hooks.BeforeTool, c.Name) {
			return false
		}
		_, _, known := t.tools.Get(c.Name)
		return known && t.tools.Validate(c.Name, c.Arguments) == nil
	}
	if !slices.ContainsFunc(calls, asks) {
		return nil, nil
	}
	verdicts := make([]hooks.Verdict, len(calls))
	for i, c := range calls {
		if !asks(c) || ctx.Err() != nil {
			continue
		}
		m := h.moment(hooks.BeforeTool, t)
		m.Tool, m.Call, m.Input = c.Name, c.ID, c.Arguments
		var err error
		if verdicts[i], err = h.run(ctx, t, m); err != nil {
			return nil, err
		}
	}
	return verdicts, nil
}

// hooked is a call as its before_tool hooks left it, or the result that the model reads instead.
func (t *turn) hooked(c record.ToolCall, v hooks.Verdict) (record.ToolCall, *tools.Result) {
	if v.Stop {
		t.stopped = v.Reason
	}
	if v.Decision == hooks.Deny || v.Stop {
		return c, &tools.Result{Status: tools.Denied, Text: "denied by a hook of the owner: " + v.Reason}
	}
	if v.Input == nil {
		return c, nil
	}
	tool, _, _ := t.tools.Get(c.Name)
	if _, widens := tool.(tools.Widens); widens { // the right would be that of the model's own words
		return c, &tools.Result{Status: tools.Denied, Text: "denied: a hook changed the input of " + c.Name +
			", which no hook may change"}
	}
	c.Arguments = v.Input
	return c, nil
}

// after asks the after_tool hooks of a call that ran, and adds what they say to its result.
// It touches nothing of the agent, so that calls beside each other can have it at once.
func (h *hooking) after(ctx context.Context, m hooks.Moment, r *record.ToolResult) (v hooks.Verdict) {
	if r.Status == record.StatusCanceled {
		return v // the turn is over
	}
	m.Response = &hooks.Response{Status: string(r.Status), Output: r.Output.Text}
	v = h.hooks.Run(ctx, m)
	var lines []string
	switch {
	case ctx.Err() != nil:
		lines = append(lines, "an after_tool hook was stopped before it ended")
	case v.Decision == hooks.Deny:
		lines = append(lines, v.Reason)
	}
	if v.Context != "" {
		lines = append(lines, v.Context)
	}
	for _, line := range lines {
		r.Output.Text = strings.TrimSuffix(r.Output.Text, "\n") + "\n[hook after_tool] " + line
	}
	return v
}

// A watching has the after_tool hooks of calls beside each other.
type watching struct {
	*hooking
	moments  []hooks.Moment // of each call; without an event: nothing runs
	verdicts []hooks.Verdict
}

// watching is of the calls that are about to run; nil: no hook is about any of them.
func (h *hooking) watching(t *turn, calls []record.ToolCall, prepared []prepared) *watching {
	var w *watching
	for i, c := range calls {
		if prepared[i].answer != nil || !h.any(hooks.AfterTool, c.Name) {
			continue
		}
		if w == nil {
			w = &watching{h, make([]hooks.Moment, len(calls)), make([]hooks.Verdict, len(calls))}
		}
		m := h.moment(hooks.AfterTool, t)
		m.Tool, m.Call, m.Input = c.Name, c.ID, prepared[i].call.Arguments
		w.moments[i] = m
	}
	return w
}

// after is called for each call, by the goroutine that ran it.
func (w *watching) after(ctx context.Context, i int, r *record.ToolResult) {
	if w != nil && w.moments[i].Event != "" {
		w.verdicts[i] = w.hooking.after(ctx, w.moments[i], r)
	}
}

// record records what they did.
func (w *watching) record(t *turn) error {
	if w == nil {
		return nil
	}
	for i, v := range w.verdicts {
		if v.Stop {
			t.stopped = v.Reason
		}
		if err := w.note(w.moments[i], v); err != nil {
			return err
		}
	}
	return nil
}

// lost has after_tool hooks see the results of calls that a crash cut and that are not run
// again: each call that began has been shown to them when its result is recorded.
func (h *hooking) lost(ctx context.Context, t *turn, calls []record.OpenCall, recs []record.Record) error {
	for _, rec := range recs {
		r, ok := rec.(*record.ToolResult)
		if !ok || !h.any(hooks.AfterTool, r.Name) {
			continue
		}
		m := h.moment(hooks.AfterTool, t)
		m.Tool, m.Call = r.Name, r.ToolCallID
		for _, c := range calls {
			if c.Call.ID == r.ToolCallID {
				m.Input = c.Call.Arguments
			}
		}
		var v hooks.Verdict
		h.deliveries.meanwhile(func(func(func())) { v = h.after(ctx, m, r) })
		if err := h.note(m, v); err != nil {
			return err
		}
	}
	return nil
}

// asked tells the approval hooks that a person is asked for something.
func (h *hooking) asked(ctx context.Context, t *turn, token string, need permission.Request) error {
	if !h.any(hooks.Approval, "") {
		return nil
	}
	m := h.moment(hooks.Approval, t)
	m.Request = hooks.Request{Token: token, Permission: need.Tag, Reason: need.Reason, Detail: need.Detail.String()}
	_, err := h.run(ctx, t, m)
	return err
}

// asked is the request of a call that a hook wants a person to decide: what the call needs
// where each asks first, else the call itself. Nothing that was granted before answers it, but
// for an answer to exactly this.
func asked(p prepared, need *permission.Request) (*permission.Request, error) {
	if need == nil && p.call.Access.Changes() {
		strict := p
		strict.call.Access.Profile = permission.AskFirst
		var err error
		if need, err = needs(strict); err != nil {
			return nil, err
		}
	}
	if need == nil {
		text, err := spelled(p.call)
		if err != nil {
			return nil, err
		}
		dir := cmp.Or(p.call.Access.WorkingDir, "/")
		need = &permission.Request{Tag: permission.Read{Path: dir}.Tag(), Reason: "call " + p.spec.Name, Workdir: dir,
			Detail: permission.Detail{Command: text}}
	}
	forced := *need
	forced.AskAlways, forced.Prefix = true, ""
	forced.Reason = strings.TrimSuffix("a hook asks: "+p.hooked.Reason, ": ") + " (" + need.Reason + ")"
	return &forced, nil
}

// opening runs what comes before the first model call of a turn: session_start, where the
// model has not answered yet in this session, and before_prompt. refused is why the turn ends
// without a call; "": it goes on.
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
	m.Message.Text = t.said
	return h.tell(ctx, t, m)
}

// tell runs the hooks of a moment and adds what they say to the conversation.
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
		h.journal.log.Warn("a turn_end hook has asked to go on too often, so the turn ends", "turn", t.id)
		return "", nil
	}
	t.goneOn++
	return v.Reason, nil
}

// heard are the verdicts of on_message hooks on items, in their order; nil: there are none.
// What agents and daycare itself tell each other is no message of that kind.
func (h *hooking) heard(ctx context.Context, s *self, turn string, items []inbox.Item) []hooks.Verdict {
	if !h.any(hooks.OnMessage, "") {
		return nil
	}
	ob := h.journal.history.Obligations()
	verdicts := make([]hooks.Verdict, len(items))
	h.deliveries.meanwhile(func(func(func())) {
		for i, it := range items {
			if it.Kind != message.Text {
				continue
			}
			verdicts[i] = h.hooks.Run(ctx, hooks.Moment{Event: hooks.OnMessage, Agent: h.who(s, ob.Session), Turn: turn,
				Origin: origin(it), Sources: texts(ob.Sources), Message: hooks.Message{Item: it.ID, Text: it.Text}})
		}
	})
	return verdicts
}

// refuses reports whether a message is refused.
func refuses(v hooks.Verdict) bool { return v.Stop || v.Decision == hooks.Deny }

// refusedText begins what stands in the place of a refused message.
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

// origin names who sent an item, for programs.
func origin(it inbox.Item) string {
	switch {
	case it.Origin != "":
		return it.Origin
	case it.Route != nil:
		return strings.TrimRight(it.Route.Connector+"/"+it.Route.ChannelID+"/"+it.Route.UserID, "/")
	}
	return ""
}
