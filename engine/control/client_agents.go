package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"daycare/engine/event"
	"daycare/engine/message"
)

// Agents lists all agents.
func (c *Client) Agents(ctx context.Context) ([]event.Agent, error) {
	var b agentsBody
	err := c.do(ctx, http.MethodGet, "/v1/agents", nil, &b)
	return b.Agents, err
}

// Family is an agent and those below it that have not ended. A daemon of an older version
// lists all agents.
func (c *Client) Family(ctx context.Context, ref string) ([]event.Agent, error) {
	var b agentsBody
	err := c.do(ctx, http.MethodGet, "/v1/agents?family="+url.QueryEscape(ref), nil, &b)
	return b.Agents, err
}

// Agent is one agent; ref is an id, handle, name or prefix of an id.
func (c *Client) Agent(ctx context.Context, ref string) (a event.Agent, err error) {
	return a, c.do(ctx, http.MethodGet, agentPath(ref), nil, &a)
}

// Create makes an agent.
func (c *Client) Create(ctx context.Context, n NewAgent) (a event.Agent, err error) {
	return a, c.do(ctx, http.MethodPost, "/v1/agents", n, &a)
}

// Remove moves an agent to the trash and says where it lies there.
func (c *Client) Remove(ctx context.Context, ref string, force bool) (string, error) {
	path := agentPath(ref)
	if force {
		path += "?force=1"
	}
	var b trashBody
	err := c.do(ctx, http.MethodDelete, path, nil, &b)
	return b.Trash, err
}

// Stop cancels the turn under way; false: there was none.
func (c *Client) Stop(ctx context.Context, ref string) (bool, error) {
	var b stoppedBody
	err := c.do(ctx, http.MethodPost, agentPath(ref, "stop"), nil, &b)
	return b.Stopped, err
}

// Kill ends an agent with its children.
func (c *Client) Kill(ctx context.Context, ref string) error {
	return c.do(ctx, http.MethodPost, agentPath(ref, "kill"), nil, nil)
}

// Draft is the answer that is being streamed; empty if there is none.
func (c *Client) Draft(ctx context.Context, ref string) (d event.Draft, err error) {
	return d, c.do(ctx, http.MethodGet, agentPath(ref, "draft"), nil, &d)
}

// Inbox lists what waits.
func (c *Client) Inbox(ctx context.Context, ref string) ([]event.Waiting, error) {
	var b inboxBody
	err := c.do(ctx, http.MethodGet, agentPath(ref, "inbox"), nil, &b)
	return b.Items, err
}

// Drop removes an item that waits.
func (c *Client) Drop(ctx context.Context, ref, item string) error {
	return c.do(ctx, http.MethodDelete, agentPath(ref, "inbox", item), nil, nil)
}

// Front moves an item that waits before all others.
func (c *Client) Front(ctx context.Context, ref, item string) error {
	return c.do(ctx, http.MethodPost, agentPath(ref, "inbox", item, "front"), nil, nil)
}

// messagesPath: a message without a ref goes to the agent of its descriptor.
func messagesPath(ref string) string {
	if ref == "" {
		return "/v1/messages"
	}
	return agentPath(ref, "messages")
}

// Send puts a message into an agent's inbox; ref "" is the agent of the message's
// descriptor. It is durable when Send returns.
func (c *Client) Send(ctx context.Context, ref string, m Message) (r message.Receipt, err error) {
	m.Wait = false
	return r, c.do(ctx, http.MethodPost, messagesPath(ref), m, &r)
}

// Stream is Send that waits for the answer. f (nil: nobody) is called with the
// events of the turn as they come: first item.queued, which carries the receipt,
// last turn.finished. ErrCut says that the stream broke off: the outcome then
// names agent and item, if they were known; the message is safe, and sending it
// again with the same Dedupe waits for the rest.
func (c *Client) Stream(ctx context.Context, ref string, m Message, f func(RawEvent)) (event.Outcome, error) {
	m.Wait = true
	var o event.Outcome
	resp, err := c.send(ctx, http.MethodPost, messagesPath(ref), m, eventStream)
	if err != nil {
		return o, err
	}
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
	b, err := Body[errorBody](e)
	if err != nil {
		return err
	}
	if b.Error == nil {
		return fmt.Errorf("stream turn: %w", ErrCut)
	}
	return b.Error
}

// Events calls f with each event until ctx or the daemon ends; it always returns
// an error. lastID goes on after that event (""; from now on); what cannot be
// replayed is told as an event of GapType. Connecting again is the caller's: keep
// the last ID that was not empty.
func (c *Client) Events(ctx context.Context, filter Filter, lastID string, f func(RawEvent) error) error {
	q := url.Values{}
	if filter.Agent != "" {
		q.Set("agent", filter.Agent)
	}
	if len(filter.Types) > 0 {
		types := make([]string, len(filter.Types))
		for i, t := range filter.Types {
			types[i] = string(t)
		}
		q.Set("types", strings.Join(types, ","))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://daycare/v1/events?"+q.Encode(), nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Accept", eventStream)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := c.roundTrip(req)
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
