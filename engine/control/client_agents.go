package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"daycare/engine/event"
	"daycare/engine/message"
)

// Agents lists all agents.
func (c agentCalls) Agents(ctx context.Context) ([]event.Agent, error) { return c.Family(ctx, "") }

// Family returns an agent and its descendants that have not ended. A daemon of an older version
// lists all agents.
func (c agentCalls) Family(ctx context.Context, ref string) ([]event.Agent, error) {
	b, err := listAgents.call(ctx, c.wire, listIn{ref})
	return b.Agents, err
}

// Agent returns one agent; ref is an id, handle, name or prefix of an id.
func (c agentCalls) Agent(ctx context.Context, ref string) (event.Agent, error) {
	return showAgent.call(ctx, c.wire, anAgent{ref})
}

// Machine is the machine of a cluster that answers for an agent; "": the one that the client is connected to.
func (c agentCalls) Machine(ctx context.Context, ref string) (string, error) {
	resp, err := showAgent.send(ctx, c.wire, anAgent{ref}, "")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close() // all of it was read
	if err := json.NewDecoder(resp.Body).Decode(&event.Agent{}); err != nil {
		return "", fmt.Errorf("find the machine of %s: %w", ref, gone(err))
	}

	return resp.Header.Get(MachineHeader), nil
}

// Context is what the model of an agent is sent, as `context` of `daycare agents show ID --json`.
func (c daemonCalls) Context(ctx context.Context, ref string) (json.RawMessage, error) {
	return sizeOf.call(ctx, c.wire, anAgent{ref})
}

// Trace is what `daycare why ID --json` prints.
func (c daemonCalls) Trace(ctx context.Context, id string) (json.RawMessage, error) {
	return traceOp.call(ctx, c.wire, traceIn{id})
}

// Create creates an agent.
func (c agentCalls) Create(ctx context.Context, n NewAgent) (event.Agent, error) {
	return createAgent.call(ctx, c.wire, aBody[NewAgent]{n})
}

// Remove moves an agent to the trash and returns its new path.
func (c agentCalls) Remove(ctx context.Context, ref string, force bool) (string, error) {
	b, err := removeAgent.call(ctx, c.wire, removeIn{ref, force})
	return b.Trash, err
}

// Stop cancels the current turn, or, where it is not "", that of an item; false: there was none.
func (c agentCalls) Stop(ctx context.Context, ref, item string) (bool, error) {
	b, err := stop.call(ctx, c.wire, stopIn{ref, item})
	return b.Stopped, err
}

// Kill ends an agent and its children permanently.
func (c agentCalls) Kill(ctx context.Context, ref string) error {
	_, err := kill.call(ctx, c.wire, anAgent{ref})
	return err
}

// Draft returns the answer that is being streamed; empty if there is none.
func (c agentCalls) Draft(ctx context.Context, ref string) (event.Draft, error) {
	return draft.call(ctx, c.wire, anAgent{ref})
}

// Inbox lists the queued items.
func (c agentCalls) Inbox(ctx context.Context, ref string) ([]event.Waiting, error) {
	b, err := waiting.call(ctx, c.wire, anAgent{ref})
	return b.Items, err
}

// Drop removes a queued item.
func (c agentCalls) Drop(ctx context.Context, ref, item string) error {
	_, err := dropItem.call(ctx, c.wire, itemIn{ref, item})
	return err
}

// Front moves a queued item to the front.
func (c agentCalls) Front(ctx context.Context, ref, item string) error {
	_, err := moveToFront.call(ctx, c.wire, itemIn{ref, item})
	return err
}

// Send puts a message into an agent's inbox; ref "" is the agent of the message's descriptor. The
// message is durable when Send returns.
func (c agentCalls) Send(ctx context.Context, ref string, m Message) (message.Receipt, error) {
	m.Wait = false
	if ref == "" {
		return postByDescriptor.call(ctx, c.wire, aBody[Message]{m})
	}

	return postToAgent.call(ctx, c.wire, agentBody[Message]{ref, m})
}

