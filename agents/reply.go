package agents

import (
	"encoding/json"
	"errors"
	"strings"

	"daycare/agents/providers"
	"daycare/engine/crash"
	"daycare/engine/cuid"
	"daycare/engine/event"
	"daycare/engine/record"
	"daycare/tools"
	"daycare/tools/hooks"
)

// arguments are what the model wrote, or a JSON string of it where that is no JSON
// object: a line of history must stay JSON.
func arguments(c providers.ResponseCall) json.RawMessage {
	if c.Valid {
		return c.Arguments
	}
	raw, err := json.Marshal(string(c.Arguments))
	if err != nil {
		return json.RawMessage(`""`)
	}

	return raw
}

// meant is a call of the model as it is recorded. One of tool_call is recorded as a call of the
// tool that it names, so that permissions, hooks, and whoever reads history see that one.
func (s *self) meant(c providers.ResponseCall) record.ToolCall {
	call := record.ToolCall{ID: cuid.Unique(), RemoteID: c.RemoteID, Name: c.Name, Arguments: arguments(c)}
	if c.Name != tools.CallTool || !c.Valid || s.tools == nil {
		return call
	}
	if name, inner, ok := s.tools.Called(c.Arguments); ok {
		call.Name, call.Arguments, call.Via = name, inner, c.Name
	}

	return call
}

// nothing reports an answer that is not to be delivered.
func nothing(text string) bool {
	s := strings.TrimSuffix(strings.Trim(strings.TrimSpace(text), "\"'`"), ".")
	s = strings.Trim(s, "\"'`")
	return s == "" || s == "NO_MESSAGE"
}

// replies record what the model answered, and close turns.
type replies struct {
	stage      Stage
	journal    *journal
	deliveries *deliveries
	intake     *intake
	outbox     Outbox
	costs      Costs
	reports    Reports
}

// record writes an answer that calls tools. It is behind a barrier before any of
// them runs (see batch).
func (rs *replies) record(t *turn, answer *providers.Response) ([]record.ToolCall, error) {
	as := rs.assistant(t, answer, record.FinishToolUse)
	for _, c := range answer.Calls {
		as.ToolCalls = append(as.ToolCalls, t.meant(c))
	}
	if to := t.answerTo(rs.journal); strings.TrimSpace(as.Text) != "" && rs.outbox.Interim(to) {
		as.Out = rs.promise(t, as.Text)
	}
	entries, err := rs.journal.append(as)
	if err != nil || as.Out == nil {
		return as.ToolCalls, err
	}
	if err := rs.journal.barrier(); err != nil {
		return nil, err
	}
	rs.deliveries.send(*as.Out, entries[0], nil, false)
	return as.ToolCalls, nil
}

// interim writes an answer with which the model was done and a hook was not, and what that
// wants. Its finish says that the turn has not ended, whatever is written after it.
func (rs *replies) interim(t *turn, answer *providers.Response, why string) error {
	as := rs.assistant(t, answer, record.FinishToolUse)
	if to := t.answerTo(rs.journal); strings.TrimSpace(as.Text) != "" && rs.outbox.Interim(to) {
		as.Out = rs.promise(t, as.Text)
	}
	entries, err := rs.journal.append(as, goOn(why, t.settings.Zone))
	if err != nil || as.Out == nil {
		return err
	}
	if err := rs.journal.barrier(); err != nil {
		return err
	}
	rs.deliveries.send(*as.Out, entries[0], nil, false)
	return nil
}

// goOn is what a hook wants done before the turn ends.
func goOn(why, zone string) *record.User {
	return &record.User{Text: why, Origin: hookOrigin + " " + string(hooks.TurnEnd), Zone: zone}
}

// reply ends the turn with the model's answer.
func (rs *replies) reply(t *turn, answer *providers.Response) error {
	finish := record.FinishEndTurn
	switch answer.Finish {
	case providers.MaxTokens:
		finish = record.FinishMaxTokens
	case providers.Refusal:
		if strings.TrimSpace(answer.Text) == "" {
			answer.Text = "The model declined to answer this."
		}
	}
	reason := record.ReasonDone
	if t.waiting {
		reason = record.ReasonWaiting
	}

	return rs.finish(t, reason, rs.assistant(t, answer, finish))
}

