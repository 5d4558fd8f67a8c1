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
	id          string // the turn; "" before the item was taken
	over        bool   // its turn.finished was seen
}

// ofAgent is what the feed keeps: the events of the agent that the message is
// for, or of all where only the engine knows which that is. The turn is picked
// out when an event is told: the feed is older than the item.
func ofAgent(id string) func(event.Event) bool {
	return func(e event.Event) bool { return id == "" || e.Agent == id }
}

func (t *turnFilter) sink(out *sseWriter) eventSink {
	return eventSink{
		event: func(e event.Event) error {
			if !t.matches(e) {
				return nil
			}
			return out.event(e)
		},
		// A hole in the events of all agents says nothing about this turn.
		gap:   func(Gap) error { return nil },
		flush: out.flush,
	}
}

// matches decides about one event and learns from it.
func (t *turnFilter) matches(e event.Event) bool {
	if e.Agent != t.agent {
		return false
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

// streamTurn posts a message and streams the turn that it is worked on in. It
// subscribes before it posts, so that no event of the turn is missed, and takes
// the end from Await, because events are lossy.
func (p posts) streamTurn(w http.ResponseWriter, r *http.Request, in message.Incoming) {
	if p.feed == nil {
		p.api.fail(w, r, fmt.Errorf("stream a turn: %w", ErrNotRunning))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	turn := &turnFilter{}
	f := newFeed(ctx, p.feed, p.feed.Next(), ofAgent(in.Agent))
	defer func() { cancel(); <-f.done }()

	receipt, err := p.talks.deliver(ctx, in)
	if err != nil {
		p.api.fail(w, r, err)
		return
	}

	turn.agent, turn.item, turn.old = receipt.Agent, receipt.Item, receipt.Duplicate
	out, err := startSSE(w)
	if err != nil {
		return
	}
	if out.send("", event.ItemQueued, queued(receipt, in)) != nil {
		return
	}

	ended := make(chan awaited, 1)
	waiting := make(chan struct{})
	go func() {
		defer close(waiting)
		o, err := p.talks.agents.Await(ctx, receipt.Agent, receipt.Item)
		ended <- awaited{o, err}
	}()
	defer func() { cancel(); <-waiting }()
	tellTurn(ctx, f, out, turn, ended)
}

type awaited struct {
	outcome event.Outcome
	err     error
}

// tellTurn forwards what belongs to the turn until the item has ended.
func tellTurn(ctx context.Context, f *feed, out *sseWriter, turn *turnFilter, ended <-chan awaited) {
	t := turn.sink(out)
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	for {
		select {
		case <-f.wake:
			if f.drain(t) != nil {
				return
			}
		case end := <-ended:
			endTurn(ctx, f, out, turn, end)
			return
		case <-beat.C:
			if out.comment("") != nil {
				return
			}
		case <-closingOf(ctx):
			_ = out.send("", errorType, ErrorBody{Describe(fmt.Errorf("%w: daycare is shutting down; the message is safe", ErrCut))})
			return
		case <-ctx.Done():
			return
		}
	}
}

// errorType is the type of the event that ends a stream which cannot go on.
const errorType event.Type = "error"

// ErrorBody is the answer to a request that failed.
type ErrorBody struct {
	Error *APIError `json:"error"`
}

func endTurn(ctx context.Context, f *feed, out *sseWriter, turn *turnFilter, end awaited) {
	if end.err != nil {
		_ = out.send("", errorType, ErrorBody{Describe(end.err)})
		return
	}
	t := turn.sink(out)
	late := time.After(tailGrace)
	for turn.tail(end.outcome) {
		select {
		case <-f.wake:
			if f.drain(t) != nil {
				return
			}
			continue
		case <-late:
		case <-ctx.Done():
		}
		break
	}

	_ = out.send("", event.TurnFinished, finished(end.outcome))
}

// queued is the first event of a turn's stream: the receipt, as an event.
func queued(r message.Receipt, in message.Incoming) event.Event {
	return event.Event{Type: event.ItemQueued, At: time.Now(), Agent: r.Agent,
		Body: event.Item{Item: r.Item, Kind: string(in.Kind), Seq: r.Seq, Duplicate: r.Duplicate}}
}

// finished is the last event of a turn's stream.
func finished(o event.Outcome) event.Event {
	return event.Event{Type: event.TurnFinished, At: time.Now(), Agent: o.Agent, Turn: o.Turn,
		Body: event.Finished{Reason: o.Reason, Error: o.Error, Text: o.Text, Items: []string{o.Item}, Cost: o.Cost}}
}

// tailGrace is how long a stream waits for the last events of a turn that has
// ended: they are on their way through the Broker.
const tailGrace = 100 * time.Millisecond