// Stream is Send that waits for the answer. f (may be nil) is called with the events of the turn as
// they arrive: first item.queued, which contains the receipt, last turn.finished. ErrCut says that
// the stream broke off: the outcome then contains agent and item, if they were known; the message
// is safe, and sending it again with the same Dedupe waits for the rest.
func (c agentCalls) Stream(ctx context.Context, ref string, m Message, f func(RawEvent)) (event.Outcome, error) {
	m.Wait = true
	var resp *http.Response
	var err error
	if ref == "" {
		resp, err = postByDescriptor.send(ctx, c.wire, aBody[Message]{m}, eventStream)
	} else {
		resp, err = postToAgent.send(ctx, c.wire, agentBody[Message]{ref, m}, eventStream)
	}
	if err != nil {
		return event.Outcome{}, err
	}

	return readTurn(ctx, resp, f)
}

// Item is an item that an agent accepted, and how it ended.
func (c agentCalls) Item(ctx context.Context, ref, item string) (event.Posted, error) {
	return showItem.call(ctx, c.wire, itemIn{ref, item})
}

// Follow is Stream for an item that was accepted before.
func (c agentCalls) Follow(ctx context.Context, ref, item string, f func(RawEvent)) (event.Outcome, error) {
	resp, err := followItem.send(ctx, c.wire, itemIn{ref, item}, eventStream)
	if err != nil {
		return event.Outcome{}, err
	}

	return readTurn(ctx, resp, f)
}

// readTurn reads the stream of a turn and closes it.
func readTurn(ctx context.Context, resp *http.Response, f func(RawEvent)) (o event.Outcome, err error) {
	defer resp.Body.Close()
	err = readEvents(resp.Body, func(e RawEvent) error {
		if e.Type == errorType {
			return streamError(e)
		}
		if f != nil {
			f(e)
		}

		switch e.Type {
		case event.ItemQueued:
			item, err := Body[event.Item](e)
			o.Agent, o.Item = e.Agent, item.Item
			return err
		case event.TurnFinished:
			end, err := Body[event.Finished](e)
			o.Agent, o.Turn = e.Agent, e.Turn
			o.Reason, o.Text, o.Error, o.Cost = end.Reason, end.Text, end.Error, end.Cost
			if err != nil {
				return err
			}
			return errEnded
		}

		return nil
	})
	switch {
	case errors.Is(err, errEnded):
		return o, nil
	case ctx.Err() != nil:
		return o, ctx.Err()
	case errors.Is(err, io.EOF) || errors.Is(gone(err), ErrNotRunning):
		return o, fmt.Errorf("stream turn: %w: %w", ErrCut, ErrNotRunning)
	}

	return o, err
}

var errEnded = errors.New("turn finished")

// streamError is the error in an event that ends a stream.
func streamError(e RawEvent) error {
	b, err := Body[ErrorBody](e)
	if err != nil {
		return err
	}
	if b.Error == nil {
		return fmt.Errorf("stream turn: %w", ErrCut)
	}

	return b.Error
}

// Events calls f with each event until ctx or the daemon ends; it always returns an error. lastID:
// continue after that event ("": from now on). If events cannot be replayed, f gets an event of
// GapType. To reconnect, call it again with the last ID that was not empty.
func (c agentCalls) Events(ctx context.Context, filter Filter, lastID string, f func(RawEvent) error) error {
	types := make([]string, len(filter.Types))
	for i, t := range filter.Types {
		types[i] = string(t)
	}
	resp, err := events.send(ctx, c.wire, eventsIn{Agent: filter.Agent, Types: strings.Join(types, ","), LastID: lastID}, eventStream)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	err = readEvents(resp.Body, f)
	if ctx.Err() != nil {
		return ctx.Err()
	}

	return gone(err)
}

// readEvents decodes the heads of events.
func readEvents(r io.Reader, f func(RawEvent) error) error {
	return readSSE(r, func(s sseEvent) error {
		e := RawEvent{Data: json.RawMessage(s.Data)}
		if err := json.Unmarshal(s.Data, &e); err != nil {
			return fmt.Errorf("decode event %s: %w", s.Type, err)
		}
		e.ID, e.Type = s.ID, event.Type(s.Type)

		return f(e)
	})
}