// finish closes a turn: the last answer (or none) and the closing record in one
// write behind one barrier, then the items are done and the answer leaves.
func (rs *replies) finish(t *turn, reason string, as *record.Assistant, cause ...error) error {
	if rs.reports.Settle != nil && reason == record.ReasonDone {
		rs.reports.Settle(t.id)
	}
	end := &record.TurnEnd{Turn: t.id, Items: t.items, Reason: reason} // what is owed is added by history
	if err := errors.Join(cause...); err != nil {
		end.Error = err.Error()
	}
	if as == nil { // it is recorded only if it carries a report or the word that the turn was stopped
		as = &record.Assistant{Turn: t.id, Finish: record.FinishEndTurn}
		if reason == record.ReasonCanceled { // the newest answer is not one that waits for its tools
			as.Finish = record.FinishCanceled
		}
	}
	var recs []record.Record
	if reason != record.ReasonCanceled {
		as.Out = rs.promise(t, as.Text)
	}
	if as.Out == nil {
		as.Out = rs.report(t, reason, as)
	}
	if as.Text != "" || len(as.Thinking) > 0 || as.Out != nil || as.Finish == record.FinishCanceled {
		recs = append(recs, as)
	}
	entries, err := rs.journal.append(append(recs, end)...)
	if err != nil {
		return err
	}
	if crash.Bug("sendfirst") && as.Out != nil {
		rs.deliveries.send(*as.Out, entries[0], nil, false)
	}
	if err := rs.journal.barrier(); err != nil {
		return err
	}
	crash.Point("turn.answered")
	rs.note(t)
	if err := rs.intake.done(t.items...); err != nil {
		return err
	}
	crash.Point("turn.closed")
	rs.journal.removeDraft()
	if as.Out != nil && !crash.Bug("sendfirst") {
		rs.deliveries.send(*as.Out, entries[0], nil, false)
	}
	rs.announce(t, end, as)
	return nil
}

// note tells whoever waits for an item of a turn how that ended, so that it is not read from the file again.
func (rs *replies) note(t *turn) {
	if len(t.items) == 0 {
		return
	}
	if o, ok := rs.journal.history.Ending(t.items[0]); ok {
		rs.stage.Ended(t.items, o)
	}
}

// complete writes the closing record that a torn write lost.
func (rs *replies) complete(t *turn, e *record.Entry) error {
	as := e.Rec.(*record.Assistant)
	end := &record.TurnEnd{Turn: t.id, Items: t.items, Reason: record.ReasonDone}
	switch as.Finish {
	case record.FinishError:
		end.Reason = record.ReasonError
	case record.FinishCanceled:
		end.Reason = record.ReasonCanceled
	}
	if _, err := rs.journal.append(end); err != nil {
		return err
	}
	if err := rs.journal.barrier(); err != nil {
		return err
	}
	rs.announce(t, end, as)
	return rs.intake.done(t.items...) // the promise itself was taken up by recover
}

// announce publishes the end of the turn.
func (rs *replies) announce(t *turn, end *record.TurnEnd, as *record.Assistant) {
	rs.journal.emit(event.TurnFinished, t.id, event.Finished{Reason: end.Reason, Error: end.Error, Text: as.Text, Items: t.items})
}

// promise is the promise to deliver an answer; nil if there is nothing to deliver
// or users read it from history.
func (rs *replies) promise(t *turn, text string) *record.Out {
	to := t.answerTo(rs.journal)
	if nothing(text) || !rs.outbox.Answers(to) {
		return nil
	}

	return &record.Out{ID: cuid.Unique(), To: to, ReplyTo: t.replyTo}
}

// assistant is the record of an answer; nil for no answer at all.
func (rs *replies) assistant(t *turn, r *providers.Response, finish record.Finish) *record.Assistant {
	if r == nil {
		return nil
	}
	as := paid(rs.costs, &record.Assistant{Turn: t.id, Text: r.Text, Finish: finish, Provider: r.Provider, Model: r.Model}, r.Usage)
	as.MS, as.FirstMS = r.Took.Milliseconds(), r.First.Milliseconds()
	if len(r.Thinking) > 0 && r.Asked != r.Model {
		as.Asked = r.Asked
	}
	if r.Sent.Body != "" {
		as.Sent = &record.Sent{Model: r.Asked, SHA256: r.Sent.Body, System: r.Sent.System, Tools: r.Sent.Tools}
	}
	for _, th := range r.Thinking {
		as.Thinking = append(as.Thinking, record.Thinking{Text: th.Text, Signature: th.Signature})
	}

	return as
}
