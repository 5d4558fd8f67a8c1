package control

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"daycare/engine/event"
	"daycare/engine/message"
)

// A turnFilter picks the events of the turn that one item is worked on in. The
// turn is known from turn.started, or from item.taken where the item was folded
// into a turn that ran already; a turn that began again after a retry or a
// restart is found again by its next turn.started.
type turnFilter struct {
	agent, item string
	old         bool   // the item was accepted before: its turn may be long over
	current     bool   // it is in the turn under way, which is known by its next event
	id          string // the turn; "" before the item was taken
	over        bool   // its turn.finished was seen
}

func (t *turnFilter) sink(told Told) eventSink {
	return eventSink{
		event: func(e event.Event) error {
			if !t.matches(e) {
				return nil
			}
			return told.Event(e)
		},
		// A hole in the events of all agents says nothing about this turn.
		gap:   func(Gap) error { return nil },
		flush: told.Flush,
	}
}

// matches decides about one event and learns from it.
func (t *turnFilter) matches(e event.Event) bool {
	if e.Agent != t.agent {
		return false
	}
	if t.current && t.id == "" {
		t.id = e.Turn
	}
	switch body := e.Body.(type) {
	case event.Item:
		if body.Item != t.item {
			return false
		}
		if e.Type == event.ItemTaken && e.Turn != "" {
			t.id, t.over = e.Turn, false
		}
		return e.Type != event.ItemQueued // the stream began with it
	case event.Started:
		if slices.Contains(body.Items, t.item) {
			t.id, t.over = e.Turn, false
		}
	case event.Finished:
		if e.Turn == t.id {
			t.over = true
		}
		return false // made of the outcome
	}

	return t.id != "" && e.Turn == t.id
}

// tail reports whether events of the turn are still to come once its outcome is
// known.
func (t *turnFilter) tail(o event.Outcome) bool {
	return !t.over && (t.id != "" || o.Turn != "" && !t.old)
}

// resume streams the turn of an item that was accepted before.
func (p posts) resume(w http.ResponseWriter, r *http.Request, in itemIn) {
	if err := p.api.ready(Route(followItem)); err != nil {
		p.api.fail(w, r, err)
		return
	}
	p.streamTurn(w, r, message.Text, func(told Told) (event.Outcome, error) {
		return p.tell(r.Context(), in.ID, told, func(ctx context.Context, turn *turnFilter) (message.Receipt, error) {
			item, err := p.talks.agents.Item(ctx, in.ID, in.Item)
			turn.current = item.State == "taken"
			return message.Receipt{Agent: in.ID, Item: in.Item, Duplicate: true}, err
		})
	})
}

// streamTurn streams the turn that follow tells of.
func (p posts) streamTurn(w http.ResponseWriter, r *http.Request, kind message.Kind, follow func(Told) (event.Outcome, error)) {
	var out *sseWriter
	o, err := follow(Told{
		Accepted: func(receipt message.Receipt) (err error) {
			if out, err = startSSE(w); err != nil {
				return err
			}
			return out.send("", event.ItemQueued, queued(receipt, kind))
		},
		Event: func(e event.Event) error { return out.event(e) },
		Flush: func() error { return out.flush() },
		Alive: func() error { return out.alive() },
	})
	switch {
	case out == nil:
		p.api.fail(w, r, err)
	case r.Context().Err() != nil: // nobody reads it
	case err != nil:
		_ = out.value("", errorType, ErrorBody{Describe(err)})
	default:
		_ = out.value("", event.TurnFinished, finished(o))
	}
}

// A Told receives what happens in the turn that works on a message. If one of its functions returns
// an error, the reports end, but not the turn.
type Told struct {
	Accepted func(message.Receipt) error // called first, when the message is durable
	Event    func(event.Event) error
	Flush    func() error // called when no more events are buffered
	Alive    func() error // called when nothing happened for keepAlive
}

