package agents

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/nrednav/cuid2"

	"daycare/agents/providers"
	"daycare/engine/address"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/record"
)

// record writes an answer that calls tools. It is behind a barrier before any of
// them runs (see batch).
func (a *agent) record(t *turn, answer *providers.Response) ([]record.ToolCall, error) {
	as := a.assistant(t, answer, record.FinishToolUse)
	for _, c := range answer.Calls {
		as.ToolCalls = append(as.ToolCalls,
			record.ToolCall{ID: cuid2.Generate(), RemoteID: c.RemoteID, Name: c.Name, Arguments: arguments(c)})
	}
	if to := a.answerTo(t); strings.TrimSpace(as.Text) != "" && a.Outbox.Interim(to) {
		as.Out = a.promise(t, as.Text)
	}
	entries, err := a.append(as)
	if err != nil || as.Out == nil {
		return as.ToolCalls, err
	}
	if err := a.barrier(); err != nil {
		return nil, err
	}
	a.send(*as.Out, entries[0], nil, false)
	return as.ToolCalls, nil
}

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

// assistant is the record of an answer; nil for no answer at all.
func (a *agent) assistant(t *turn, r *providers.Response, finish record.Finish) *record.Assistant {
	if r == nil {
		return nil
	}
	as := a.paid(&record.Assistant{Turn: t.id, Text: r.Text, Finish: finish, Provider: r.Provider, Model: r.Model}, r.Usage)
	if len(r.Thinking) > 0 && r.Asked != r.Model {
		as.Asked = r.Asked
	}
	for _, th := range r.Thinking {
		as.Thinking = append(as.Thinking, record.Thinking{Text: th.Text, Signature: th.Signature})
	}
	return as
}

// paid puts into a record what its call of the model used and cost.
func (a *agent) paid(as *record.Assistant, u providers.Usage) *record.Assistant {
	as.Tokens = record.Tokens{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Estimated: u.Estimated}
	as.Cost = a.Costs.Price(as.Provider, as.Model, u)
	return as
}

// reply ends the turn with the model's answer.
func (a *agent) reply(t *turn, answer *providers.Response) error {
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
	return a.finish(t, reason, a.assistant(t, answer, finish))
}

// notice is what a person reads when a turn was ended by a limit.
func (a *agent) notice(t *turn, reason string) *record.Assistant {
	var text string
	switch reason {
	case record.ReasonLimit:
		text = fmt.Sprintf("I stopped after %d rounds of tool calls. Say \"continue\" and I go on.", t.rounds)
	case record.ReasonLoop:
		text = fmt.Sprintf("I stopped because I made the same call with the same result %d times. Tell me how to go on.", loopTimes)
	default:
		return nil
	}
	return &record.Assistant{Turn: t.id, Text: text, Finish: record.FinishError}
}

// finish closes a turn: the last answer (or none) and the closing record in one
// write behind one barrier, then the items are done and the answer leaves.
func (a *agent) finish(t *turn, reason string, as *record.Assistant, cause ...error) error {
	end := &record.TurnEnd{Turn: t.id, Items: t.items, Reason: reason} // what is owed is added by history
	if err := errors.Join(cause...); err != nil {
		end.Error = err.Error()
	}
	if as == nil && reason == record.ReasonCanceled { // the newest answer is not one that waits for its tools
		as = &record.Assistant{Turn: t.id, Finish: record.FinishCanceled}
	}
	var recs []record.Record
	if as != nil && (as.Text != "" || len(as.Thinking) > 0) && reason != record.ReasonCanceled {
		as.Out = a.promise(t, as.Text)
	}
	if as == nil || as.Out == nil {
		as = a.reporting(t, reason, as)
	}
	if as != nil && (as.Text != "" || len(as.Thinking) > 0 || as.Out != nil || as.Finish == record.FinishCanceled) {
		recs = append(recs, as)
	}
	entries, err := a.append(append(recs, end)...)
	if err != nil {
		return err
	}
	if crash.Bug("sendfirst") && as != nil && as.Out != nil {
		a.send(*as.Out, entries[0], nil, false)
	}
	if err := a.barrier(); err != nil {
		return err
	}
	crash.Point("turn.answered")
	if err := a.done(t.items...); err != nil {
		return err
	}
	crash.Point("turn.closed")
	record.RemoveDraft(a.Dir)
	if as != nil && as.Out != nil && !crash.Bug("sendfirst") {
		a.send(*as.Out, entries[0], nil, false)
	}
	a.announce(t, end, as)
	return nil
}

