package control

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"daycare/engine/apitoken"
	"daycare/engine/event"
	"daycare/engine/message"
)

// A Filter narrows a stream of events; the zero value lets all pass.
type Filter struct {
	Agent string       // ref of one agent
	Types []event.Type // only these

	rights apitoken.Rights // of who watches
}

func (f Filter) match(e event.Event) bool {
	return f.rights.Know(e.Agent) && (f.Agent == "" || e.Agent == f.Agent) && (len(f.Types) == 0 || slices.Contains(f.Types, e.Type))
}

// events is the stream that user interfaces live on. It ends with the client,
// or when the daemon does.
func (a *api) events(w http.ResponseWriter, r *http.Request, in eventsIn) {
	filter, err := a.filter(r.Context(), in)
	if err != nil {
		a.fail(w, r, err)
		return
	}
	if a.Events == nil {
		a.fail(w, r, fmt.Errorf("watch events: %w", ErrNotRunning))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	from, gap := a.resume(in.LastID)
	out, err := startSSE(w)
	if err != nil {
		return // the client is gone
	}
	if gap != nil && out.send("", GapType, gap) != nil {
		return
	}
	f := newFeed(ctx, a.Events, from, filter.match)
	defer func() { cancel(); <-f.done }()
	a.tell(ctx, f, out)
}

// tell runs the stream until the client or the server ends it.
func (a *api) tell(ctx context.Context, f *feed, out *sseWriter) {
	t := out.teller()
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	for {
		select {
		case <-f.wake:
			if f.drain(t) != nil {
				return
			}
		case <-beat.C:
			if out.comment("") != nil {
				return
			}
		case <-closingOf(ctx):
			_ = f.drain(t)
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *sseWriter) teller() teller {
	return teller{event: s.event, gap: func(g Gap) error { return s.send("", GapType, g) }, flush: s.flush}
}

func (a *api) filter(ctx context.Context, in eventsIn) (Filter, error) {
	f := Filter{rights: callerOf(ctx).Rights}
	if in.Agent != "" {
		id, err := a.resolve(ctx, in.Agent)
		if err != nil {
			return f, err
		}
		f.Agent = id
	}
	for _, t := range strings.Split(in.Types, ",") {
		if t = strings.TrimSpace(t); t != "" {
			if !slices.Contains(event.Types, event.Type(t)) {
				return f, &malformed{Invalid{Field: "types", Reason: fmt.Sprintf("there is no type of event %q", t),
					Hint: "docs/api.md lists them"}}
			}
			f.Types = append(f.Types, event.Type(t))
		}
	}
	return f, nil
}

// resume finds the number to go on from. Where the ring cannot tell what
// happened since, because it is of another process, there is a gap.
func (a *api) resume(last string) (from uint64, gap *Gap) {
	next := a.Events.Next()
	if last == "" {
		return next, nil
	}
	n, ok := numberOf(last)
	if ok && bootOf(last) == a.Events.Boot() && n < next {
		return n + 1, nil
	}
	_, first := a.Events.Since(1)
	return first, &Gap{From: last, To: fmt.Sprintf("%s.%d", a.Events.Boot(), first)}
}

// tailGrace is how long a stream waits for the last events of a turn that has
// ended: they are on their way through the Broker.
const tailGrace = 100 * time.Millisecond

// streamTurn posts a message and streams the turn that it is worked on in. It
// subscribes before it posts, so that no event of the turn is missed, and takes
// the end from Await, because events are lossy.
func (a *api) streamTurn(w http.ResponseWriter, r *http.Request, in message.Incoming) {
	if a.Events == nil {
		a.fail(w, r, fmt.Errorf("stream a turn: %w", ErrNotRunning))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	turn := &turnFilter{}
	f := newFeed(ctx, a.Events, a.Events.Next(), ofAgent(in.Agent))
	defer func() { cancel(); <-f.done }()

	receipt, err := a.deliver(ctx, in)
	if err != nil {
		a.fail(w, r, err)
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
		o, err := a.Agents.Await(ctx, receipt.Agent, receipt.Item)
		ended <- awaited{o, err}
	}()
	defer func() { cancel(); <-waiting }()
	a.tellTurn(ctx, f, out, turn, ended)
}

type awaited struct {
	outcome event.Outcome
	err     error
}

// tellTurn forwards what belongs to the turn until the item has ended.
func (a *api) tellTurn(ctx context.Context, f *feed, out *sseWriter, turn *turnFilter, ended <-chan awaited) {
	t := turn.teller(out)
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	for {
		select {
		case <-f.wake:
			if f.drain(t) != nil {
				return
			}
		case end := <-ended:
			a.endTurn(ctx, f, out, turn, end)
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

func (a *api) endTurn(ctx context.Context, f *feed, out *sseWriter, turn *turnFilter, end awaited) {
	if end.err != nil {
		_ = out.send("", errorType, ErrorBody{Describe(end.err)})
		return
	}
	t := turn.teller(out)
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