// follow posts a message and reports its turn until the item has ended.
func (p posts) follow(ctx context.Context, in message.Incoming, told Told) (event.Outcome, error) {
	return p.tell(ctx, in.Agent, told, func(ctx context.Context, _ *turnFilter) (message.Receipt, error) {
		return p.talks.deliver(ctx, in)
	})
}

// tell reports the turn of an item until that has ended. It subscribes before it asks for the
// item, so that no event of the turn is missed, and takes the end from Await, because events are
// lossy. agent "": only the receipt says whose the item is. The turn is picked out when an event arrives: the feed is
// older than the item.
func (p posts) tell(ctx context.Context, agent string, told Told,
	item func(context.Context, *turnFilter) (message.Receipt, error)) (event.Outcome, error) {
	if p.feed == nil {
		return event.Outcome{}, fmt.Errorf("stream a turn: %w", ErrNotRunning)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	turn := &turnFilter{}
	f := newFeed(p.feed, agent, fromNow, func(event.Event) bool { return true })
	defer f.close()

	receipt, err := item(ctx, turn)
	if err != nil {
		return event.Outcome{}, err
	}
	turn.agent, turn.item, turn.old = receipt.Agent, receipt.Item, receipt.Duplicate
	if err := told.Accepted(receipt); err != nil {
		return event.Outcome{}, err
	}

	ended := make(chan awaited, 1)
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		o, err := p.talks.agents.Await(ctx, receipt.Agent, receipt.Item)
		ended <- awaited{o, err}
	}()
	defer func() { cancel(); <-waiting }()

	return tellTurn(ctx, f, told, turn, ended)
}

type awaited struct {
	outcome event.Outcome
	err     error
}

// tellTurn tells what belongs to the turn until the item has ended.
func tellTurn(ctx context.Context, f *feed, told Told, turn *turnFilter, ended <-chan awaited) (event.Outcome, error) {
	t := turn.sink(told)
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	for {
		select {
		case <-f.wake:
			if err := f.drain(t); err != nil {
				return event.Outcome{}, err
			}
		case end := <-ended:
			return endTurn(ctx, f, t, turn, end)
		case <-beat.C:
			if err := told.Alive(); err != nil {
				return event.Outcome{}, err
			}
		case <-closingOf(ctx):
			return event.Outcome{}, fmt.Errorf("%w: daycare is shutting down; the message is safe", ErrCut)
		case <-ctx.Done():
			return event.Outcome{}, ctx.Err()
		}
	}
}

// errorType is the type of the event that ends a stream which cannot continue.
const errorType event.Type = "error"

// ErrorBody is the body of a failed request.
type ErrorBody struct {
	Error *APIError `json:"error"`
}

// endTurn tells the last events of a turn whose outcome is known.
func endTurn(ctx context.Context, f *feed, t eventSink, turn *turnFilter, end awaited) (event.Outcome, error) {
	if end.err != nil {
		return end.outcome, end.err
	}
	late := time.After(tailGrace)
	for turn.tail(end.outcome) {
		select {
		case <-f.wake:
			if err := f.drain(t); err != nil {
				return end.outcome, err
			}
			continue
		case <-late:
		case <-ctx.Done():
		}
		break
	}

	return end.outcome, nil
}

// queued is the first event of a turn's stream: the receipt, as an event.
func queued(r message.Receipt, kind message.Kind) event.Event {
	return event.Event{Type: event.ItemQueued, At: time.Now(), Agent: r.Agent,
		Body: event.Item{Item: r.Item, Kind: string(kind), Seq: r.Seq, Duplicate: r.Duplicate}}
}

// finished is the last event of a turn's stream.
func finished(o event.Outcome) event.Event {
	return event.Event{Type: event.TurnFinished, At: time.Now(), Agent: o.Agent, Turn: o.Turn,
		Body: event.Finished{Reason: o.Reason, Error: o.Error, Text: o.Text, Items: []string{o.Item}, Cost: o.Cost}}
}

// tailGrace is how long a stream waits for the last events of a turn that has
// ended.
const tailGrace = 100 * time.Millisecond