// announce tells whoever watches that the turn is over.
func (a *agent) announce(t *turn, end *record.TurnEnd, as *record.Assistant) {
	f := event.Finished{Reason: end.Reason, Error: end.Error, Items: t.items}
	if as != nil {
		f.Text = as.Text
	}
	a.emit(event.TurnFinished, t.id, f)
}

// promise is the promise to deliver an answer; nil where there is none to deliver
// or people read it from history.
func (a *agent) promise(t *turn, text string) *record.Out {
	to := a.answerTo(t)
	if nothing(text) || !a.Outbox.Answers(to) {
		return nil
	}
	return &record.Out{ID: cuid2.Generate(), To: to, ReplyTo: t.replyTo}
}

// nothing reports an answer that is not to be delivered.
func nothing(text string) bool {
	s := strings.TrimSuffix(strings.Trim(strings.TrimSpace(text), "\"'`"), ".")
	s = strings.Trim(s, "\"'`")
	return s == "" || s == "NO_MESSAGE"
}

// answerTo is where the turn's answer goes: the route of its last message, else
// that of the newest message before it, else the agent's own address.
func (a *agent) answerTo(t *turn) message.Address {
	if t.route != nil {
		return *t.route
	}
	if !t.spoken {
		if r := a.lastRoute(); r != nil {
			return *r
		}
	}
	return a.address()
}

// address is the agent's own chat; empty where it has none.
func (a *agent) address() message.Address {
	d := a.Meta.Descriptor
	if d.Type != address.User {
		return message.Address{}
	}
	return message.Address{Connector: d.Connector, ChannelID: d.ChannelID, UserID: d.UserID}
}

// workRoute is where the outcome of work that is begun in this turn is to be told.
func (a *agent) workRoute(t *turn) message.Address {
	if a.foreground() {
		return a.answerTo(t)
	}
	return a.Meta.Descriptor.Route
}

// lastRoute is the route of the newest message of a person, if it had one.
func (a *agent) lastRoute() *message.Address {
	c, err := a.history.Context()
	if err != nil {
		return nil
	}
	for i := len(c.Entries) - 1; i >= 0; i-- {
		if u, ok := c.Entries[i].Rec.(*record.User); ok && u.Origin == "" {
			return u.Route
		}
	}
	return nil
}

// append writes records. What they say has happened, so it waits while the disk is full.
func (a *agent) append(recs ...record.Record) (entries []*record.Entry, err error) {
	for _, rec := range recs {
		a.hide(rec)
	}
	err = a.untilRoom(func() (err error) {
		entries, err = a.history.Append(recs...)
		return err
	})
	if err != nil {
		return entries, fmt.Errorf("write history: %w", err)
	}
	return entries, nil
}

// untilRoom calls write again, with a growing pause, while the disk is full and the
// agent is not to stop. To give up instead would be to forget a call that had its
// effect, an answer that was paid for, or a delivery.
func (a *agent) untilRoom(write func() error) error {
	for pause := roomFirst; ; pause = min(2*pause, roomLast) {
		err := write()
		if !errors.Is(err, disk.ErrFull) {
			return err
		}
		a.log.Warn("disk full, waiting", "again", pause, "err", err)
		a.Stage.Show(event.Failing, err.Error())
		select {
		case <-time.After(pause):
		case <-a.over:
			return err
		}
	}
}

// Pauses between tries to write to a full disk.
const (
	roomFirst = 100 * time.Millisecond
	roomLast  = 10 * time.Second
)

func (a *agent) barrier() error {
	if err := a.history.Barrier(); err != nil {
		return fmt.Errorf("sync history: %w", err)
	}
	return nil
}

func (a *agent) path(elem ...string) string {
	return filepath.Join(append([]string{a.Dir}, elem...)...)
}
